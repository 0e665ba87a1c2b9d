//! Reading JSON as Kubernetes reads it: `null` is as good as absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// A value, or its default for `null`.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The part of an object's metadata that authorization reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    #[serde(deserialize_with = "nullable")]
    pub(super) name: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) namespace: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) labels: BTreeMap<String, String>,
}
