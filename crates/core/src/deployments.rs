//! What the management plane does next about the deployments of one Workload.
//!
//! # Guarantees
//!
//! * A deployment's identity is (Workload uid, placement, city), found by controller reference and spec; its
//!   name is chosen once and never read back. What another identity holds is never touched.
//! * Only an offered city gets a new deployment, and none is made while a network is missing ([`Plan::hold_new`]); one that is there is
//!   updated as before.
//! * `spec.replicas` is never written, and of two `restartedAt` the later stays.
//! * A step is returned only if something is to be written: applied and asked again, there is none.

use std::collections::{BTreeMap, BTreeSet};

use compute_api::{
    annotations::RESTARTED_AT,
    compute::{Workload, WorkloadDeployment, WorkloadDeploymentSpec, WorkloadPlacement, WorkloadReference},
    k8s::ObjectMeta,
    labels, names, template_hash,
};
use serde_json::{Value, json};

use crate::{
    location::{Offered, Unavailable},
    meta, restart,
};

/// One thing to do about a deployment.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create it.
    Create(Box<WorkloadDeployment>),
    /// Bring it to this with [`patch`]: it has the fields that are ours, whole, and no other; and the resource version that it was
    /// computed from.
    Update(Box<WorkloadDeployment>),
    /// Delete it, on condition that it is still the one that was looked at.
    Delete {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
        /// Why.
        why: Unwanted,
    },
    /// What is in the way must go first, or what is missing must come.
    Wait {
        /// Name of what is in the way, or of what is to be made.
        name: String,
        /// The placement that waits.
        placement: String,
        /// The city that waits.
        city: String,
    },
}

/// Why a deployment is not wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwanted {
    /// The Workload is being deleted.
    WorkloadDeleted,
    /// The Workload does not ask for it any more.
    NotAskedFor,
    /// There is an older one of the same identity.
    Duplicate,
}

/// A wanted city that the project is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnavailableCity {
    /// The placement.
    pub placement: String,
    /// The city, as the Workload spells it.
    pub city: String,
    /// Why.
    pub why: Unavailable,
    /// Whether it has a deployment from better days.
    pub deployed: bool,
}

/// What is to be done about the deployments of a Workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order to do it.
    pub steps: Vec<Step>,
    /// Wanted cities that are not offered, by placement and city.
    pub unavailable: Vec<UnavailableCity>,
}

impl Plan {
    /// Whether every deployment that a placement wants and may have is written.
    pub fn is_written(&self, placement: &str) -> bool {
        !self.steps.iter().any(|step| match step {
            Step::Create(deployment) | Step::Update(deployment) => {
                deployment.spec.placement_name == placement
            }
            Step::Wait { placement: waiting, .. } => waiting == placement,
            Step::Delete { .. } => false,
        })
    }

    /// Makes no new deployment for now: something that all of them need is missing.
    pub fn hold_new(&mut self) {
        for step in &mut self.steps {
            if let Step::Create(new) = &*step {
                *step = Step::Wait {
                    name: meta::name(&new.metadata).to_owned(),
                    placement: new.spec.placement_name.clone(),
                    city: new.spec.city_code.clone(),
                };
            }
        }
    }

    /// Whether there is nothing to write; waiting is no writing.
    pub fn changes_nothing(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Wait { .. }))
    }
}

/// The placement and city of a deployment, spelled so that equal ones are equal.
pub(crate) type Key = (String, String);

pub(crate) fn key(placement: &str, city: &str) -> Key {
    (placement.to_owned(), city.to_ascii_lowercase())
}

/// The cities of each placement, as the Workload spells them. What is named twice counts once.
pub(crate) fn wanted(workload: &Workload) -> BTreeMap<Key, (&WorkloadPlacement, &str)> {
    let mut all = BTreeMap::new();
    for placement in &workload.spec.placements {
        for city in &placement.city_codes {
            all.entry(key(&placement.name, city)).or_insert((placement, city.as_str()));
        }
    }
    all
}

/// The deployments that a Workload controls, by identity; of two the one that stays comes first.
pub(crate) fn controlled<'a>(
    workload: &Workload,
    deployments: impl IntoIterator<Item = &'a WorkloadDeployment>,
) -> BTreeMap<Key, Vec<&'a WorkloadDeployment>> {
    let uid = meta::uid(&workload.metadata);
    let mut all: BTreeMap<Key, Vec<&WorkloadDeployment>> = BTreeMap::new();
    for deployment in deployments {
        if meta::is_controlled_by(&deployment.metadata, uid) {
            let key = key(&deployment.spec.placement_name, &deployment.spec.city_code);
            all.entry(key).or_default().push(deployment);
        }
    }
    for same in all.values_mut() {
        same.sort_by_key(|one| {
            let meta = &one.metadata;
            (meta::is_being_deleted(meta), meta::created(meta), meta::uid(meta))
        });
    }
    all
}

/// The names that a new deployment may get, the preferred one first. A caller looks up who holds them.
pub fn candidate_names(workload: &Workload, placement: &str, city: &str) -> [String; 2] {
    let name = meta::name(&workload.metadata);
    let uid = meta::uid(&workload.metadata);
    [
        names::deployment_name(name, placement, city),
        names::deployment_name_on_collision(name, uid, placement, city),
    ]
}

/// What is to be done about the deployments of a Workload.
///
/// `deployments` may hold any of the Workload's namespace: those that it controls count, and of the others
/// those that hold a name it would choose ([`candidate_names`]).
pub fn decide<'a>(
    workload: &Workload,
    deployments: impl IntoIterator<Item = &'a WorkloadDeployment>,
    offered: &Offered,
) -> Plan {
    let deployments: Vec<_> = deployments.into_iter().collect();
    let mut existing = controlled(workload, deployments.iter().copied());
    if meta::is_being_deleted(&workload.metadata) {
        let all = existing.into_values().flatten();
        return Plan { steps: deletes(all, Unwanted::WorkloadDeleted), unavailable: Vec::new() };
    }
    let mut holders: BTreeMap<&str, &WorkloadDeployment> = BTreeMap::new();
    for deployment in &deployments {
        holders.entry(meta::name(&deployment.metadata)).or_insert(deployment);
    }
    // Names that this very plan gives away.
    let mut given = BTreeSet::new();
    let mut plan = Plan::default();
    let mut superfluous = Vec::new();
    for (key, (placement, city)) in wanted(workload) {
        let mut same = existing.remove(&key).unwrap_or_default().into_iter();
        let first = same.next();
        superfluous.extend(deletes(same, Unwanted::Duplicate));
        let offer = offered.find(city);
        if let Err(why) = &offer {
            plan.unavailable.push(UnavailableCity {
                placement: placement.name.clone(),
                city: city.to_owned(),
                why: why.clone(),
                deployed: first.is_some(),
            });
        }
        let wait = |name: &str| Step::Wait {
            name: name.to_owned(),
            placement: placement.name.clone(),
            city: city.to_owned(),
        };
        match (first, offer) {
            (Some(stored), _) if meta::is_being_deleted(&stored.metadata) => {
                plan.steps.push(wait(meta::name(&stored.metadata)));
            }
            (Some(stored), _) => {
                let update = updated(workload, placement, stored);
                if differs(stored, &update) {
                    plan.steps.push(Step::Update(Box::new(update)));
                }
            }
            (None, Ok(spelling)) => match choose_name(workload, placement, city, &holders, &given) {
                Ok(name) => {
                    given.insert(name.clone());
                    let new = owned_fields(workload, placement, spelling, &name, None);
                    plan.steps.push(Step::Create(Box::new(new)));
                }
                Err(in_the_way) => plan.steps.push(wait(in_the_way)),
            },
            (None, Err(_)) => {}
        }
    }
    plan.steps.append(&mut superfluous);
    plan.steps.extend(deletes(existing.into_values().flatten(), Unwanted::NotAskedFor));
    plan.steps.sort_by_key(order);
    plan
}

/// The merge patch that brings a stored deployment to an [`Update`](Step::Update), onto that very version of it. What is not ours stays;
/// what is ours and is not wanted any more goes, whoever has written it.
pub fn patch(stored: &WorkloadDeployment, update: &WorkloadDeployment) -> Value {
    let ours = update.metadata.owner_references.clone().unwrap_or_default();
    let others = stored.metadata.owner_references.iter().flatten();
    let others = others.filter(|other| !ours.iter().any(|owner| owner.uid == other.uid)).cloned();
    let owners: Vec<_> = others.chain(ours.iter().cloned()).collect();
    let spec = WorkloadDeploymentSpec { replicas: stored.spec.replicas, ..update.spec.clone() };
    json!({
        "metadata": {
            "uid": stored.metadata.uid,
            "resourceVersion": stored.metadata.resource_version,
            "labels": update.metadata.labels,
            "ownerReferences": owners,
        },
        "spec": crate::patch::between(&json!(stored.spec), &json!(spec)),
    })
}

/// Whether the last deployment of a Workload is gone, so that its finalizer may go.
pub fn none_left<'a>(
    workload: &Workload,
    deployments: impl IntoIterator<Item = &'a WorkloadDeployment>,
) -> bool {
    controlled(workload, deployments).is_empty()
}

/// Networks that the template names and that are not there, in order.
pub fn missing_networks(workload: &Workload, present: &BTreeSet<String>) -> Vec<String> {
    let interfaces = &workload.spec.template.spec.network_interfaces;
    let named: BTreeSet<_> = interfaces.iter().map(|interface| &interface.network.name).collect();
    named.into_iter().filter(|name| !present.contains(*name)).cloned().collect()
}

fn deletes<'a>(deployments: impl IntoIterator<Item = &'a WorkloadDeployment>, why: Unwanted) -> Vec<Step> {
    let live = deployments.into_iter().filter(|deployment| !meta::is_being_deleted(&deployment.metadata));
    let mut steps: Vec<_> = live
        .map(|deployment| Step::Delete {
            name: meta::name(&deployment.metadata).to_owned(),
            uid: meta::uid(&deployment.metadata).to_owned(),
            why,
        })
        .collect();
    steps.sort_by_key(order);
    steps
}

/// New capacity comes before what takes some away.
fn order(step: &Step) -> (u8, String) {
    match step {
        Step::Create(deployment) => (0, meta::name(&deployment.metadata).to_owned()),
        Step::Update(deployment) => (1, meta::name(&deployment.metadata).to_owned()),
        Step::Delete { name, uid, .. } => (2, format!("{name} {uid}")),
        Step::Wait { name, placement, city } => (3, format!("{name} {placement} {city}")),
    }
}

/// The name of a new deployment, or the predecessor that still holds it.
fn choose_name<'a>(
    workload: &Workload,
    placement: &WorkloadPlacement,
    city: &str,
    holders: &BTreeMap<&'a str, &WorkloadDeployment>,
    given: &BTreeSet<String>,
) -> Result<String, &'a str> {
    let [plain, hashed] = candidate_names(workload, &placement.name, city);
    if given.contains(&plain) {
        return Ok(hashed);
    }
    let Some((held, holder)) = holders.get_key_value(&*plain) else { return Ok(plain) };
    // A Workload that was deleted and made again meets the deployments of the first one on their way out.
    let same_place = holder.spec.workload_ref.name == meta::name(&workload.metadata)
        && key(&holder.spec.placement_name, &holder.spec.city_code) == key(&placement.name, city);
    if same_place && meta::is_being_deleted(&holder.metadata) { Err(held) } else { Ok(hashed) }
}

/// What a stored deployment should be, in the fields that are ours.
fn updated(
    workload: &Workload,
    placement: &WorkloadPlacement,
    stored: &WorkloadDeployment,
) -> WorkloadDeployment {
    let restarted = stored.spec.template.annotation(RESTARTED_AT);
    let name = meta::name(&stored.metadata);
    let mut update = owned_fields(workload, placement, &stored.spec.city_code, name, restarted);
    update.metadata.resource_version.clone_from(&stored.metadata.resource_version);
    update
}

/// The fields of a deployment that are ours.
fn owned_fields(
    workload: &Workload,
    placement: &WorkloadPlacement,
    city: &str,
    name: &str,
    restarted: Option<&str>,
) -> WorkloadDeployment {
    let workload_name = meta::name(&workload.metadata);
    let workload_uid = meta::uid(&workload.metadata);
    WorkloadDeployment {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: workload.metadata.namespace.clone(),
            labels: Some(meta::map([
                (labels::WORKLOAD_NAME, workload_name),
                (labels::WORKLOAD_UID, workload_uid),
            ])),
            owner_references: Some(vec![meta::controlled_by(workload)]),
            ..ObjectMeta::default()
        },
        spec: WorkloadDeploymentSpec {
            workload_ref: WorkloadReference { name: workload_name.to_owned(), uid: workload_uid.to_owned() },
            placement_name: placement.name.clone(),
            city_code: city.to_owned(),
            template: restart::with_later(workload.spec.template.clone(), restarted),
            scale_settings: placement.scale_settings.clone(),
            replicas: None,
            // Always said, so that a value that somebody else has set does not stay.
            paused: Some(workload.spec.paused == Some(true)),
        },
        status: None,
    }
}

/// Whether applying `update` would change what is stored.
fn differs(stored: &WorkloadDeployment, update: &WorkloadDeployment) -> bool {
    let spec = WorkloadDeploymentSpec { replicas: stored.spec.replicas, ..update.spec.clone() };
    !meta::covers(stored.metadata.labels.as_ref(), update.metadata.labels.as_ref())
        || !meta::owners_cover(&stored.metadata, &update.metadata)
        || !template_hash::same_content(&stored.spec, &spec)
}

#[cfg(test)]
mod tests;
