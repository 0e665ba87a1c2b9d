//! The status of a Workload and its placements in their project.

use std::collections::BTreeMap;

use compute_api::{
    compute::{PlacementStatus, Workload, WorkloadDeployment, WorkloadDeploymentStatus, WorkloadStatus},
    conditions::{self as c, Status, Update},
    k8s::{Condition, Timestamp},
};

use super::{Said, conditions_differ, sum_up};
use crate::{
    deployments::{self, Plan, Step},
    meta, scale,
};

/// Sums over instances.
#[derive(Clone, Copy, Default)]
struct Counts {
    replicas: i64,
    current: i64,
    updated: i64,
    desired: i64,
    ready: i64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.replicas += other.replicas;
        self.current += other.current;
        self.updated += other.updated;
        self.desired += other.desired;
        self.ready += other.ready;
    }
}

/// Whether a deployment's status speaks of what its spec says now.
pub fn is_current(deployment: &WorkloadDeployment) -> bool {
    let observed = deployment.status.as_ref().and_then(|status| status.observed_generation);
    observed.is_some() && observed == deployment.metadata.generation
}

/// The status of a Workload. `plan` is what there is still to do about its deployments, and `missing_networks`
/// are those that its template names in vain.
pub fn status<'a>(
    workload: &Workload,
    deployments: impl IntoIterator<Item = &'a WorkloadDeployment>,
    plan: &Plan,
    missing_networks: &[String],
    now: Timestamp,
) -> WorkloadStatus {
    let generation = workload.metadata.generation;
    let stored = workload.status.clone().unwrap_or_default();
    let controlled = deployments::controlled(workload, deployments);
    let live = |deployment: &&&WorkloadDeployment| !meta::is_being_deleted(&deployment.metadata);
    let deployments = controlled.values().flatten().filter(live).count();
    let by_key: BTreeMap<_, _> = controlled
        .iter()
        .filter_map(|(key, same)| Some((key.clone(), *same.first().filter(live)?)))
        .collect();

    let mut total = Counts::default();
    let mut parts = Vec::new();
    let mut placements: Vec<PlacementStatus> = Vec::new();
    for placement in &workload.spec.placements {
        if placements.iter().any(|done| done.name == placement.name) {
            continue;
        }
        let (counts, said) = place(workload, &placement.name, &by_key, plan, missing_networks);
        total.add(counts);
        parts.push(for_workload(&said));
        let before = stored.placements.iter().find(|before| before.name == placement.name);
        let written = plan.is_written(&placement.name);
        let observed =
            if written { generation } else { before.and_then(|before| before.observed_generation) };
        let held = before.map_or(&[][..], |before| &before.conditions);
        let updates = [Some(said.available()), locations(&placement.name, plan)];
        placements.push(PlacementStatus {
            name: placement.name.clone(),
            conditions: next(held, updates, generation, now),
            observed_generation: observed,
            replicas: Some(counts.replicas),
            current_replicas: Some(counts.current),
            updated_replicas: Some(counts.updated),
            desired_replicas: Some(counts.desired),
            ready_replicas: Some(counts.ready),
        });
    }
    let otherwise =
        Said::new(Status::False, c::NO_AVAILABLE_PLACEMENTS, "The workload has no placement; add one");
    // With no placement there is nothing that was scaled to zero.
    let desired = if placements.is_empty() { 1 } else { total.desired };
    let said = sum_up(parts, total.ready, desired, otherwise);
    let written = placements.iter().all(|placement| plan.is_written(&placement.name));
    WorkloadStatus {
        conditions: next(&stored.conditions, [Some(said.available()), None], generation, now),
        observed_generation: if written { generation } else { stored.observed_generation },
        deployments: Some(i64::try_from(deployments).unwrap_or(i64::MAX)),
        replicas: Some(total.replicas),
        current_replicas: Some(total.current),
        updated_replicas: Some(total.updated),
        desired_replicas: Some(total.desired),
        ready_replicas: Some(total.ready),
        placements,
        gateway: None,
    }
}

/// Whether a status says, of the Workload or of a placement, that a network is not there.
pub fn says_network_not_found(status: &WorkloadStatus) -> bool {
    let placements = status.placements.iter().flat_map(|placement| &placement.conditions);
    status.conditions.iter().chain(placements).any(|said| said.reason == c::NETWORK_NOT_FOUND)
}

/// Whether applying `wanted` would change what is stored. The gateway is not ours.
pub fn differs(stored: Option<&WorkloadStatus>, wanted: &WorkloadStatus) -> bool {
    let Some(stored) = stored else { return true };
    let bare =
        |status: &WorkloadStatus| WorkloadStatus { conditions: Vec::new(), gateway: None, ..status.clone() };
    bare(stored) != bare(wanted) || conditions_differ(&stored.conditions, &wanted.conditions, &[c::AVAILABLE])
}

/// Counts of one placement, and what it says about being available.
fn place(
    workload: &Workload,
    placement: &str,
    by_key: &BTreeMap<deployments::Key, &WorkloadDeployment>,
    plan: &Plan,
    missing_networks: &[String],
) -> (Counts, Said) {
    let mut counts = Counts::default();
    let mut parts = Vec::new();
    for (key, (asked_for, _)) in deployments::wanted(workload) {
        if key.0 != placement {
            continue;
        }
        let Some(deployment) = by_key.get(&key) else {
            counts.desired += i64::from(scale::min_replicas(&asked_for.scale_settings));
            continue;
        };
        counts.add(counts_of(deployment, plan));
        let conditions = deployment.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let said = c::find(conditions, c::AVAILABLE).filter(|said| said.reason != c::PENDING);
        parts.extend(said.map(Said::of));
    }
    for city in plan.unavailable.iter().filter(|city| city.placement == placement && !city.deployed) {
        parts.push(Said::new(Status::False, c::LOCATION_UNAVAILABLE, city.why.explain(&city.city)));
    }
    if !missing_networks.is_empty() {
        parts.push(Said::new(Status::False, c::NETWORK_NOT_FOUND, not_found(missing_networks)));
    }
    let otherwise = Said::new(
        Status::False,
        c::NO_AVAILABLE_DEPLOYMENTS,
        "No deployment of the placement has reported yet; nothing is asked of you",
    );
    let said = sum_up(parts, counts.ready, counts.desired, otherwise);
    (counts, said)
}

fn not_found(networks: &[String]) -> String {
    match networks {
        [one] => format!("Network {one} does not exist in this project; create it, or name another"),
        all => {
            format!("Networks {} do not exist in this project; create them, or name others", all.join(", "))
        }
    }
}

/// What a deployment adds. What it reports of an older spec says nothing about the present one.
fn counts_of(deployment: &WorkloadDeployment, plan: &Plan) -> Counts {
    let status = deployment.status.clone().unwrap_or_default();
    let WorkloadDeploymentStatus { replicas, current_replicas, updated_replicas, ready_replicas, .. } =
        status;
    let to_be_written = plan
        .steps
        .iter()
        .any(|step| matches!(step, Step::Update(update) if update.metadata.name == deployment.metadata.name));
    let current = is_current(deployment) && !to_be_written;
    let asked_for = i64::from(scale::desired_replicas(&deployment.spec));
    let if_current = |count: Option<i64>| count.filter(|_| current).unwrap_or(0);
    Counts {
        replicas: replicas.unwrap_or(0),
        current: if_current(current_replicas),
        updated: if_current(updated_replicas),
        desired: status.desired_replicas.filter(|_| current).unwrap_or(asked_for),
        ready: ready_replicas.unwrap_or(0),
    }
}

/// What a placement that lacks cities says beside `Available`.
fn locations(placement: &str, plan: &Plan) -> Option<Update> {
    let why: Vec<_> = plan
        .unavailable
        .iter()
        .filter(|city| city.placement == placement)
        .map(|city| city.why.explain(&city.city))
        .collect();
    let update =
        || Update::new(c::LOCATIONS_AVAILABLE, Status::False, c::LOCATION_UNAVAILABLE, why.join("; "));
    (!why.is_empty()).then(update)
}

/// A placement that has nothing to tell is a Workload that has no placement to tell of.
fn for_workload(said: &Said) -> Said {
    if said.reason == c::NO_AVAILABLE_DEPLOYMENTS {
        return Said::new(said.status, c::NO_AVAILABLE_PLACEMENTS, said.message.as_str());
    }
    said.clone()
}

fn next<const N: usize>(
    held: &[Condition],
    updates: [Option<Update>; N],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    updates
        .into_iter()
        .flatten()
        .map(|update| c::next(c::find(held, &update.type_), update.of_generation(generation), now))
        .collect()
}
