//! Which value of an old object stands for a value of the new one.
//!
//! Fields and map entries correlate by name, entries of a keyed list by their keys, and entries of
//! any other list not at all. Both ratcheting and transition rules rest on this.

use std::collections::HashMap;

use serde_json::Value;

use super::{ListType, Schema};

/// The old value of the field or map entry `name`.
pub fn field<'o>(schema: &Schema, old: Option<&'o Value>, name: &str) -> Option<&'o Value> {
    if schema.map_atomic { None } else { old?.get(name) }
}

/// Finds old entries of one list for its new entries.
pub struct Entries<'o> {
    by_key: Option<HashMap<String, &'o Value>>,
}

impl<'o> Entries<'o> {
    /// Indexes the entries of the `old` list, if they can be told apart.
    pub fn of(schema: &Schema, old: Option<&'o Value>) -> Self {
        let by_key = match (&schema.list_type, old) {
            (ListType::Map(keys), Some(Value::Array(entries))) => {
                Some(entries.iter().map(|entry| (key_of(schema, keys, entry), entry)).collect())
            }
            _ => None,
        };
        Self { by_key }
    }

    /// The old entry that stands for `entry`.
    pub fn get(&self, schema: &Schema, entry: &Value) -> Option<&'o Value> {
        let (Some(by_key), ListType::Map(keys)) = (&self.by_key, &schema.list_type) else { return None };
        by_key.get(&key_of(schema, keys, entry)).copied()
    }
}

/// The keys of an entry as one text; absent keys count as their default.
pub fn key_of(schema: &Schema, keys: &[String], entry: &Value) -> String {
    let mut text = String::new();
    for key in keys {
        let value = entry.get(key).or_else(|| {
            let items = schema.items.as_ref()?;
            items.properties.get(key)?.default.as_ref()
        });
        match value {
            Some(Value::String(value)) => {
                // The length goes first so that two keys can never run into each other.
                text.push_str(&value.len().to_string());
                text.push(':');
                text.push_str(value);
            }
            Some(value) => text.push_str(&value.to_string()),
            None => text.push('-'),
        }
        text.push(',');
    }
    text
}
