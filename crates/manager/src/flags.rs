//! The command line.
//!
//! Flags say who the process is and how it reaches others; everything else is in the server config. What cannot be understood becomes one line.

use std::path::PathBuf;

use clap::Parser;
use clap::error::ErrorKind;

use crate::config::Mistake;

const EXAMPLES: &str = "\
Examples:
  The management plane, with two replicas of which one leads:
    compute-manager --enable-management-controllers --server-config /config/config.yaml \\
      --federation-kubeconfig /federation/kubeconfig --leader-elect

  A cell:
    compute-manager --enable-cell-controllers --server-config /config/config.yaml \\
      --federation-kubeconfig /federation/kubeconfig --leader-elect

  One cluster that is project and cell in one, without a hub (direct mode):
    compute-manager --enable-management-controllers --enable-cell-controllers \\
      --server-config /config/config.yaml --kubeconfig ~/.kube/config

Environment:
  FEDERATION_KUBECONFIG   what --federation-kubeconfig says, if that is not given
  FEATURE_GATES           what --feature-gates says, if that is not given
  COMPUTE_LOG             what is logged, such as debug or info,compute_runtime=debug [default: info]

A mistake in flags or configuration ends the process with exit code 1 and one line that names the field.";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line
    #[default]
    Json,
    /// For people
    Text,
}

/// Runs the controllers and the admission webhooks of the compute service.
///
/// The management role serves projects: it turns Workloads into deployments, sends them to the federation hub, and shows in projects what
/// became of them. The cell role serves one city: it runs instances. A process has one of the roles, or both.
#[derive(Clone, Debug, Parser)]
#[command(name = "compute-manager", version, after_help = EXAMPLES)]
pub struct Flags {
    /// Run the controllers that serve projects
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub enable_management_controllers: bool,
    /// Run the controllers that serve one cell
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub enable_cell_controllers: bool,
    /// The process's own cluster [default: the cluster that it runs in]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Everything that is not a flag: docs/operations/configuration.md
    #[arg(long, value_name = "FILE")]
    pub server_config: Option<PathBuf>,
    /// The federation hub; needed by both roles, but for direct mode [env: FEDERATION_KUBECONFIG]
    #[arg(long, value_name = "FILE")]
    pub federation_kubeconfig: Option<PathBuf>,
    /// Features to turn on or off, such as NetworkingIntegration=false [env: FEATURE_GATES]
    #[arg(long, value_name = "NAME=BOOL,…")]
    pub feature_gates: Option<String>,
    /// Let one of several replicas lead: Leases compute-manager-management and compute-manager-cell in the process's own cluster
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub leader_elect: bool,
    /// Where the Leases are [default: the namespace that the process runs in]
    #[arg(long, value_name = "NAMESPACE")]
    pub leader_election_namespace: Option<String>,
    /// Where /healthz and /readyz are served; 0 for nowhere
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: String,
    /// How log lines look
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
}

/// What to do if there are no flags to go by.
#[derive(Debug)]
pub enum Instead {
    /// Somebody asked for help or the version: this text.
    Print(String),
    /// The command line makes no sense.
    Complain(Mistake),
}

impl Flags {
    /// Reads a command line, the program's name included.
    ///
    /// # Errors
    ///
    /// What to do instead.
    pub fn read(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Self, Instead> {
        Self::try_parse_from(arguments).map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Instead::Print(error.render().to_string()),
            _ => Instead::Complain(Mistake::new("command line", one_line(&error.render().to_string()))),
        })
    }
}

/// The sentences of a complaint, without the reminder of how the program is used.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let told =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    told.collect::<Vec<_>>().join("; ").trim_start_matches("error: ").to_owned()
}
