//! The common cases of ownership, decided on the JSON of the entries without making sets of paths: a new object, whose one writer owns all
//! of it; and a write to fields that its writer owns already and nobody else does.
//!
//! Guarantees: the outcome is the same as by way of the sets; where that is not certain, the answer is that this is no common case.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Writer;
use super::entry::{MAX_UPDATERS, ManagedEntry, Operation};
use super::extract::repeated;
use super::path::PathElement;
use super::set::FieldSet;
use super::shape::Shape;
use crate::schema::Schema;

type Fields = Map<String, Value>;

/// The entries of a new object; `None` if nothing in it can be owned.
pub(super) fn entry_of_new(object: &Value, schema: &Schema, writer: &Writer<'_>) -> Option<Value> {
    let shape = Shape::root(schema);
    if shape.is_atomic_map() {
        return None;
    }
    let mut fields = below(object.as_object()?, shape);
    // Neither the whole object nor its metadata as such is anybody's.
    fields.remove(".");
    if let Some(Value::Object(metadata)) = fields.get_mut("f:metadata") {
        metadata.remove(".");
        if metadata.is_empty() {
            fields.remove("f:metadata");
        }
    }
    let entry = ManagedEntry::of(writer, Operation::Update, FieldSet::new());
    (!fields.is_empty()).then(|| Value::Array(vec![entry.write_with(Value::Object(fields))]))
}

/// A value and everything in it, as `FieldsV1`.
fn everything(value: &Value, shape: Shape<'_>) -> Value {
    Value::Object(match value {
        Value::Object(map) if !shape.is_atomic_map() => below(map, shape),
        Value::Array(items) if !items.is_empty() => match shape.identify(items) {
            Some(identities) => entries(identities, items, shape.items()),
            None => Fields::new(),
        },
        _ => Fields::new(),
    })
}

fn below(map: &Map<String, Value>, shape: Shape<'_>) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in map.iter().filter(|(name, _)| shape.is_tracked(name)) {
        fields.insert(["f:", name].concat(), everything(value, shape.field(name).0));
    }
    itself(fields)
}

fn entries(identities: Vec<PathElement>, items: &[Value], shape: Shape<'_>) -> Fields {
    let repeated = repeated(&identities);
    let mut fields = Fields::new();
    for (identity, item) in identities.into_iter().zip(items) {
        // Entries that cannot be told apart are owned together, and not by their fields.
        let one = repeated.contains(&identity);
        let below = if one { Value::Object(Fields::new()) } else { everything(item, shape) };
        fields.insert(identity.to_key(), below);
    }
    itself(fields)
}

/// Adds the path that ends here, which goes without saying where there is nothing below it.
fn itself(mut fields: Fields) -> Fields {
    if !fields.is_empty() {
        fields.insert(".".to_owned(), Value::Object(Fields::new()));
    }
    fields
}

/// Where the writer's entry stands, if a write of these paths changes no entry but for the time of that one.
pub(super) fn own_place(
    raw: &Value,
    written: &FieldSet,
    removed: &FieldSet,
    schema: &Schema,
    writer: &Writer<'_>,
) -> Option<usize> {
    if written.is_empty() {
        return None;
    }
    let shape = Shape::root(schema);
    let entries = raw.as_array().filter(|entries| entries.len() <= MAX_UPDATERS)?;
    let mut own = None;
    for (at, entry) in entries.iter().enumerate() {
        let fields = entry.get("fieldsV1")?.as_object().filter(|fields| !fields.is_empty())?;
        let stays = if is_own(entry, writer) {
            if own.replace(at).is_some() {
                return None;
            }
            holds(fields, written)
        } else {
            !meets(fields, written)
        };
        if !stays || meets(fields, removed) || !shape.fits(fields) {
            return None;
        }
    }
    own
}

fn is_own(entry: &Value, writer: &Writer<'_>) -> bool {
    let is = |field: &str, text: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default() == text;
    is("operation", Operation::Update.as_str())
        && is("manager", writer.manager)
        && is("subresource", writer.subresource)
        && is("apiVersion", writer.api_version)
}

/// Whether taking the paths out would take anything.
fn meets(fields: &Fields, paths: &FieldSet) -> bool {
    paths.children.iter().any(|(element, below)| match fields.get(&element.to_key()) {
        None => false,
        Some(_) if below.owned => true,
        Some(Value::Object(fields)) => meets(fields, below),
        Some(_) => true,
    })
}

/// Whether taking the paths out, with what is below them, and putting them in again changes nothing.
fn holds(fields: &Fields, paths: &FieldSet) -> bool {
    paths.children.iter().all(|(element, below)| match fields.get(&element.to_key()) {
        Some(Value::Object(fields)) if below.owned => is(fields, below),
        Some(Value::Object(fields)) => holds(fields, below),
        _ => false,
    })
}

/// Whether the fields are these paths.
fn is(fields: &Fields, paths: &FieldSet) -> bool {
    let dot = fields.contains_key(".");
    (dot || fields.is_empty()) == paths.owned
        && fields.len() - usize::from(dot) == paths.children.len()
        && paths.children.iter().all(|(element, below)| match fields.get(&element.to_key()) {
            Some(Value::Object(fields)) => is(fields, below),
            _ => false,
        })
}

/// The entries with another time in one of them, in their order.
pub(super) fn at_time<'a>(raw: Cow<'a, Value>, own: usize, now: &str) -> Cow<'a, Value> {
    if raw[own]["time"].as_str() == Some(now) {
        return raw;
    }
    let mut raw = raw.into_owned();
    raw[own]["time"] = Value::String(now.to_owned());
    if let Some(entries) = raw.as_array_mut() {
        entries.sort_by(|a, b| order(a).cmp(&order(b)));
    }
    Cow::Owned(raw)
}

/// As entries are ordered: `Apply` comes before `Update` in the alphabet too.
fn order(entry: &Value) -> [Option<&str>; 5] {
    let required = |field: &str| Some(entry.get(field).and_then(Value::as_str).unwrap_or_default());
    let time = entry.get("time").and_then(Value::as_str);
    [required("operation"), time, required("manager"), required("apiVersion"), required("subresource")]
}
