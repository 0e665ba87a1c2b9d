//! What the tests share: an embedded server, clients with faults on the way, a kind that can be spoiled, and waiting.

#![allow(dead_code, unused_imports, reason = "each test binary uses its own part")]

mod faults;
mod widget;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use compute_apiserver::{ApiServer, Identity, Options, PlaneName, PlaneService, PlaneTemplate};
use compute_runtime::clock::SystemClock;
use compute_runtime::{Plane, PlaneId, Random, Runtime};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::Instant;

pub use faults::{Asked, Faults, InFlight};
pub use widget::{Widget, widget_crd, widget_json};

/// How long a condition may take to come true. Only failing tests wait this long.
pub const DEADLINE: Duration = Duration::from_secs(600);

/// An embedded server whose planes serve widgets, projects and what is built in.
pub struct World {
    pub server: ApiServer,
    pub runtime: Runtime,
    template: PlaneTemplate,
}

impl World {
    pub async fn new() -> Self {
        let server = ApiServer::new(Options::default());
        let mut crds = vec![widget_crd()];
        crds.extend(compute_api::crds::foreign().iter().map(|crd| serde_json::to_value(crd).unwrap()));
        let template = server.template(&crds).await.unwrap();
        Self { server, template, runtime: Runtime::new(SystemClock, Random::seeded(3)) }
    }

    /// A fresh plane on the server, a client straight to it, and the plane as the runtime reaches it, through faults.
    pub async fn plane(&self, name: &str) -> (Client, Plane, Arc<Faults>) {
        let (plane, faults) = self.plane_counting(name, &Arc::default()).await;
        (self.client(name), plane, faults)
    }

    /// A fresh plane whose lists in flight are counted together with others'.
    pub async fn plane_counting(&self, name: &str, in_flight: &Arc<InFlight>) -> (Plane, Arc<Faults>) {
        let plane = PlaneName::new(name).unwrap();
        self.server.create_plane(plane.clone(), &self.template).await.unwrap();
        let faults = Faults::counting(in_flight.clone());
        let client = faults.client(self.server.service(&plane, Identity::superuser("runtime")));
        (Plane::new(&self.runtime, PlaneId::new(name), client), faults)
    }

    /// A client straight to a plane.
    pub fn client(&self, name: &str) -> Client {
        Client::new(self.service(name), "default")
    }

    /// What answers for a plane.
    pub fn service(&self, name: &str) -> PlaneService {
        self.server.service(&PlaneName::new(name).unwrap(), Identity::superuser("test"))
    }
}

/// Asks again and again until `ask` gives `Ok`; fails with its last reason after [`DEADLINE`].
pub async fn eventually<T, E: Display>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(reason) if Instant::now() > deadline => panic!("{what}: not within {DEADLINE:?}: {reason}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Waits until `is` holds.
pub async fn until(what: &str, mut is: impl FnMut() -> bool) {
    eventually(what, async || if is() { Ok(()) } else { Err("it does not hold") }).await;
}

/// A config map with one value.
pub fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("value".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

/// The value of [`config_map`].
pub fn value(object: &ConfigMap) -> String {
    object.data.as_ref().unwrap()["value"].clone()
}

pub async fn create(client: &Client, name: &str, value: &str) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &config_map(name, value)).await.unwrap();
}

pub async fn delete(client: &Client, name: &str) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    api.delete(name, &Default::default()).await.unwrap();
}

pub async fn set(client: &Client, name: &str, value: &str) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let patch = serde_json::json!({ "data": { "value": value } });
    api.patch(name, &Default::default(), &kube::api::Patch::Merge(patch)).await.unwrap();
}
