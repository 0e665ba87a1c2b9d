//! Delete and deletecollection.
//!
//! An object with finalizers is marked and waits for them; one without goes at once. Propagation is carried by two
//! finalizers that the garbage collector serves: `foregroundDeletion` and `orphan`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::update::removal_guards;
use super::{ListOptions, MAX_ATTEMPTS, Served, Target, list};
use crate::admission::hooks::Asking;
use crate::clock::rfc3339;
use crate::error::{ApiError, Result};
use crate::lifecycle::CRD_FINALIZER;
use crate::meta::{FOREGROUND, ORPHAN};
use crate::store::{Expect, Object, ObjectKey};

/// What happens to the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
    /// They stay, without this owner.
    Orphan,
}

/// Arguments of a delete.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    /// What happens to dependents; the object's own finalizers decide if absent.
    pub(crate) propagation: Option<Propagation>,
    /// The uid that the object must have.
    pub(crate) uid: Option<String>,
    /// The resource version that the object must have.
    pub(crate) resource_version: Option<String>,
    /// Decide and answer, but write nothing.
    pub(crate) dry_run: bool,
}

/// Long series of writes let others run in between, watchers above all.
pub(crate) const YIELD_EVERY: usize = 32;

/// What became of the object.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It is gone.
    Gone(Arc<Object>),
    /// It is marked, and waits for its finalizers.
    Pending(Served),
}

/// Deletes one object.
pub(crate) async fn delete(target: &Target, key: &ObjectKey, options: &DeleteOptions) -> Result<Deleted> {
    for _ in 0..MAX_ATTEMPTS {
        let live = target.live(key)?;
        check_preconditions(target, &live, options)?;
        if let Some(deleted) = try_delete(target, &live, options).await? {
            return Ok(deleted);
        }
        if options.resource_version.is_some() {
            return Err(target.conflict(&key.name));
        }
    }
    Err(target.conflict(&key.name))
}

/// `Ok(None)` means that the race was lost.
async fn try_delete(target: &Target, live: &Arc<Object>, options: &DeleteOptions) -> Result<Option<Deleted>> {
    if target.resource.is_namespace() && matches!(&*live.meta.key.name, "default" | "kube-system") {
        return Err(ApiError::Forbidden {
            subject: target.subject(&live.meta.key.name),
            message: format!(
                "namespaces {:?} is forbidden: this namespace may not be deleted",
                live.meta.key.name
            ),
            causes: Vec::new(),
        });
    }
    let before = target.live_value(live);
    if let Some(mut asking) = Asking::of_delete(target, &live.meta.key, options) {
        asking.delete(target, &before).await?;
    }
    let mut object = before.clone();
    let finalizers = finalizers_for(target, live, options);
    if finalizers.is_empty() {
        object["metadata"].as_object_mut().map(|metadata| metadata.remove("finalizers"));
    } else {
        object["metadata"]["finalizers"] = json!(finalizers);
    }
    let waits = !finalizers.is_empty() || target.resource.is_namespace();
    if waits && !live.meta.deleting {
        object["metadata"]["deletionTimestamp"] = json!(rfc3339(target.shared.options.clock.now()));
        object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        if let Some(generation) = object["metadata"]["generation"].as_i64() {
            object["metadata"]["generation"] = json!(generation + 1);
        }
        mark(target, &mut object);
    }
    if waits && object == before {
        return Ok(Some(Deleted::Pending(Served::Value(before))));
    }
    if options.dry_run {
        return Ok(Some(if waits {
            Deleted::Pending(Served::Value(object))
        } else {
            Deleted::Gone(live.clone())
        }));
    }
    let guards = if waits { Vec::new() } else { removal_guards(target, &live.meta.key.name) };
    drop(before);
    let event = target.commit(object, Expect::At(live.revision), !waits, guards).await?;
    Ok(event.map(|event| match waits {
        true => Deleted::Pending(target.in_version(&event.object)),
        false => Deleted::Gone(event.object.clone()),
    }))
}

/// Kinds whose deletion takes their contents along say so in their status.
fn mark(target: &Target, object: &mut Value) {
    if target.resource.is_namespace() {
        object["status"]["phase"] = json!("Terminating");
    }
    if target.resource.is_crd() {
        let now = rfc3339(target.shared.options.clock.now());
        let condition = json!({
            "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            "lastTransitionTime": now,
        });
        match object["status"]["conditions"].as_array_mut() {
            Some(conditions) => {
                conditions.retain(|found| found["type"] != "Terminating");
                conditions.push(condition);
            }
            None => object["status"]["conditions"] = json!([condition]),
        }
    }
}

/// The finalizers that the object has from now on.
fn finalizers_for(target: &Target, live: &Object, options: &DeleteOptions) -> Vec<String> {
    let mut finalizers: Vec<String> = live.meta.finalizers.iter().map(ToString::to_string).collect();
    // A later delete may decide otherwise: that is how one frees an owner that waits for its dependents.
    if let Some(propagation) = options.propagation {
        finalizers.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
        match propagation {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
            Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
        }
    }
    if target.resource.is_crd() && !live.meta.deleting && !finalizers.iter().any(|f| f == CRD_FINALIZER) {
        finalizers.push(CRD_FINALIZER.to_owned());
    }
    finalizers
}

fn check_preconditions(target: &Target, live: &Object, options: &DeleteOptions) -> Result<()> {
    let conflict = |what: &str, asked: &str, found: &str| ApiError::Conflict {
        subject: target.subject(&live.meta.key.name),
        message: format!(
            "Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}"
        ),
    };
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != &*live.meta.uid) {
        return Err(conflict("UID", uid, &live.meta.uid));
    }
    let found = live.revision.to_string();
    match options.resource_version.as_deref() {
        Some(asked) if asked != found => Err(conflict("ResourceVersion", asked, &found)),
        _ => Ok(()),
    }
}

/// Deletes every object that a list picks, and returns the list.
pub(crate) async fn delete_collection(
    target: &Target,
    picked: &ListOptions,
    options: &DeleteOptions,
) -> Result<Vec<Arc<Object>>> {
    let listed = list(target, picked)?;
    for (i, object) in listed.objects.iter().enumerate() {
        if i % YIELD_EVERY == YIELD_EVERY - 1 {
            tokio::task::yield_now().await;
        }
        match delete(target, &object.meta.key, options).await {
            // Gone meanwhile is what was asked for.
            Ok(_) | Err(ApiError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(listed.objects)
}
