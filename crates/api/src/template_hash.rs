//! The hash that tells whether an instance was made from a template.
//!
//! It is SHA-256 over the canonical JSON of the template, written `v1-` and 64 hexadecimal digits.
//!
//! # Guarantees
//!
//! The same for equal templates, in every process and every release, whatever the order of keys. A member of
//! an object that is `null`, `{}` or `[]` (or comes down to that) counts as absent at every level, since API
//! servers and clients add and drop these freely. An element of a list is never left out: position has
//! meaning, and a rule `{}` that matches everything is not the same as no rule.

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::compute::InstanceTemplate;

/// What every hash of this form starts with. A hash that does not was made by another implementation and says
/// nothing about the template: compare contents with [`same_content`] instead.
pub const PREFIX: &str = "v1-";

/// The hash of a template.
pub fn of(template: &InstanceTemplate) -> String {
    of_value(&to_value(template))
}

/// The hash of a template that is at hand as JSON.
pub fn of_value(template: &Value) -> String {
    let mut text = String::new();
    write_canonical(&normalise(template).unwrap_or(Value::Object(Map::new())), &mut text);
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(PREFIX.to_owned(), |mut hash, byte| {
        hash.push(char::from_digit(u32::from(byte >> 4), 16).expect("four bits are a hexadecimal digit"));
        hash.push(char::from_digit(u32::from(byte & 15), 16).expect("four bits are a hexadecimal digit"));
        hash
    })
}

/// Whether a hash has the form that this module writes.
pub fn is_ours(hash: &str) -> bool {
    hash.strip_prefix(PREFIX)
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// Whether two values are the same under the rules of the hash.
pub fn same_content<T: Serialize>(a: &T, b: &T) -> bool {
    normalise(&to_value(a)) == normalise(&to_value(b))
}

fn to_value<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("our types have string keys and no failing serialiser")
}

/// The value without what counts as absent. `None` if that is all of it.
fn normalise(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(members) => {
            let kept: Map<String, Value> =
                members.iter().filter_map(|(key, member)| Some((key.clone(), normalise(member)?))).collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(elements) if elements.is_empty() => None,
        Value::Array(elements) => Some(elements.iter().map(normalise_element).collect()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}

/// An element of a list stays, whatever is left of it.
fn normalise_element(element: &Value) -> Value {
    normalise(element).unwrap_or_else(|| match element {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        _ => Value::Null,
    })
}

/// Writes a value with sorted keys and no white space. Sorted here, because the map's own order depends on
/// how serde_json is built.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(member, out);
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(element, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string())
        }
    }
}

#[cfg(test)]
mod tests;
