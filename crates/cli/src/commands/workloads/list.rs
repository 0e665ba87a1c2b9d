//! `workloads list`.

use compute_core::meta;

use crate::args::Output;
use crate::commands::print;
use crate::failure::Result;
use crate::model::workload;
use crate::session::Session;
use crate::{fetch, render};

pub(crate) async fn run(session: &Session) -> Result<()> {
    let both = async { tokio::try_join!(fetch::workloads(session), fetch::deployments(session, None)) };
    let (workloads, deployments) = session.gated(both).await?;
    match session.output {
        Output::Json | Output::Yaml => print::objects(session, &workloads)?,
        Output::Name => print::names(session, workloads.iter().map(|one| meta::name(&one.metadata))),
        Output::Table | Output::Wide if workloads.is_empty() => {
            session.io.say(&render::workloads::none(&session.place(), &session.invocation));
        }
        Output::Table | Output::Wide => {
            let mut views: Vec<_> =
                workloads.iter().map(|one| workload::view(one, &deployments, &[])).collect();
            if views.iter().any(|view| !view.is_done()) {
                // Why something does not get on, its instances say.
                let instances = fetch::instances(session, None).await?;
                views = workloads.iter().map(|one| workload::view(one, &deployments, &instances)).collect();
            }
            let is_wide = session.output == Output::Wide;
            session.io.print(&render::workloads::list(&views, is_wide, session.now, session.io.out));
        }
    }
    Ok(())
}
