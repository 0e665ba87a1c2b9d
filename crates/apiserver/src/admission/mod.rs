//! What happens to an object between the request and the store: its shape is checked, fields that the kind does
//! not have are dropped, defaults are filled in, system fields are set, ownership of fields is recorded, and the whole is validated.
//!
//! Everything here is a function of the request, the stored object and the definition of the kind; nothing is written. What
//! hooks think of a write is asked by [`hooks`].

pub(crate) mod hooks;
mod metadata;

use serde_json::{Map, Value, json};

use crate::clock::rfc3339;
use crate::error::{ApiError, Result};
use crate::field_error::{FieldError, FieldErrorType};
use crate::managed_fields;
use crate::meta;
use crate::registry::strategy;
use crate::schema::{defaults, prune, validate};
use crate::verbs::{FieldValidation, Part, Target, WriteOptions};

pub(crate) use metadata::check_name;

/// Checks that a body is an object of the target's kind for `namespace`, and puts its `apiVersion`, `kind` and
/// `metadata` in order. Returns warnings that go with the kind.
pub(crate) fn decode_shape(
    target: &Target,
    namespace: Option<&str>,
    object: &mut Value,
) -> Result<Vec<String>> {
    let def = &target.resource.def;
    if !object.is_object() {
        return Err(ApiError::BadRequest(format!(
            "the body must be a JSON object of kind {}",
            def.names.kind
        )));
    }
    let gv = def.gv.to_string();
    for (field, expected, what) in [("apiVersion", &gv, "API version"), ("kind", &def.names.kind, "kind")] {
        match &object[field] {
            Value::Null => object[field] = json!(expected),
            Value::String(found) if found == expected => {}
            Value::String(found) => {
                return Err(ApiError::BadRequest(format!(
                    "the {what} in the data ({found}) does not match the expected {what} ({expected})"
                )));
            }
            _ => return Err(ApiError::BadRequest(format!("{field} must be a string"))),
        }
    }
    metadata::normalise(namespace, object)?;
    Ok(def.warning.iter().cloned().collect())
}

/// Drops what the kind does not have, and deals with it as the client asked. Says whether there was anything.
fn prune_unknown(
    target: &Target,
    object: &mut Value,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<bool> {
    let def = &target.resource.def;
    let pruned = prune::prune(&def.schema, object);
    let mut problems: Vec<String> = pruned.iter().map(|path| format!("unknown field {path:?}")).collect();
    problems.extend(options.duplicates.iter().map(|path| format!("duplicate field {path:?}")));
    match options.validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => warnings.extend(problems),
        FieldValidation::Strict if problems.is_empty() => {}
        FieldValidation::Strict => {
            let (kind, version) = (&def.names.kind, &def.gv.version);
            return Err(ApiError::BadRequest(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
                problems.join(", ")
            )));
        }
    }
    Ok(!pruned.is_empty())
}

/// Makes a new object ready but for its name, if that is generated.
pub(crate) fn prepare_create(
    target: &Target,
    object: &mut Value,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let now = rfc3339(target.shared.options.clock.now());
    if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
        return Err(ApiError::BadRequest(
            "resourceVersion should not be set on objects to be created".to_owned(),
        ));
    }
    let pruned = prune_unknown(target, object, options, warnings)?;
    let dropped = metadata::reset_system_fields(object) || pruned;
    strategy::before_create(target, object, &now);
    defaults::apply(&target.resource.def.schema, object);
    let metadata = &mut object["metadata"];
    metadata["uid"] = json!(target.shared.options.random.uuid());
    metadata["creationTimestamp"] = json!(now);
    if strategy::has_generation(target) {
        metadata["generation"] = json!(1);
    }
    record_ownership(target, None, object, options, &now, dropped);
    Ok(())
}

/// Makes a new object ready again after a hook has changed it. System fields and ownership stay as they were `prepared`.
pub(crate) fn settle_create(target: &Target, prepared: &Value, object: &mut Value) {
    let now = rfc3339(target.shared.options.clock.now());
    prune::prune(&target.resource.def.schema, object);
    metadata::keep_system_fields(prepared, object);
    strategy::before_create(target, object, &now);
    defaults::apply(&target.resource.def.schema, object);
    keep_ownership(target, prepared, object);
}

/// Makes the next state of an object ready.
pub(crate) fn prepare_update(
    target: &Target,
    before: &Value,
    object: &mut Value,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let now = rfc3339(target.shared.options.clock.now());
    let pruned = prune_unknown(target, object, options, warnings)?;
    let dropped = arrange_update(target, before, object, options.part, &now) || pruned;
    record_ownership(target, Some(before), object, options, &now, dropped);
    Ok(())
}

/// Makes the next state of an object ready again after a hook has changed it. Ownership stays as it was `prepared`.
pub(crate) fn settle_update(
    target: &Target,
    before: &Value,
    prepared: &Value,
    object: &mut Value,
    part: Part,
) {
    let now = rfc3339(target.shared.options.clock.now());
    prune::prune(&target.resource.def.schema, object);
    arrange_update(target, before, object, part, &now);
    keep_ownership(target, prepared, object);
}

/// Puts the server's own fields into the next state of an object, and the defaults. Says whether anything was dropped.
fn arrange_update(target: &Target, before: &Value, object: &mut Value, part: Part, now: &str) -> bool {
    take_part(target, before, object, part);
    let dropped = metadata::keep_system_fields(before, object);
    if part == Part::Main {
        strategy::before_update(target, before, object, now);
    }
    defaults::apply(&target.resource.def.schema, object);
    if strategy::has_generation(target) {
        let generation = before["metadata"]["generation"].as_i64().unwrap_or(1);
        let changed = strategy::desired_state_differs(target, before, object);
        object["metadata"]["generation"] = json!(generation + i64::from(changed));
    }
    dropped
}

/// Keeps of `object` only what a write to `part` may change; the rest stays as it was.
fn take_part(target: &Target, before: &Value, object: &mut Value, part: Part) {
    let (Some(old), Some(new)) = (before.as_object(), object.as_object_mut()) else { return };
    match part {
        Part::Main if target.resource.def.status => {
            match old.get("status") {
                Some(status) => new.insert("status".to_owned(), status.clone()),
                None => new.remove("status"),
            };
        }
        Part::Main | Part::Scale => {}
        Part::Status => {
            restore(old, new, &["metadata", "status"]);
            new.retain(|field, value| field != "status" || !value.is_null());
            take_metadata(old, new, strategy::status_carries_metadata(target));
        }
        Part::Finalize => {
            let wanted = new.get("spec").and_then(|spec| spec.get("finalizers")).cloned();
            restore(old, new, &["metadata"]);
            take_metadata(old, new, false);
            object["spec"]["finalizers"] = wanted.unwrap_or_default();
        }
    }
}

/// Makes the fields of `new` those of `old`, but for those that are `kept`. What is the same already is not copied.
fn restore(old: &Map<String, Value>, new: &mut Map<String, Value>, kept: &[&str]) {
    let is_kept = |field: &String| kept.contains(&field.as_str());
    new.retain(|field, _| is_kept(field) || old.contains_key(field));
    for (field, value) in old.iter().filter(|(field, _)| !is_kept(field)) {
        match new.get_mut(field) {
            Some(present) if present == value => {}
            Some(present) => *present = value.clone(),
            None => {
                new.insert(field.clone(), value.clone());
            }
        }
    }
}

/// Keeps of the metadata of a part what may come with it: the entries of owners alone or, if the part `carries` metadata, everything but
/// the owner references.
fn take_metadata(old: &Map<String, Value>, new: &mut Map<String, Value>, carries: bool) {
    let field = if carries { "ownerReferences" } else { "managedFields" };
    let (Some(Value::Object(before)), Some(Value::Object(metadata))) =
        (old.get("metadata"), new.get_mut("metadata"))
    else {
        return;
    };
    if !carries {
        restore(before, metadata, &[field]);
    }
    if let Some(value) = before.get(field).filter(|_| carries || !metadata.contains_key(field)) {
        metadata.insert(field.to_owned(), value.clone());
    }
}

/// Writes down who owns the changed fields. An apply has done so itself and names no manager; what was `dropped` since then
/// is nobody's.
fn record_ownership(
    target: &Target,
    before: Option<&Value>,
    object: &mut Value,
    options: &WriteOptions,
    now: &str,
    dropped: bool,
) {
    let schema = &target.resource.def.schema;
    if options.manager.is_empty() {
        if dropped {
            managed_fields::forget_absent(object, schema);
        }
        return;
    }
    let writer = managed_fields::Writer {
        manager: &options.manager,
        api_version: &target.resource.def.gv.to_string(),
        subresource: options.part.subresource(),
        now,
    };
    managed_fields::update(before, object, schema, writer);
}

/// What a hook sets belongs to nobody, as in Kubernetes: only what it removed is taken from its owners. Entries that a hook
/// has made unreadable are put back.
fn keep_ownership(target: &Target, prepared: &Value, object: &mut Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    let readable = metadata
        .get("managedFields")
        .and_then(|entries| managed_fields::ManagedEntry::read_all(entries).ok())
        .is_some_and(|entries| !entries.is_empty());
    if !readable {
        match prepared["metadata"].get("managedFields") {
            Some(entries) => metadata.insert("managedFields".to_owned(), entries.clone()),
            None => metadata.remove("managedFields"),
        };
    }
    managed_fields::forget_absent(object, &target.resource.def.schema);
}

/// Everything that is wrong with a new object.
pub(crate) fn validate_create(target: &Target, object: &Value) -> Result<()> {
    let mut errors = meta::validate(&object["metadata"], target.resource.name_rule);
    let ill_formed = validate::validate(&target.resource.def.schema, object, None);
    if ill_formed.is_empty() {
        errors.extend(strategy::validate(target, None, object));
    }
    errors.extend(ill_formed);
    finish(target, object, errors)?;
    strategy::check_grant(target, None, object)
}

/// Everything that is wrong with the next state of an object.
pub(crate) fn validate_update(
    target: &Target,
    before: &Value,
    object: &Value,
    options: &WriteOptions,
) -> Result<()> {
    let mut errors = meta::validate(&object["metadata"], target.resource.name_rule);
    if !before["metadata"]["deletionTimestamp"].is_null() {
        let known = before["metadata"]["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
        let added =
            object["metadata"]["finalizers"].as_array().into_iter().flatten().filter(|f| !known.contains(f));
        let added: Vec<String> = added.map(ToString::to_string).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {}",
                added.join(", ")
            );
            errors.push(FieldError::new("metadata.finalizers", FieldErrorType::Forbidden, detail));
        }
    }
    let ill_formed = validate::validate(&target.resource.def.schema, object, Some(before));
    if options.part == Part::Main && ill_formed.is_empty() {
        errors.extend(strategy::validate(target, Some(before), object));
    }
    errors.extend(ill_formed);
    finish(target, object, errors)?;
    strategy::check_grant(target, Some(before), object)
}

fn finish(target: &Target, object: &Value, errors: Vec<FieldError>) -> Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(ApiError::Invalid { subject: target.kind_subject(name), errors })
}
