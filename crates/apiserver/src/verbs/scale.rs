//! The `scale` subresource: one count, read and written in the same shape for every kind.

use serde_json::{Value, json};

use super::update::replace;
use super::{MAX_ATTEMPTS, Part, Patch, Served, Target, WriteOptions, Written};
use crate::admission;
use crate::admission::hooks::Asking;
use crate::error::{ApiError, Result};
use crate::field_error::FieldError;
use crate::patch as forms;
use crate::registry::definition::ScalePaths;
use crate::store::ObjectKey;

fn paths(target: &Target) -> Result<&ScalePaths> {
    target.resource.def.scale.as_ref().ok_or(ApiError::NoSuchPath)
}

fn at<'a>(object: &'a Value, path: &[String]) -> &'a Value {
    path.iter().fold(object, |value, segment| &value[segment.as_str()])
}

/// Sets a field, and makes the objects on the way to it; `None` if something else is in the way.
fn set(object: &mut Value, path: &[String], value: Value) -> Option<()> {
    let mut place = object;
    for segment in path {
        place = place.as_object_mut()?.entry(segment.as_str()).or_insert_with(|| json!({}));
    }
    *place = value;
    Some(())
}

fn set_replicas(object: &mut Value, paths: &ScalePaths, replicas: i64) -> Result<()> {
    set(object, &paths.spec_replicas, json!(replicas)).ok_or_else(|| {
        ApiError::Unprocessable(format!(".{} is not a field of an object", paths.spec_replicas.join(".")))
    })
}

/// The wanted count of a scale.
fn replicas(scale: &Value, name: &str) -> Result<i64> {
    let given = &scale["spec"]["replicas"];
    let valid = given.as_i64().filter(|replicas| (0..=i64::from(i32::MAX)).contains(replicas));
    valid.ok_or_else(|| {
        let error = FieldError::invalid("spec.replicas", given, "must be a number of 0 or more");
        let subject = crate::error::Subject {
            group: "autoscaling".to_owned(),
            resource: "Scale".to_owned(),
            name: name.to_owned(),
        };
        ApiError::Invalid { subject, errors: vec![error] }
    })
}

fn scale_of(object: &Value, paths: &ScalePaths) -> Value {
    let from = &object["metadata"];
    let mut metadata = serde_json::Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = from.get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut status = json!({ "replicas": at(object, &paths.status_replicas).as_i64().unwrap_or(0) });
    if let Some(selector) = paths.selector.as_ref().and_then(|path| at(object, path).as_str()) {
        status["selector"] = json!(selector);
    }
    let spec = match at(object, &paths.spec_replicas).as_i64() {
        Some(replicas) => json!({ "replicas": replicas }),
        None => json!({}),
    };
    json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status })
}

/// Reads the scale of an object.
pub(crate) fn get_scale(target: &Target, key: &ObjectKey) -> Result<Served> {
    let paths = paths(target)?;
    Ok(Served::Value(scale_of(&target.live_value(&*target.live(key)?), paths)))
}

/// Replaces the scale of an object.
pub(crate) async fn update_scale(
    target: &Target,
    key: &ObjectKey,
    scale: Value,
    options: &WriteOptions,
) -> Result<Written> {
    write_scale(target, key, options, |_| Ok(scale.clone())).await
}

/// Patches the scale of an object by a JSON or merge patch.
pub(crate) async fn patch_scale(
    target: &Target,
    key: &ObjectKey,
    patch: Patch,
    options: &WriteOptions,
) -> Result<Written> {
    write_scale(target, key, options, |mut scale| match &patch {
        Patch::Json(operations) => Ok(forms::json_patch(scale, operations)?),
        Patch::Merge(merge) | Patch::Strategic(merge) | Patch::Apply { config: merge, .. } => {
            forms::merge_patch(&mut scale, merge.clone())?;
            Ok(scale)
        }
    })
    .await
}

/// The next state of an object as the mutating hooks would have it: they see its scale, and may change the wanted count.
pub(super) async fn mutated(
    target: &Target,
    asking: &mut Asking,
    before: &Value,
    mut object: Value,
) -> Result<Value> {
    let paths = paths(target)?;
    let shown = scale_of(&object, paths);
    let settle = |scale: &mut Value| {
        let wanted = scale.get("spec").and_then(|spec| spec.get("replicas")).cloned();
        scale.clone_from(&shown);
        scale["spec"]["replicas"] = wanted.unwrap_or_default();
    };
    let scale = asking.mutate(target, Some(&scale_of(before, paths)), shown.clone(), &settle).await?;
    if scale != shown {
        let prepared = object.clone();
        let name = prepared["metadata"]["name"].as_str().unwrap_or_default();
        set_replicas(&mut object, paths, replicas(&scale, name)?)?;
        admission::settle_update(target, before, &prepared, &mut object, Part::Scale);
    }
    Ok(object)
}

/// Shows the scale of an object as it is going to be written to the validating hooks.
pub(super) async fn validated(
    target: &Target,
    asking: &mut Asking,
    before: &Value,
    object: &Value,
) -> Result<()> {
    let paths = paths(target)?;
    asking.validate(target, Some(&scale_of(before, paths)), &scale_of(object, paths)).await
}

async fn write_scale(
    target: &Target,
    key: &ObjectKey,
    options: &WriteOptions,
    next: impl Fn(Value) -> Result<Value>,
) -> Result<Written> {
    let paths = paths(target)?;
    let options = WriteOptions { part: Part::Scale, ..options.clone() };
    let mut warnings = Vec::new();
    for _ in 0..MAX_ATTEMPTS {
        let live = target.live(key)?;
        let before = target.live_value(&live);
        let mut object = before.clone();
        let scale = next(scale_of(&object, paths))?;
        let name = &scale["metadata"]["name"];
        if name.as_str().is_some_and(|name| *name != *key.name) {
            return Err(ApiError::BadRequest(format!(
                "the name of the object ({name}) does not match the name on the URL"
            )));
        }
        let replicas = replicas(&scale, &key.name)?;
        let conditional =
            scale["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty());
        if conditional {
            object["metadata"]["resourceVersion"] = scale["metadata"]["resourceVersion"].clone();
        }
        set_replicas(&mut object, paths, replicas)?;
        if let Some(served) = replace(target, &live, before, object, &options, &mut warnings).await? {
            let object = Served::Value(scale_of(&served.value(), paths));
            return Ok(Written { object, created: false, warnings });
        }
    }
    Err(target.conflict(&key.name))
}
