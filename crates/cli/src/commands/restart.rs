//! `rollout restart`.

use clap_complete::engine::ArgValueCompleter;
use compute_api::annotations::RESTARTED_AT;
use compute_api::compute::WorkloadDeployment;
use compute_api::jiff::SignedDuration;
use compute_api::k8s::Timestamp;
use compute_core::{location, meta, restart};
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
    if found.workload.spec.paused == Some(true) {
        return Err(Failure::new(what, "its rollout is paused, so no instance is replaced")
            .next(format!("rollout resume {name}"), "let it go on first"));
    }
    let deployments = fetch::deployments(session, Some(name)).await?;
    let written = if let Some(city) = &options.city {
        city_alone(session, name, city, &what, &deployments).await?;
        let said = format!("restart in {}", city.to_uppercase());
        if let Err(failure) = change::note(session, name, "restart", &said).await {
            change::say_unrecorded(session, &failure);
        }
        session.tell(&format!("{name} is restarting in {}, one instance at a time.\n", city.to_uppercase()));
        found.workload
    } else {
        let change = Change { name, action: "restart".to_owned(), what, meanwhile: Meanwhile::OnTop };
        let written = change::make(session, &change, Some(found), |base| {
            let mut spec = base.map(|base| base.spec().clone()).unwrap_or_default();
            let held = base.and_then(|base| base.workload.spec.template.annotation(RESTARTED_AT));
            annotate(&mut spec["template"], &later_than(held, &deployments));
            Ok(Wanted::spec(spec))
        })
        .await?;
        session.tell(&format!(
            "{name} is restarting (revision {}), one instance at a time in each city.\n",
            written.revision
        ));
        written.workload
    };
    deploy::after(session, &written, &options.following).await.map(drop)
}

/// Now; or right after the last restart, if that was asked for by somebody whose clock is ahead: the later one counts.
fn later_than<'a>(held: Option<&'a str>, deployments: &'a [WorkloadDeployment]) -> String {
    let of_deployments = deployments.iter().map(|one| one.spec.template.annotation(RESTARTED_AT));
    let last = of_deployments.fold(held, restart::later);
    let last = last.and_then(|last| last.parse::<Timestamp>().ok());
    let after = last.and_then(|last| last.checked_add(SignedDuration::from_millis(1)).ok());
    after.map_or_else(clock::now, |after| after.max(clock::now())).to_string()
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
async fn city_alone(
    session: &Session,
    name: &str,
    city: &str,
    what: &str,
    deployments: &[WorkloadDeployment],
) -> Result<()> {
    let at = later_than(None, deployments);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_later_than_the_last_one() {
        let ahead = clock::now() + SignedDuration::from_mins(10);
        let next: Timestamp = later_than(Some(&ahead.to_string()), &[]).parse().unwrap();
        assert!(next > ahead);
        let next: Timestamp = later_than(Some("2020-01-01T00:00:00Z"), &[]).parse().unwrap();
        assert!(next > ahead - SignedDuration::from_mins(20));
    }
}
