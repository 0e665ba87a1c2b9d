//! Removing what a manager applied before and applies no longer.
//!
//! An item goes when its manager had it in the last configuration and nobody has it now. Whether
//! somebody has it is decided from the outside in: once a container has no owner left, what others own
//! inside does not keep it. A field that the schema names counts as owned with anything below it; an
//! entry of a list or of an open map only when it is owned itself. So an entry somebody else applied too
//! stays with their part, and an entry of which others merely changed a field goes whole.

use serde_json::Value;

use super::path::PathElement;
use super::set::FieldSet;
use super::shape::Shape;
use crate::schema::ListType;

/// Removes from `value` the items of `last` that `managed`, the union of what every manager owns now,
/// does not keep.
pub(super) fn prune(value: &mut Value, shape: Shape<'_>, last: &FieldSet, managed: &FieldSet) {
    let reach = Reach { claimed: false, kept: true };
    below(value, shape, last, Some(managed), reach, &[]);
}

/// What is known about the way to a place.
#[derive(Clone, Copy)]
struct Reach {
    /// The last configuration had something on the way.
    claimed: bool,
    /// Everything on the way that the last configuration had is still owned.
    kept: bool,
}

fn below(
    value: &mut Value,
    shape: Shape<'_>,
    last: &FieldSet,
    managed: Option<&FieldSet>,
    reach: Reach,
    keys: &[String],
) {
    if last.children.is_empty() {
        return;
    }
    match value {
        Value::Object(map) if !shape.is_atomic_map() => {
            for (element, last) in &last.children {
                let PathElement::Field(name) = element else { continue };
                let Some(value) = map.get_mut(name) else { continue };
                let (field, declared) = shape.field(name);
                let managed = managed.and_then(|managed| managed.children.get(element));
                // The key fields of an entry that stays are what it is found by.
                let fixed =
                    keys.contains(name) || shape.is_root() && name == "metadata" || !shape.is_tracked(name);
                if !keep(value, field, declared, last, managed, reach, fixed) {
                    map.remove(name);
                }
            }
        }
        Value::Array(items) => {
            let Some(identities) = shape.identify(items) else { return };
            let mut identities = identities.into_iter();
            items.retain_mut(|item| {
                let Some(identity) = identities.next() else { return true };
                let Some(last) = last.children.get(&identity) else { return true };
                let managed = managed.and_then(|managed| managed.children.get(&identity));
                keep_entry(item, shape, last, managed, reach)
            });
        }
        _ => {}
    }
}

/// Prunes below a field and says whether the field stays.
fn keep(
    value: &mut Value,
    shape: Shape<'_>,
    declared: bool,
    last: &FieldSet,
    managed: Option<&FieldSet>,
    reach: Reach,
    fixed: bool,
) -> bool {
    let member = |set: &FieldSet| set.owned || declared && !set.children.is_empty();
    let had = member(last);
    let reach = if fixed { reach } else { reach.step(had, managed.is_some_and(member)) };
    if had && !reach.kept && !fixed {
        return false;
    }
    below(value, shape, last, managed, reach, &[]);
    true
}

/// Prunes below an entry of a list and says whether the entry stays.
fn keep_entry(
    item: &mut Value,
    list: Shape<'_>,
    last: &FieldSet,
    managed: Option<&FieldSet>,
    reach: Reach,
) -> bool {
    let reach = reach.step(last.owned, managed.is_some_and(|set| set.owned));
    if last.owned && !reach.kept {
        return false;
    }
    let keys = if let ListType::Map(keys) = list.list_type() { keys.as_slice() } else { &[] };
    below(item, list.items(), last, managed, reach, keys);
    true
}

impl Reach {
    fn step(self, had: bool, owned: bool) -> Self {
        let claimed = self.claimed || had;
        Self { claimed, kept: self.kept && (!claimed || owned) }
    }
}
