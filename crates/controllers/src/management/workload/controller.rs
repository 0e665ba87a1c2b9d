//! Which Workloads to look at when something changes.

use compute_api::compute::{Workload, WorkloadDeployment};
use compute_api::k8s::ResourceExt as _;
use compute_api::networking::{LocationBinding, Network};
use compute_core::location::Offered;
use compute_runtime::{Change, Key, PlaneId, Queue};

use crate::management::view::{Kind, Project, View, Watcher};

/// Keys of Workloads.
pub(in crate::management) struct Keys(Queue);

impl Keys {
    pub(in crate::management) fn new(queue: &Queue) -> Self {
        Self(queue.clone())
    }
}

impl Watcher for Keys {
    fn workload(&self, _: &View, project: &Project, change: &Change<Workload>) {
        self.0.add(project.key(&change.name.namespace, &change.name.name));
    }

    /// Its Workload, and the one of that name, which may wait for it to go.
    fn deployment(&self, _: &View, project: &Project, change: &Change<WorkloadDeployment>) {
        let namespace = &change.name.namespace;
        if change.latest().is_none() {
            // Nobody can tell whose it was: one that could not be decoded has come or gone.
            let all = project.workloads.in_namespace(namespace);
            return self.0.add_all(all.iter().map(|workload| Key::of(project.id(), &**workload)));
        }
        for deployment in change.versions() {
            let owners = deployment.owner_references().iter().filter(|owner| owner.controller == Some(true));
            let owner = owners.map(|owner| project.key(namespace, &owner.name));
            self.0.add_all(owner.chain([project.key(namespace, &deployment.spec.workload_ref.name)]));
        }
    }

    fn binding(&self, _: &View, project: &Project, change: &Change<LocationBinding>) {
        let offer = |version: &Option<_>| Offered::of(version.as_deref());
        if offer(&change.before) == offer(&change.after) {
            return;
        }
        let cities = change.versions().filter_map(|binding| binding.spec.city_code());
        let all = cities.flat_map(|city| project.workloads_in(city));
        self.0.add_all(all.map(|workload| Key::of(project.id(), &*workload)));
    }

    fn network(&self, _: &View, project: &Project, change: &Change<Network>) {
        // What counts is whether it is there; an unreadable one is.
        if change.before.is_some() && change.after.is_some() {
            return;
        }
        let all = project.workloads_on(&change.name.namespace, &change.name.name);
        self.0.add_all(all.iter().map(|workload| Key::of(project.id(), &**workload)));
    }

    fn connected(&self, _: &View, project: &Project, kind: Kind) {
        if !matches!(kind, Kind::Workload | Kind::Deployment | Kind::Binding | Kind::Network) {
            return;
        }
        self.0.add_all(project.workloads.list().iter().map(|workload| Key::of(project.id(), &**workload)));
    }

    fn disengaged(&self, _: &View, id: &PlaneId) {
        self.0.remove_plane(id);
    }
}
