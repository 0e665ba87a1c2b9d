//! From the schemas of the published types to what Kubernetes publishes of them: references with descriptions
//! beside them, values of several types, and how lists and maps merge.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Map, Value, json};

use super::REFERENCE;
use crate::schema::{ListType, PatchStrategy, Schema};

/// The components in the form in which they are published.
///
/// What stands beside a `$ref` is ignored by OpenAPI 3.0, so such a reference moves into `allOf`; and
/// values that may be of several types say so in the words that clients know.
pub fn presented(components: &Map<String, Value>) -> Map<String, Value> {
    components.iter().map(|(name, component)| (name.clone(), presented_component(name, component))).collect()
}

fn presented_component(name: &str, component: &Value) -> Value {
    let mut component = component.clone();
    let short = name.rsplit('.').next().unwrap_or(name);
    if let Value::Object(members) = &mut component {
        match short {
            "IntOrString" => {
                members.remove("x-kubernetes-int-or-string");
                members.insert("format".to_owned(), json!("int-or-string"));
                members.insert("oneOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
            }
            "Quantity" => {
                members.remove("x-kubernetes-int-or-string");
                members.insert("oneOf".to_owned(), json!([{"type": "string"}, {"type": "number"}]));
            }
            "JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
                members.retain(|member, _| member == "description");
            }
            _ => {}
        }
    }
    wrap_references(&mut component);
    component
}

fn wrap_references(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(wrap_references);
            let is_reference = members.get("$ref").is_some_and(Value::is_string);
            if is_reference
                && members.len() > 1
                && let Some(reference) = members.remove("$ref")
            {
                members.insert("allOf".to_owned(), json!([{"$ref": reference}]));
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(wrap_references),
        _ => {}
    }
}

/// Writes into a component, and into those it refers to, how lists and maps merge according to its compiled
/// schema: `x-kubernetes-list-type`, `-list-map-keys`, `-map-type`, `-patch-strategy` and `-patch-merge-key`.
///
/// Components are visited from the root outwards, each once: a schema that ends where a type contains itself
/// is known in full at its first appearance.
pub fn decorate(components: &mut Map<String, Value>, root: &str, schema: &Schema) {
    let mut seen = BTreeSet::new();
    let mut pending = VecDeque::from([(root.to_owned(), schema)]);
    while let Some((name, schema)) = pending.pop_front() {
        if !seen.insert(name.clone()) {
            continue;
        }
        if let Some(component) = components.get_mut(&name) {
            decorate_node(component, schema, &mut pending);
        }
    }
}

fn decorate_node<'s>(node: &mut Value, schema: &'s Schema, pending: &mut VecDeque<(String, &'s Schema)>) {
    let Value::Object(members) = node else { return };
    if let Some(component) = referred(members) {
        // How a list merges is said where the list is; the rest belongs to the type referred to.
        pending.push_back((component, schema));
        return;
    }
    if members.get("type").and_then(Value::as_str) == Some("array") {
        let list_type = match &schema.list_type {
            ListType::Atomic => "atomic",
            ListType::Set => "set",
            ListType::Map(keys) => {
                members.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
                "map"
            }
        };
        members.insert("x-kubernetes-list-type".to_owned(), json!(list_type));
    }
    if let Some(strategy) = &schema.patch_strategy {
        members.insert("x-kubernetes-patch-strategy".to_owned(), json!("merge"));
        if let PatchStrategy::MergeByKey(key) = strategy {
            members.insert("x-kubernetes-patch-merge-key".to_owned(), json!(key));
        }
    }
    if schema.map_atomic {
        members.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        for (name, property) in properties {
            if let Some(schema) = schema.properties.get(name) {
                decorate_node(property, schema, pending);
            }
        }
    }
    for (place, schema) in [("items", &schema.items), ("additionalProperties", &schema.additional_properties)]
    {
        if let (Some(child), Some(schema)) = (members.get_mut(place), schema) {
            decorate_node(child, schema, pending);
        }
    }
}

/// The component that a node refers to, plainly or within `allOf`.
fn referred(members: &Map<String, Value>) -> Option<String> {
    let within = || members.get("allOf")?.as_array()?.first()?.get("$ref");
    let reference = members.get("$ref").or_else(within)?.as_str()?;
    reference.strip_prefix(REFERENCE).map(str::to_owned)
}
