//! Tests of ownership: a kind with every sort of map and list, and one file per part.

#![allow(clippy::unwrap_used)]

mod apply;
mod lists;
mod properties;
mod sets;
mod update;

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::entry::{ManagedEntry, Operation};
use super::{Applied, ApplyError, FieldSet, Writer};
use crate::schema::{ListType, Schema, Type};

pub(super) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let scalar = Schema::default;
    let container = object(&[
        ("name", scalar()),
        ("image", scalar()),
        ("tty", scalar()),
        ("ports", list(port(), ListType::Map(vec!["port".to_owned(), "protocol".to_owned()]))),
    ]);
    let spec = object(&[
        ("replicas", scalar()),
        ("containers", list(container, ListType::Map(vec!["name".to_owned()]))),
        ("tags", list(scalar(), ListType::Set)),
        ("args", list(scalar(), ListType::Atomic)),
        ("config", Schema { map_atomic: true, ..object(&[("a", scalar()), ("b", scalar())]) }),
        ("labels", map(scalar())),
        ("groups", map(object(&[("x", scalar()), ("y", scalar())]))),
        ("template", object(&[("x", scalar()), ("y", scalar())])),
        ("open", Schema { preserve_unknown_fields: true, ..Schema::default() }),
    ]);
    object(&[("spec", spec), ("status", object(&[("phase", scalar())]))])
});

fn port() -> Schema {
    let protocol = Schema { default: Some(json!("TCP")), ..Schema::default() };
    object(&[("port", Schema::default()), ("protocol", protocol), ("name", Schema::default())])
}

fn object(fields: &[(&str, Schema)]) -> Schema {
    let properties =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), Arc::new(schema.clone()))).collect();
    Schema { type_: Some(Type::Object), properties, ..Schema::default() }
}

fn list(items: Schema, list_type: ListType) -> Schema {
    Schema { type_: Some(Type::Array), items: Some(Arc::new(items)), list_type, ..Schema::default() }
}

fn map(values: Schema) -> Schema {
    Schema { type_: Some(Type::Object), additional_properties: Some(Arc::new(values)), ..Schema::default() }
}

/// A whole object with this `spec`.
#[expect(clippy::needless_pass_by_value, reason = "callers write the value in place")]
pub(super) fn thing(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})
}

/// A request of this manager `seconds` after the start.
pub(super) fn by(manager: &str, seconds: u8) -> Writer<'_> {
    const TIMES: [&str; 10] = [
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:01Z",
        "2024-01-01T00:00:02Z",
        "2024-01-01T00:00:03Z",
        "2024-01-01T00:00:04Z",
        "2024-01-01T00:00:05Z",
        "2024-01-01T00:00:06Z",
        "2024-01-01T00:00:07Z",
        "2024-01-01T00:00:08Z",
        "2024-01-01T00:00:09Z",
    ];
    Writer { manager, api_version: "example.com/v1", subresource: "", now: TIMES[usize::from(seconds)] }
}

pub(super) fn apply(live: Option<&Value>, spec: Value, writer: Writer<'_>) -> Result<Applied, ApplyError> {
    super::apply(live, &thing(spec), &SCHEMA, writer, false)
}

pub(super) fn force(live: Option<&Value>, spec: Value, writer: Writer<'_>) -> Applied {
    super::apply(live, &thing(spec), &SCHEMA, writer, true).unwrap()
}

/// The live object after a `PUT` of this `spec`.
pub(super) fn put(live: Option<&Value>, spec: Value, writer: Writer<'_>) -> Value {
    let mut new = thing(spec);
    super::update(live, &mut new, &SCHEMA, writer);
    new
}

pub(super) fn entries(object: &Value) -> Vec<ManagedEntry> {
    object["metadata"]
        .get("managedFields")
        .map(|raw| ManagedEntry::read_all(raw).unwrap())
        .unwrap_or_default()
}

/// What a manager owns, as `FieldsV1` below `spec`.
pub(super) fn owned(object: &Value, manager: &str, operation: Operation) -> Value {
    let entry =
        entries(object).into_iter().find(|entry| entry.manager == manager && entry.operation == operation);
    entry.map_or(Value::Null, |entry| entry.fields.to_fields_v1()["f:spec"].take())
}

pub(super) fn set(fields_v1: &Value) -> FieldSet {
    FieldSet::from_fields_v1(fields_v1).unwrap()
}
