//! One object of the hub on one member.
//!
//! # Guarantees
//!
//! Only what the hub has put on a member is changed or deleted there, and each such object says which object of
//! the hub it comes from. `spec.replicas` of the hub wins if it is set; else the member's own is kept. A status
//! comes back only from the object that it was sent to; of one that is being deleted, an empty one.

use std::collections::{BTreeMap, BTreeSet};

use compute_api::{k8s::ObjectMeta, template_hash};
use serde_json::{Map, Value, json};

use super::binding;
use crate::meta;

/// On what the hub puts on a member: that it does.
pub const MANAGED_LABEL: &str = "karmada.io/managed";
/// On what the hub puts on a member: the uid of the hub's object.
pub const ORIGIN_UID: &str = "resourcetemplate.karmada.io/uid";
/// On what the hub puts on a member: the keys of the labels that came from the hub, so that one that is gone
/// there goes here too.
pub const MANAGED_LABELS: &str = "resourcetemplate.karmada.io/managed-labels";
/// The same for annotations.
pub const MANAGED_ANNOTATIONS: &str = "resourcetemplate.karmada.io/managed-annotations";

/// What to do about an object on a member.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create it.
    Create(Value),
    /// Replace it, on condition that it is at the resource version that it was computed from.
    Update(Value),
    /// Delete it, on condition that it is still the one that was looked at.
    Delete {
        /// Its uid.
        uid: String,
    },
    /// It is on its way out and must be gone first.
    Wait,
    /// Something of that name was not put there by the hub and is left alone.
    Conflict,
    /// Nothing.
    Nothing,
}

/// What to do about an object on a member. `hub` is the hub's object if it is sent to this member; `None` if it
/// is gone, or another member was chosen.
pub fn decide(hub: Option<&Value>, member: Option<&Value>) -> Step {
    let hub = hub.filter(|hub| !meta::is_being_deleted(&metadata(hub)));
    match (hub, member) {
        (None, None) => Step::Nothing,
        (Some(hub), None) => Step::Create(desired(hub, None)),
        (hub, Some(member)) => {
            let held = metadata(member);
            let delete = || Step::Delete { uid: meta::uid(&held).to_owned() };
            if meta::label(&held, MANAGED_LABEL) != Some("true") {
                return if hub.is_some() { Step::Conflict } else { Step::Nothing };
            }
            match hub {
                _ if meta::is_being_deleted(&held) => {
                    if hub.is_some() {
                        Step::Wait
                    } else {
                        Step::Nothing
                    }
                }
                None => delete(),
                Some(hub) if !is_copy_of(&held, &metadata(hub)) => delete(),
                Some(hub) => {
                    let wanted = desired(hub, Some(member));
                    if same(member, &wanted) { Step::Nothing } else { Step::Update(wanted) }
                }
            }
        }
    }
}

/// The status that a member's object gives back to the hub's. `None`: nothing, what was there last stays.
pub fn reflected(hub: &Value, member: &Value) -> Option<Value> {
    let held = metadata(member);
    if !is_copy_of(&held, &metadata(hub)) {
        return None;
    }
    let stored = hub.get("status").cloned().unwrap_or_else(|| json!({}));
    if meta::is_being_deleted(&held) {
        return (!says_nothing(&stored)).then(|| json!({}));
    }
    let status = member.get("status")?.clone();
    (!template_hash::same_content(&stored, &status)).then_some(status)
}

/// Whether nothing is left of a status. The schema puts zeros into an empty one.
fn says_nothing(status: &Value) -> bool {
    match status {
        Value::Null => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.values().all(says_nothing),
        Value::Bool(_) | Value::String(_) => false,
    }
}

fn is_copy_of(member: &ObjectMeta, hub: &ObjectMeta) -> bool {
    meta::annotation(member, ORIGIN_UID) == Some(meta::uid(hub)).filter(|uid| !uid.is_empty())
}

/// What of an object's metadata matters here; empty where it cannot be read.
fn metadata(object: &Value) -> ObjectMeta {
    let meta = object.get("metadata").cloned().unwrap_or_default();
    serde_json::from_value(meta).unwrap_or_default()
}

/// The object that the member should have. What the member itself added to labels and annotations stays.
fn desired(hub: &Value, member: Option<&Value>) -> Value {
    let none = Map::new();
    let mut wanted = hub.as_object().unwrap_or(&none).clone();
    wanted.remove("status");
    let mut from = metadata(hub);
    if let Some(annotations) = &mut from.annotations {
        annotations.retain(|key, _| !binding::ANNOTATIONS.contains(&key.as_str()));
    }
    let held = member.map(metadata).unwrap_or_default();
    let mut labels = merged(&held, MANAGED_LABELS, held.labels.as_ref(), from.labels.as_ref());
    labels.insert(MANAGED_LABEL.to_owned(), "true".to_owned());
    let mut annotations =
        merged(&held, MANAGED_ANNOTATIONS, held.annotations.as_ref(), from.annotations.as_ref());
    annotations.insert(ORIGIN_UID.to_owned(), meta::uid(&from).to_owned());
    annotations.insert(MANAGED_LABELS.to_owned(), keys(from.labels.as_ref()));
    annotations.insert(MANAGED_ANNOTATIONS.to_owned(), keys(from.annotations.as_ref()));
    let mut meta = match member.and_then(|member| member.get("metadata")) {
        // An update is of the object as it is, but for what the hub says.
        Some(Value::Object(held)) => held.clone(),
        _ => Map::new(),
    };
    meta.insert("name".to_owned(), json!(from.name));
    if let Some(namespace) = &from.namespace {
        meta.insert("namespace".to_owned(), json!(namespace));
    }
    meta.insert("labels".to_owned(), json!(labels));
    meta.insert("annotations".to_owned(), json!(annotations));
    wanted.insert("metadata".to_owned(), Value::Object(meta));

    let own_replicas = member.and_then(|member| member.pointer("/spec/replicas"));
    if let (Some(own), Some(Value::Object(spec))) = (own_replicas, wanted.get_mut("spec")) {
        spec.entry("replicas").or_insert_with(|| own.clone());
    }
    if let Some(status) = member.and_then(|member| member.get("status")) {
        wanted.insert("status".to_owned(), status.clone());
    }
    Value::Object(wanted)
}

/// What the member has, without what came from the hub before, and with what the hub has now.
fn merged(
    member: &ObjectMeta,
    managed: &str,
    held: Option<&BTreeMap<String, String>>,
    from: Option<&BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    let before: BTreeSet<_> = meta::annotation(member, managed).unwrap_or_default().split(',').collect();
    let own = held.into_iter().flatten().filter(|(key, _)| !before.contains(key.as_str()));
    own.chain(from.into_iter().flatten()).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn keys(pairs: Option<&BTreeMap<String, String>>) -> String {
    let keys: Vec<_> = pairs.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    keys.join(",")
}

fn same(member: &Value, wanted: &Value) -> bool {
    template_hash::same_content(member, wanted)
}
