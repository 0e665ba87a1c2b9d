//! `workloads`.

mod describe;
mod list;

use clap::Subcommand;
use clap_complete::engine::ArgValueCompleter;

use crate::complete;
use crate::failure::Result;
use crate::session::Session;

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute workloads
  datumctl-compute workloads -o wide
  datumctl-compute workloads describe hello";

/// What to do with workloads.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// List workloads
    List,
    /// Show everything about one workload
    Describe {
        /// The workload
        #[arg(value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
        name: String,
    },
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    match &options.verb {
        None | Some(Verb::List) => list::run(session).await,
        Some(Verb::Describe { name }) => describe::run(session, name).await,
    }
}
