//! `instances`.

mod describe;
mod list;

use clap::Subcommand;
use clap_complete::engine::ArgValueCompleter;

use crate::complete;
use crate::failure::Result;
use crate::session::Session;

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute instances
  datumctl-compute instances --workload hello --city DFW
  datumctl-compute instances describe hello-main-dfw-0";

/// Which instances.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    filter: Filter,
}

/// Which instances.
#[derive(clap::Args, Default)]
pub(crate) struct Filter {
    /// Only those of this workload
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::workloads))]
    workload: Option<String>,
    /// Only those in this city
    #[arg(long, value_name = "CODE", add = ArgValueCompleter::new(complete::cities))]
    city: Option<String>,
}

#[derive(Subcommand)]
enum Verb {
    /// List instances
    List {
        #[command(flatten)]
        filter: Filter,
    },
    /// Show everything about one instance
    Describe {
        /// The instance
        #[arg(value_name = "INSTANCE", add = ArgValueCompleter::new(complete::instances))]
        name: String,
    },
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    match &options.verb {
        None => list::run(session, &options.filter).await,
        Some(Verb::List { filter }) => list::run(session, filter).await,
        Some(Verb::Describe { name }) => describe::run(session, name).await,
    }
}
