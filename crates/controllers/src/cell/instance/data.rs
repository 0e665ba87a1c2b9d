//! Companions in the cell: copies of a project's ConfigMaps and Secrets. Only that they are there is known here, never what is in them.

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::conditions::Update;
use compute_api::k8s::{ConfigMap, PartialObjectMeta, Secret};
use compute_api::labels;
use compute_core::meta;
use compute_core::referenced_data::{self, required};
use compute_runtime::cache::{Closed, Selector};
use compute_runtime::{Cache, Key, Plane, Queue, Subscription};

use super::super::indexes::{DEPLOYMENTS_EXPECTING, INSTANCES_NAMING, INSTANCES_OF, path};
use super::super::keys;

/// The companions of a cell.
pub(super) struct Companions {
    config_maps: Cache<PartialObjectMeta<ConfigMap>>,
    secrets: Cache<PartialObjectMeta<Secret>>,
}

impl Companions {
    pub(super) fn of(cell: &Plane) -> Self {
        let labelled = Selector::labels(labels::REFERENCED_DATA);
        Self { config_maps: cell.cache_of(labelled.clone()), secrets: cell.cache_of(labelled) }
    }

    /// Waits until absence means something.
    pub(super) async fn synced(&self) -> Result<(), Closed> {
        self.config_maps.synced().await?;
        self.secrets.synced().await
    }

    /// A companion that comes or goes brings whoever needs it into the queue.
    pub(super) fn watch(
        &self,
        queue: &Queue,
        instances: &Cache<Instance>,
        deployments: &Cache<WorkloadDeployment>,
    ) -> [Subscription; 2] {
        deployments.index(&DEPLOYMENTS_EXPECTING);
        let users = || {
            let (instances, deployments) = (instances.clone(), deployments.clone());
            move |namespace: &str, name: &str| users(&instances, &deployments, namespace, name)
        };
        let (of_config_map, of_secret) = (users(), users());
        [
            queue.watch(&self.config_maps, move |change| {
                of_config_map(&change.name.namespace, &change.name.name)
            }),
            queue.watch(&self.secrets, move |change| of_secret(&change.name.namespace, &change.name.name)),
        ]
    }

    /// What to say as `ReferencedDataReady`; `None` if the instance names no data.
    pub(super) fn condition(
        &self,
        instance: &Instance,
        deployment: Option<&WorkloadDeployment>,
    ) -> Option<Update> {
        if required(&instance.spec).is_empty() {
            return None;
        }
        let nothing = WorkloadDeployment::default();
        let namespace = meta::namespace(&instance.metadata);
        let is_there = |name: &str| {
            let config_map = self.config_maps.get(namespace, name);
            let secret = self.secrets.get(namespace, name);
            config_map.is_some_and(|one| !meta::is_being_deleted(&one.metadata))
                || secret.is_some_and(|one| !meta::is_being_deleted(&one.metadata))
        };
        referenced_data::condition(&instance.spec, deployment.unwrap_or(&nothing), is_there)
    }
}

/// The instances that need a companion: those that name it, and those of deployments that expect it.
fn users(
    instances: &Cache<Instance>,
    deployments: &Cache<WorkloadDeployment>,
    namespace: &str,
    name: &str,
) -> Vec<Key> {
    let path = path(namespace, name);
    let mut found = instances.by_index(&INSTANCES_NAMING, &path);
    for deployment in deployments.by_index(&DEPLOYMENTS_EXPECTING, &path) {
        found.extend(instances.by_index(&INSTANCES_OF, meta::uid(&deployment.metadata)));
    }
    found.iter().map(|instance| keys::of(&**instance)).collect()
}
