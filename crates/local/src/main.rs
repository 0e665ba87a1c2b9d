//! `compute-local`: the whole platform in one process, on loopback, with nothing to install.
//!
//! It runs the library's [`Platform`](compute_local::Platform), serves its planes over TLS, and writes a kubeconfig with a
//! context for each. Start reading at [`up`]; [`demo`] is a platform for a minute.

mod access;
mod backup;
mod backup_server;
mod data_dir;
mod demo;
mod down;
mod kubeconfig;
mod reset;
mod restore;
mod status;
mod up;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use data_dir::DataDir;

/// A request is hundreds of small allocations: this one takes half the time of the system's.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Runs the compute platform on this machine: control planes for projects, the hub and one cell per city, with
/// everything that works on them, in one process, on loopback, with TLS and tokens.
#[derive(Parser)]
#[command(name = "compute-local", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Args)]
struct Place {
    /// Where credentials and state are kept [default: compute-local in your user data directory]
    #[arg(long, value_name = "DIR", env = "COMPUTE_LOCAL_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Start the platform and keep it running until Ctrl-C
    #[command(after_help = up::EXAMPLES)]
    Up {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        options: up::Options,
    },
    /// Stop the platform that runs with this data directory
    Down {
        #[command(flatten)]
        place: Place,
    },
    /// Show whether the platform runs, and its planes
    Status {
        #[command(flatten)]
        place: Place,
    },
    /// Show the life of a workload in a minute, on a platform of its own that leaves nothing behind
    #[command(after_help = demo::EXAMPLES)]
    Demo {
        #[command(flatten)]
        options: demo::Options,
    },
    /// Throw away everything that the platform keeps in this data directory
    #[command(after_help = reset::EXAMPLES)]
    Reset {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        options: reset::Options,
    },
    /// Write everything in the planes to a file, whether the platform runs or not
    #[command(after_help = backup::EXAMPLES)]
    Backup {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        options: backup::Options,
    },
    /// Make the planes what they were when a backup was taken
    #[command(after_help = restore::EXAMPLES)]
    Restore {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        options: restore::Options,
    },
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // A demo is to be looked at.
    let level = if matches!(command, Command::Demo { .. }) { "error" } else { "warn" };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("COMPUTE_LOG").unwrap_or_else(|_| level.into()),
        )
        .init();
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Up { place, options } => up::run(&DataDir::find(place.data_dir)?, &options).await,
        Command::Down { place } => down::run(&DataDir::find(place.data_dir)?).await,
        Command::Status { place } => status::run(&DataDir::find(place.data_dir)?).await,
        Command::Demo { options } => demo::run(&options).await,
        Command::Reset { place, options } => reset::run(&DataDir::find(place.data_dir)?, &options),
        Command::Backup { place, options } => backup::run(&DataDir::find(place.data_dir)?, &options),
        Command::Restore { place, options } => restore::run(&DataDir::find(place.data_dir)?, &options),
    }
}
