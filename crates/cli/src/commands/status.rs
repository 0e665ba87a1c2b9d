//! `status`.

use clap_complete::engine::ArgValueCompleter;
use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_core::meta;

use super::{is_for_people, print};
use crate::args::Output;
use crate::failure::Result;
use crate::model::{advice, workload};
use crate::session::Session;
use crate::{complete, fetch, render};

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute status
  datumctl-compute status hello";

/// Whose status.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The workload [default: all of them]
    #[arg(value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
    name: Option<String>,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    let Some(name) = &options.name else { return all(session).await };
    let what = format!("cannot show the status of {name}");
    let read = async {
        tokio::try_join!(
            fetch::required(session, name, &what),
            fetch::deployments(session, Some(name)),
            fetch::instances(session, Some(name))
        )
    };
    let (found, deployments, instances) = session.gated(read).await?;
    if !is_for_people(session.output) {
        let view = workload::view(&found.workload, &deployments, &instances);
        return match session.output {
            Output::Name => form(session, &[view]),
            _ => print::value(session, &view),
        };
    }
    session.io.print(&text(session, &found.workload, &deployments, &instances).await?);
    Ok(())
}

/// One workload, with what to do about it.
pub(crate) async fn text(
    session: &Session,
    workload: &Workload,
    deployments: &[WorkloadDeployment],
    instances: &[Instance],
) -> Result<String> {
    let view = workload::view(workload, deployments, instances);
    let history = fetch::readable_history(session, workload).await?;
    let revision = view.revision.and_then(|number| history.get(number)).or(history.newest());
    let next = advice::next_steps(&view, history.last_other(&workload.spec).is_some());
    Ok(render::workloads::status(&view, revision, &next, &session.invocation, session.now, session.io.out))
}

/// All workloads: those that are well in a line each, the others with why.
async fn all(session: &Session) -> Result<()> {
    let read = async {
        tokio::try_join!(
            fetch::workloads(session),
            fetch::deployments(session, None),
            fetch::instances(session, None)
        )
    };
    let (workloads, deployments, instances) = session.gated(read).await?;
    let views: Vec<_> = workloads
        .iter()
        .map(|one| {
            let name = meta::name(&one.metadata);
            let ours: Vec<_> = deployments
                .iter()
                .filter(|deployment| deployment.spec.workload_ref.name == name)
                .cloned()
                .collect();
            workload::view(one, &ours, &instances)
        })
        .collect();
    if !is_for_people(session.output) {
        return form(session, &views);
    }
    if views.is_empty() {
        session.io.say(&render::workloads::none(&session.place(), &session.invocation));
        return Ok(());
    }
    let is_wide = session.output == Output::Wide;
    session.io.print(&render::workloads::list(&views, is_wide, session.now, session.io.out));
    Ok(())
}

fn form(session: &Session, views: &[workload::WorkloadView]) -> Result<()> {
    if session.output == Output::Name {
        print::names(session, views.iter().map(|view| view.name.as_str()));
        return Ok(());
    }
    print::value(session, &views)
}
