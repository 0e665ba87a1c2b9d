//! The fields that a value has.

use std::collections::BTreeSet;

use serde_json::Value;

use super::path::PathElement;
use super::set::FieldSet;
use super::shape::Shape;
use crate::schema::Schema;

/// The fields that an applied configuration claims.
///
/// These are its leaves: scalars, `null`, empty maps and lists, and maps and lists that are one value;
/// besides them every entry of a merged list and every entry of an open map itself. Fields that nobody
/// owns (`apiVersion`, `kind`, `metadata.name` and so on) are left out.
pub fn fields_of(value: &Value, schema: &Schema) -> FieldSet {
    let mut set = collect(value, Shape::root(schema), Claim::Leaves);
    strip(&mut set);
    set
}

/// Every path that a value has, containers included: what appears or goes when the value does.
pub(super) fn everything(value: &Value, shape: Shape<'_>) -> FieldSet {
    collect(value, shape, Claim::All)
}

/// Drops what nobody owns and cannot be left out on the way: the whole object and `metadata` as such.
pub(super) fn strip(set: &mut FieldSet) {
    set.owned = false;
    let metadata = PathElement::field("metadata");
    if let Some(below) = set.children.get_mut(&metadata) {
        below.owned = false;
        if below.is_empty() {
            set.children.remove(&metadata);
        }
    }
}

/// Which paths of a value are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Leaves and the entries of lists and open maps.
    Leaves,
    /// Containers too.
    All,
}

fn collect(value: &Value, shape: Shape<'_>, claim: Claim) -> FieldSet {
    let mut set = FieldSet { owned: claim == Claim::All, ..FieldSet::new() };
    match value {
        Value::Object(map) if !map.is_empty() && !shape.is_atomic_map() => {
            for (name, value) in map {
                if shape.is_tracked(name) {
                    let (field, declared) = shape.field(name);
                    let mut below = collect(value, field, claim);
                    below.owned |= !declared;
                    set.attach(|| PathElement::field(name), below);
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let Some(identities) = shape.identify(items) else { return FieldSet::leaf() };
            let repeated = repeated(&identities);
            for (identity, item) in identities.into_iter().zip(items) {
                // Entries that cannot be told apart are owned together, and not by their fields.
                let mut below = FieldSet::leaf();
                if !repeated.contains(&identity) {
                    below = collect(item, shape.items(), claim);
                    below.owned = true;
                }
                set.children.insert(identity, below);
            }
        }
        _ => return FieldSet::leaf(),
    }
    set
}

/// The identities that occur more than once.
pub(super) fn repeated(identities: &[PathElement]) -> BTreeSet<PathElement> {
    let mut sorted: Vec<_> = identities.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone()).collect()
}
