//! The patch that writes a workload on condition that its spec and revision are still what was read.
//!
//! The condition is not the object's version: that moves whenever the platform reports how things are, which takes nothing from anybody.

use compute_api::annotations::CURRENT_REVISION;
use compute_core::meta;
use serde_json::{Value, json};

use super::Wanted;
use crate::fetch::Found;

/// The operations of the patch. Without `wanted`, only the revision is set.
pub(super) fn operations(base: &Found, wanted: Option<&Wanted>, revision: i64) -> Value {
    let held = &base.object.metadata;
    let mut operations = vec![
        json!({ "op": "test", "path": "/metadata/uid", "value": held.uid }),
        json!({ "op": "test", "path": "/metadata/generation", "value": held.generation }),
    ];
    if let Some(number) = meta::annotation(held, CURRENT_REVISION) {
        let path = format!("/metadata/annotations/{}", escaped(CURRENT_REVISION));
        operations.push(json!({ "op": "test", "path": path, "value": number }));
    }
    if adds_a_map(base, wanted) {
        let version = &held.resource_version;
        operations.push(json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version }));
    }
    if let Some(wanted) = wanted {
        operations.push(json!({ "op": "add", "path": "/spec", "value": wanted.spec }));
    }
    let none = Value::Null;
    let metadata = wanted.map_or(&none, |wanted| &wanted.metadata);
    let mut annotations = pairs(&metadata["annotations"]);
    annotations.retain(|(key, _)| key != CURRENT_REVISION);
    annotations.push((CURRENT_REVISION.to_owned(), revision.to_string()));
    set(&mut operations, "annotations", held.annotations.is_some(), annotations);
    set(&mut operations, "labels", held.labels.is_some(), pairs(&metadata["labels"]));
    Value::Array(operations)
}

/// Sets each pair beside those that are there.
fn set(operations: &mut Vec<Value>, part: &str, has_some: bool, pairs: Vec<(String, String)>) {
    if !has_some && !pairs.is_empty() {
        operations.push(json!({ "op": "add", "path": format!("/metadata/{part}"), "value": {} }));
    }
    operations.extend(pairs.into_iter().map(|(key, value)| {
        json!({ "op": "add", "path": format!("/metadata/{part}/{}", escaped(&key)), "value": value })
    }));
}

fn pairs(value: &Value) -> Vec<(String, String)> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// A key as part of a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Whether labels or annotations, or a first revision, are made by the patch: what somebody else makes at the same moment would be lost.
/// The object's version is all that tells.
fn adds_a_map(base: &Found, wanted: Option<&Wanted>) -> bool {
    let held = &base.object.metadata;
    let labels = wanted.is_some_and(|wanted| !pairs(&wanted.metadata["labels"]).is_empty());
    meta::annotation(held, CURRENT_REVISION).is_none() || (held.labels.is_none() && labels)
}

/// Whether what was read is still what is stored, as far as the condition goes.
pub(super) fn still_holds(base: &Found, now: &Found, wanted: Option<&Wanted>) -> bool {
    let exact = adds_a_map(base, wanted);
    let facts = |found: &Found| {
        let held = &found.object.metadata;
        let number = meta::annotation(held, CURRENT_REVISION).map(str::to_owned);
        let version = held.resource_version.clone().filter(|_| exact);
        (held.uid.clone(), held.generation, number, version)
    };
    facts(base) == facts(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_only_for_what_was_read() {
        let object = json!({
            "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload",
            "metadata": { "name": "web", "uid": "u", "generation": 3, "resourceVersion": "7",
                "annotations": { "compute.datumapis.com/current-revision": "2" } },
            "spec": { "a": 1 },
        });
        let base = Found::of(serde_json::from_value(object).unwrap()).unwrap();
        let wanted = Wanted { spec: json!({ "a": 2 }), metadata: json!({ "labels": { "x/y": "z" } }) };
        assert_eq!(
            operations(&base, Some(&wanted), 3),
            json!([
                { "op": "test", "path": "/metadata/uid", "value": "u" },
                { "op": "test", "path": "/metadata/generation", "value": 3 },
                { "op": "test", "path": "/metadata/annotations/compute.datumapis.com~1current-revision", "value": "2" },
                { "op": "test", "path": "/metadata/resourceVersion", "value": "7" },
                { "op": "add", "path": "/spec", "value": { "a": 2 } },
                { "op": "add", "path": "/metadata/annotations/compute.datumapis.com~1current-revision", "value": "3" },
                { "op": "add", "path": "/metadata/labels", "value": {} },
                { "op": "add", "path": "/metadata/labels/x~1y", "value": "z" },
            ])
        );
        assert!(still_holds(&base, &base, Some(&wanted)));
    }
}
