//! What a controller may do to an object, and how that can fail.
//!
//! A [`Writer`] writes under one field manager, `compute-<name>`, and gives every request the same time. It never
//! replaces an object: it applies the fields that its controller owns, or patches exactly what it names.
//!
//! # Guarantees
//! - What is computed from an object's old content (finalizers, entries of lists, metadata with a resource version) is
//!   written only onto that content; else the answer is [`Error::Conflict`].
//! - A deletion names the uid, so that it cannot hit a successor of the same name.
//! - Every failure is one of [`Error`]'s kinds and says whether and how a retry can help.

mod error;
mod finalizers;
mod metadata;
mod outcome;
mod owners;

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use compute_api::kube::api::{
    DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use compute_api::kube::core::Request;
use compute_api::kube::{self, Api, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::lean::Lean;

pub use error::{Error, Outage, Retry};
pub use metadata::MetadataPatch;
pub use outcome::STALE;
pub use owners::{OtherController, controller_reference, is_controlled_by, plain_reference, set_owner};

/// The result of a write.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How long a write may take unless the controller says otherwise: longer than a slow webhook, shorter than a watch that
/// makes the write pointless.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// What every kind that can be written is.
pub trait Object: kube::Resource + Clone + Debug + Serialize + DeserializeOwned {}
impl<K: kube::Resource + Clone + Debug + Serialize + DeserializeOwned> Object for K {}

/// The part of an object that a list is in: the two are written by different requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status.
    Main,
    /// The status.
    Status,
}

/// Which object a deletion means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Its uid: another object of that name is left alone.
    pub uid: String,
    /// If given, a changed object is left alone too.
    pub resource_version: Option<String>,
}

impl Target {
    /// The object as last seen, whatever has been written to it since. None if it has never been stored.
    pub fn of(object: &impl kube::Resource) -> Option<Self> {
        let meta = object.meta();
        Some(Self { name: meta.name.clone()?, uid: meta.uid.clone()?, resource_version: None })
    }

    /// The object as last seen, and only if nothing has been written to it since.
    pub fn exactly(object: &impl kube::Resource) -> Option<Self> {
        let resource_version = Some(object.meta().resource_version.clone()?);
        Self::of(object).map(|target| Self { resource_version, ..target })
    }
}

/// Writes for one controller.
#[derive(Clone, Debug)]
pub struct Writer {
    manager: String,
    timeout: Duration,
}

impl Writer {
    /// Writes under the field manager `compute-<name>`.
    pub fn new(name: &str) -> Self {
        Self { manager: format!("compute-{name}"), timeout: TIMEOUT }
    }

    /// The same with another time for each request.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// Any request within the writer's time, its failure sorted: for reads beside writes.
    pub async fn request<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(result) => result.map_err(Error::from),
            Err(_) => Err(Error::Unavailable(Outage::Timeout)),
        }
    }

    /// Applies `fields` (with `apiVersion` and `kind`) and takes them from whoever owned them; fields that this manager
    /// applied before and that are not among them go.
    pub async fn apply<K: Object>(
        &self,
        api: &Api<K>,
        name: &str,
        fields: &(impl Serialize + Debug),
    ) -> Result<K> {
        let mut fields = serde_json::to_value(fields).map_err(kube::Error::SerdeError)?;
        // A server makes no object of fields that do not name it, whatever the path says.
        if let Some(metadata) = fields.as_object_mut().map(|all| all.entry("metadata").or_insert(json!({})))
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.entry("name").or_insert_with(|| name.into());
        }
        self.patch(api, name, Part::Main, &self.apply_params(), &Patch::Apply(fields)).await
    }

    /// The same for the status.
    pub async fn apply_status<K: Object>(
        &self,
        api: &Api<K>,
        name: &str,
        fields: &(impl Serialize + Debug),
    ) -> Result<K> {
        self.patch(api, name, Part::Status, &self.apply_params(), &Patch::Apply(fields)).await
    }

    /// Patches an object with what differs. A patch that is computed from the object's old content names its resource version, under
    /// `metadata`; else the answer is never [`Error::Conflict`].
    pub async fn merge<K: Object>(&self, api: &Api<K>, name: &str, part: Part, patch: &Value) -> Result<K> {
        self.patch(api, name, part, &self.patch_params(), &Patch::Merge(patch)).await
    }

    /// Creates an object. One of that name that exists is [`Error::AlreadyExists`].
    pub async fn create<K: Object>(&self, api: &Api<K>, object: &K) -> Result<K> {
        let params = PostParams { field_manager: Some(self.manager.clone()), ..PostParams::default() };
        let object = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        self.send(api, Request::new(api.resource_url()).create(&params, object)).await
    }

    /// Asks for an object to be deleted. One that is gone is [`Error::NotFound`]; one of another uid or resource
    /// version is [`Error::Conflict`].
    pub async fn delete<K: Object>(
        &self,
        api: &Api<K>,
        target: &Target,
        propagation: PropagationPolicy,
    ) -> Result<()> {
        let params = DeleteParams {
            propagation_policy: Some(propagation),
            preconditions: Some(Preconditions {
                uid: Some(target.uid.clone()),
                resource_version: target.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        self.request(api.delete(&target.name, &params)).await.map(|_| ())
    }

    /// Takes the entry whose `key` is `value` out of the list at the JSON pointer `list`: a gate, or a condition that
    /// another writer left behind. `object` is how the list looked; None if it had no such entry.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the object has changed since.
    pub async fn remove_entry<K: Object>(
        &self,
        api: &Api<K>,
        object: &K,
        part: Part,
        list: &str,
        (key, value): (&str, &str),
    ) -> Result<Option<K>> {
        let seen =
            serde_json::to_value(object).map_err(|error| Error::Other(kube::Error::SerdeError(error)))?;
        let entries = seen.pointer(list).and_then(Value::as_array);
        let Some(at) = entries.and_then(|list| list.iter().position(|entry| entry[key] == value)) else {
            return Ok(None);
        };
        let patch = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": object.resource_version() },
            { "op": "test", "path": format!("{list}/{at}/{key}"), "value": value },
            { "op": "remove", "path": format!("{list}/{at}") },
        ]);
        let patch =
            serde_json::from_value(patch).map_err(|error| Error::Other(kube::Error::SerdeError(error)))?;
        let (name, params, patch) = (object.name_any(), self.patch_params(), Patch::<()>::Json(patch));
        match self.patch(api, &name, part, &params, &patch).await {
            Ok(written) => Ok(Some(written)),
            // Servers say of a failed test only that the patch is not valid. Whether it was the test shows the object.
            Err(Error::Invalid(status)) => {
                let now = self.request(api.get_metadata(&name)).await?;
                let is_same = now.resource_version() == object.resource_version();
                Err(if is_same { Error::Invalid(status) } else { Error::Conflict(status) })
            }
            Err(error) => Err(error),
        }
    }

    async fn patch<K: Object>(
        &self,
        api: &Api<K>,
        name: &str,
        part: Part,
        params: &PatchParams,
        patch: &Patch<impl Serialize>,
    ) -> Result<K> {
        let request = Request::new(api.resource_url());
        let request = match part {
            Part::Main => request.patch(name, params, patch),
            Part::Status => request.patch_subresource("status", name, params, patch),
        };
        self.send(api, request).await
    }

    /// Sends a request that is answered with an object, whose `managedFields` nobody reads.
    async fn send<K: Object>(
        &self,
        api: &Api<K>,
        request: std::result::Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<K> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let Lean(object) = self.request(api.clone().into_client().request(request)).await?;
        Ok(object)
    }

    fn apply_params(&self) -> PatchParams {
        PatchParams::apply(&self.manager).force()
    }

    fn patch_params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.manager.clone()), ..PatchParams::default() }
    }
}
