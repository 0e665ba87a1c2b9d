//! `FieldsV1`, the JSON form of a [`FieldSet`].
//!
//! A path element is a key (`f:name`, `k:{"name":"a"}`, `v:"x"`, `i:0`), what lies below it the value; a
//! leaf is `{}`, and `.` says that an element with something below it is in the set itself.

use serde_json::{Map, Value};

use super::path::{ElementError, PathElement};
use super::set::FieldSet;

/// Why a value is no `FieldsV1`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldsV1Error {
    /// A key is no path element.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// What lies below a path element is not an object.
    #[error("expected an object below {0:?}")]
    NotAnObject(String),
}

impl FieldSet {
    /// The set as `FieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.children.iter().map(|(element, below)| (element.to_key(), below.node())).collect())
    }

    /// Reads `FieldsV1`. Path elements of a class that is not known are passed over, as a later version
    /// may have written them.
    ///
    /// # Errors
    ///
    /// When a key is no path element, or a value is not an object.
    pub fn from_fields_v1(value: &Value) -> Result<Self, FieldsV1Error> {
        let map = value.as_object().ok_or_else(|| FieldsV1Error::NotAnObject(String::new()))?;
        let mut set = read(map)?;
        set.owned = false;
        Ok(set)
    }

    fn node(&self) -> Value {
        let mut map = Map::new();
        if self.owned && !self.children.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, below) in &self.children {
            map.insert(element.to_key(), below.node());
        }
        Value::Object(map)
    }
}

fn read(map: &Map<String, Value>) -> Result<FieldSet, FieldsV1Error> {
    let mut set = FieldSet { owned: map.is_empty(), ..FieldSet::new() };
    for (key, value) in map {
        let below = value.as_object().ok_or_else(|| FieldsV1Error::NotAnObject(key.clone()))?;
        if key == "." {
            set.owned = true;
            continue;
        }
        match key.parse::<PathElement>() {
            Ok(element) => {
                let below = read(below)?;
                if !below.is_empty() {
                    set.children.entry(element).or_default().union(below);
                }
            }
            Err(ElementError::UnknownType(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(set)
}
