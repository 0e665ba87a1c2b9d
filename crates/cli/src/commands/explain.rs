//! `explain`.

use clap_complete::engine::ArgValueCompleter;

use super::print;
use crate::args::Output;
use crate::failure::Result;
use crate::model::{advice, chain};
use crate::session::Session;
use crate::{complete, fetch, render};

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute explain hello";

/// Which workload.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The workload
    #[arg(value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
    name: String,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    let name = &options.name;
    let what = format!("cannot explain {name}");
    let read = async {
        tokio::try_join!(
            fetch::required(session, name, &what),
            fetch::deployments(session, Some(name)),
            fetch::instances(session, Some(name))
        )
    };
    let (found, deployments, instances) = session.gated(read).await?;
    let chain = chain::explain(&found.workload, &deployments, &instances);
    match session.output {
        Output::Json | Output::Yaml => return print::value(session, &chain),
        Output::Name => {
            print::names(session, [name.as_str()]);
            return Ok(());
        }
        Output::Table | Output::Wide => {}
    }
    let history = fetch::readable_history(session, &found.workload).await?;
    let mut next = advice::next_steps(&chain.workload, history.last_other(&found.workload.spec).is_some());
    // It has just been explained.
    next.retain(|step| !step.command.starts_with("explain"));
    session.io.print(&render::chain::render(&chain, &next, &session.invocation, session.now, session.io.out));
    Ok(())
}
