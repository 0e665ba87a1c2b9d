//! Constraints on a value beyond its type: bounds, lengths, patterns, formats and compositions.
//!
//! They are compiled once with the schema. Checking allocates nothing unless something is wrong, and
//! the words of an error are those that Kubernetes uses for the same mistake.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Number, Value};

use super::path::Path;
use super::regexp::Pattern;
use super::validate::Sink;
use crate::field_error::{FieldError, FieldErrorType, shown};

pub mod format;

pub use format::Format;

/// One end of a range.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The end itself.
    pub value: Number,
    /// Whether the end itself lies outside the range.
    pub exclusive: bool,
}

/// Constraints on one value.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    /// `minimum` with `exclusiveMinimum`.
    pub minimum: Option<Bound>,
    /// `maximum` with `exclusiveMaximum`.
    pub maximum: Option<Bound>,
    /// `multipleOf`; positive.
    pub multiple_of: Option<f64>,
    /// `minLength`, in code points.
    pub min_length: Option<u64>,
    /// `maxLength`, in code points.
    pub max_length: Option<u64>,
    /// `pattern`.
    pub pattern: Option<Pattern>,
    /// `enum`; empty when not given.
    pub allowed: Vec<Value>,
    /// `format`, when it is one that is checked.
    pub format: Option<Format>,
    /// `minItems`.
    pub min_items: Option<u64>,
    /// `maxItems`.
    pub max_items: Option<u64>,
    /// `minProperties`.
    pub min_properties: Option<u64>,
    /// `maxProperties`.
    pub max_properties: Option<u64>,
    /// `allOf`.
    pub all_of: Vec<Nested>,
    /// `anyOf`.
    pub any_of: Vec<Nested>,
    /// `oneOf`.
    pub one_of: Vec<Nested>,
    /// `not`.
    pub not: Option<Box<Nested>>,
}

/// Constraints inside `allOf`, `anyOf`, `oneOf` or `not`: they may reach into fields and entries, but
/// say nothing about types, defaults or pruning.
#[derive(Clone, Debug, Default)]
pub struct Nested {
    /// On the value itself.
    pub constraints: Constraints,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// On the fields of an object.
    pub properties: BTreeMap<String, Nested>,
    /// On every entry of a list.
    pub items: Option<Box<Nested>>,
}

impl Constraints {
    /// Whether nothing is constrained.
    pub fn is_empty(&self) -> bool {
        let Self {
            minimum,
            maximum,
            multiple_of,
            min_length,
            max_length,
            pattern,
            allowed,
            format,
            min_items,
            max_items,
            min_properties,
            max_properties,
            all_of,
            any_of,
            one_of,
            not,
        } = self;
        minimum.is_none()
            && maximum.is_none()
            && multiple_of.is_none()
            && min_length.is_none()
            && max_length.is_none()
            && pattern.is_none()
            && allowed.is_empty()
            && format.is_none()
            && min_items.is_none()
            && max_items.is_none()
            && min_properties.is_none()
            && max_properties.is_none()
            && all_of.is_empty()
            && any_of.is_empty()
            && one_of.is_empty()
            && not.is_none()
    }

    /// Adds to `sink` what is wrong with `value`.
    pub fn check(&self, value: &Value, path: &Path<'_>, sink: &mut Sink) {
        match value {
            Value::Number(number) => self.check_number(number, value, path, sink),
            Value::String(text) => self.check_text(text, value, path, sink),
            Value::Array(entries) => {
                self.check_size(entries.len(), [self.min_items, self.max_items], "items", value, path, sink)
            }
            Value::Object(fields) => self.check_size(
                fields.len(),
                [self.min_properties, self.max_properties],
                "properties",
                value,
                path,
                sink,
            ),
            Value::Bool(_) | Value::Null => {}
        }
        if !self.allowed.is_empty() && !self.allowed.iter().any(|allowed| equal(allowed, value)) {
            let supported: Vec<String> = self.allowed.iter().map(quoted).collect();
            let detail = format!("supported values: {}", supported.join(", "));
            sink.push(|| FieldError::with_value(path.text(), FieldErrorType::NotSupported, value, detail));
        }
        if !value.is_null() {
            self.check_compositions(value, path, sink);
        }
    }

    fn check_number(&self, number: &Number, value: &Value, path: &Path<'_>, sink: &mut Sink) {
        let out_of_range = |sink: &mut Sink, words: &str, bound: &Number| {
            let detail = format!("{path} in body should be {words} {}", shown_bound(bound, number));
            sink.push(|| FieldError::invalid(path.text(), value, detail));
        };
        if let Some(Bound { value: bound, exclusive }) = &self.maximum {
            match (compare(number, bound), exclusive) {
                (Ordering::Greater, false) => out_of_range(sink, "less than or equal to", bound),
                (Ordering::Greater | Ordering::Equal, true) => out_of_range(sink, "less than", bound),
                _ => {}
            }
        }
        if let Some(Bound { value: bound, exclusive }) = &self.minimum {
            match (compare(number, bound), exclusive) {
                (Ordering::Less, false) => out_of_range(sink, "greater than or equal to", bound),
                (Ordering::Less | Ordering::Equal, true) => out_of_range(sink, "greater than", bound),
                _ => {}
            }
        }
        if let Some(factor) = self.multiple_of {
            let quotient = number.as_f64().unwrap_or(f64::NAN) / factor;
            if quotient.fract() != 0.0 {
                let detail = format!("{path} in body should be a multiple of {}", go_float(factor));
                sink.push(|| FieldError::invalid(path.text(), value, detail));
            }
        }
        if let Some(format) = self.format
            && !format.fits(number)
        {
            let detail = format!("Checked value must be of type integer with format {format} in {path}");
            sink.push(|| FieldError::invalid(path.text(), value, detail));
        }
    }

    fn check_text(&self, text: &str, value: &Value, path: &Path<'_>, sink: &mut Sink) {
        if self.min_length.is_some() || self.max_length.is_some() {
            let length = text.chars().count() as u64;
            if let Some(limit) = self.max_length.filter(|&limit| length > limit) {
                let detail = format!("may not be more than {limit} bytes");
                sink.push(|| FieldError::new(path.text(), FieldErrorType::TooLong, detail));
            }
            if let Some(limit) = self.min_length.filter(|&limit| length < limit) {
                let detail = format!("{path} in body should be at least {limit} chars long");
                sink.push(|| FieldError::invalid(path.text(), value, detail));
            }
        }
        if let Some(pattern) = &self.pattern {
            let problem = match sink.afford(pattern.work(text)) {
                true if pattern.is_match(text) => None,
                true => Some("should match"),
                false => Some("has too much text to match against"),
            };
            if let Some(problem) = problem {
                let detail = format!("{path} in body {problem} '{}'", pattern.source());
                sink.push(|| FieldError::invalid(path.text(), value, detail));
            }
        }
        if let Some(format) = self.format
            && !format.matches(text)
        {
            // What is meant as bytes may be a secret: the value stays out of the message.
            let error = |at: String| match format {
                Format::Byte => FieldError::new(at, FieldErrorType::TypeInvalid, "must be base64"),
                _ => {
                    let detail = format!("{at} in body must be of type {format}: {}", shown(value));
                    FieldError::with_value(at, FieldErrorType::TypeInvalid, value, detail)
                }
            };
            sink.push(|| error(path.text()));
        }
    }

    fn check_size(
        &self,
        size: usize,
        [min, max]: [Option<u64>; 2],
        what: &str,
        value: &Value,
        path: &Path<'_>,
        sink: &mut Sink,
    ) {
        let size = size as u64;
        if let Some(limit) = max.filter(|&limit| size > limit) {
            let detail = format!("must have at most {limit} items");
            sink.push(|| {
                FieldError::with_value(path.text(), FieldErrorType::TooMany, &Value::from(size), detail)
            });
        }
        if let Some(limit) = min.filter(|&limit| size < limit) {
            let detail = format!("{path} in body should have at least {limit} {what}");
            sink.push(|| FieldError::invalid(path.text(), value, detail));
        }
    }

    fn check_compositions(&self, value: &Value, path: &Path<'_>, sink: &mut Sink) {
        for nested in &self.all_of {
            nested.check(value, path, sink);
        }
        if !self.any_of.is_empty() {
            let tried = Tried::of(&self.any_of, value, path, sink);
            if tried.valid == 0 {
                tried.report("must validate at least one schema (anyOf)", path, sink);
            }
        }
        if !self.one_of.is_empty() {
            let tried = Tried::of(&self.one_of, value, path, sink);
            let words = "must validate one and only one schema (oneOf). Found";
            match tried.valid {
                0 => tried.report(&format!("{words} none valid"), path, sink),
                1 => {}
                more => sink.push(|| composite(path, &format!("{words} {more} valid alternatives"))),
            }
        }
        if let Some(nested) = &self.not
            && sink.attempt(1, |sink| nested.check(value, path, sink)).is_empty()
        {
            sink.push(|| composite(path, "must not validate the schema (not)"));
        }
    }
}

impl Nested {
    /// Adds to `sink` what is wrong with `value`.
    ///
    /// The recursion follows the schema, whose nesting is bounded when it is compiled.
    pub fn check(&self, value: &Value, path: &Path<'_>, sink: &mut Sink) {
        self.constraints.check(value, path, sink);
        match value {
            Value::Object(fields) => {
                for name in self.required.iter().filter(|name| !fields.contains_key(*name)) {
                    sink.push(|| FieldError::new(path.field(name).text(), FieldErrorType::Required, ""));
                }
                for (name, nested) in &self.properties {
                    if let Some(field) = fields.get(name) {
                        nested.check(field, &path.field(name), sink);
                    }
                }
            }
            Value::Array(entries) => {
                if let Some(nested) = &self.items {
                    for (index, entry) in entries.iter().enumerate() {
                        nested.check(entry, &path.index(index), sink);
                        if sink.is_full() {
                            return;
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// What came of trying each alternative: how many hold, and the errors of the one that came closest.
struct Tried {
    valid: usize,
    closest: Vec<FieldError>,
}

impl Tried {
    fn of(alternatives: &[Nested], value: &Value, path: &Path<'_>, sink: &mut Sink) -> Self {
        let mut tried = Self { valid: 0, closest: Vec::new() };
        for nested in alternatives {
            let errors = sink.attempt(8, |sink| nested.check(value, path, sink));
            if errors.is_empty() {
                tried.valid += 1;
            } else if tried.closest.is_empty() || errors.len() < tried.closest.len() {
                tried.closest = errors;
            }
        }
        tried
    }

    fn report(self, words: &str, path: &Path<'_>, sink: &mut Sink) {
        for error in self.closest {
            sink.push(|| error);
        }
        sink.push(|| composite(path, words));
    }
}

fn composite(path: &Path<'_>, words: &str) -> FieldError {
    FieldError::invalid(path.text(), &Value::from(""), format!("\"{path}\" {words}"))
}

/// Equality of a value and an allowed one: numbers by what they are worth, not by how they are written.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
        _ => a == b,
    }
}

/// Compares two numbers, exactly where both are whole.
fn compare(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// A value in a list of supported values: in quotes whatever it is, as Kubernetes shows it.
fn quoted(value: &Value) -> String {
    match value {
        Value::String(_) => value.to_string(),
        other => Value::from(other.to_string()).to_string(),
    }
}

/// A bound as Kubernetes prints it beside `value`: whole beside a whole number, else as a float.
fn shown_bound(bound: &Number, value: &Number) -> String {
    match (value.is_f64(), bound.as_f64()) {
        (false, Some(float)) if bound.is_f64() && float.fract() == 0.0 => format!("{float:.0}"),
        (false, _) if !bound.is_f64() => bound.to_string(),
        (_, float) => go_float(float.unwrap_or(f64::NAN)),
    }
}

/// A float in shortest digits, with an exponent from 10^6 on or below 10^-4.
pub(super) fn go_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests;
