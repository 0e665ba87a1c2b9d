//! Filling in what a writer left out.
//!
//! Guarantees: applying twice changes nothing more than applying once (a default is complete under its
//! own schema after compilation, and nulls that may not be there are gone); no field that holds a
//! value is changed.

use serde_json::Value;

use super::Schema;

/// Applies the defaults of `schema` to `value`, in place, and says whether that changed it.
///
/// A `null` where `null` is no value counts as absent: it is replaced by the default, or dropped where
/// there is none. Entries of lists cannot be dropped, so such a `null` there stays unless the entries
/// have a default; validation then reports it.
///
/// The recursion is bounded by the nesting of the value (parsed JSON has at most 128 levels) and of
/// the defaults (part of a parsed schema).
pub fn apply(schema: &Schema, value: &mut Value) -> bool {
    let mut changed = false;
    match value {
        Value::Object(fields) => {
            if !schema.properties.is_empty() || schema.additional_properties.is_some() {
                let before = fields.len();
                fields.retain(|name, field| {
                    !field.is_null()
                        || schema.child(name).is_none_or(|child| child.nullable || child.default.is_some())
                });
                changed |= fields.len() != before;
            }
            for (name, child) in &schema.properties {
                let Some(default) = &child.default else { continue };
                if !fields.contains_key(name) {
                    fields.insert(name.clone(), default.clone());
                    changed = true;
                }
            }
            for (name, field) in fields {
                let Some(child) = schema.child(name) else { continue };
                changed |= fill(child, field);
                changed |= apply(child, field);
            }
        }
        Value::Array(entries) => {
            let Some(items) = &schema.items else { return false };
            for entry in entries {
                changed |= fill(items, entry);
                changed |= apply(items, entry);
            }
        }
        _ => {}
    }
    changed
}

/// A `null` that is no value becomes the default.
fn fill(schema: &Schema, value: &mut Value) -> bool {
    match (&*value, schema.nullable, &schema.default) {
        (Value::Null, false, Some(default)) => *value = default.clone(),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests;
