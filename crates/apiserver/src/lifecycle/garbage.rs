//! Owner references: what goes, stays or waits when an owner is deleted.
//!
//! Guarantees: an object is deleted only if none of its owners lives, decided by name and uid and committed on condition
//! that the object is still the one that was judged.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{has_finalizer, settled};
use crate::error::{ApiError, Result};
use crate::meta::{FOREGROUND, ORPHAN};
use crate::store::{GroupResource, Object, ObjectKey, Owner};
use crate::verbs::{self, DeleteOptions, Patch, Propagation, Target, WriteOptions};

const MANAGER: &str = "garbage-collector";

enum OwnerState {
    /// It lives, or nothing is known of its kind.
    Living,
    /// It is in foreground deletion and waits for this object.
    Waiting,
    /// It is gone.
    Gone,
}

/// Deletes `object` if no owner lives; drops references to owners that are gone if another lives.
pub(super) async fn collect(target: &Target, object: &Arc<Object>, gone_owner: Option<&str>) -> Result<()> {
    if object.meta.owners.is_empty() || object.meta.deleting {
        return Ok(());
    }
    let mut living = 0;
    let mut waiting = 0;
    let mut obsolete = Vec::new();
    for owner in &object.meta.owners {
        match owner_state(target, object, owner, gone_owner) {
            OwnerState::Living => living += 1,
            OwnerState::Waiting => {
                waiting += 1;
                obsolete.push(&*owner.uid);
            }
            OwnerState::Gone => obsolete.push(&*owner.uid),
        }
    }
    let result = if living > 0 {
        drop_references(target, object, &obsolete).await
    } else {
        delete(target, object, waiting > 0).await
    };
    match result {
        // It has changed meanwhile, perhaps to another owner: judge what it is now. What it changes to may not be there to be read yet; then it
        // is tried again later.
        Err(conflict @ ApiError::Conflict { .. }) => {
            match target.plane.store.get(&target.resource.table, &object.meta.key) {
                None => Ok(()),
                Some(fresh) if fresh.revision == object.revision => Err(conflict),
                Some(fresh) => Box::pin(collect(target, &fresh, gone_owner)).await,
            }
        }
        result => settled(result),
    }
}

/// Deletes an object that no owner keeps, on condition that it has not changed.
async fn delete(target: &Target, object: &Object, owner_waits: bool) -> Result<()> {
    let has_dependents = !target.plane.store.dependents(&object.meta.uid).is_empty();
    let propagation = match () {
        () if owner_waits && has_dependents => Propagation::Foreground,
        () if has_finalizer(object, ORPHAN) => Propagation::Orphan,
        () if has_finalizer(object, FOREGROUND) => Propagation::Foreground,
        () => Propagation::Background,
    };
    let options = DeleteOptions {
        propagation: Some(propagation),
        uid: Some(object.meta.uid.to_string()),
        resource_version: Some(object.revision.to_string()),
        dry_run: false,
    };
    verbs::delete(target, &object.meta.key, &options).await.map(drop)
}

fn owner_state(target: &Target, object: &Object, owner: &Owner, gone_owner: Option<&str>) -> OwnerState {
    if gone_owner == Some(&*owner.uid) {
        return OwnerState::Gone;
    }
    let Some(kind) = target.registry.find_kind(&owner.api_version, &owner.kind) else {
        return OwnerState::Living;
    };
    let namespace = match (kind.def.namespaced, target.resource.def.namespaced) {
        (true, true) => &*object.meta.key.namespace,
        // A cluster-scoped object cannot be owned by a namespaced one: nothing can be said of that owner.
        (true, false) => return OwnerState::Living,
        (false, _) => "",
    };
    match target.plane.store.get(&kind.table, &ObjectKey::new(namespace, &owner.name)) {
        Some(found) if found.meta.uid == owner.uid => {
            let waits = found.meta.deleting && has_finalizer(&found, FOREGROUND) && owner.blocks;
            if waits { OwnerState::Waiting } else { OwnerState::Living }
        }
        _ => OwnerState::Gone,
    }
}

/// Removes references to these owners, on condition that the object has not changed.
async fn drop_references(target: &Target, object: &Object, uids: &[&str]) -> Result<()> {
    if uids.is_empty() {
        return Ok(());
    }
    let target = &target.clone().unasked();
    let mut value = object.value();
    let references = value["metadata"]["ownerReferences"].as_array_mut();
    let kept: Vec<Value> = references
        .map(std::mem::take)
        .unwrap_or_default()
        .into_iter()
        .filter(|reference| reference["uid"].as_str().is_none_or(|uid| !uids.contains(&uid)))
        .collect();
    let merge =
        json!({ "metadata": { "resourceVersion": object.revision.to_string(), "ownerReferences": kept } });
    verbs::patch(target, &object.meta.key, Patch::Merge(merge), &WriteOptions::by(MANAGER)).await.map(drop)
}

/// Orphan propagation: every dependent loses this owner, then the owner goes.
pub(super) async fn orphan_dependents(target: &Target, owner: &Object) -> Result<()> {
    for (resource, key) in target.plane.store.dependents(&owner.meta.uid) {
        while let Some(dependent) = target.plane.store.get(&resource, &key) {
            if !dependent.meta.owners.iter().any(|reference| reference.uid == owner.meta.uid) {
                break;
            }
            let Some(kind) = target.registry.find_table(&resource) else { break };
            let dependent_target = Target { resource: kind.clone(), ..target.clone() };
            settled(drop_references(&dependent_target, &dependent, &[&owner.meta.uid]).await)?;
        }
    }
    remove_finalizer(target, owner, ORPHAN).await
}

/// Foreground propagation: dependents are looked at; when none that blocks is left, the owner goes.
pub(super) async fn delete_dependents(
    target: &Target,
    owner: &Object,
    mut look_at: impl FnMut(GroupResource, ObjectKey),
) -> Result<()> {
    let mut blocking = 0;
    for (resource, key) in target.plane.store.dependents(&owner.meta.uid) {
        let Some(dependent) = target.plane.store.get(&resource, &key) else { continue };
        if blocks(&dependent, owner) && !waits_for(target, dependent.clone(), owner) {
            blocking += 1;
            if !dependent.meta.deleting {
                look_at((*resource).clone(), key);
            }
        }
    }
    if blocking > 0 {
        return Ok(());
    }
    remove_finalizer(target, owner, FOREGROUND).await
}

/// Whether the foreground deletion of `owner` waits for `dependent`.
fn blocks(dependent: &Object, owner: &Object) -> bool {
    dependent.meta.owners.iter().any(|reference| reference.uid == owner.meta.uid && reference.blocks)
}

/// Whether `object` is in foreground deletion and waits, itself or through others, for `owner`. In such a circle
/// somebody has to go first.
fn waits_for(target: &Target, object: Arc<Object>, owner: &Object) -> bool {
    let store = &target.plane.store;
    let mut seen = BTreeSet::from([object.meta.uid.clone()]);
    let mut waiting = vec![object];
    while let Some(object) = waiting.pop() {
        if !object.meta.deleting || !has_finalizer(&object, FOREGROUND) {
            continue;
        }
        if object.meta.uid == owner.meta.uid {
            return true;
        }
        let dependents = store.dependents(&object.meta.uid);
        let dependents = dependents.iter().filter_map(|(resource, key)| store.get(resource, key));
        let blocking = dependents.filter(|dependent| blocks(dependent, &object));
        waiting.extend(blocking.filter(|dependent| seen.insert(dependent.meta.uid.clone())));
    }
    false
}

/// Removes one finalizer, whatever else changes about the object.
pub(super) async fn remove_finalizer(target: &Target, object: &Object, finalizer: &str) -> Result<()> {
    let target = &target.clone().unasked();
    while let Some(live) = target.plane.store.get(&target.resource.table, &object.meta.key) {
        if live.meta.uid != object.meta.uid || !has_finalizer(&live, finalizer) {
            break;
        }
        let kept: Vec<&str> =
            live.meta.finalizers.iter().map(AsRef::as_ref).filter(|found| *found != finalizer).collect();
        let merge =
            json!({ "metadata": { "resourceVersion": live.revision.to_string(), "finalizers": kept } });
        settled(verbs::patch(target, &live.meta.key, Patch::Merge(merge), &WriteOptions::by(MANAGER)).await)?;
    }
    Ok(())
}
