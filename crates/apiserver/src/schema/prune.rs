//! Dropping fields that a schema does not name.
//!
//! Guarantees: pruning is idempotent; what it returns is exactly what it dropped; fields that a schema
//! names are never dropped, whatever they hold.

use serde_json::Value;

use super::Schema;
use super::path::Path;

/// The most paths that are reported; dropping goes on beyond it.
const MAX_REPORTED: usize = 128;

/// Drops unspecified fields from `value` and returns their paths, such as `spec.containers[0].foo`.
pub fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    walk_mut(Some(schema), false, value, &Path::ROOT, &mut dropped);
    dropped
}

/// The paths that [`prune`] would drop, without dropping them.
pub fn unknown_fields(schema: &Schema, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(Some(schema), false, value, &Path::ROOT, &mut found);
    found
}

/// What becomes of one field: dropped, or looked into with this schema.
///
/// `open` says that fields without a schema stay as they are, with all they hold.
enum Fate<'s> {
    Drop,
    Keep,
    Descend(&'s Schema),
}

fn fate<'s>(schema: Option<&'s Schema>, open: bool, name: &str) -> Fate<'s> {
    match schema.and_then(|schema| schema.child(name)) {
        Some(child) => Fate::Descend(child),
        None if open => Fate::Keep,
        None => Fate::Drop,
    }
}

/// Whether fields without a schema stay. Inside a list of an open value they stay as well.
fn is_open(schema: Option<&Schema>, inherited: bool) -> bool {
    inherited || schema.is_some_and(|schema| schema.preserve_unknown_fields)
}

fn report(path: &Path<'_>, dropped: &mut Vec<String>) {
    if dropped.len() < MAX_REPORTED {
        dropped.push(path.to_string());
    }
}

fn walk_mut(
    schema: Option<&Schema>,
    inherited: bool,
    value: &mut Value,
    path: &Path<'_>,
    dropped: &mut Vec<String>,
) {
    let open = is_open(schema, inherited);
    match value {
        Value::Object(fields) => fields.retain(|name, field| match fate(schema, open, name) {
            Fate::Keep => true,
            Fate::Drop => {
                report(&path.field(name), dropped);
                false
            }
            Fate::Descend(child) => {
                walk_mut(Some(child), false, field, &path.field(name), dropped);
                true
            }
        }),
        Value::Array(entries) => {
            let items = schema.and_then(|schema| schema.items.as_deref());
            for (index, entry) in entries.iter_mut().enumerate() {
                walk_mut(items, open, entry, &path.index(index), dropped);
            }
        }
        _ => {}
    }
}

fn walk(schema: Option<&Schema>, inherited: bool, value: &Value, path: &Path<'_>, found: &mut Vec<String>) {
    let open = is_open(schema, inherited);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match fate(schema, open, name) {
                    Fate::Keep => {}
                    Fate::Drop => report(&path.field(name), found),
                    Fate::Descend(child) => walk(Some(child), false, field, &path.field(name), found),
                }
            }
        }
        Value::Array(entries) => {
            let items = schema.and_then(|schema| schema.items.as_deref());
            for (index, entry) in entries.iter().enumerate() {
                walk(items, open, entry, &path.index(index), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
