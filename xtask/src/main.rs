//! The project's own chores: `cargo xtask <chore>`.

mod clients;
mod crds;

use std::path::PathBuf;
use std::process::ExitCode;

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
    /// Run other people's clients against the embedded API server.
    #[command(subcommand)]
    Clients(ClientsChore),
}

#[derive(Subcommand)]
enum ClientsChore {
    /// kubectl (from PATH, else built from its Go module) and the Python client.
    Test,
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Crds { check } => crds::run(check),
        Chore::Clients(ClientsChore::Test) => clients::test(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
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
