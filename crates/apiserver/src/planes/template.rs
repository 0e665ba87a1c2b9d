//! Templates: the default roles, CRDs and other objects of the whole plane, and what is compiled from them, prepared once and
//! shared by every plane that is made from them.
//! Namespaces are made anew for each plane: their uids tell planes apart wherever objects of several planes meet.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Plane, PlaneError, PlaneName};
use crate::auth::Identity;
use crate::authz;
use crate::error::ApiError;
use crate::server::Shared;
use crate::store::ObjectKey;
use crate::verbs::{self, WriteOptions};

/// Namespaces that every plane starts with.
const NAMESPACES: [&str; 2] = ["default", "kube-system"];

/// What planes start with beside their namespaces. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PlaneTemplate(Arc<Plane>);

/// One of a plane's first objects was refused.
#[derive(Debug, thiserror::Error)]
#[error("{what} is refused")]
pub struct TemplateError {
    what: String,
    #[source]
    source: ApiError,
}

impl PlaneTemplate {
    pub(crate) async fn new(shared: &Arc<Shared>, objects: &[Value]) -> Result<Self, TemplateError> {
        let name = PlaneName::new("template").expect("a plain word is a plane name");
        let bare = Arc::new(Plane::new(name.clone(), shared.revisions.clone()));
        for object in authz::defaults() {
            put(shared, &bare, object).await?;
        }
        bare.set_policy(authz::default_policy());
        let plane = Arc::new(Plane::from_template(name, &bare, None));
        for object in objects {
            put(shared, &plane, object.clone()).await?;
        }
        Ok(Self(plane))
    }

    /// A plane that nobody else can see yet.
    pub(crate) async fn make(&self, shared: &Arc<Shared>, name: PlaneName) -> Result<Arc<Plane>, PlaneError> {
        let storage = shared.storage.as_ref();
        let plane = Arc::new(Plane::from_template(name, &self.0, storage));
        if let Some(storage) = storage {
            let found = storage.take_plane(plane.name().as_str()).await;
            let found = found.map_err(|source| PlaneError::NotDurable(plane.name().clone(), source))?;
            if let Some(found) = found {
                plane.restore(found, &shared.definitions, &shared.hooks)?;
            }
        }
        for namespace in NAMESPACES {
            if plane.store.get(&verbs::namespaces(), &ObjectKey::new("", namespace)).is_some() {
                continue;
            }
            let object =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            put(shared, &plane, object)
                .await
                .map_err(|source| PlaneError::NotWritten(plane.name().clone(), Box::new(source)))?;
        }
        Ok(plane)
    }
}

async fn put(shared: &Arc<Shared>, plane: &Arc<Plane>, object: Value) -> Result<(), TemplateError> {
    let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
    let registry = plane.registry();
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let made = match registry.find_kind(api_version, kind) {
        Some(resource) => {
            // Hooks judge what is done to a plane; this makes it, before anybody can see it.
            let target = verbs::Target::new(shared, plane, resource, Arc::new(Identity::server())).unasked();
            verbs::create(&target, None, object, &WriteOptions::by("apiserver")).await
        }
        None => Err(ApiError::NoSuchPath),
    };
    made.map(drop).map_err(|source| TemplateError { what, source })
}
