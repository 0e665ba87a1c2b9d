//! Merging an applied configuration into the live object.
//!
//! Merging removes nothing: it sets the leaves that the configuration has and keeps all others.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::compare::same;
use super::extract::repeated;
use super::path::PathElement;
use super::shape::{SERVER_METADATA, Shape};

/// Sets in `live` what `applied` has.
pub(super) fn merge(live: &mut Value, applied: &Value, shape: Shape<'_>) {
    match (&mut *live, applied) {
        (Value::Object(live), Value::Object(applied)) if !shape.is_atomic_map() => {
            fields(live, applied, shape)
        }
        (Value::Array(items), Value::Array(applied)) => {
            match (shape.identify(items), shape.identify(applied)) {
                (Some(_), Some(_)) if applied.is_empty() => {}
                (Some(_), Some(_)) if items.is_empty() => items.clone_from(applied),
                (Some(old), Some(new)) => {
                    *items = interleave(std::mem::take(items), old, applied, new, shape.items());
                }
                _ if items == applied => {}
                _ => items.clone_from(applied),
            }
        }
        // A `null` for a map or list that is merged asks for nothing that is not there already.
        (Value::Object(live), Value::Null) if !live.is_empty() && !shape.is_atomic_map() => {}
        (Value::Array(live), Value::Null) if !live.is_empty() && shape.identify(live).is_some() => {}
        (live, applied) if same(live, applied) => {}
        (live, applied) => live.clone_from(applied),
    }
}

fn fields(live: &mut Map<String, Value>, applied: &Map<String, Value>, shape: Shape<'_>) {
    for (name, value) in applied {
        // Clients often send `creationTimestamp: null`; what only the server writes is not theirs to set.
        let ignored = shape.is_metadata() && SERVER_METADATA.contains(&name.as_str())
            || !shape.is_tracked(name) && value.is_null();
        if ignored {
            continue;
        }
        match live.get_mut(name) {
            Some(live) => merge(live, value, shape.field(name).0),
            None => {
                let mut fresh = value.clone();
                if shape.is_root() && name == "metadata" {
                    fresh = Value::Object(Map::new());
                    merge(&mut fresh, value, shape.field(name).0);
                }
                live.insert(name.clone(), fresh);
            }
        }
    }
}

/// Merges two lists of items that can be told apart.
///
/// Applied items come in the applied order. Items that only the live list has keep their place behind
/// the shared item they follow; items that only the configuration has come right before the shared item
/// that follows them there.
fn interleave(
    live: Vec<Value>,
    live_ids: Vec<PathElement>,
    applied: &[Value],
    applied_ids: Vec<PathElement>,
    item: Shape<'_>,
) -> Vec<Value> {
    let position: BTreeMap<PathElement, usize> =
        applied_ids.into_iter().enumerate().map(|(at, id)| (id, at)).collect();
    // An item that the live list has twice is replaced by the applied one rather than merged with it.
    let repeated = repeated(&live_ids);
    let mut partners: Vec<Option<Value>> = vec![None; applied.len()];
    let mut shared = vec![false; applied.len()];
    let mut order = Vec::with_capacity(live.len());
    for (id, value) in live_ids.into_iter().zip(live) {
        match position.get(&id) {
            Some(&at) => {
                shared[at] = true;
                if !repeated.contains(&id) {
                    partners[at] = Some(value);
                }
                order.push(Live::Shared(at));
            }
            None => order.push(Live::Only(value)),
        }
    }

    let mut out = Vec::with_capacity(order.len() + applied.len());
    let mut next = 0;
    let mut next_shared = shared.iter().position(|&shared| shared);
    let mut take = |out: &mut Vec<Value>, range: std::ops::Range<usize>| {
        for at in range {
            out.push(match partners[at].take() {
                Some(mut partner) => {
                    merge(&mut partner, &applied[at], item);
                    partner
                }
                None => applied[at].clone(),
            });
        }
    };
    for entry in order {
        match entry {
            Live::Only(value) => out.push(value),
            Live::Shared(at) if next_shared == Some(at) => {
                take(&mut out, next..at + 1);
                next = at + 1;
                next_shared = shared[next..].iter().position(|&shared| shared).map(|ahead| next + ahead);
            }
            // A shared item that is not the next one in the applied order waits for its turn there.
            Live::Shared(_) => {}
        }
    }
    take(&mut out, next..applied.len());
    out
}

/// One item of the live list.
enum Live {
    /// An item that the configuration does not have.
    Only(Value),
    /// The item at this position of the configuration.
    Shared(usize),
}
