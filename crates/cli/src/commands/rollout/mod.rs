//! `rollout`.

mod history;
mod pause;
mod status;
mod undo;

#[cfg(test)]
pub(crate) use history::no_revision;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::follow::Patience;
use crate::complete;
use crate::failure::{Failure, Result};
use crate::session::Session;

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute rollout status hello
  datumctl-compute rollout history hello
  datumctl-compute rollout undo hello
  datumctl-compute rollout pause hello
  datumctl-compute rollout resume hello";

/// What to do with a rollout.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The workload whose rollout to follow
    #[arg(value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
    name: Option<String>,
    #[command(flatten)]
    way: status::Way,
}

#[derive(Subcommand)]
enum Verb {
    /// Follow a rollout until it is done
    Status(status::Options),
    /// List revisions: who changed what, and when
    History(history::Options),
    /// Go back to an earlier revision
    Undo(undo::Options),
    /// Restart a workload's instances, one after the other
    Restart(super::restart::Options),
    /// Pause a rollout; running instances stay as they are
    Pause(Name),
    /// Resume a paused rollout
    Resume(pause::Resume),
}

/// Which workload.
#[derive(Args)]
pub(crate) struct Name {
    /// The workload
    #[arg(value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
    name: String,
}

/// Whether to follow what was begun.
#[derive(Args, Clone, Debug)]
pub(crate) struct Following {
    /// Follow until it is done (the default)
    #[arg(long, overrides_with = "no_wait")]
    pub(crate) wait: bool,
    /// Do not follow
    #[arg(long)]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) patience: Patience,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    match (&options.verb, &options.name) {
        (None, Some(name)) => status::of(session, name, &options.way).await,
        (Some(Verb::Status(options)), _) => status::run(session, options).await,
        (Some(Verb::History(options)), _) => history::run(session, options).await,
        (Some(Verb::Undo(options)), _) => undo::run(session, options).await,
        (Some(Verb::Restart(options)), _) => super::restart::run(session, options).await,
        (Some(Verb::Pause(which)), _) => pause::run(session, &which.name).await,
        (Some(Verb::Resume(options)), _) => pause::resume(session, options).await,
        (None, None) => Err(unnamed()),
    }
}

/// The failure when no workload is named.
pub(crate) fn unnamed() -> Failure {
    Failure::usage("cannot follow a rollout", "no workload is named").next("workloads", "list the workloads")
}
