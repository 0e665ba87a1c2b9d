//! Entries of `metadata.managedFields`: reading, writing, order and number.
//!
//! An `Apply` entry is told apart by manager and subresource, an `Update` entry by its version too.
//! Written entries are never empty, stand in one order, and at most [`MAX_UPDATERS`] of them are of
//! `Update`, as far as their versions allow.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields_v1::FieldsV1Error;
use super::set::FieldSet;

/// How many `Update` entries are kept before the oldest of a version become one. Controllers with names
/// of their own would otherwise make an object grow with every name.
pub(super) const MAX_UPDATERS: usize = 10;

/// The manager that stands for the oldest `Update` entries.
const ANCIENT: &str = "ancient-changes";

/// How a manager came to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By create, update or patch.
    Update,
}

impl Operation {
    /// The name it has in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One entry of `metadata.managedFields`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedEntry {
    /// The field manager.
    pub manager: String,
    /// How it came to own its fields.
    pub operation: Operation,
    /// The version it wrote in.
    pub api_version: String,
    /// When it last wrote, in RFC 3339, UTC, whole seconds.
    pub time: Option<String>,
    /// The subresource it wrote to; empty for the resource itself.
    pub subresource: String,
    /// What it owns.
    pub fields: FieldSet,
}

/// Why a value is no list of entries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// The value or an entry has the wrong JSON type.
    #[error("managedFields must be a list of objects")]
    NotAList,
    /// `operation` is neither `Apply` nor `Update`.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// `apiVersion` is missing.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// `fieldsType` is not `FieldsV1`.
    #[error("invalid fieldsType {0:?} in managed fields entry")]
    FieldsType(String),
    /// `time` is no time.
    #[error("invalid time {0:?} in managed fields entry")]
    Time(String),
    /// `fieldsV1` is malformed.
    #[error("invalid fieldsV1 in managed fields entry")]
    Fields(#[source] FieldsV1Error),
}

impl ManagedEntry {
    /// Reads `metadata.managedFields`; entries of the same writer become one.
    ///
    /// # Errors
    ///
    /// When one of the entries is malformed.
    pub fn read_all(value: &Value) -> Result<Vec<Self>, EntryError> {
        let items = value.as_array().ok_or(EntryError::NotAList)?;
        let mut entries: Vec<Self> = Vec::with_capacity(items.len());
        // Clients may send any number of entries, so the same writer is found by key and not by search.
        let mut index = BTreeMap::new();
        for item in items {
            let entry = Self::read(item.as_object().ok_or(EntryError::NotAList)?)?;
            match index.get(&entry.identity()) {
                Some(&at) => {
                    let earlier: &mut Self = &mut entries[at];
                    earlier.fields.union(entry.fields);
                    earlier.time = earlier.time.take().max(entry.time);
                }
                None => {
                    index.insert(entry.identity(), entries.len());
                    entries.push(entry);
                }
            }
        }
        Ok(entries)
    }

    /// Writes `metadata.managedFields`: no empty entries, in the order that Kubernetes gives them.
    /// `None` when no entry is left.
    pub fn write_all(mut entries: Vec<Self>) -> Option<Value> {
        entries.retain(|entry| !entry.fields.is_empty());
        entries.sort_by(|a, b| a.order().cmp(&b.order()));
        (!entries.is_empty()).then(|| entries.into_iter().map(Self::write).collect())
    }

    /// Merges the oldest `Update` entries of a version until at most [`MAX_UPDATERS`] are left.
    pub(super) fn cap(entries: &mut Vec<Self>) {
        let is_update = |entry: &Self| entry.operation == Operation::Update;
        let mut excess = entries.iter().filter(|entry| is_update(entry)).count().saturating_sub(MAX_UPDATERS);
        if excess == 0 {
            return;
        }
        entries.sort_by(|a, b| a.order().cmp(&b.order()));
        let mut kept: Vec<Self> = Vec::with_capacity(entries.len());
        let mut oldest: BTreeMap<String, usize> = BTreeMap::new();
        for entry in entries.drain(..) {
            if excess == 0 || !is_update(&entry) {
                kept.push(entry);
            } else if let Some(&at) = oldest.get(&entry.api_version) {
                let bucket = &mut kept[at];
                ANCIENT.clone_into(&mut bucket.manager);
                bucket.subresource.clear();
                bucket.fields.union(entry.fields);
                bucket.time = entry.time;
                excess -= 1;
            } else {
                oldest.insert(entry.api_version.clone(), kept.len());
                kept.push(entry);
            }
        }
        *entries = kept;
    }

    /// Whether the entry is that of this writer.
    pub(super) fn is_of(&self, writer: &super::Writer<'_>, operation: Operation) -> bool {
        self.operation == operation
            && self.manager == writer.manager
            && self.subresource == writer.subresource
            && (operation == Operation::Apply || self.api_version == writer.api_version)
    }

    /// An entry of this writer.
    pub(super) fn of(writer: &super::Writer<'_>, operation: Operation, fields: FieldSet) -> Self {
        Self {
            manager: writer.manager.to_owned(),
            operation,
            api_version: writer.api_version.to_owned(),
            time: Some(writer.now.to_owned()),
            subresource: writer.subresource.to_owned(),
            fields,
        }
    }

    fn identity(&self) -> (Operation, String, String, String) {
        let version =
            if self.operation == Operation::Apply { String::new() } else { self.api_version.clone() };
        (self.operation, self.manager.clone(), self.subresource.clone(), version)
    }

    fn order(&self) -> (Operation, Option<&str>, &str, &str, &str) {
        (self.operation, self.time.as_deref(), &self.manager, &self.api_version, &self.subresource)
    }

    fn read(entry: &Map<String, Value>) -> Result<Self, EntryError> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(EntryError::Operation),
        };
        if text("apiVersion").is_empty() {
            return Err(EntryError::ApiVersion);
        }
        if text("fieldsType") != "FieldsV1" {
            return Err(EntryError::FieldsType(text("fieldsType").to_owned()));
        }
        let fields = match entry.get("fieldsV1") {
            None | Some(Value::Null) => FieldSet::new(),
            Some(fields) => FieldSet::from_fields_v1(fields).map_err(EntryError::Fields)?,
        };
        let time = match entry.get("time") {
            None | Some(Value::Null) => None,
            Some(Value::String(time)) => Some(normal_time(time)?),
            Some(other) => return Err(EntryError::Time(other.to_string())),
        };
        Ok(Self {
            manager: text("manager").to_owned(),
            operation,
            api_version: text("apiVersion").to_owned(),
            time,
            subresource: text("subresource").to_owned(),
            fields,
        })
    }

    fn write(self) -> Value {
        let fields = self.fields.to_fields_v1();
        self.write_with(fields)
    }

    /// The entry with these `FieldsV1` in the place of its own fields.
    pub(super) fn write_with(self, fields: Value) -> Value {
        let mut entry = Map::new();
        entry.insert("apiVersion".to_owned(), self.api_version.into());
        entry.insert("fieldsType".to_owned(), "FieldsV1".into());
        entry.insert("fieldsV1".to_owned(), fields);
        if !self.manager.is_empty() {
            entry.insert("manager".to_owned(), self.manager.into());
        }
        entry.insert("operation".to_owned(), self.operation.as_str().into());
        if !self.subresource.is_empty() {
            entry.insert("subresource".to_owned(), self.subresource.into());
        }
        if let Some(time) = self.time {
            entry.insert("time".to_owned(), time.into());
        }
        Value::Object(entry)
    }
}

/// Brings a time into the one form in which times order as text.
fn normal_time(text: &str) -> Result<String, EntryError> {
    let time: jiff::Timestamp = text.parse().map_err(|_| EntryError::Time(text.to_owned()))?;
    if text.len() == "2024-01-01T00:00:00Z".len() && text.ends_with('Z') {
        return Ok(text.to_owned());
    }
    Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}
