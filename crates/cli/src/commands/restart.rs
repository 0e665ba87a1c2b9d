//! `rollout restart`.

use clap_complete::engine::ArgValueCompleter;
use compute_api::annotations::RESTARTED_AT;
use compute_api::compute::WorkloadDeployment;
use compute_core::{location, meta};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::deploy;
use super::rollout::Following;
use crate::change::{self, Change, Meanwhile, Wanted};
use crate::failure::{Failure, Result, from_kube};
use crate::session::Session;
use crate::{clock, complete, fetch};

/// What to restart.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The workload
    #[arg(value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
    name: String,
    /// Only in this city
    #[arg(long, value_name = "CODE", add = ArgValueCompleter::new(complete::cities))]
    city: Option<String>,
    #[command(flatten)]
    following: Following,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    let name = &options.name;
    let what = format!("cannot restart {name}");
    let found = session.gated(fetch::required(session, name, &what)).await?;
    let at = clock::now().to_string();
    if found.workload.spec.paused == Some(true) {
        return Err(Failure::new(what, "its rollout is paused, so no instance is replaced")
            .next(format!("rollout resume {name}"), "let it go on first"));
    }
    if let Some(city) = &options.city {
        city_alone(session, name, city, &what, &at).await?;
        change::note(session, name, "restart", &format!("restart in {}", city.to_uppercase())).await?;
        session.tell(&format!("{name} restarts in {}, one instance after the other.\n", city.to_uppercase()));
    } else {
        let change = Change { name, action: "restart".to_owned(), what, meanwhile: Meanwhile::OnTop };
        let written = change::make(session, &change, Some(found), |base| {
            let mut spec = base.map(|base| base.spec().clone()).unwrap_or_default();
            annotate(&mut spec["template"], &at);
            Ok(Wanted::spec(spec))
        })
        .await?;
        session.tell(&format!(
            "{name} restarts (revision {}), one instance of a city after the other.\n",
            written.revision
        ));
    }
    deploy::after(session, name, &options.following).await
}

fn annotate(template: &mut Value, at: &str) {
    for part in ["/metadata", "/metadata/annotations"] {
        let (parent, key) = part.rsplit_once('/').unwrap_or_default();
        if let Some(parent) = template.pointer_mut(parent)
            && !parent[key].is_object()
        {
            parent[key] = json!({});
        }
    }
    template["metadata"]["annotations"][RESTARTED_AT] = Value::from(at);
}

/// Restarts what runs in one city; the workload stays as it is.
async fn city_alone(session: &Session, name: &str, city: &str, what: &str, at: &str) -> Result<()> {
    let deployments = fetch::deployments(session, Some(name)).await?;
    let there: Vec<_> = deployments
        .iter()
        .filter(|one| {
            location::same_city(&one.spec.city_code, city) && !meta::is_being_deleted(&one.metadata)
        })
        .collect();
    if there.is_empty() {
        return Err(Failure::usage(what, format!("it has no instances in {city}"))
            .next(format!("status {name}"), "see its cities"));
    }
    let patch = json!({ "spec": { "template": { "metadata": { "annotations": { RESTARTED_AT: at } } } } });
    for deployment in there {
        let api = session.api::<WorkloadDeployment>();
        let patched =
            api.patch(meta::name(&deployment.metadata), &PatchParams::default(), &Patch::Merge(&patch)).await;
        patched.map_err(|error| from_kube(what, &error))?;
    }
    Ok(())
}
