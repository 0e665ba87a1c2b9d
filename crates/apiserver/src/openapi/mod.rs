//! `/openapi/v3`: what is served, told to clients as one OpenAPI document per group and version.
//!
//! `kubectl explain` reads the schemas, `kubectl apply` the patch extensions and the media types of PATCH,
//! and dry-run detection the parameters of PATCH. Documents are pure functions of the definitions served;
//! the caller keeps their bytes. A document is complete: every component that it refers to is in it, and no
//! other.

mod decorate;
mod operations;
mod parameters;
mod schemas;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::registry::crd::fingerprint;
use crate::registry::definition::{Definition, GroupVersion};

pub use decorate::{decorate, presented};
pub use schemas::{built_in_component, custom_component, custom_root, set_group_version_kind};

/// Where components are in a document, as a JSON pointer.
pub const COMPONENTS_PATH: &str = "/components/schemas";

/// How a reference to a component begins.
const REFERENCE: &str = "#/components/schemas/";

/// The Kubernetes release whose API this is.
const RELEASE: &str = "v1.35.0";

/// The index at `/openapi/v3`: for each group and version, where its document is. The hash in the address
/// changes with the document, so that clients may keep what they have read.
pub fn index(versions: &[(GroupVersion, u64)]) -> Value {
    let paths: Map<String, Value> = versions
        .iter()
        .map(|(gv, hash)| {
            let base = base_path(gv);
            let address = format!("/openapi/v3{base}?hash={hash:016X}");
            (base[1..].to_owned(), json!({"serverRelativeURL": address}))
        })
        .collect();
    json!({ "paths": paths })
}

/// A number that differs when the document of these definitions differs; the same within one process and
/// whatever their order.
pub fn hash(definitions: &[Arc<Definition>]) -> u64 {
    let mut parts: Vec<(String, Value)> = definitions
        .iter()
        .map(|definition| {
            let names = &definition.names;
            let known_by = format!("{}/{}", definition.gv, names.plural);
            let shape =
                [definition.namespaced, definition.status, definition.scale.is_some(), definition.built_in];
            let part =
                json!([known_by, names.kind, names.list_kind, shape, fingerprint(&definition.openapi)]);
            (known_by, part)
        })
        .collect();
    parts.sort_by(|(left, _), (right, _)| left.cmp(right));
    let parts = parts.into_iter().map(|(_, part)| part).collect();
    let digest = fingerprint(&Value::Array(parts));
    digest[..8].iter().fold(0, |hash, byte| (hash << 8) | u64::from(*byte))
}

/// The document of one group and version.
pub fn document(gv: &GroupVersion, definitions: &[Arc<Definition>]) -> Value {
    let mut paths = Map::new();
    let mut roots: BTreeMap<String, Value> = BTreeMap::new();
    for definition in definitions {
        operations::insert_paths(&mut paths, definition, &base_path(gv));
        let component = component(definition);
        roots.insert(format!("{component}List"), schemas::list(definition, &component));
        roots.insert(component, definition.openapi.clone());
    }
    let paths = Value::Object(paths);
    let components = reachable(&paths, roots, definitions);
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": RELEASE},
        "paths": paths,
        "components": {"schemas": components},
    })
}

/// The name of the component that describes the objects of a definition.
pub fn component(definition: &Definition) -> String {
    if definition.built_in {
        built_in_component(&definition.gv, &definition.names.kind)
    } else {
        custom_component(&definition.gv, &definition.names.kind)
    }
}

/// `/api/v1` or `/apis/<group>/<version>`.
fn base_path(gv: &GroupVersion) -> String {
    if gv.group.is_empty() {
        format!("/api/{}", gv.version)
    } else {
        format!("/apis/{}/{}", gv.group, gv.version)
    }
}

fn reference(component: &str) -> Value {
    json!({"$ref": format!("{REFERENCE}{component}")})
}

/// The components that the paths refer to, and those that these refer to, and so on.
fn reachable(
    paths: &Value,
    mut roots: BTreeMap<String, Value>,
    definitions: &[Arc<Definition>],
) -> Map<String, Value> {
    let mut found = Map::new();
    let mut pending = Vec::new();
    each_reference(paths, &mut |name| pending.push(name.to_owned()));
    while let Some(name) = pending.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let shared = || definitions.iter().find_map(|definition| definition.openapi_components.get(&name));
        // A definition that lacks a component is made whole with a schema that says nothing: clients refuse a
        // document with a reference that leads nowhere.
        let component =
            roots.remove(&name).or_else(|| shared().cloned()).unwrap_or_else(|| json!({"type": "object"}));
        each_reference(&component, &mut |name| pending.push(name.to_owned()));
        found.insert(name, component);
    }
    found
}

/// Calls back with the name of every component that a value refers to.
fn each_reference(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            if let Some(name) = reference.and_then(|reference| reference.strip_prefix(REFERENCE)) {
                each(name);
            }
            members.values().for_each(|member| each_reference(member, each));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| each_reference(entry, each)),
        _ => {}
    }
}
