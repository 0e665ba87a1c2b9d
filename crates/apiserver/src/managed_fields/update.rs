//! Ownership on create, update and patch.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Writer;
use super::compare::compare;
use super::entry::{ManagedEntry, Operation};
use super::quick;
use super::set::FieldSet;
use super::shape::Shape;
use crate::schema::Schema;

/// Records in `new.metadata.managedFields` who owns what once `new` takes the place of `live` (`None` on
/// create).
///
/// What the request changed is the writer's, by `Update`, and nobody else's; what it removed is
/// nobody's. A request that changes nothing leaves the entries as they were, times included; the
/// writer's time moves when it gives a field a value.
///
/// The entries start from those the request sends, when they are well formed, and else from the live
/// ones, so that clients that know nothing of `managedFields` do not lose them; a subresource's request
/// cannot set them. Sending exactly `[{}]` clears them. An existing object without entries is not
/// tracked until it is first applied to.
pub fn update(live: Option<&Value>, new: &mut Value, schema: &Schema, writer: Writer<'_>) {
    let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let sent = metadata.remove("managedFields");
    let stored = live.and_then(managed_fields);
    let base = match sent {
        Some(sent) if Some(&sent) == stored => Base::Stored(Cow::Owned(sent)),
        Some(sent) if writer.subresource.is_empty() => Base::of_request(&sent, stored),
        _ => Base::stored(stored),
    };
    if live.is_some() && matches!(base, Base::Nothing) {
        return;
    }
    if live.is_none() && matches!(base, Base::Nothing) {
        let entry = quick::entry_of_new(new, schema, &writer);
        set_managed_fields(new, entry.map(Cow::Owned));
        return;
    }
    let changes = compare(live.unwrap_or(&Value::Null), new, schema);
    let is_empty = changes.is_empty();
    let (written, removed) = changes.written();
    let entries = match base {
        Base::Stored(raw) if is_empty => {
            set_managed_fields(new, Some(raw));
            return;
        }
        Base::Stored(raw) => match quick::own_place(&raw, &written, &removed, schema, &writer) {
            Some(own) => {
                set_managed_fields(new, Some(quick::at_time(raw, own, writer.now)));
                return;
            }
            None => ManagedEntry::read_all(&raw).unwrap_or_default(),
        },
        Base::Sent(entries) => entries,
        Base::Nothing => Vec::new(),
    };
    set_managed_fields(new, by_sets(entries, written, &removed, schema, &writer).map(Cow::Owned));
}

/// The entries after a write that gave these paths a value and removed those.
pub(super) fn by_sets(
    mut entries: Vec<ManagedEntry>,
    written: FieldSet,
    removed: &FieldSet,
    schema: &Schema,
    writer: &Writer<'_>,
) -> Option<Value> {
    if !written.is_empty() || !removed.is_empty() {
        for entry in &mut entries {
            Shape::root(schema).reconcile(&mut entry.fields);
            entry.fields.subtract(removed);
            // The writer's own fields come back with the union below.
            entry.fields.subtract(&written);
        }
    }
    if !written.is_empty() {
        match entries.iter_mut().find(|entry| entry.is_of(writer, Operation::Update)) {
            Some(own) => {
                own.fields.union(written);
                own.time = Some(writer.now.to_owned());
            }
            None => entries.push(ManagedEntry::of(writer, Operation::Update, written)),
        }
    }
    entries.retain(|entry| !entry.fields.is_empty());
    ManagedEntry::cap(&mut entries);
    ManagedEntry::write_all(entries)
}

/// Takes ownership of what the object does not have away from everybody: what was applied but is not kept.
pub fn forget_absent(object: &mut Value, schema: &Schema) {
    let Some(Ok(mut entries)) = managed_fields(object).map(ManagedEntry::read_all) else { return };
    let present = compare(&Value::Null, object, schema).added;
    for entry in &mut entries {
        entry.fields = entry.fields.intersection(&present);
    }
    set_managed_fields(object, ManagedEntry::write_all(entries).map(Cow::Owned));
}

/// Which entries a request starts from.
enum Base<'a> {
    Nothing,
    Stored(Cow<'a, Value>),
    Sent(Vec<ManagedEntry>),
}

impl<'a> Base<'a> {
    fn stored(stored: Option<&'a Value>) -> Self {
        stored.map_or(Self::Nothing, |raw| Self::Stored(Cow::Borrowed(raw)))
    }

    fn of_request(sent: &Value, stored: Option<&'a Value>) -> Self {
        let is_reset =
            matches!(sent.as_array().map(Vec::as_slice), Some([Value::Object(entry)]) if entry.is_empty());
        if is_reset {
            return Self::Nothing;
        }
        match ManagedEntry::read_all(sent) {
            Ok(entries) if !entries.is_empty() => Self::Sent(entries),
            _ => Self::stored(stored),
        }
    }
}

/// The raw `metadata.managedFields` of an object, if it has any entries.
pub(super) fn managed_fields(object: &Value) -> Option<&Value> {
    let value = object.get("metadata")?.get("managedFields")?;
    value.as_array().is_some_and(|entries| !entries.is_empty()).then_some(value)
}

/// Puts `metadata.managedFields` in place.
pub(super) fn set_managed_fields(object: &mut Value, value: Option<Cow<'_, Value>>) {
    let Some(object) = object.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    match value {
        Some(value) => metadata.insert("managedFields".to_owned(), value.into_owned()),
        None => metadata.remove("managedFields"),
    };
}
