//! Reading and building object metadata: owners, labels, deletion.

use std::collections::BTreeMap;

use compute_api::k8s::{ObjectMeta, OwnerReference, Resource, Timestamp};

/// The object's name; empty if it has none.
pub fn name(meta: &ObjectMeta) -> &str {
    meta.name.as_deref().unwrap_or_default()
}

/// The object's namespace; empty if it has none.
pub fn namespace(meta: &ObjectMeta) -> &str {
    meta.namespace.as_deref().unwrap_or_default()
}

/// The object's uid; empty if it was never stored.
pub fn uid(meta: &ObjectMeta) -> &str {
    meta.uid.as_deref().unwrap_or_default()
}

/// Whether the object has been asked to go.
pub fn is_being_deleted(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

/// The value of a label.
pub fn label<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(key).map(String::as_str)
}

/// The value of an annotation.
pub fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Uid of the controller that owns the object.
pub fn controller_uid(meta: &ObjectMeta) -> Option<&str> {
    let owners = meta.owner_references.as_deref()?;
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}

/// Whether the object with that uid controls this one. An empty uid controls nothing.
pub fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    !uid.is_empty() && controller_uid(meta) == Some(uid)
}

/// Whether `held` has everything that `wanted` says, and the same.
pub fn covers(held: Option<&BTreeMap<String, String>>, wanted: Option<&BTreeMap<String, String>>) -> bool {
    let Some(wanted) = wanted else { return true };
    wanted.iter().all(|(key, value)| held.and_then(|held| held.get(key)) == Some(value))
}

/// Whether `held` has each of the owners that `wanted` names, with the same role. What the owner is called
/// and whether it blocks deletion are looked at too: a reference is written as a whole.
pub fn owners_cover(held: &ObjectMeta, wanted: &ObjectMeta) -> bool {
    let held = held.owner_references.as_deref().unwrap_or_default();
    wanted.owner_references.as_deref().unwrap_or_default().iter().all(|owner| held.contains(owner))
}

/// A reference to the one object that controls another.
pub fn controlled_by<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..owned_by(owner) }
}

/// A reference to one of several objects that use another.
pub fn owned_by<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: name(owner.meta()).to_owned(),
        uid: uid(owner.meta()).to_owned(),
        controller: None,
        block_owner_deletion: None,
    }
}

/// When the object was made; the beginning of time if it was never stored.
pub fn created(meta: &ObjectMeta) -> Timestamp {
    meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

/// Label or annotation pairs as a map.
pub(crate) fn map<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    BTreeMap::from(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())))
}
