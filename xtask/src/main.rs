//! The project's own chores: `cargo xtask <chore>`.

mod bench;
mod clients;
mod config;
mod crds;
mod rbac;
mod realstack;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

/// Chores of the project. Each one installs what it needs and fails if it cannot.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Write the CRDs of our kinds to config/base/crd/.
    Crds {
        /// Write nothing; fail if a file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Write the roles of our managers to config/components/.
    Rbac {
        /// Write nothing; fail if a file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Build and apply what is deployed: config/.
    #[command(subcommand)]
    Config(config::Chore),
    /// Run other people's clients against the embedded API server.
    #[command(subcommand)]
    Clients(ClientsChore),
    /// Measure the platform against its budgets: `bench apiserver [--check]`; `bench apiserver --help` tells all.
    #[command(disable_help_flag = true)]
    Bench {
        /// What to measure, and how.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run a real Kubernetes and a real Karmada on this machine, and tests on them.
    #[command(subcommand)]
    Realstack(realstack::Chore),
}

#[derive(Subcommand)]
enum ClientsChore {
    /// kubectl (from PATH, else built from its Go module) and the Python client.
    Test,
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Crds { check } => crds::run(check).map(|()| ExitCode::SUCCESS),
        Chore::Rbac { check } => rbac::run(check).map(|()| ExitCode::SUCCESS),
        Chore::Config(chore) => config::run(chore).map(|()| ExitCode::SUCCESS),
        Chore::Clients(ClientsChore::Test) => clients::test().map(|()| ExitCode::SUCCESS),
        Chore::Bench { arguments } => bench::run(&arguments),
        Chore::Realstack(chore) => realstack::run(chore),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// The cargo that runs this, as people call it. What it says of this crate in the environment is left out: build scripts that look at it
/// would be run again, and everything above them built again, at each turn between a build from here and one by hand.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let of_this_crate = |name: &str| {
        ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(of_this_crate) {
            command.env_remove(name);
        }
    }
    command.current_dir(root());
    command
}
