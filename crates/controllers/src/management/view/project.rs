//! What is watched in one project.

use std::sync::Arc;

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::k8s::{Namespace, PartialObjectMeta};
use compute_api::kube::Client;
use compute_api::networking::{LocationBinding, Network};
use compute_core::meta;
use compute_runtime::{Cache, Index, Key, Plane, PlaneId, Subscription};
use parking_lot::{Mutex, RwLock};

/// A namespace as far as anybody here needs it.
pub(in crate::management) type NamespaceMeta = PartialObjectMeta<Namespace>;

/// A project that is served.
pub(in crate::management) struct Project {
    plane: Plane,
    pub(in crate::management) workloads: Cache<Workload>,
    pub(in crate::management) deployments: Cache<WorkloadDeployment>,
    active: RwLock<Option<Arc<Active>>>,
    heard: Mutex<Vec<Subscription>>,
}

/// What is watched besides while a project is not idle.
pub(in crate::management) struct Active {
    pub(in crate::management) bindings: Cache<LocationBinding>,
    pub(in crate::management) networks: Cache<Network>,
    /// Only if there is a hub.
    pub(in crate::management) federated: Option<Federated>,
    heard: Mutex<Vec<Subscription>>,
}

/// What is watched for the sake of the hub.
pub(in crate::management) struct Federated {
    pub(in crate::management) namespaces: Cache<NamespaceMeta>,
    pub(in crate::management) instances: Cache<Instance>,
}

/// Deployments by the uid of their controller.
static BY_CONTROLLER: Index<WorkloadDeployment> = Index::new("controller", |deployment| {
    meta::controller_uid(&deployment.metadata).map(str::to_owned).into_iter().collect()
});

/// Workloads by each city that they name, in lower case.
static BY_CITY: Index<Workload> = Index::new("city", |workload| {
    let cities = workload.spec.placements.iter().flat_map(|placement| &placement.city_codes);
    cities.map(|city| city.to_ascii_lowercase()).collect()
});

/// Workloads by each network that they name.
static BY_NETWORK: Index<Workload> = Index::new("network", |workload| {
    let interfaces = workload.spec.template.spec.network_interfaces.iter();
    let namespace = meta::namespace(&workload.metadata);
    interfaces.map(|interface| format!("{namespace}/{}", interface.network.name)).collect()
});

impl Project {
    pub(super) fn new(plane: &Plane) -> Self {
        Self {
            plane: plane.clone(),
            workloads: plane.cache(),
            deployments: plane.cache(),
            active: RwLock::default(),
            heard: Mutex::default(),
        }
    }

    /// Its name.
    pub(in crate::management) fn id(&self) -> &PlaneId {
        self.plane.id()
    }

    /// How to reach it.
    pub(in crate::management) fn client(&self) -> Client {
        self.plane.client().clone()
    }

    /// What is watched besides, if it is not idle.
    pub(in crate::management) fn active(&self) -> Option<Arc<Active>> {
        self.active.read().clone()
    }

    /// Whether it has neither Workload nor deployment, as far as is known.
    pub(super) fn is_idle(&self) -> bool {
        self.workloads.is_empty() && self.deployments.is_empty()
    }

    /// The key of an object in it.
    pub(in crate::management) fn key(&self, namespace: &str, name: &str) -> Key {
        Key::new(self.id(), namespace, name)
    }

    /// The deployments that the object of that uid controls.
    pub(in crate::management) fn controlled_by(&self, uid: &str) -> Vec<Arc<WorkloadDeployment>> {
        self.deployments.by_index(&BY_CONTROLLER, uid)
    }

    /// The Workloads that name a city.
    pub(in crate::management) fn workloads_in(&self, city: &str) -> Vec<Arc<Workload>> {
        self.workloads.by_index(&BY_CITY, &city.to_ascii_lowercase())
    }

    /// The Workloads that name a network.
    pub(in crate::management) fn workloads_on(&self, namespace: &str, network: &str) -> Vec<Arc<Workload>> {
        self.workloads.by_index(&BY_NETWORK, &format!("{namespace}/{network}"))
    }

    pub(super) fn keep(&self, heard: Vec<Subscription>) {
        *self.heard.lock() = heard;
    }

    pub(super) fn activate(&self, federated: bool) -> Arc<Active> {
        let active = Arc::new(Active {
            bindings: self.plane.cache(),
            networks: self.plane.cache(),
            federated: federated
                .then(|| Federated { namespaces: self.plane.cache(), instances: self.plane.cache() }),
            heard: Mutex::default(),
        });
        *self.active.write() = Some(active.clone());
        active
    }

    pub(super) fn deactivate(&self) {
        let active = self.active.write().take();
        if let Some(active) = active {
            active.keep(Vec::new());
        }
    }

    /// Hears of nothing any more, even while a pass still has it in hand.
    pub(super) fn forget(&self) {
        self.deactivate();
        self.keep(Vec::new());
    }
}

impl Active {
    pub(super) fn keep(&self, heard: Vec<Subscription>) {
        // What was heard before is dropped after the lock is released.
        let before = std::mem::replace(&mut *self.heard.lock(), heard);
        drop(before);
    }
}
