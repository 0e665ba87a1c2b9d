//! What the management controllers see: the projects that are served, the hub, and every change of both.
//!
//! Each plane's kinds are watched once for all controllers. A [`Watcher`] hears of every change and of every connection, and puts into its
//! queue what has to be looked at.
//!
//! A pass acts only on what is being watched. Where a watch is not complete yet, or broken, it does nothing: everything that the watch bears
//! on comes again when it is open. So nothing is concluded from what nobody has heard of yet, and no controller fights, over what it
//! last heard long ago, with those who know better.
//!
//! # Guarantees
//!
//! - An idle project, one without Workload and deployment, has two watches. The others start with its first Workload and stop when
//!   its last Workload and deployment are gone.
//! - Whatever is watched stops when the controllers do, and a project's when it is disengaged: nothing that calls back holds what it is
//!   called for.

mod hub;
mod project;
mod watcher;
mod watches;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use compute_runtime::cache::Object;
use compute_runtime::engage::Listener;
use compute_runtime::{Cache, Change, Plane, PlaneId, Planes, Subscription};
use parking_lot::RwLock;

pub(super) use hub::Hub;
pub(super) use project::{Active, Federated, NamespaceMeta, Project};
pub(super) use watcher::{Kind, Watcher};
pub(super) use watches::{NAME, Watches, WatchesReconciler};

/// What the management controllers see of all planes.
pub(super) struct View {
    projects: RwLock<BTreeMap<PlaneId, Arc<Project>>>,
    hub: Option<Arc<Hub>>,
    watchers: Vec<Box<dyn Watcher>>,
}

impl View {
    /// Begins to watch. It ends when the last handle is dropped.
    pub(super) fn new(planes: &Planes, hub: Option<&Arc<Hub>>, watchers: Vec<Box<dyn Watcher>>) -> Arc<Self> {
        let view = Arc::new(Self { projects: RwLock::default(), hub: hub.cloned(), watchers });
        if let Some(hub) = hub {
            hub.subscribe(&view);
        }
        planes.listen(Arc::new(Engaged(Arc::downgrade(&view))));
        view
    }

    /// A project, if it is served.
    pub(super) fn project(&self, id: &PlaneId) -> Option<Arc<Project>> {
        self.projects.read().get(id).cloned()
    }

    /// All projects that are served.
    pub(super) fn projects(&self) -> Vec<Arc<Project>> {
        self.projects.read().values().cloned().collect()
    }

    /// The hub; `None` in direct mode.
    pub(super) fn hub(&self) -> Option<&Arc<Hub>> {
        self.hub.as_ref()
    }

    fn engage(self: &Arc<Self>, plane: &Plane) {
        let project = Arc::new(Project::new(plane));
        // Passes look it up as soon as its objects are heard of.
        self.projects.write().insert(plane.id().clone(), project.clone());
        let mut heard = Vec::new();
        self.hear(
            &project,
            (Kind::Workload, &project.workloads),
            |watcher, view, project, change| watcher.workload(view, project, change),
            &mut heard,
        );
        self.hear(
            &project,
            (Kind::Deployment, &project.deployments),
            |watcher, view, project, change| watcher.deployment(view, project, change),
            &mut heard,
        );
        project.keep(heard);
    }

    fn disengage(&self, id: &PlaneId) {
        let project = self.projects.write().remove(id);
        if let Some(project) = project {
            project.forget();
        }
        for watcher in &self.watchers {
            watcher.disengaged(self, id);
        }
    }

    /// Starts the watches of a project that is not idle.
    fn activate(self: &Arc<Self>, project: &Arc<Project>) {
        let active = project.activate(self.hub.is_some());
        let mut heard = Vec::new();
        self.hear(
            project,
            (Kind::Binding, &active.bindings),
            |watcher, view, project, change| watcher.binding(view, project, change),
            &mut heard,
        );
        self.hear(
            project,
            (Kind::Network, &active.networks),
            |watcher, view, project, change| watcher.network(view, project, change),
            &mut heard,
        );
        if let Some(federated) = &active.federated {
            self.hear(
                project,
                (Kind::Namespace, &federated.namespaces),
                |watcher, view, project, change| watcher.namespace(view, project, change),
                &mut heard,
            );
            self.hear(
                project,
                (Kind::Instance, &federated.instances),
                |watcher, view, project, change| watcher.instance(view, project, change),
                &mut heard,
            );
        }
        active.keep(heard);
    }

    /// Tells the watchers of a project's changes and connections.
    fn hear<K: Object>(
        self: &Arc<Self>,
        project: &Arc<Project>,
        (kind, cache): (Kind, &Cache<K>),
        tell: fn(&dyn Watcher, &Self, &Project, &Change<K>),
        heard: &mut Vec<Subscription>,
    ) {
        let (view, weak) = (Arc::downgrade(self), Arc::downgrade(project));
        heard.push(cache.subscribe(move |change| {
            let (Some(view), Some(project)) = (view.upgrade(), weak.upgrade()) else { return };
            view.watchers.iter().for_each(|watcher| tell(&**watcher, &view, &project, change));
        }));
        let (view, weak) = (Arc::downgrade(self), Arc::downgrade(project));
        heard.push(cache.on_connect(move |_| {
            let (Some(view), Some(project)) = (view.upgrade(), weak.upgrade()) else { return };
            view.watchers.iter().for_each(|watcher| watcher.connected(&view, &project, kind));
        }));
    }
}

/// Hears of projects for as long as there is a view.
struct Engaged(Weak<View>);

impl Listener for Engaged {
    fn on_engage(&self, plane: &Plane) {
        if let Some(view) = self.0.upgrade() {
            view.engage(plane);
        }
    }

    fn on_disengage(&self, plane: &PlaneId) {
        if let Some(view) = self.0.upgrade() {
            view.disengage(plane);
        }
    }
}
