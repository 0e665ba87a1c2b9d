//! What differs between two states of an object, as sets of paths.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::extract::{everything, strip};
use super::path::PathElement;
use super::set::FieldSet;
use super::shape::Shape;
use crate::schema::Schema;

/// What differs between two states of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Paths that only the new state has, containers included.
    pub added: FieldSet,
    /// Leaves that both states have, with different values.
    pub modified: FieldSet,
    /// Paths that only the old state has, containers included.
    pub removed: FieldSet,
}

impl Changes {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The paths to which the change gave a value.
    pub(super) fn written(self) -> (FieldSet, FieldSet) {
        let mut written = self.added;
        written.union(self.modified);
        (written, self.removed)
    }

    fn attach(&mut self, element: impl FnOnce() -> PathElement, below: Self) {
        if below.is_empty() {
            return;
        }
        let element = element();
        self.added.attach(|| element.clone(), below.added);
        self.modified.attach(|| element.clone(), below.modified);
        self.removed.attach(|| element, below.removed);
    }
}

/// What differs between `old` and `new`. Fields that nobody owns are not looked at.
pub fn compare(old: &Value, new: &Value, schema: &Schema) -> Changes {
    let mut changes = walk(old, new, Shape::root(schema));
    strip(&mut changes.added);
    strip(&mut changes.modified);
    strip(&mut changes.removed);
    changes
}

fn walk(old: &Value, new: &Value, shape: Shape<'_>) -> Changes {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) if !shape.is_atomic_map() => fields(old, new, shape),
        // To a map or list that is merged, `null` is as good as empty.
        (Value::Object(old), Value::Null) if !old.is_empty() && !shape.is_atomic_map() => {
            fields(old, &Map::new(), shape)
        }
        (Value::Null, Value::Object(new)) if !new.is_empty() && !shape.is_atomic_map() => {
            fields(&Map::new(), new, shape)
        }
        (Value::Array(old), Value::Array(new)) => items(old, new, shape),
        (Value::Array(list), Value::Null) if !list.is_empty() && shape.identify(list).is_some() => {
            items(list, &[], shape)
        }
        (Value::Null, Value::Array(list)) if !list.is_empty() && shape.identify(list).is_some() => {
            items(&[], list, shape)
        }
        _ if same(old, new) => Changes::default(),
        _ => replaced(old, new, shape),
    }
}

fn fields(old: &Map<String, Value>, new: &Map<String, Value>, shape: Shape<'_>) -> Changes {
    let mut changes = Changes::default();
    for (name, before) in old {
        if !shape.is_tracked(name) {
            continue;
        }
        match new.get(name) {
            Some(after) => {
                changes.attach(|| PathElement::field(name), walk(before, after, shape.field(name).0));
            }
            None => {
                let gone = everything(before, shape.field(name).0);
                changes.removed.attach(|| PathElement::field(name), gone);
            }
        }
    }
    for (name, after) in new {
        if shape.is_tracked(name) && !old.contains_key(name) {
            let come = everything(after, shape.field(name).0);
            changes.added.attach(|| PathElement::field(name), come);
        }
    }
    changes
}

fn items(old: &[Value], new: &[Value], shape: Shape<'_>) -> Changes {
    if old == new {
        return Changes::default();
    }
    let (Some(before), Some(after)) = (shape.identify(old), shape.identify(new)) else {
        return Changes { modified: FieldSet::leaf(), ..Changes::default() };
    };
    let mut by_identity: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for (identity, item) in before.into_iter().zip(old) {
        by_identity.entry(identity).or_default().0.push(item);
    }
    for (identity, item) in after.into_iter().zip(new) {
        by_identity.entry(identity).or_default().1.push(item);
    }
    let mut changes = Changes::default();
    for (identity, sides) in by_identity {
        let below = match (sides.0.as_slice(), sides.1.as_slice()) {
            ([before], [after]) => walk(before, after, shape.items()),
            ([before], []) => Changes { removed: everything(before, shape.items()), ..Changes::default() },
            ([], [after]) => Changes { added: everything(after, shape.items()), ..Changes::default() },
            (before, after) if before == after => Changes::default(),
            (_, []) => Changes { removed: FieldSet::leaf(), ..Changes::default() },
            ([], _) => Changes { added: FieldSet::leaf(), ..Changes::default() },
            _ => Changes { modified: FieldSet::leaf(), ..Changes::default() },
        };
        changes.attach(|| identity, below);
    }
    changes
}

/// A value of another kind took the place of the old one.
fn replaced(old: &Value, new: &Value, shape: Shape<'_>) -> Changes {
    let below = |value| FieldSet { owned: false, ..everything(value, shape) };
    Changes { added: below(new), modified: FieldSet::leaf(), removed: below(old) }
}

/// Equality in which `1` and `1.0` are one number.
pub(super) fn same(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() != b.is_f64() => a.as_f64() == b.as_f64(),
        _ => old == new,
    }
}
