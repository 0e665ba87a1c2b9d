//! The status of a deployment in its cell.

use compute_api::{
    annotations,
    compute::{Instance, LocationReference, WorkloadDeployment, WorkloadDeploymentStatus},
    conditions::{self as c, Status, Update},
    k8s::{Condition, Timestamp},
    labels,
};

use super::{Said, conditions_differ, scaled_to_zero};
use crate::{meta, planner, reasons, scale};

/// The generation that a deployment's status speaks of: that of the project's object, where the deployment is
/// a copy of one.
pub fn observed_generation(deployment: &WorkloadDeployment) -> Option<i64> {
    let upstream = meta::annotation(&deployment.metadata, annotations::UPSTREAM_GENERATION);
    upstream.and_then(|generation| generation.parse().ok()).or(deployment.metadata.generation)
}

/// The status of a deployment. `network` is what to say as `NetworkReady`, if anything.
pub fn status<'a>(
    deployment: &WorkloadDeployment,
    instances: impl IntoIterator<Item = &'a Instance>,
    location: Option<LocationReference>,
    network: Option<Update>,
    now: Timestamp,
) -> WorkloadDeploymentStatus {
    let uid = meta::uid(&deployment.metadata);
    let all: Vec<_> =
        instances.into_iter().filter(|instance| meta::is_controlled_by(&instance.metadata, uid)).collect();
    // What is on its way out is still there, but counts for nothing else.
    let staying: Vec<_> =
        all.iter().copied().filter(|instance| !meta::is_being_deleted(&instance.metadata)).collect();
    let wanted = planner::desired(deployment);
    let updated: Vec<_> = staying.iter().filter(|instance| wanted.is_observed(instance)).collect();
    let programmed = updated.iter().filter(|instance| c::is_true(conditions(instance), c::PROGRAMMED));
    let ready = staying.iter().filter(|instance| planner::is_ready(instance));
    let (current, ready) = (count(programmed.count()), count(ready.count()));
    let desired = i64::from(scale::desired_replicas(&deployment.spec));

    let generation = observed_generation(deployment);
    let said = available(&staying, ready, desired, network.as_ref());
    let stored = deployment.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let conditions = [Some(said.available()), network]
        .into_iter()
        .flatten()
        .map(|update| c::next(c::find(stored, &update.type_), update.of_generation(generation), now))
        .collect();
    WorkloadDeploymentStatus {
        conditions,
        observed_generation: generation,
        location,
        replicas: Some(count(all.len())),
        current_replicas: Some(current),
        updated_replicas: Some(count(updated.len())),
        desired_replicas: Some(desired),
        ready_replicas: Some(ready),
        selector: Some(labels::deployment_selector(meta::name(&deployment.metadata))),
    }
}

/// Whether applying `wanted` would change what is stored.
pub fn differs(stored: Option<&WorkloadDeploymentStatus>, wanted: &WorkloadDeploymentStatus) -> bool {
    let Some(stored) = stored else { return true };
    let bare = |status: &WorkloadDeploymentStatus| WorkloadDeploymentStatus {
        conditions: Vec::new(),
        ..status.clone()
    };
    bare(stored) != bare(wanted)
        || conditions_differ(&stored.conditions, &wanted.conditions, &[c::AVAILABLE, c::NETWORK_READY])
}

fn available(instances: &[&Instance], ready: i64, desired: i64, network: Option<&Update>) -> Said {
    if desired == 0 {
        return scaled_to_zero();
    }
    if ready > 0 {
        let message = format!("{ready} of {desired} instances are ready");
        return Said::new(Status::True, c::STABLE_INSTANCE_FOUND, message);
    }
    let worst = instances
        .iter()
        .map(|instance| {
            let said = c::find(conditions(instance), c::READY);
            let (reason, message) = said.map_or((c::PENDING, ""), |said| (&said.reason, &said.message));
            (instance, reason, message)
        })
        // The worst, and of equals the one with the lowest name.
        .max_by_key(|(instance, reason, _)| {
            (reasons::of_instance(reason), std::cmp::Reverse(meta::name(&instance.metadata)))
        });
    match (worst, network) {
        (Some((_, reason, message)), _) => {
            Said::new(Status::False, reasons::of_deployment(reason), message_or_default(message))
        }
        (None, Some(network)) if network.reason == c::NETWORK_FAILED_TO_CREATE => {
            Said::new(Status::False, c::NETWORK_FAILED_TO_CREATE, network.message.as_str())
        }
        (None, _) => Said::new(
            Status::False,
            c::INSTANCES_PROVISIONING,
            "No instance has been created yet; nothing is asked of you",
        ),
    }
}

fn message_or_default(message: &str) -> &str {
    if message.is_empty() { "The instances are being set up; nothing is asked of you" } else { message }
}

fn conditions(instance: &Instance) -> &[Condition] {
    instance.status.as_ref().map_or(&[], |status| &status.conditions)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
