//! From bytes to objects, one by one: what cannot be decoded is named if it can be, and takes nothing else with it.

use std::borrow::Cow;
use std::panic::catch_unwind;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Object, ObjectName};
use crate::lean::Lean;

/// One object of a list or of a watch.
pub(super) enum Decoded<K> {
    /// It could be decoded.
    Object(K),
    /// It could not, but it has a name.
    Unreadable { name: ObjectName, version: Option<String>, error: String },
    /// Not even its name could be decoded.
    Nameless { error: String },
}

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(default)]
    pub(super) metadata: PageMeta,
    #[serde(borrow, default)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

/// Where a list stands.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PageMeta {
    pub(super) resource_version: Option<String>,
    #[serde(rename = "continue")]
    pub(super) continue_token: Option<String>,
}

impl PageMeta {
    /// The version of the list; empty if it has none.
    pub(super) fn resource_version(&self) -> &str {
        self.resource_version.as_deref().unwrap_or_default()
    }
}

/// An event of a watch.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// As much of an object as names it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Head {
    metadata: HeadMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct HeadMeta {
    namespace: Option<String>,
    name: Option<String>,
    resource_version: Option<String>,
}

/// The object, if it can be decoded.
pub(super) fn object<K: Object>(raw: &RawValue) -> Decoded<K> {
    // Decoding runs code of the kind's own, which may panic.
    let error = match catch_unwind(|| serde_json::from_str::<Lean<K>>(raw.get())) {
        Ok(Ok(Lean(object))) if object.meta().name.is_some() => return Decoded::Object(object),
        Ok(Ok(_)) => "it has no name".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "decoding panicked".to_owned(),
    };
    match head(raw) {
        Some((name, version)) => Decoded::Unreadable { name, version, error },
        None => Decoded::Nameless { error },
    }
}

/// An object's name and version, which are all that a deletion or an object that cannot be decoded needs.
pub(super) fn head(raw: &RawValue) -> Option<(ObjectName, Option<String>)> {
    let HeadMeta { namespace, name, resource_version } =
        serde_json::from_str::<Head>(raw.get()).ok()?.metadata;
    Some((ObjectName { namespace: namespace.unwrap_or_default(), name: name? }, resource_version))
}

/// The version that a bookmark stands for.
pub(super) fn bookmark(raw: &RawValue) -> Option<String> {
    serde_json::from_str::<Head>(raw.get()).ok()?.metadata.resource_version
}
