//! Reading the keywords of one schema, each as the type that it must have.

use serde_json::{Map, Value};

use super::Compiler;
use crate::schema::Type;
use crate::schema::path::Path;

/// The keywords of one schema.
#[derive(Clone, Copy)]
pub(super) struct Keywords<'j> {
    map: &'j Map<String, Value>,
}

impl<'j> Keywords<'j> {
    pub(super) fn of(json: &'j Value) -> Option<Self> {
        json.as_object().map(|map| Self { map })
    }

    /// A keyword; `null` counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'j Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }
}

impl Compiler<'_> {
    /// Reads a keyword with `read`; anything that it does not take is an error.
    pub(super) fn read<'j, T>(
        &mut self,
        words: &Keywords<'j>,
        name: &str,
        path: &Path<'_>,
        what: &str,
        read: impl FnOnce(&'j Value) -> Option<T>,
    ) -> Option<T> {
        let value = words.get(name)?;
        let read = read(value);
        if read.is_none() {
            self.invalid(&path.field(name), value, &format!("must be {what}"));
        }
        read
    }

    /// A boolean keyword that is false when absent. A value of another type counts as absent: decoding
    /// the CRD has refused it already.
    pub(super) fn flag(&mut self, words: &Keywords<'_>, name: &str) -> bool {
        words.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A keyword that is a list of names.
    pub(super) fn names(&mut self, words: &Keywords<'_>, name: &str) -> Vec<String> {
        let names = words.get(name).and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// A length or count.
    pub(super) fn count(&mut self, words: &Keywords<'_>, name: &str, path: &Path<'_>) -> Option<u64> {
        self.read(words, name, path, "a non-negative integer", |value| {
            value.as_u64().or_else(|| {
                value.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0).map(|float| float as u64)
            })
        })
    }

    /// `type`.
    pub(super) fn type_keyword(&mut self, words: &Keywords<'_>) -> Option<Type> {
        Some(match words.get("type")?.as_str()? {
            "object" => Type::Object,
            "array" => Type::Array,
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            _ => return None,
        })
    }

    /// Refuses a `type` that is none.
    pub(super) fn check_type_keyword(&mut self, words: &Keywords<'_>, path: &Path<'_>) {
        let Some(given) = words.get("type") else { return };
        let path = path.field("type");
        match given.as_str() {
            Some("null") => {
                self.forbidden(&path, "type cannot be set to null, use nullable as an alternative");
            }
            Some("object" | "array" | "string" | "integer" | "number" | "boolean") => {}
            Some(other) => {
                let types = ["array", "boolean", "integer", "number", "object", "string"];
                self.not_supported(&path, other, &types);
            }
            None => self.invalid(&path, given, "must be a string"),
        }
    }
}
