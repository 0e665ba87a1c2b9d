//! The command line: options that every command has, and the commands.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::commands::Command;
use crate::complete;
use crate::connect::{PATIENCE, Wish};

const ABOUT: &str = "Run containers and virtual machines in many cities at once";

const EXAMPLES: &str = "Examples:
  datumctl-compute deploy hello --image docker.io/library/nginx:1.29 --city DFW,IAD --min 2 --port 80
  datumctl-compute status hello
  datumctl-compute instances
  datumctl-compute destroy hello

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not enabled or not allowed, 4 timed out";

/// Run containers and virtual machines in many cities at once.
#[derive(Parser)]
#[command(name = "datumctl-compute", version, about = ABOUT, after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// Say who this plugin is, for datumctl
    #[arg(long, hide = true)]
    pub(crate) plugin_manifest: bool,
    #[command(flatten)]
    pub(crate) way: Way,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Where to work, and how results look.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Way {
    /// The project to work in [default: the one that datumctl or the kubeconfig has selected]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// The namespace to work in [default: default]
    #[arg(long, short = 'n', global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// A kubeconfig to find the project with
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME", add = ArgValueCompleter::new(complete::contexts))]
    pub(crate) context: Option<String>,
    /// How long a server may take to answer a read [default: 4500ms]
    #[arg(long, global = true, value_name = "TIME", env = "DATUMCTL_COMPUTE_REQUEST_TIMEOUT", hide_env_values = true, value_parser = crate::commands::duration)]
    pub(crate) request_timeout: Option<Duration>,
    /// Output format
    #[arg(long, short = 'o', global = true, value_name = "FORM", value_enum, default_value_t)]
    pub(crate) output: Output,
}

impl Way {
    /// What the options ask for.
    pub(crate) fn wish(&self) -> Wish {
        Wish {
            project: self.project.clone(),
            namespace: self.namespace.clone(),
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            patience: self.request_timeout.unwrap_or(PATIENCE),
        }
    }
}

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Table,
    /// For people, with more columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// Names only, one per line
    Name,
}
