//! `workloads describe`.

use compute_api::compute::{Workload, WorkloadDeployment};
use compute_api::k8s::Condition;

use crate::args::Output;
use crate::commands::{print, status};
use crate::failure::Result;
use crate::model::instance;
use crate::render::Look;
use crate::session::Session;
use crate::{fetch, render};

pub(crate) async fn run(session: &Session, name: &str) -> Result<()> {
    let what = format!("cannot describe {name}");
    let all = async {
        let found = fetch::required(session, name, &what).await?;
        let rest = async {
            tokio::try_join!(fetch::deployments(session, Some(name)), fetch::instances(session, Some(name)))
        };
        let (deployments, instances) = rest.await?;
        Ok((found, deployments, instances))
    };
    let (found, deployments, instances) = session.gated(all).await?;
    match session.output {
        Output::Json | Output::Yaml => return print::value(session, &print::stored(&found)),
        Output::Name => print::names(session, [name]),
        Output::Table | Output::Wide => {
            let head = status::text(session, &found.workload, &deployments, &instances).await?;
            let views = instance::views(&instances);
            let is_wide = session.output == Output::Wide;
            let inner = Look {
                width: session.io.out.width.map(|columns| columns.saturating_sub(2)),
                ..session.io.out
            };
            let list = match views.is_empty() {
                true => "None\n".to_owned(),
                false => render::instances::list(&views, is_wide, session.now, inner),
            };
            let conditions = conditions(&found.workload, &deployments);
            session.io.print(&render::workloads::describe(&head, &list, &conditions, session.io.out));
        }
    }
    Ok(())
}

/// Every condition, with what it is of.
fn conditions(workload: &Workload, deployments: &[WorkloadDeployment]) -> Vec<(String, Condition)> {
    let status = workload.status.clone().unwrap_or_default();
    let mut all: Vec<_> = status.conditions.into_iter().map(|said| ("workload".to_owned(), said)).collect();
    for placement in status.placements {
        all.extend(
            placement.conditions.into_iter().map(|said| (format!("placement {}", placement.name), said)),
        );
    }
    for deployment in deployments {
        let conditions = deployment.status.as_ref().map_or(&[][..], |status| &status.conditions);
        all.extend(
            conditions.iter().map(|said| (format!("city {}", deployment.spec.city_code), said.clone())),
        );
    }
    all
}
