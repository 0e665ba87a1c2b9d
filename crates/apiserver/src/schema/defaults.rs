//! Filling in what a writer left out.
//!
//! Guarantees: applying twice changes nothing more than applying once (a default is complete under its
//! own schema after compilation, and nulls that may not be there are gone); no field that holds a
//! value is changed.

use serde_json::Value;

use super::Schema;

/// Applies the defaults of `schema` to `value`, in place.
///
/// A `null` where `null` is no value counts as absent: it is replaced by the default, or dropped where
/// there is none. Entries of lists cannot be dropped, so such a `null` there stays unless the entries
/// have a default; validation then reports it.
///
/// The recursion is bounded by the nesting of the value (parsed JSON has at most 128 levels) and of
/// the defaults (part of a parsed schema).
pub fn apply(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if !schema.properties.is_empty() || schema.additional_properties.is_some() {
                fields.retain(|name, field| {
                    !field.is_null()
                        || schema.child(name).is_none_or(|child| child.nullable || child.default.is_some())
                });
            }
            for (name, child) in &schema.properties {
                let Some(default) = &child.default else { continue };
                match fields.get_mut(name) {
                    Some(field) if field.is_null() && !child.nullable => *field = default.clone(),
                    Some(_) => {}
                    None => {
                        fields.insert(name.clone(), default.clone());
                    }
                }
            }
            for (name, field) in fields {
                let Some(child) = schema.child(name) else { continue };
                fill(child, field);
                apply(child, field);
            }
        }
        Value::Array(entries) => {
            let Some(items) = &schema.items else { return };
            for entry in entries {
                fill(items, entry);
                apply(items, entry);
            }
        }
        _ => {}
    }
}

fn fill(schema: &Schema, value: &mut Value) {
    if let (Value::Null, false, Some(default)) = (&*value, schema.nullable, &schema.default) {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests;
