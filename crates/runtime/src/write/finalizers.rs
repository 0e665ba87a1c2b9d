//! Finalizers: a list that many controllers share, so each change is made from, and only onto, the list as it was seen.

use compute_api::kube::api::Patch;
use compute_api::kube::{Api, ResourceExt as _};
use serde_json::json;

use super::{Object, Part, Result, Writer};

impl Writer {
    /// Adds a finalizer. None if the object has it already.
    ///
    /// # Errors
    /// [`Error::Conflict`](super::Error::Conflict) if the object has changed since it was seen.
    /// [`Error::Forbidden`](super::Error::Forbidden) or [`Error::Invalid`](super::Error::Invalid) if it is being deleted.
    pub async fn add_finalizer<K: Object>(
        &self,
        api: &Api<K>,
        object: &K,
        finalizer: &str,
    ) -> Result<Option<K>> {
        if object.finalizers().iter().any(|have| have == finalizer) {
            return Ok(None);
        }
        let mut finalizers = object.finalizers().to_vec();
        finalizers.push(finalizer.to_owned());
        self.set_finalizers(api, object, &finalizers).await.map(Some)
    }

    /// Removes a finalizer. None if the object does not have it.
    ///
    /// # Errors
    /// [`Error::Conflict`](super::Error::Conflict) if the object has changed since it was seen.
    pub async fn remove_finalizer<K: Object>(
        &self,
        api: &Api<K>,
        object: &K,
        finalizer: &str,
    ) -> Result<Option<K>> {
        let finalizers: Vec<_> =
            object.finalizers().iter().filter(|have| *have != finalizer).cloned().collect();
        if finalizers.len() == object.finalizers().len() {
            return Ok(None);
        }
        self.set_finalizers(api, object, &finalizers).await.map(Some)
    }

    async fn set_finalizers<K: Object>(&self, api: &Api<K>, object: &K, finalizers: &[String]) -> Result<K> {
        let patch = json!({ "metadata": {
            "uid": object.uid(),
            "resourceVersion": object.resource_version(),
            "finalizers": finalizers,
        }});
        self.patch(api, &object.name_any(), Part::Main, &self.patch_params(), &Patch::Merge(patch)).await
    }
}
