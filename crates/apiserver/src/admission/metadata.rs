//! Metadata on its way in: which parts a client may set, and which are the server's.

use serde_json::{Map, Value};

use crate::error::{ApiError, Result};

/// Set by the server at creation and never changed by a client.
const FIXED: [&str; 8] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generateName",
    "generation",
];

/// Makes `metadata` an object without nulls and with the request's namespace.
pub(super) fn normalise(namespace: Option<&str>, object: &mut Value) -> Result<()> {
    let slot = &mut object["metadata"];
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    let Some(metadata) = slot.as_object_mut() else {
        return Err(ApiError::BadRequest("metadata must be an object".to_owned()));
    };
    metadata.retain(|_, value| !value.is_null());
    let given = match metadata.get("namespace") {
        None => "",
        Some(Value::String(given)) => given,
        Some(_) => return Err(ApiError::BadRequest("metadata.namespace must be a string".to_owned())),
    };
    match namespace {
        Some(namespace) if given.is_empty() => {
            metadata.insert("namespace".to_owned(), Value::String(namespace.to_owned()));
        }
        Some(namespace) if given == namespace => {}
        None if given.is_empty() => {
            metadata.remove("namespace");
        }
        _ => {
            return Err(ApiError::BadRequest(
                "the namespace of the provided object does not match the namespace sent on the request"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}

/// The body of an update must be named as in the URL.
pub(crate) fn check_name(name: &str, object: &mut Value) -> Result<()> {
    let metadata = &mut object["metadata"];
    match metadata["name"].as_str() {
        None | Some("") => metadata["name"] = Value::String(name.to_owned()),
        Some(found) if found == name => {}
        Some(found) => {
            return Err(ApiError::BadRequest(format!(
                "the name of the object ({found}) does not match the name on the URL ({name})"
            )));
        }
    }
    Ok(())
}

/// Removes from a new object what only the server sets, and what is empty. Says whether anything was empty.
pub(super) fn reset_system_fields(object: &mut Value) -> bool {
    let Some(metadata) = object["metadata"].as_object_mut() else { return false };
    let system = FIXED.iter().filter(|field| !matches!(**field, "name" | "namespace" | "generateName"));
    for field in system.copied().chain(["resourceVersion", "selfLink"]) {
        metadata.remove(field);
    }
    drop_empty(metadata)
}

/// Gives the next state of an object the system fields of the present one, and removes what is empty. Says whether anything
/// was empty.
pub(super) fn keep_system_fields(before: &Value, object: &mut Value) -> bool {
    let Some(metadata) = object["metadata"].as_object_mut() else { return false };
    metadata.remove("selfLink");
    metadata.retain(|_, value| !value.is_null());
    for field in FIXED.into_iter().chain(["resourceVersion"]) {
        match before["metadata"].get(field) {
            Some(value) if metadata.get(field) == Some(value) => {}
            Some(value) => {
                metadata.insert(field.to_owned(), value.clone());
            }
            None => {
                metadata.remove(field);
            }
        }
    }
    drop_empty(metadata)
}

/// Kubernetes knows no difference between an empty map or list of metadata and none.
fn drop_empty(metadata: &mut Map<String, Value>) -> bool {
    let before = metadata.len();
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let empty = match (metadata.get(field), field) {
            (Some(Value::Object(map)), "labels" | "annotations") => map.is_empty(),
            (Some(Value::Array(list)), "finalizers" | "ownerReferences") => list.is_empty(),
            _ => false,
        };
        if empty {
            metadata.remove(field);
        }
    }
    metadata.len() < before
}
