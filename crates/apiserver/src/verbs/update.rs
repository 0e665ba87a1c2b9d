//! Update (PUT), and the common end of update and patch: commit the new state of an object that exists.

use serde_json::Value;

use super::{MAX_ATTEMPTS, Part, Served, Target, WriteOptions, Written, scale};
use crate::admission;
use crate::admission::hooks::Asking;
use crate::error::{ApiError, Result};
use crate::field_error::FieldError;
use crate::hooks::Operation;
use crate::registry::strategy;
use crate::store::{Expect, Guard, Object, ObjectKey};

/// Replaces an object (or the part of it that `options.part` names) by `object`.
pub(crate) async fn update(
    target: &Target,
    key: &ObjectKey,
    object: Value,
    options: &WriteOptions,
) -> Result<Written> {
    let namespace = target.resource.def.namespaced.then_some(&*key.namespace);
    let mut object = object;
    let mut warnings = admission::decode_shape(target, namespace, &mut object)?;
    admission::check_name(&key.name, &mut object)?;
    let conditional = has_version(&object);
    if !conditional && !strategy::allows_unconditional_update(target) && options.part != Part::Finalize {
        // Existence first: an absent object is a 404 whatever the body says.
        target.live(key)?;
        let error = FieldError::invalid(
            "metadata.resourceVersion",
            &Value::from(0),
            "must be specified for an update",
        );
        return Err(ApiError::Invalid { subject: target.kind_subject(&key.name), errors: vec![error] });
    }
    for _ in 0..MAX_ATTEMPTS {
        let live = target.live(key)?;
        let before = target.live_value(&live);
        // Only without a condition is there another attempt.
        let next = if conditional { std::mem::take(&mut object) } else { object.clone() };
        if let Some(served) = replace(target, &live, before, next, options, &mut warnings).await? {
            return Ok(Written { object: served, created: false, warnings });
        }
        if conditional {
            return Err(target.conflict(&key.name));
        }
    }
    Err(target.conflict(&key.name))
}

fn has_version(object: &Value) -> bool {
    object["metadata"]["resourceVersion"]
        .as_str()
        .is_some_and(|version| !version.is_empty() && version != "0")
}

/// Decides and commits the next state of `live`, which is `before` in the version of the target. `Ok(None)` means that the race was
/// lost.
pub(super) async fn replace(
    target: &Target,
    live: &Object,
    before: Value,
    mut object: Value,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Option<Served>> {
    let name = &*live.meta.key.name;
    check_preconditions(target, live, &object)?;
    warnings.clear();
    admission::prepare_update(target, &before, &mut object, options, warnings)?;
    let mut asking = Asking::of_write(target, Operation::Update, &live.meta.key, options);
    if let Some(asking) = &mut asking {
        object = mutated(target, asking, &before, object, options.part).await?;
    }
    admission::validate_update(target, &before, &object, options)?;
    if let Some(asking) = &mut asking {
        match options.part {
            Part::Scale => scale::validated(target, asking, &before, &object).await?,
            _ => asking.validate(target, Some(&before), &object).await?,
        }
    }

    let gone = is_finished(target, &before, &object);
    if !gone && is_unchanged(&before, &object) {
        return Ok(Some(Served::Value(before)));
    }
    if options.dry_run {
        return Ok(Some(Served::Value(object)));
    }
    let guards = if gone { removal_guards(target, name) } else { Vec::new() };
    drop((asking, before));
    let event = target.commit(object, Expect::At(live.revision), gone, guards).await?;
    Ok(event.map(|event| target.in_version(&event.object)))
}

/// The next state as the mutating hooks would have it.
async fn mutated(
    target: &Target,
    asking: &mut Asking,
    before: &Value,
    object: Value,
    part: Part,
) -> Result<Value> {
    if part == Part::Scale {
        return scale::mutated(target, asking, before, object).await;
    }
    let prepared = object.clone();
    let settle = |object: &mut Value| admission::settle_update(target, before, &prepared, object, part);
    asking.mutate(target, Some(before), object, &settle).await
}

/// A resource version or uid in the body must be that of the stored object.
fn check_preconditions(target: &Target, live: &Object, object: &Value) -> Result<()> {
    let metadata = &object["metadata"];
    let name = &live.meta.key.name;
    if has_version(object) && metadata["resourceVersion"].as_str() != Some(&live.revision.to_string()) {
        return Err(target.conflict(name));
    }
    match metadata["uid"].as_str() {
        Some(uid) if !uid.is_empty() && *uid != *live.meta.uid => Err(ApiError::Conflict {
            subject: target.subject(name),
            message: format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                live.meta.uid
            ),
        }),
        _ => Ok(()),
    }
}

/// Whether the write removed the last thing that kept an object under deletion alive.
fn is_finished(target: &Target, before: &Value, after: &Value) -> bool {
    let list_is_empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    !before["metadata"]["deletionTimestamp"].is_null()
        && list_is_empty(&after["metadata"]["finalizers"])
        && (!target.resource.is_namespace() || list_is_empty(&after["spec"]["finalizers"]))
}

/// What must hold for an object to go: a namespace and a CRD take nothing with them unseen.
pub(super) fn removal_guards(target: &Target, name: &str) -> Vec<Guard> {
    if target.resource.is_namespace() {
        return vec![Guard::EmptyNamespace(name.to_owned())];
    }
    if target.resource.is_crd()
        && let Some((plural, group)) = name.split_once('.')
    {
        return vec![Guard::EmptyTable(crate::store::GroupResource::new(group, plural))];
    }
    Vec::new()
}

/// Whether a write would change nothing but its own traces: the resource version, and when a manager last wrote.
fn is_unchanged(before: &Value, after: &Value) -> bool {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return false };
    before.len() == after.len()
        && before.iter().zip(after).all(|((key, old), (other, new))| match key.as_str() {
            _ if key != other => false,
            "metadata" => metadata_is_unchanged(old, new),
            _ => old == new,
        })
}

fn metadata_is_unchanged(before: &Value, after: &Value) -> bool {
    let counts = |(key, _): &(&String, &Value)| !matches!(key.as_str(), "resourceVersion" | "managedFields");
    let untimed = |(key, _): &(&String, &Value)| key.as_str() != "time";
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else { return false };
    let same_entry = |old: &Value, new: &Value| match (old.as_object(), new.as_object()) {
        (Some(old), Some(new)) => old.iter().filter(untimed).eq(new.iter().filter(untimed)),
        _ => old == new,
    };
    let same_owners = match (before["managedFields"].as_array(), after["managedFields"].as_array()) {
        (Some(old), Some(new)) => {
            // In any order: entries stand in that of their times.
            old.len() == new.len() && old.iter().all(|o| new.iter().any(|n| same_entry(o, n)))
        }
        (old, new) => old == new,
    };
    same_owners && old.iter().filter(counts).eq(new.iter().filter(counts))
}
