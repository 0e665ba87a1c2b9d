//! Checking an object against its schema.
//!
//! A valid object is walked once without building a path, copying a value or allocating anything. On an
//! update, errors in parts that did not change are left out (a stored object may predate a stricter
//! schema); the comparison with the old object is made only when there are errors to leave out.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::constraints::Format;
use super::correlate::{self, Entries, key_of};
use super::path::Path;
use super::{ListType, Schema, Type, cel_rules};
use crate::field_error::{FieldError, FieldErrorType};

/// The most errors that one validation returns.
pub const MAX_ERRORS: usize = 64;

/// The work that matching patterns may be for one object, in tenths of nanoseconds: some hundred milliseconds
/// for a pattern and a text that are made for each other, and out of reach for any others.
const PATTERN_WORK: u64 = 1 << 30;

/// Errors found so far, up to a limit; the rest are not even built. Also the budget of the checks that
/// could take long.
#[derive(Debug)]
pub struct Sink {
    errors: Vec<FieldError>,
    limit: usize,
    pattern_work: u64,
}

impl Sink {
    /// A sink that keeps `limit` errors.
    pub fn with_limit(limit: usize) -> Self {
        Self { errors: Vec::new(), limit, pattern_work: PATTERN_WORK }
    }

    /// Runs `check` with a sink of its own that keeps `limit` errors, on this one's budget.
    pub fn attempt(&mut self, limit: usize, check: impl FnOnce(&mut Sink)) -> Vec<FieldError> {
        let mut inner = Self { errors: Vec::new(), limit, pattern_work: self.pattern_work };
        check(&mut inner);
        self.pattern_work = inner.pattern_work;
        inner.errors
    }

    /// Takes `work` off what may still be spent on patterns; `false` if there is not that much left.
    pub fn afford(&mut self, work: u64) -> bool {
        let left = self.pattern_work.checked_sub(work);
        self.pattern_work = left.unwrap_or(0);
        left.is_some()
    }

    /// Keeps the error that `build` makes, if there is room.
    pub fn push(&mut self, build: impl FnOnce() -> FieldError) {
        if !self.is_full() {
            self.errors.push(build());
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether further errors would be dropped, so that looking for them is useless.
    pub fn is_full(&self) -> bool {
        self.errors.len() >= self.limit
    }

    /// What was found.
    pub fn into_errors(self) -> Vec<FieldError> {
        self.errors
    }
}

/// What is wrong with `value`; on an update, `old` is what it replaces.
///
/// Rules run only when the object is sound enough to run them: required fields are there, types are
/// right and sizes within their limits.
pub fn validate(schema: &Schema, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut sink = Sink::with_limit(MAX_ERRORS);
    Walk { ratchet: false, sink: &mut sink }.node(schema, value, None, &Path::ROOT);
    if !sink.is_empty() && old.is_some() {
        sink = Sink::with_limit(MAX_ERRORS);
        Walk { ratchet: true, sink: &mut sink }.node(schema, value, old, &Path::ROOT);
    }
    if schema.rules_below {
        if sink.errors.iter().any(blocks_rules) {
            sink.push(|| {
                FieldError::invalid(
                    "<nil>",
                    &Value::Null,
                    "some validation rules were not checked because the object was invalid; \
                     correct the existing errors to complete validation",
                )
            });
        } else {
            cel_rules::check(schema, value, old, &mut sink);
        }
    }
    sink.into_errors()
}

fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.type_,
        FieldErrorType::Required
            | FieldErrorType::TooLong
            | FieldErrorType::TooMany
            | FieldErrorType::TypeInvalid
    )
}

/// The name of a value's type in an error.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Type {
    /// The keyword of this type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// Whether `value` is of this type; a float without a fraction is an integer too.
    fn takes(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Object, Value::Object(_))
            | (Self::Array, Value::Array(_))
            | (Self::String, Value::String(_))
            | (Self::Number, Value::Number(_))
            | (Self::Boolean, Value::Bool(_)) => true,
            (Self::Integer, Value::Number(number)) => {
                !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
            }
            _ => false,
        }
    }
}

struct Walk<'s> {
    /// Whether parts that equal their old value are passed over.
    ratchet: bool,
    sink: &'s mut Sink,
}

impl Walk<'_> {
    /// Checks one value and what is in it. The recursion is bounded by the nesting of the value.
    fn node(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, path: &Path<'_>) {
        if self.sink.is_full() || (self.ratchet && old == Some(value)) {
            return;
        }
        if !self.type_is_right(schema, value, path) {
            return;
        }
        if let Some(constraints) = &schema.constraints {
            constraints.check(value, path, self.sink);
        }
        match value {
            Value::Object(fields) => self.object(schema, fields, old, path),
            Value::Array(entries) => self.list(schema, entries, old, path),
            _ => {}
        }
    }

    fn type_is_right(&mut self, schema: &Schema, value: &Value, path: &Path<'_>) -> bool {
        let right = match (value, schema.type_) {
            (Value::Null, _) if schema.nullable => return true,
            (value, None) if schema.format() == Some(Format::Quantity) => {
                matches!(value, Value::String(_) | Value::Number(_))
            }
            // An untyped open value may be anything, `null` included.
            (_, None) if !schema.int_or_string => return true,
            (Value::String(_), None) => true,
            (number, None) => Type::Integer.takes(number),
            (value, Some(type_)) => type_.takes(value),
        };
        if !right {
            let untyped = if schema.int_or_string { "integer,string" } else { "number,string" };
            let wanted = schema.type_.map_or(untyped, Type::name);
            let found = type_name(value);
            self.sink.push(|| {
                let detail = format!("{path} in body must be of type {wanted}: \"{found}\"");
                FieldError::with_value(path.text(), FieldErrorType::TypeInvalid, &Value::from(found), detail)
            });
        }
        right
    }

    fn object(&mut self, schema: &Schema, fields: &Map<String, Value>, old: Option<&Value>, path: &Path<'_>) {
        for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
            self.sink.push(|| FieldError::new(path.field(name).text(), FieldErrorType::Required, ""));
        }
        if schema.embedded_resource {
            self.embedded(fields, path);
        }
        if schema.properties.is_empty() && schema.additional_properties.is_none() {
            return;
        }
        for (name, field) in fields {
            if let Some(child) = schema.child(name) {
                self.node(child, field, correlate::field(schema, old, name), &path.field(name));
            }
        }
    }

    fn embedded(&mut self, fields: &Map<String, Value>, path: &Path<'_>) {
        for name in ["apiVersion", "kind"] {
            if fields.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
                self.sink.push(|| {
                    FieldError::new(path.field(name).text(), FieldErrorType::Required, "must not be empty")
                });
            }
        }
    }

    fn list(&mut self, schema: &Schema, entries: &[Value], old: Option<&Value>, path: &Path<'_>) {
        if schema.unique_entries {
            self.duplicates(schema, entries, old, path);
        }
        let Some(items) = &schema.items else { return };
        let olds = if self.ratchet { Entries::of(schema, old) } else { Entries::of(schema, None) };
        for (index, entry) in entries.iter().enumerate() {
            let old = if self.ratchet { olds.get(schema, entry) } else { None };
            self.node(items, entry, old, &path.index(index));
            if self.sink.is_full() {
                return;
            }
        }
    }

    fn duplicates(&mut self, schema: &Schema, entries: &[Value], old: Option<&Value>, path: &Path<'_>) {
        // A list that had duplicates before they were forbidden can still be changed.
        let excused = || match old {
            Some(Value::Array(old)) if self.ratchet => first_duplicate(schema, old, 0).is_some(),
            _ => false,
        };
        let Some(mut at) = first_duplicate(schema, entries, 0) else { return };
        if excused() {
            return;
        }
        loop {
            let shown = match &schema.list_type {
                ListType::Map(keys) => {
                    let pairs =
                        keys.iter().filter_map(|key| Some((key.clone(), entries[at].get(key)?.clone())));
                    Value::Object(pairs.collect()).to_string()
                }
                _ => entries[at].to_string(),
            };
            self.sink.push(|| FieldError {
                path: path.index(at).text(),
                type_: FieldErrorType::Duplicate,
                bad_value: Some(shown),
                detail: String::new(),
            });
            match first_duplicate(schema, entries, at + 1) {
                Some(next) if !self.sink.is_full() => at = next,
                _ => return,
            }
        }
    }
}

/// The first entry from `from` on that equals an earlier one.
fn first_duplicate(schema: &Schema, entries: &[Value], from: usize) -> Option<usize> {
    // Short lists are compared pair by pair, without allocating.
    const SHORT: usize = 8;
    let keys = match &schema.list_type {
        ListType::Atomic => return None,
        ListType::Set => None,
        ListType::Map(keys) => Some(keys),
    };
    if entries.len() <= SHORT {
        let same = |a: &Value, b: &Value| match keys {
            None => a == b,
            Some(keys) => keys.iter().all(|key| key_value(schema, key, a) == key_value(schema, key, b)),
        };
        return (from.max(1)..entries.len()).find(|&at| entries[..at].iter().any(|e| same(e, &entries[at])));
    }
    let mut seen = HashSet::with_capacity(entries.len());
    entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| {
            let key = keys.map_or_else(|| entry.to_string(), |keys| key_of(schema, keys, entry));
            !seen.insert(key)
        })
        .map(|(at, _)| at)
        .find(|&at| at >= from)
}

fn key_value<'v>(schema: &'v Schema, key: &str, entry: &'v Value) -> Option<&'v Value> {
    entry.get(key).or_else(|| schema.items.as_ref()?.properties.get(key)?.default.as_ref())
}

#[cfg(test)]
mod tests;
