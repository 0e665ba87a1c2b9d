//! Makes structural schemas out of our Rust types.
//!
//! schemars knows the types; what the Kubernetes API needs beyond that is written on the fields as extensions
//! (`x-kubernetes-*`, limits, patterns). [`of`] puts both together in the form that an API server takes: no
//! references, no `nullable`, no title.
//!
//! # Conventions on the types
//!
//! * A schema default is written as the extension `x-default`. The defaults that serde uses to decode never
//!   reach the schema: they are about leniency, not about what is stored.
//! * A property is required if and only if it is always serialised, unless the type lists `required` itself.
//! * `Option` says that a property may be absent, never that it may be null: API servers drop a null.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Map, Value, json};

/// How long ago a condition changed that nobody has written yet.
const NEVER: &str = "1970-01-01T00:00:00Z";
/// What such a condition says.
const WAITING: &str = "Waiting for controller";

/// The structural schema of `T`.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|s| {
            s.inline_subschemas = true;
            s.meta_schema = None;
        })
        .for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    clean(&mut schema);
    schema
}

/// Schema of a list of conditions. Whether the list is a map keyed by `type` is said where it is used.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "description": "One aspect of the state of this object.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed."
                },
                "message": {
                    "type": "string",
                    "maxLength": 32768,
                    "description": "Details, for people."
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The generation that the condition speaks of."
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Why the status is what it is, in one word."
                },
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether the condition holds."
                },
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "pattern": concat!(
                        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
                        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
                    ),
                    "description": "Which aspect the condition is about."
                }
            }
        }
    })
}

/// Schema of a point in time.
pub(crate) fn date_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// Schema of an integer of no particular size.
pub(crate) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer" })
}

/// Schema of a list of objects that are kept as they come.
pub(crate) fn objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true }
    })
}

/// Schema of a label selector.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": { "type": "object", "additionalProperties": { "type": "string" } },
            "matchExpressions": {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string" },
                        "operator": { "type": "string" },
                        "values": {
                            "type": "array",
                            "x-kubernetes-list-type": "atomic",
                            "items": { "type": "string" }
                        }
                    }
                }
            }
        }
    })
}

/// Conditions of these types that no controller has looked at.
pub(crate) fn pending_conditions(types: &[&str]) -> Value {
    types.iter().map(|type_| unknown(type_, "Pending", WAITING)).collect()
}

/// A status that holds nothing but conditions of these types that no controller has looked at.
pub(crate) fn pending_status(types: &[&str]) -> Value {
    json!({ "conditions": pending_conditions(types) })
}

/// The status of an instance that no controller has looked at.
pub(crate) fn pending_instance_status() -> Value {
    let mut conditions: Vec<Value> =
        ["Programmed", "Available", "Ready"].map(|type_| unknown(type_, "Pending", WAITING)).into();
    conditions.push(unknown("QuotaGranted", "PendingEvaluation", WAITING));
    json!({ "conditions": conditions })
}

/// A condition of status Unknown that was never written.
fn unknown(type_: &str, reason: &str, message: &str) -> Value {
    condition(type_, "Unknown", reason, message)
}

/// A condition that was never written, for use as a schema default.
pub(crate) fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "lastTransitionTime": NEVER, "message": message, "reason": reason, "status": status, "type": type_,
    })
}

/// Rewrites a schema, and everything below it, into the form that an API server takes.
fn clean(schema: &mut Value) {
    let Value::Object(keys) = schema else {
        // `true`: whatever comes is kept.
        *schema = json!({ "x-kubernetes-preserve-unknown-fields": true });
        return;
    };
    collapse_nullable(keys);
    if let Some(Value::String(description)) = keys.get_mut("description") {
        *description = unwrap_lines(description);
    }
    keys.remove("title");
    keys.remove("$schema");
    keys.remove("default");
    if let Some(default) = keys.remove("x-default") {
        keys.insert("default".to_owned(), default);
    }
    if let Some(Value::Array(required)) = keys.get_mut("required") {
        required.sort_unstable_by(|a, b| a.as_str().cmp(&b.as_str()));
        if required.is_empty() {
            keys.remove("required");
        }
    }
    if let Some(Value::Object(properties)) = keys.get_mut("properties") {
        properties.values_mut().for_each(clean);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(inner) = keys.get_mut(below) {
            clean(inner);
        }
    }
}

/// The text with each paragraph on one line.
fn unwrap_lines(text: &str) -> String {
    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n")
}

/// Takes the null out of an optional type: `[T, "null"]` and `anyOf: [T, null]` become `T`.
fn collapse_nullable(keys: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = keys.get_mut("type") {
        types.retain(|type_| type_ != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            keys.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = keys.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(branches)) = keys.get("anyOf") else { return };
    let is_null = |branch: &Value| branch.get("type").is_some_and(|type_| type_ == "null");
    if !branches.iter().any(is_null) {
        return;
    }
    let Some(Value::Object(inner)) = branches.iter().find(|branch| !is_null(branch)).cloned() else { return };
    keys.remove("anyOf");
    for (key, value) in inner {
        // What is said about the field wins over what is said about its type.
        keys.entry(key).or_insert(value);
    }
}
