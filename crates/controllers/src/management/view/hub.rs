//! What is watched on the hub, once for all projects, and how to find in it what belongs to one of them.

use std::sync::Arc;

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::k8s::ObjectMeta;
use compute_api::karmada::{Cluster, PropagationPolicy};
use compute_api::kube::Client;
use compute_api::{labels, names};
use compute_core::federation::{Upstream, policy};
use compute_core::{meta, projection};
use compute_runtime::cache::{Object, ObjectName};
use compute_runtime::{Cache, Change, Index, Key, Plane, PlaneId, Subscription};
use parking_lot::Mutex;

use super::{Kind, NamespaceMeta, View, Watcher};

/// The hub.
pub(in crate::management) struct Hub {
    plane: Plane,
    pub(in crate::management) deployments: Cache<WorkloadDeployment>,
    pub(in crate::management) instances: Cache<Instance>,
    pub(in crate::management) policies: Cache<PropagationPolicy>,
    pub(in crate::management) namespaces: Cache<NamespaceMeta>,
    pub(in crate::management) clusters: Cache<Cluster>,
    heard: Mutex<Vec<Subscription>>,
}

/// What a name in a namespace of a project is called in the indexes below. None of the three can contain the separator.
fn upstream_value(project: &str, namespace: &str, name: &str) -> String {
    format!("{project}/{namespace}/{name}")
}

fn project_of(meta: &ObjectMeta) -> Vec<String> {
    let upstream = Upstream::of(meta);
    upstream.map(|upstream| names::bare_project_name(&upstream.project).to_owned()).into_iter().collect()
}

fn upstream_of(meta: &ObjectMeta, name: Option<&str>) -> Vec<String> {
    let Some((upstream, name)) = Upstream::of(meta).zip(name) else { return Vec::new() };
    vec![upstream_value(names::bare_project_name(&upstream.project), &upstream.namespace, name)]
}

static DEPLOYMENTS_BY_UPSTREAM: Index<WorkloadDeployment> =
    Index::new("upstream", |copy| upstream_of(&copy.metadata, copy.metadata.name.as_deref()));
static DEPLOYMENTS_BY_PROJECT: Index<WorkloadDeployment> =
    Index::new("project", |copy| project_of(&copy.metadata));
static DEPLOYMENTS_BY_CITY: Index<WorkloadDeployment> =
    Index::new("city", |copy| policy::city(copy).map(str::to_owned).into_iter().collect());
static DEPLOYMENTS_BY_POLICY: Index<WorkloadDeployment> = Index::new("policy", |copy| {
    let namespace = meta::namespace(&copy.metadata);
    policy::city(copy).map(|city| policy_value(namespace, city)).into_iter().collect()
});
static INSTANCES_BY_UPSTREAM: Index<Instance> =
    Index::new("upstream", |copy| upstream_of(&copy.metadata, copy.metadata.name.as_deref()));
static INSTANCES_BY_PROJECT: Index<Instance> = Index::new("project", |copy| project_of(&copy.metadata));
static INSTANCES_BY_OWNER: Index<Instance> =
    Index::new("owner", |copy| upstream_of(&copy.metadata, projection::owner_name(copy)));
static NAMESPACES_BY_PROJECT: Index<NamespaceMeta> = Index::new("project", |held| project_of(&held.metadata));
static CLUSTERS_BY_CITY: Index<Cluster> =
    Index::new("city", |cluster| Hub::city_of(cluster).map(str::to_owned).into_iter().collect());

fn policy_value(namespace: &str, city: &str) -> String {
    format!("{namespace}/{}", city.to_ascii_lowercase())
}

impl Hub {
    /// Begins to watch.
    pub(in crate::management) fn new(plane: Plane) -> Self {
        Self {
            deployments: plane.cache(),
            instances: plane.cache(),
            policies: plane.cache(),
            namespaces: plane.cache(),
            clusters: plane.cache(),
            plane,
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

    /// What it shares with the other planes.
    pub(in crate::management) fn plane(&self) -> &Plane {
        &self.plane
    }

    /// The copies of a project's deployment. More than one only if its namespace was deleted and made again.
    pub(in crate::management) fn copies(&self, key: &Key) -> Vec<Arc<WorkloadDeployment>> {
        self.deployments.by_index(
            &DEPLOYMENTS_BY_UPSTREAM,
            &upstream_value(key.plane.as_str(), &key.namespace, &key.name),
        )
    }

    /// The copies of all deployments of a project.
    pub(in crate::management) fn copies_of_project(&self, project: &PlaneId) -> Vec<Arc<WorkloadDeployment>> {
        self.deployments.by_index(&DEPLOYMENTS_BY_PROJECT, project.as_str())
    }

    /// The deployments of all projects in a city, spelled like this.
    pub(in crate::management) fn deployments_in(&self, city: &str) -> Vec<Arc<WorkloadDeployment>> {
        self.deployments.by_index(&DEPLOYMENTS_BY_CITY, city)
    }

    /// The deployments that a city's policy is for, however they spell it.
    pub(in crate::management) fn policy_users(
        &self,
        namespace: &str,
        city: &str,
    ) -> Vec<Arc<WorkloadDeployment>> {
        self.deployments.by_index(&DEPLOYMENTS_BY_POLICY, &policy_value(namespace, city))
    }

    /// The copies of a project's instance. More than one only if its namespace was deleted and made again.
    pub(in crate::management) fn instance_copies(&self, key: &Key) -> Vec<Arc<Instance>> {
        self.instances
            .by_index(&INSTANCES_BY_UPSTREAM, &upstream_value(key.plane.as_str(), &key.namespace, &key.name))
    }

    /// All instances of a project.
    pub(in crate::management) fn instances_of_project(&self, project: &PlaneId) -> Vec<Arc<Instance>> {
        self.instances.by_index(&INSTANCES_BY_PROJECT, project.as_str())
    }

    /// The instances of a project's deployment.
    pub(in crate::management) fn instances_of(
        &self,
        project: &PlaneId,
        namespace: &str,
        deployment: &str,
    ) -> Vec<Arc<Instance>> {
        self.instances.by_index(&INSTANCES_BY_OWNER, &upstream_value(project.as_str(), namespace, deployment))
    }

    /// The namespaces of a project.
    pub(in crate::management) fn namespaces_of(&self, project: &PlaneId) -> Vec<Arc<NamespaceMeta>> {
        self.namespaces.by_index(&NAMESPACES_BY_PROJECT, project.as_str())
    }

    /// The key of the project's object that something on the hub stands for. `None` if it does not say.
    pub(in crate::management) fn upstream_key(meta: &ObjectMeta) -> Option<Key> {
        let upstream = Upstream::of(meta)?;
        let project = PlaneId::new(names::bare_project_name(&upstream.project));
        Some(Key::new(&project, &upstream.namespace, meta::name(meta)))
    }

    /// The same for something that cannot be decoded, by what its namespace says.
    pub(in crate::management) fn key_by_namespace(&self, name: &ObjectName) -> Option<Key> {
        let namespace = self.namespaces.get("", &name.namespace)?;
        let upstream = Upstream::of(&namespace.metadata)?;
        let project = PlaneId::new(names::bare_project_name(&upstream.project));
        Some(Key::new(&project, &upstream.namespace, &name.name))
    }

    /// The cells of a city, spelled like this.
    pub(in crate::management) fn cells_in(&self, city: &str) -> Vec<Arc<Cluster>> {
        self.clusters.by_index(&CLUSTERS_BY_CITY, city)
    }

    /// The city of a cell.
    pub(in crate::management) fn city_of(cluster: &Cluster) -> Option<&str> {
        meta::label(&cluster.metadata, labels::TOPOLOGY_CITY_CODE)
    }

    pub(super) fn subscribe(&self, view: &Arc<View>) {
        let mut heard = Vec::new();
        let all = &mut heard;
        let kind = (Kind::Namespace, &self.namespaces);
        Self::hear(view, kind, |watcher, view, hub, change| watcher.hub_namespace(view, hub, change), all);
        let kind = (Kind::Cluster, &self.clusters);
        Self::hear(view, kind, |watcher, view, hub, change| watcher.cluster(view, hub, change), all);
        let kind = (Kind::Policy, &self.policies);
        Self::hear(view, kind, |watcher, view, hub, change| watcher.policy(view, hub, change), all);
        let kind = (Kind::Deployment, &self.deployments);
        Self::hear(view, kind, |watcher, view, hub, change| watcher.hub_deployment(view, hub, change), all);
        let kind = (Kind::Instance, &self.instances);
        Self::hear(view, kind, |watcher, view, hub, change| watcher.hub_instance(view, hub, change), all);
        *self.heard.lock() = heard;
    }

    /// Tells the watchers of changes and connections.
    fn hear<K: Object>(
        view: &Arc<View>,
        (kind, cache): (Kind, &Cache<K>),
        tell: fn(&dyn Watcher, &View, &Self, &Change<K>),
        heard: &mut Vec<Subscription>,
    ) {
        let weak = Arc::downgrade(view);
        heard.push(cache.subscribe(move |change| {
            let Some(view) = weak.upgrade() else { return };
            let Some(hub) = view.hub() else { return };
            view.watchers.iter().for_each(|watcher| tell(&**watcher, &view, hub, change));
        }));
        let weak = Arc::downgrade(view);
        heard.push(cache.on_connect(move |_| {
            let Some(view) = weak.upgrade() else { return };
            let Some(hub) = view.hub() else { return };
            view.watchers.iter().for_each(|watcher| watcher.hub_connected(&view, hub, kind));
        }));
    }
}
