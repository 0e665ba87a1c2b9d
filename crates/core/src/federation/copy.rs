//! The hub copy of a project's deployment: what it is, and what to do about the one that is there.

use compute_api::{
    annotations::{self, EXPECTED_REFERENCED_DATA, REFERENCED_DATA_ERROR, RESTARTED_AT},
    compute::{WorkloadDeployment, WorkloadDeploymentSpec},
    k8s::ObjectMeta,
    labels,
    names::ProjectNameError,
    template_hash,
};
use serde_json::{Map, Value, json};

use super::Upstream;
use crate::{meta, patch};

/// The field manager that applies hub copies.
pub const FIELD_MANAGER: &str = "compute-federator";

/// Annotations of the project's object that the cell needs.
const PROPAGATED: [&str; 3] = [RESTARTED_AT, EXPECTED_REFERENCED_DATA, REFERENCED_DATA_ERROR];

/// What to do about a hub copy.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Apply it: it has the fields that are ours, whole, and no other.
    Apply(Box<WorkloadDeployment>),
    /// It is as it should be.
    UpToDate,
    /// Delete it, on condition that it is still the one that was looked at.
    Delete {
        /// Its uid.
        uid: String,
        /// Why.
        why: Superseded,
    },
    /// It is on its way out and must be gone first.
    Wait,
    /// Nothing is left to do on the hub: the project's object may go.
    Release,
}

/// Why a hub copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Superseded {
    /// The project's object is being deleted. Once the delete call is made, that may go: a delete on the hub
    /// does not wait for the cell.
    Deleted,
    /// It is the copy of an object of the same name that was there before.
    Predecessor,
}

/// What to do about the hub copy of a project's deployment.
///
/// # Errors
///
/// If the project does not fit into a label. No retry helps.
pub fn decide(
    project: &WorkloadDeployment,
    upstream: &Upstream,
    hub_namespace: &str,
    hub: Option<&WorkloadDeployment>,
) -> Result<Step, ProjectNameError> {
    let delete =
        |hub: &WorkloadDeployment, why| Step::Delete { uid: meta::uid(&hub.metadata).to_owned(), why };
    if meta::is_being_deleted(&project.metadata) {
        return Ok(match hub {
            Some(hub) if !meta::is_being_deleted(&hub.metadata) => delete(hub, Superseded::Deleted),
            Some(_) | None => Step::Release,
        });
    }
    let wanted = hub_copy(project, upstream, hub_namespace)?;
    Ok(match hub {
        Some(hub) if meta::is_being_deleted(&hub.metadata) => Step::Wait,
        Some(hub) if is_of_predecessor(project, hub) => delete(hub, Superseded::Predecessor),
        Some(hub) if !differs(hub, &wanted) => Step::UpToDate,
        Some(_) | None => Step::Apply(Box::new(wanted)),
    })
}

/// Whether a hub copy was made for another object of the same name. One that does not say belongs to whoever
/// has the name.
pub fn is_of_predecessor(project: &WorkloadDeployment, hub: &WorkloadDeployment) -> bool {
    meta::annotation(&hub.metadata, annotations::UPSTREAM_UID)
        .is_some_and(|uid| uid != meta::uid(&project.metadata))
}

/// Whether a hub deployment stands for nothing: it carries our labels, and its project, which is served, answers
/// that it has no object of that name.
pub fn is_orphan(hub: &WorkloadDeployment, project_answers_not_found: bool) -> bool {
    project_answers_not_found
        && Upstream::of(&hub.metadata).is_some()
        && !meta::is_being_deleted(&hub.metadata)
}

/// The fields of a hub copy that are ours.
fn hub_copy(
    project: &WorkloadDeployment,
    upstream: &Upstream,
    hub_namespace: &str,
) -> Result<WorkloadDeployment, ProjectNameError> {
    let mut all_labels = upstream.labels()?;
    all_labels.insert(labels::TOPOLOGY_CITY_CODE.to_owned(), project.spec.city_code.clone());
    let generation = project.metadata.generation.unwrap_or_default().to_string();
    let mut annotations = meta::map([
        (annotations::UPSTREAM_GENERATION, &*generation),
        (annotations::UPSTREAM_UID, meta::uid(&project.metadata)),
    ]);
    for key in PROPAGATED {
        if let Some(value) = meta::annotation(&project.metadata, key) {
            annotations.insert(key.to_owned(), value.to_owned());
        }
    }
    Ok(WorkloadDeployment {
        metadata: ObjectMeta {
            name: project.metadata.name.clone(),
            namespace: Some(hub_namespace.to_owned()),
            labels: Some(all_labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: project.spec.clone(),
        status: None,
    })
}

/// What is left to patch after `wanted` was applied: an apply leaves what somebody else has added, and each later pass would find the
/// difference again. `None` if the copy, as the server answered, is as it should be.
pub fn correction(applied: &WorkloadDeployment, wanted: &WorkloadDeployment) -> Option<Value> {
    if !differs(applied, wanted) {
        return None;
    }
    let to_value = |spec: &WorkloadDeploymentSpec| {
        serde_json::to_value(spec).expect("our types have string keys and no failing serialiser")
    };
    let dropped: Map<String, Value> =
        dropped(&applied.metadata, &wanted.metadata).map(|key| (key.to_owned(), Value::Null)).collect();
    Some(json!({
        "metadata": {
            "uid": applied.metadata.uid,
            "resourceVersion": applied.metadata.resource_version,
            "annotations": dropped,
        },
        "spec": patch::between(&to_value(&applied.spec), &to_value(&wanted_spec(applied, wanted))),
    }))
}

fn differs(hub: &WorkloadDeployment, wanted: &WorkloadDeployment) -> bool {
    let held = &hub.metadata;
    dropped(held, &wanted.metadata).next().is_some()
        || !meta::covers(held.labels.as_ref(), wanted.metadata.labels.as_ref())
        || !meta::covers(held.annotations.as_ref(), wanted.metadata.annotations.as_ref())
        || !template_hash::same_content(&hub.spec, &wanted_spec(hub, wanted))
}

/// Annotations of ours that are not said any more.
fn dropped<'a>(held: &'a ObjectMeta, wanted: &'a ObjectMeta) -> impl Iterator<Item = &'static str> + 'a {
    let is_dropped =
        |key: &&str| meta::annotation(held, key).is_some() && meta::annotation(wanted, key).is_none();
    PROPAGATED.into_iter().filter(is_dropped)
}

/// What the spec should be. What somebody scales on the hub itself is left alone; what was ours and is unset is taken back.
fn wanted_spec(hub: &WorkloadDeployment, wanted: &WorkloadDeployment) -> WorkloadDeploymentSpec {
    let replicas = match wanted.spec.replicas {
        None if !owns_replicas(hub) => hub.spec.replicas,
        replicas => replicas,
    };
    WorkloadDeploymentSpec { replicas, ..wanted.spec.clone() }
}

/// Whether the number of replicas on the hub was applied from here.
fn owns_replicas(hub: &WorkloadDeployment) -> bool {
    let entries = hub.metadata.managed_fields.as_deref().unwrap_or_default();
    entries.iter().filter(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER)).any(|entry| {
        entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer("/f:spec/f:replicas").is_some())
    })
}
