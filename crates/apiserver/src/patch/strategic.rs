//! Strategic merge patch: a merge patch that knows which lists merge, and by what.
//!
//! Maps merge field by field and `null` removes, as in a merge patch. A list merges when the schema gives
//! it a patch strategy, and is replaced otherwise. Directives in the patch say what plain values cannot:
//!
//! | Directive | In | Meaning |
//! |---|---|---|
//! | `$patch: replace` | a map | the map is replaced |
//! | `$patch: delete` | a map | the map is emptied |
//! | `$patch: merge` | a map | the map is merged, as it is without |
//! | `$patch: delete` | a list entry | the entry with this key goes |
//! | `$patch: replace` | a list entry | the list is replaced by the other entries |
//! | `$retainKeys: [...]` | a map | only these fields stay |
//! | `$deleteFromPrimitiveList/<list>: [...]` | a map | these values go from the list |
//! | `$setElementOrder/<list>: [...]` | a map | entries of the list take this order |

mod list;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Error, MAX_DEPTH};
use crate::managed_fields::shape::Shape;
use crate::schema::Schema;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// Applies a strategic merge patch.
///
/// # Errors
///
/// [`Error::Malformed`] when the patch or one of its directives does not have the form it must have, or an
/// entry of a list that merges lacks the merge key.
pub fn patch(doc: Value, patch: Value, schema: &Schema) -> Result<Value, Error> {
    match (doc, patch) {
        (Value::Object(doc), Value::Object(patch)) => {
            merge_map(doc, patch, Shape::root(schema), MAX_DEPTH).map(Value::Object)
        }
        _ => Err(Error::Malformed("a strategic merge patch and its document must be objects".to_owned())),
    }
}

/// What `$patch` in a map asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

/// Takes `$patch` out of a map.
fn take_directive(patch: &mut Map<String, Value>) -> Result<Option<Directive>, Error> {
    match patch.remove(PATCH) {
        None => Ok(None),
        Some(Value::String(name)) if name == "merge" => Ok(Some(Directive::Merge)),
        Some(Value::String(name)) if name == "replace" => Ok(Some(Directive::Replace)),
        Some(Value::String(name)) if name == "delete" => Ok(Some(Directive::Delete)),
        Some(other) => Err(Error::Malformed(format!("unknown patch type: {other}"))),
    }
}

fn merge_map(
    mut doc: Map<String, Value>,
    mut patch: Map<String, Value>,
    shape: Shape<'_>,
    levels: usize,
) -> Result<Map<String, Value>, Error> {
    if levels == 0 {
        return Err(Error::Malformed(format!("the patch is nested deeper than {MAX_DEPTH} levels")));
    }
    match take_directive(&mut patch)? {
        None | Some(Directive::Merge) => {}
        Some(Directive::Replace) => return fresh_map(patch, shape, levels),
        Some(Directive::Delete) => return Ok(Map::new()),
    }
    retain_keys(&mut doc, &mut patch)?;
    let mut lists = ListDirectives::take(&mut patch, shape)?;
    for (name, values) in lists.deletions {
        if let Some(Value::Array(items)) = doc.get_mut(&name) {
            list::delete_scalars(items, &values);
        }
    }
    for (name, value) in patch {
        let field = shape.field(&name).0;
        let value = match (doc.get_mut(&name), value) {
            (_, Value::Null) => {
                doc.remove(&name);
                continue;
            }
            (Some(Value::Object(old)), Value::Object(patch)) => {
                *old = merge_map(std::mem::take(old), patch, field, levels - 1)?;
                continue;
            }
            (Some(Value::Array(old)), Value::Array(patch)) => {
                let order = lists.orders.remove(&name);
                *old = list::merge(std::mem::take(old), patch, order, field, levels - 1)?;
                continue;
            }
            (_, value) => value,
        };
        match fresh(value, field, levels - 1)? {
            Some(value) => doc.insert(name, value),
            None => doc.remove(&name),
        };
    }
    for (name, order) in lists.orders {
        if let Some(Value::Array(items)) = doc.get_mut(&name) {
            *items = list::reorder(std::mem::take(items), &order, shape.field(&name).0)?;
        }
    }
    Ok(doc)
}

/// Takes `$retainKeys` out of the patch and clears every other field of the document.
fn retain_keys(doc: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), Error> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || Error::Malformed(format!("invalid patch format of {RETAIN_KEYS}: {keys}"));
    let names: Option<BTreeSet<&str>> =
        keys.as_array().and_then(|keys| keys.iter().map(Value::as_str).collect());
    let names = names.ok_or_else(malformed)?;
    let is_stray = |(name, value): (&String, &Value)| {
        let is_directive = name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER);
        !value.is_null() && !is_directive && !names.contains(name.as_str())
    };
    if patch.iter().any(is_stray) {
        return Err(malformed());
    }
    doc.retain(|name, _| names.contains(name.as_str()));
    Ok(())
}

/// The directives of a map that speak of a list beside them, by the name of the list.
struct ListDirectives {
    deletions: BTreeMap<String, Vec<Value>>,
    orders: BTreeMap<String, Vec<Value>>,
}

impl ListDirectives {
    /// Takes the directives out of the patch. What else looks like a directive must be a field.
    fn take(patch: &mut Map<String, Value>, shape: Shape<'_>) -> Result<Self, Error> {
        let mut directives = Self { deletions: BTreeMap::new(), orders: BTreeMap::new() };
        let names: Vec<String> = patch.keys().filter(|name| name.starts_with('$')).cloned().collect();
        for name in names {
            let (kind, list) = if let Some(list) = name.strip_prefix(DELETE_FROM) {
                (&mut directives.deletions, list)
            } else if let Some(list) = name.strip_prefix(SET_ORDER) {
                (&mut directives.orders, list)
            } else if is_data(&name, shape) {
                continue;
            } else {
                return Err(Error::Malformed(format!("unknown directive {name:?} in the patch")));
            };
            match patch.remove(&name) {
                Some(Value::Array(values)) => kind.insert(list.to_owned(), values),
                _ => return Err(Error::Malformed(format!("{name:?} in the patch must be a list"))),
            };
        }
        Ok(directives)
    }
}

/// Whether a map may have a field of this name: the schema names it, or leaves the map open.
fn is_data(name: &str, shape: Shape<'_>) -> bool {
    shape.schema().is_none_or(|schema| {
        schema.preserve_unknown_fields
            || schema.additional_properties.is_some()
            || schema.properties.contains_key(name)
    })
}

/// A value of the patch that has nothing to merge with: without nulls and directives. `None` when it is
/// only there to delete.
fn fresh(value: Value, shape: Shape<'_>, levels: usize) -> Result<Option<Value>, Error> {
    match value {
        Value::Object(mut map) => match take_directive(&mut map)? {
            Some(Directive::Delete) => Ok(None),
            _ => fresh_map(map, shape, levels).map(|map| Some(Value::Object(map))),
        },
        Value::Array(items) => list::fresh(items, shape, levels).map(|items| Some(Value::Array(items))),
        scalar => Ok(Some(scalar)),
    }
}

fn fresh_map(
    mut map: Map<String, Value>,
    shape: Shape<'_>,
    levels: usize,
) -> Result<Map<String, Value>, Error> {
    if levels == 0 {
        return Err(Error::Malformed(format!("the patch is nested deeper than {MAX_DEPTH} levels")));
    }
    map.remove(RETAIN_KEYS);
    let lists = ListDirectives::take(&mut map, shape)?;
    let mut out = Map::new();
    for (name, value) in map {
        if !value.is_null()
            && let Some(value) = fresh(value, shape.field(&name).0, levels - 1)?
        {
            out.insert(name, value);
        }
    }
    for (name, order) in lists.orders {
        if let Some(Value::Array(items)) = out.get_mut(&name) {
            *items = list::reorder(std::mem::take(items), &order, shape.field(&name).0)?;
        }
    }
    Ok(out)
}
