//! A written-back instance as its project sees it.
//!
//! # Guarantees
//!
//! A projection is owned by the project's deployment, found by name, since uids differ on every plane; it goes
//! when the hub copy does. What no retry can mend is told once and left alone until something changes.

use std::{collections::BTreeMap, time::Duration};

use compute_api::{
    compute::{Instance, WorkloadDeployment},
    conditions::{self, Status},
    k8s::{Condition, ObjectMeta},
    labels, names,
};

use serde_json::{Value, json};

use crate::{
    federation::Upstream,
    meta, reasons,
    writeback::{object_differs, presentable, status_differs},
};

/// How soon to look again for an owner that is not there yet.
pub const OWNER_RECHECK: Duration = Duration::from_secs(5);
/// How long an owner may be missing before that is taken for final.
pub const OWNER_PATIENCE: Duration = Duration::from_secs(600);

/// Keys that belong to the planes in between.
const INTERNAL: [&str; 2] = ["karmada.io/", "meta.datumapis.com/"];

/// What to do about a projection.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write it.
    Write {
        /// The fields that are ours, whole, and no other; with the status.
        projection: Box<Instance>,
        /// Whether its metadata and spec are to be applied.
        object: bool,
        /// Whether its status is to be applied.
        status: bool,
    },
    /// It is as it should be.
    UpToDate,
    /// Delete it, on condition that it is still the one that was looked at.
    Delete {
        /// Its uid.
        uid: String,
    },
    /// Something else comes first: look again after [`OWNER_RECHECK`].
    Wait,
    /// Tell it once, and look again only when something changes.
    Quarantine(Quarantine),
}

/// What no retry can mend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Quarantine {
    /// The hub copy does not say which project it belongs to.
    #[error("the instance does not say which project and namespace it belongs to")]
    NoIdentity,
    /// Neither a label nor the name says which deployment it belongs to.
    #[error("the instance does not say which deployment it belongs to")]
    NoDeploymentName,
    /// The project has no such deployment, and has had none for long.
    #[error("the project has no deployment {0} that the instance belongs to")]
    NoOwner(String),
}

/// The name of the deployment that an instance belongs to: from its label, else from its own name.
pub fn owner_name(hub: &Instance) -> Option<&str> {
    meta::label(&hub.metadata, labels::WORKLOAD_DEPLOYMENT_NAME)
        .filter(|name| !name.is_empty())
        .or_else(|| Some(names::split_instance_name(meta::name(&hub.metadata))?.0))
}

/// Where the projection of a hub copy belongs.
///
/// # Errors
///
/// If the copy does not say.
pub fn destination(hub: &Instance) -> Result<Upstream, Quarantine> {
    Upstream::of(&hub.metadata).ok_or(Quarantine::NoIdentity)
}

/// What to do about the projection of an instance.
///
/// `owner` is the project's deployment called [`owner_name`], and `waited` how long the hub copy has been there
/// without one. That `hub` is `None` must be known for sure, from a cache that is complete.
pub fn decide(
    hub: Option<&Instance>,
    projected: Option<&Instance>,
    owner: Option<&WorkloadDeployment>,
    waited: Duration,
) -> Step {
    let Some(hub) = hub else {
        return match projected {
            Some(projected) if !meta::is_being_deleted(&projected.metadata) => {
                Step::Delete { uid: meta::uid(&projected.metadata).to_owned() }
            }
            Some(_) | None => Step::UpToDate,
        };
    };
    let upstream = match destination(hub) {
        Ok(upstream) => upstream,
        Err(why) => return Step::Quarantine(why),
    };
    let Some(name) = owner_name(hub) else { return Step::Quarantine(Quarantine::NoDeploymentName) };
    let Some(owner) = owner.filter(|owner| owns(owner, hub)) else {
        let patient = waited < OWNER_PATIENCE;
        return if patient { Step::Wait } else { Step::Quarantine(Quarantine::NoOwner(name.to_owned())) };
    };
    let wanted = projection(hub, owner, &upstream);
    match projected {
        Some(projected) if meta::is_being_deleted(&projected.metadata) => Step::Wait,
        // What is new would only have to go with its owner.
        None if meta::is_being_deleted(&owner.metadata) => Step::UpToDate,
        None => {
            let status = wanted.status.is_some();
            Step::Write { projection: Box::new(wanted), object: true, status }
        }
        Some(projected) => {
            let object = object_differs(projected, &wanted);
            let status = status_differs(projected.status.as_ref(), wanted.status.as_ref());
            if !object && !status {
                return Step::UpToDate;
            }
            Step::Write { projection: Box::new(wanted), object, status }
        }
    }
}

/// The merge patch that makes the metadata and spec of a projection what they should be, onto that very version of it: what somebody has
/// put there by hand goes, but for labels and annotations of their own.
pub fn object_patch(stored: &Instance, wanted: &Instance) -> Value {
    json!({
        "metadata": {
            "uid": stored.metadata.uid,
            "resourceVersion": stored.metadata.resource_version,
            "labels": wanted.metadata.labels,
            "annotations": wanted.metadata.annotations.clone().unwrap_or_default(),
            "ownerReferences": wanted.metadata.owner_references,
        },
        "spec": crate::patch::between(&json!(stored.spec), &json!(wanted.spec)),
    })
}

/// The merge patch that makes the status of a projection what it should be.
pub fn status_patch(stored: &Instance, wanted: &Instance) -> Value {
    let status = |instance: &Instance| json!(instance.status.clone().unwrap_or_default());
    json!({
        "metadata": { "uid": stored.metadata.uid },
        "status": crate::patch::between(&status(stored), &status(wanted)),
    })
}

/// Whether a deployment is the one that the instance was made for, not a successor of the same name.
fn owns(owner: &WorkloadDeployment, hub: &Instance) -> bool {
    meta::label(&hub.metadata, labels::WORKLOAD_UID).is_none_or(|uid| uid == owner.spec.workload_ref.uid)
}

fn projection(hub: &Instance, owner: &WorkloadDeployment, upstream: &Upstream) -> Instance {
    let mut all_labels = for_people(hub.metadata.labels.as_ref());
    all_labels.extend(meta::map([
        (labels::WORKLOAD_DEPLOYMENT_UID, meta::uid(&owner.metadata)),
        (labels::WORKLOAD_DEPLOYMENT_NAME, meta::name(&owner.metadata)),
    ]));
    let annotations = for_people(hub.metadata.annotations.as_ref());
    Instance {
        metadata: ObjectMeta {
            name: hub.metadata.name.clone(),
            namespace: Some(upstream.namespace.clone()),
            labels: Some(all_labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            owner_references: Some(vec![meta::controlled_by(owner)]),
            ..ObjectMeta::default()
        },
        spec: hub.spec.clone(),
        status: presentable(hub.status.as_ref()),
    }
}

fn for_people(pairs: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let internal = |key: &str| INTERNAL.iter().any(|part| key.contains(part));
    pairs
        .into_iter()
        .flatten()
        .filter(|(key, _)| !internal(key))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// Something that people should hear about an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a warning.
    pub warning: bool,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// What to tell when `Ready` goes from one condition to the next: a problem that is new, or that is over.
pub fn event(before: Option<&Condition>, after: &Condition) -> Option<Event> {
    let problem = |condition: &Condition| {
        Status::of(condition) != Status::True && reasons::is_problem(&condition.reason)
    };
    let had = before.filter(|before| problem(before));
    let changed = before.is_none_or(|before| before.reason != after.reason);
    let warning = problem(after);
    (changed && (warning || had.is_some())).then(|| Event {
        warning,
        reason: after.reason.clone(),
        message: after.message.clone(),
    })
}

/// The `Ready` condition of an instance.
pub fn ready_condition(instance: &Instance) -> Option<&Condition> {
    conditions::find(&instance.status.as_ref()?.conditions, conditions::READY)
}

#[cfg(test)]
mod tests;
