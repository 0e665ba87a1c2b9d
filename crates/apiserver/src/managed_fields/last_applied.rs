//! Moving from client-side to server-side apply with kubectl.
//!
//! Client-side `kubectl apply` keeps the last configuration in an annotation. When the same user goes on
//! with `kubectl apply --server-side`, what that annotation claims is theirs already, so it is no
//! conflict; and the annotation is kept up to date, so that the way back stays open. Only the manager
//! named `kubectl` is treated so.

use serde_json::{Map, Value};

use super::extract::fields_of;
use super::set::FieldSet;
use crate::schema::Schema;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const MANAGER: &str = "kubectl";

/// All annotations of an object together may be this long.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The fields that the live object's annotation claims for this manager.
pub(super) fn claimed(live: &Value, schema: &Schema, manager: &str) -> Option<FieldSet> {
    if manager != MANAGER {
        return None;
    }
    let text = live.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    let configuration: Value = serde_json::from_str(text).ok()?;
    Some(fields_of(&configuration, schema))
}

/// Brings the annotation, if the object has one, up to what was applied now.
pub(super) fn sync(object: &mut Value, applied: &Value, manager: &str) {
    if manager != MANAGER {
        return;
    }
    let Some(annotations) = object
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(Value::as_object_mut)
        .filter(|annotations| annotations.contains_key(ANNOTATION))
    else {
        return;
    };
    let mut applied = applied.clone();
    if let Some(own) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        own.remove(ANNOTATION);
    }
    let text = format!("{applied}\n");
    if size(annotations, ANNOTATION) + ANNOTATION.len() + text.len() > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    } else {
        annotations.insert(ANNOTATION.to_owned(), text.into());
    }
}

fn size(annotations: &Map<String, Value>, except: &str) -> usize {
    let others = annotations.iter().filter(|(name, _)| name.as_str() != except);
    others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum()
}
