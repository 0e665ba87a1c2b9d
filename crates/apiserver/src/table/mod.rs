//! Objects as rows: the `meta.k8s.io/v1` `Table` that `kubectl get` asks for.
//!
//! A [`Printer`] is made once per [`Definition`] and knows its columns; it turns an object and the present
//! moment into cells. Custom resources print the columns of their CRD, built-in kinds the columns that people
//! know them by. Everything here is a pure function of its arguments.

pub mod age;
mod built_in;
mod custom;
mod event;
pub mod json_path;
mod node;
mod pod;
mod service;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::registry::definition::{Columns, Definition};

/// What `name` means, as it is told of every kind's first column.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although \
    some resources may allow a client to request the generation of an appropriate name automatically. Name \
    is primarily intended for creation idempotence and configuration definition. Cannot be updated. More \
    info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// What `creationTimestamp` means, as it is told of every `Age`.
const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
    created. It is not guaranteed to be set in happens-before order across separate operations. Clients may \
    not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. \
    Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// How much of each object goes along with its row (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// The metadata, as `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// Reads the query parameter; absent or empty is `Metadata`. `None` when it is none of the known values.
    pub fn from_query(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("" | "Metadata") => Some(Self::Metadata),
            Some("None") => Some(Self::None),
            Some("Object") => Some(Self::Object),
            Some(_) => None,
        }
    }
}

/// One column as it is declared in code.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    type_: &'static str,
    format: &'static str,
    description: &'static str,
    wide: bool,
}

/// A text column that is always shown.
const fn column(name: &'static str, description: &'static str) -> Column {
    Column { name, type_: "string", format: "", description, wide: false }
}

/// A text column shown with `-o wide` only.
const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { wide: true, ..column(name, description) }
}

const NAME_COLUMN: Column = Column { format: "name", ..column("Name", NAME) };
const AGE_COLUMN: Column = column("Age", CREATED);
const CREATED_AT_COLUMN: Column = Column { type_: "date", ..column("Created At", CREATED) };

/// What one row says, computed from an object at a moment.
type CellsOf = fn(&Value, Timestamp) -> Vec<Value>;

enum Cells {
    BuiltIn(CellsOf),
    Custom(Vec<custom::Cell>),
}

/// The columns of one kind, ready to print its objects.
pub struct Printer {
    definitions: Value,
    cells: Cells,
    is_pod: bool,
}

impl std::fmt::Debug for Printer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Printer").field("definitions", &self.definitions).finish_non_exhaustive()
    }
}

impl Printer {
    /// The printer of a kind.
    pub fn for_definition(definition: &Definition) -> Self {
        match &definition.columns {
            Columns::BuiltIn => {
                let (group, kind) = (definition.gv.group.as_str(), definition.names.kind.as_str());
                let (columns, cells) = built_in::columns(group, kind);
                let definitions = columns.iter().map(|column| {
                    let priority = i32::from(column.wide);
                    column_definition(column.name, column.type_, column.format, column.description, priority)
                });
                let is_pod = group.is_empty() && kind == "Pod";
                Self { definitions: definitions.collect(), cells: Cells::BuiltIn(cells), is_pod }
            }
            Columns::Custom(columns) => {
                let (definitions, cells) = custom::columns(columns);
                Self { definitions, cells: Cells::Custom(cells), is_pod: false }
            }
        }
    }

    /// The cells of an object's row, one per column; ages are as of `now`.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.cells {
            Cells::BuiltIn(cells) => cells(object, now),
            Cells::Custom(cells) => custom::cells(cells, object, now),
        }
    }

    /// The row of an object.
    pub fn row(&self, object: &Value, include: IncludeObject, now: Timestamp) -> Value {
        let mut row = Map::new();
        row.insert("cells".to_owned(), Value::Array(self.cells(object, now)));
        if let Some(conditions) = self.is_pod.then(|| pod::row_conditions(object)).flatten() {
            row.insert("conditions".to_owned(), conditions);
        }
        let included = match include {
            IncludeObject::None => Value::Null,
            IncludeObject::Metadata => partial_object_metadata(object),
            IncludeObject::Object => object.clone(),
        };
        row.insert("object".to_owned(), included);
        Value::Object(row)
    }

    /// A table of rows. `metadata` is the list's `ListMeta` (of one object: its `resourceVersion`). Without
    /// `headers` the columns are left out, as in all events of a watch but the first.
    pub fn table(&self, metadata: Value, rows: Vec<Value>, headers: bool) -> Value {
        let columns = if headers { self.definitions.clone() } else { Value::Null };
        // Built member by member: rows can be many and are moved, not copied.
        let members = [
            ("kind", "Table".into()),
            ("apiVersion", "meta.k8s.io/v1".into()),
            ("metadata", metadata),
            ("columnDefinitions", columns),
            ("rows", Value::Array(rows)),
        ];
        members.into_iter().map(|(name, member)| (name.to_owned(), member)).collect()
    }
}

/// An object reduced to its metadata.
pub fn partial_object_metadata(object: &Value) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

fn column_definition(name: &str, type_: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({"name": name, "type": type_, "format": format, "description": description, "priority": priority})
}

/// The value at a dotted path of plain fields; `null` when there is none.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').try_fold(value, |value, field| value.get(field)).unwrap_or(&Value::Null)
}

/// The text at a path; empty when there is none.
fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The text at a path, or what is shown in its place when it is missing or empty.
fn text_or<'a>(value: &'a Value, path: &str, missing: &'a str) -> &'a str {
    Some(text(value, path)).filter(|text| !text.is_empty()).unwrap_or(missing)
}

/// The list at a path; empty when there is none.
fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The number at a path; zero when there is none.
fn number(value: &Value, path: &str) -> i64 {
    at(value, path).as_i64().unwrap_or_default()
}

/// How many members the object, or entries the list, at a path has.
fn count(value: &Value, path: &str) -> usize {
    match at(value, path) {
        Value::Object(members) => members.len(),
        Value::Array(entries) => entries.len(),
        _ => 0,
    }
}

/// The cell of an object's name.
fn name_cell(object: &Value) -> Value {
    text(object, "metadata.name").into()
}

/// The cell of an object's age.
fn age_cell(object: &Value, now: Timestamp) -> Value {
    age::since(at(object, "metadata.creationTimestamp"), now).into()
}
