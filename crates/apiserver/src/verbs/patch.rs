//! Patch in its four forms: JSON patch, merge patch, strategic merge patch, and server-side apply.

use serde_json::Value;

use super::update::replace;
use super::{MAX_ATTEMPTS, Part, Target, WriteOptions, Written, create};
use crate::admission;
use crate::clock::rfc3339;
use crate::error::{ApiError, Cause, Result};
use crate::managed_fields::{self, ApplyError};
use crate::patch as forms;
use crate::store::{Object, ObjectKey};

/// A patch, parsed as far as its form allows without the object.
#[derive(Clone, Debug)]
pub(crate) enum Patch {
    /// RFC 6902.
    Json(bytes::Bytes),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own, for built-in kinds.
    Strategic(Value),
    /// Server-side apply of a whole configuration.
    Apply {
        /// The configuration.
        config: Value,
        /// Whether fields of other managers are taken over.
        force: bool,
    },
}

/// Patches an object; an apply makes it if there is none.
pub(crate) async fn patch(
    target: &Target,
    key: &ObjectKey,
    patch: Patch,
    options: &WriteOptions,
) -> Result<Written> {
    if matches!(patch, Patch::Strategic(_)) && !target.resource.def.built_in {
        return Err(ApiError::UnsupportedMediaType(
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        ));
    }
    let mut named = false;
    let patch = match patch {
        Patch::Apply { config, force } => {
            named =
                config.pointer("/metadata/name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
            Patch::Apply { config: checked_config(target, key, config, options.part)?, force }
        }
        other => other,
    };
    let mut warnings = Vec::new();
    for _ in 0..MAX_ATTEMPTS {
        let live = match (target.live(key), &patch) {
            (Ok(live), _) => live,
            (Err(ApiError::NotFound(_)), Patch::Apply { config, .. }) if options.part == Part::Main => {
                if !named {
                    // Where there is nothing yet, the path alone does not name it: as API servers have it.
                    return Err(ApiError::BadRequest(format!(
                        "the name of the object ({} based on URL) was undeterminable: name must be provided",
                        key.name
                    )));
                }
                match create_by_apply(target, key, config, options).await {
                    Err(ApiError::AlreadyExists(_)) => continue,
                    made => return made,
                }
            }
            (Err(error), _) => return Err(error),
        };
        let before = target.live_value(&live);
        let patched = apply_patch(target, &live, &before, &patch, options)?;
        let options = match &patch {
            Patch::Apply { .. } => &WriteOptions { manager: String::new(), ..options.clone() },
            _ => options,
        };
        if let Some(object) = replace(target, &live, before, patched, options, &mut warnings).await? {
            return Ok(Written { object, created: false, warnings });
        }
    }
    Err(target.conflict(&key.name))
}

/// The object after the patch, before admission.
fn apply_patch(
    target: &Target,
    live: &Object,
    before: &Value,
    patch: &Patch,
    options: &WriteOptions,
) -> Result<Value> {
    let name = &live.meta.key.name;
    let schema = &target.resource.def.schema;
    let mut patched = match patch {
        Patch::Json(operations) => forms::json_patch(before.clone(), operations)?,
        Patch::Merge(merge) => {
            let mut merged = before.clone();
            forms::merge_patch(&mut merged, merge.clone())?;
            merged
        }
        Patch::Strategic(merge) => forms::strategic::patch(before.clone(), merge.clone(), schema)?,
        Patch::Apply { config, force } => {
            let now = rfc3339(target.shared.options.clock.now());
            let applied = managed_fields::apply(
                Some(before),
                config,
                schema,
                managed_fields::Writer {
                    manager: &options.manager,
                    api_version: &target.resource.def.gv.to_string(),
                    subresource: options.part.subresource(),
                    now: &now,
                },
                *force,
            );
            applied.map_err(|error| apply_error(target, name, error))?.object
        }
    };
    let namespace = target.resource.def.namespaced.then_some(&*live.meta.key.namespace);
    admission::decode_shape(target, namespace, &mut patched)?;
    admission::check_name(name, &mut patched)?;
    Ok(patched)
}

/// An apply to nothing: the configuration becomes the object.
async fn create_by_apply(
    target: &Target,
    key: &ObjectKey,
    config: &Value,
    options: &WriteOptions,
) -> Result<Written> {
    // The request was allowed as a patch; what it comes to is a create.
    target.require("create", &key.namespace, &key.name)?;
    if config["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty()) {
        return Err(ApiError::Conflict {
            subject: target.subject(&key.name),
            message: "uid mismatch: the provided object specified a uid, and no existing object was found"
                .to_owned(),
        });
    }
    let now = rfc3339(target.shared.options.clock.now());
    let writer = managed_fields::Writer {
        manager: &options.manager,
        api_version: &target.resource.def.gv.to_string(),
        subresource: "",
        now: &now,
    };
    let applied = managed_fields::apply(None, config, &target.resource.def.schema, writer, false)
        .map_err(|error| apply_error(target, &key.name, error))?;
    let namespace = target.resource.def.namespaced.then_some(&*key.namespace);
    let options = WriteOptions { manager: String::new(), ..options.clone() };
    create(target, namespace, applied.object, &options).await
}

/// A configuration must name its kind and, if it names itself, be named as in the URL. Of a kind with a status of its own
/// it covers either the status or everything else.
fn checked_config(target: &Target, key: &ObjectKey, mut config: Value, part: Part) -> Result<Value> {
    for field in ["apiVersion", "kind"] {
        if config[field].as_str().unwrap_or_default().is_empty() {
            return Err(ApiError::BadRequest(format!("{field} must be set in the applied configuration")));
        }
    }
    let namespace = target.resource.def.namespaced.then_some(&*key.namespace);
    admission::decode_shape(target, namespace, &mut config)?;
    admission::check_name(&key.name, &mut config)?;
    if let Some(fields) = config.as_object_mut().filter(|_| target.resource.def.status) {
        fields.retain(|field, _| match (field.as_str(), part) {
            ("apiVersion" | "kind" | "metadata", _) => true,
            ("status", part) => part == Part::Status,
            (_, part) => part != Part::Status,
        });
    }
    Ok(config)
}

fn apply_error(target: &Target, name: &str, error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let message = managed_fields::conflict_message(&conflicts);
            let cause = |conflict: &managed_fields::Conflict, field: &String| Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: conflict.cause(),
                field: field.clone(),
            };
            let causes =
                conflicts.iter().flat_map(|c| c.fields.iter().map(|field| cause(c, field))).collect();
            ApiError::ApplyConflict { message, causes }
        }
        ApplyError::BadRequest(message) => ApiError::BadRequest(message),
        ApplyError::Invalid(errors) => ApiError::Invalid { subject: target.kind_subject(name), errors },
    }
}
