//! An instance of a cell as the hub has it.
//!
//! # Guarantees
//!
//! A copy is written only while the hub deployment of that name exists, is not being deleted and belongs to the
//! same Workload; it is owned by it. Our labels are set, others stay, and an equal copy is not written.

use std::collections::BTreeSet;

use compute_api::{
    compute::{Instance, InstanceStatus, WorkloadDeployment},
    conditions,
    k8s::ObjectMeta,
    labels,
    names::ProjectNameError,
};

use crate::{federation::Upstream, meta};

/// What to do about a hub copy.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write it.
    Write {
        /// The fields that are ours, whole, and no other; with the status.
        copy: Box<Instance>,
        /// Whether its metadata and spec are to be applied.
        object: bool,
        /// Whether its status is to be applied.
        status: bool,
    },
    /// It is as it should be.
    UpToDate,
    /// It is on its way out and must be gone first.
    Wait,
}

/// Why an instance is not written back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The hub has no deployment of that name. It comes, or the instance goes.
    #[error("the hub has no deployment that the instance belongs to")]
    NoDeployment,
    /// The deployment on the hub is on its way out.
    #[error("the deployment on the hub is being deleted")]
    DeploymentBeingDeleted,
    /// The deployment on the hub belongs to another Workload: a successor of this instance's.
    #[error("the deployment on the hub belongs to another workload")]
    OtherWorkload,
    /// The project does not fit into a label. No retry helps.
    #[error(transparent)]
    Project(#[from] ProjectNameError),
}

/// Identity labels that an instance lacks; a warning, if any.
pub fn missing_labels(instance: &Instance) -> Vec<&'static str> {
    let missing = |key: &&str| meta::label(&instance.metadata, key).is_none_or(str::is_empty);
    labels::ON_INSTANCES.into_iter().filter(missing).collect()
}

/// What to do about the hub copy of a cell's instance.
///
/// # Errors
///
/// If there must be no copy.
pub fn decide(
    instance: &Instance,
    hub_deployment: Option<&WorkloadDeployment>,
    hub: Option<&Instance>,
    upstream: &Upstream,
    source_cluster: &str,
) -> Result<Step, Refusal> {
    let owner = hub_deployment.ok_or(Refusal::NoDeployment)?;
    if meta::is_being_deleted(&owner.metadata) {
        return Err(Refusal::DeploymentBeingDeleted);
    }
    let workload = meta::label(&instance.metadata, labels::WORKLOAD_UID);
    if workload.is_some_and(|uid| uid != owner.spec.workload_ref.uid) {
        return Err(Refusal::OtherWorkload);
    }
    let wanted = copy(instance, owner, upstream, source_cluster)?;
    let Some(hub) = hub else {
        let status = wanted.status.is_some();
        return Ok(Step::Write { copy: Box::new(wanted), object: true, status });
    };
    if meta::is_being_deleted(&hub.metadata) {
        return Ok(Step::Wait);
    }
    let object = object_differs(hub, &wanted);
    let status = status_differs(hub.status.as_ref(), wanted.status.as_ref());
    if object || status {
        return Ok(Step::Write { copy: Box::new(wanted), object, status });
    }
    Ok(Step::UpToDate)
}

/// Whether applying the metadata and spec of `wanted` would change what is stored.
pub(crate) fn object_differs(stored: &Instance, wanted: &Instance) -> bool {
    let (held, ours) = (&stored.metadata, &wanted.metadata);
    !meta::covers(held.labels.as_ref(), ours.labels.as_ref())
        || !meta::covers(held.annotations.as_ref(), ours.annotations.as_ref())
        || !meta::owners_cover(held, ours)
        || stored.spec != wanted.spec
}

/// Whether applying the status `wanted` would change what is stored. Conditions are known by their type: servers keep
/// them in an order of their own.
pub(crate) fn status_differs(stored: Option<&InstanceStatus>, wanted: Option<&InstanceStatus>) -> bool {
    let sorted = |status: &InstanceStatus| {
        let mut status = status.clone();
        status.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
        status
    };
    wanted.is_some() && stored.map(sorted) != wanted.map(sorted)
}

/// The status without what nobody may emit any more.
pub(crate) fn presentable(status: Option<&InstanceStatus>) -> Option<InstanceStatus> {
    let mut status = status?.clone();
    conditions::remove(&mut status.conditions, conditions::RUNNING_RETIRED);
    Some(status)
}

fn copy(
    instance: &Instance,
    owner: &WorkloadDeployment,
    upstream: &Upstream,
    source_cluster: &str,
) -> Result<Instance, ProjectNameError> {
    let mut all_labels = instance.metadata.labels.clone().unwrap_or_default();
    all_labels.extend(upstream.labels()?);
    all_labels.extend(meta::map([
        (labels::WORKLOAD_DEPLOYMENT_UID, meta::uid(&owner.metadata)),
        (labels::SOURCE_CLUSTER, source_cluster),
    ]));
    Ok(Instance {
        metadata: ObjectMeta {
            name: instance.metadata.name.clone(),
            namespace: instance.metadata.namespace.clone(),
            labels: Some(all_labels),
            annotations: instance.metadata.annotations.clone(),
            owner_references: Some(vec![meta::controlled_by(owner)]),
            ..ObjectMeta::default()
        },
        spec: instance.spec.clone(),
        status: presentable(instance.status.as_ref()),
    })
}

/// A copy on the hub that no instance of its cell stands behind, as far as caches tell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stale {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// The copies of this cell that no instance stands behind. Each is confirmed by a read of the cell before it is
/// deleted.
pub fn sweep<'a>(
    source_cluster: &str,
    copies: impl IntoIterator<Item = &'a Instance>,
    instances: impl IntoIterator<Item = &'a Instance>,
) -> Vec<Stale> {
    let key = |instance: &'a Instance| (meta::namespace(&instance.metadata), meta::name(&instance.metadata));
    let present: BTreeSet<_> = instances.into_iter().map(key).collect();
    let mut stale: Vec<_> = copies
        .into_iter()
        .filter(|copy| meta::label(&copy.metadata, labels::SOURCE_CLUSTER) == Some(source_cluster))
        .filter(|copy| !meta::is_being_deleted(&copy.metadata) && !present.contains(&key(copy)))
        .map(|copy| Stale {
            namespace: meta::namespace(&copy.metadata).to_owned(),
            name: meta::name(&copy.metadata).to_owned(),
            uid: meta::uid(&copy.metadata).to_owned(),
        })
        .collect();
    stale.sort_unstable();
    stale
}

#[cfg(test)]
mod tests;
