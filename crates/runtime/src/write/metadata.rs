//! Patches that can touch nothing but metadata, and whose answer is metadata only.

use std::collections::BTreeMap;

use compute_api::k8s::OwnerReference;
use compute_api::kube::Api;
use compute_api::kube::api::Patch;
use compute_api::kube::core::PartialObjectMeta;
use serde::Serialize;
use serde_json::json;

use super::{Object, Result, Writer};

/// What to change about an object's metadata. What is not named stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataPatch {
    /// Labels to set, or to remove where there is no value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations to set, or to remove where there is no value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Option<String>>,
    /// All owners, if they change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_references: Option<Vec<OwnerReference>>,
    /// All finalizers, if they change. Computed from the old ones, so a resource version goes with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
    /// Only onto the object of that uid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Only onto the object as it was. Needed wherever the patch is computed from its old content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}

impl MetadataPatch {
    /// Whether it would change nothing.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
            && self.annotations.is_empty()
            && self.owner_references.is_none()
            && self.finalizers.is_none()
    }
}

impl Writer {
    /// Changes an object's metadata.
    ///
    /// # Errors
    /// [`Error::Conflict`](super::Error::Conflict) if the patch names a uid or resource version, and the object has another.
    pub async fn patch_metadata<K: Object>(
        &self,
        api: &Api<K>,
        name: &str,
        patch: &MetadataPatch,
    ) -> Result<PartialObjectMeta<K>> {
        let patch = Patch::Merge(json!({ "metadata": patch }));
        self.request(api.patch_metadata(name, &self.patch_params(), &patch)).await
    }
}
