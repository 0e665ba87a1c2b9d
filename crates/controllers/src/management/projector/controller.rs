//! Which instances to look at when something changes.

use std::sync::Arc;

use compute_api::annotations::FEDERATION_NAMESPACE;
use compute_api::compute::{Instance, WorkloadDeployment};
use compute_core::meta;
use compute_core::projection;
use compute_runtime::{Change, Key, PlaneId, Queue};

use super::Quarantine;
use crate::management::view::{Hub, Kind, Project, View, Watcher};

/// Keys of instances, under their names in their projects.
pub(in crate::management) struct Keys {
    queue: Queue,
    quarantine: Arc<Quarantine>,
}

impl Keys {
    pub(in crate::management) fn new(queue: &Queue, quarantine: &Arc<Quarantine>) -> Self {
        Self { queue: queue.clone(), quarantine: quarantine.clone() }
    }

    fn add_copies<'a>(&self, copies: impl IntoIterator<Item = &'a Arc<Instance>>) {
        self.queue.add_all(copies.into_iter().filter_map(|copy| Hub::upstream_key(&copy.metadata)));
    }

    fn add_project(&self, project: &Project) {
        let active = project.active();
        let Some(federated) = active.as_ref().and_then(|active| active.federated.as_ref()) else { return };
        let all = federated.instances.list();
        self.queue.add_all(all.iter().map(|instance| Key::of(project.id(), &**instance)));
    }
}

impl Watcher for Keys {
    fn instance(&self, _: &View, project: &Project, change: &Change<Instance>) {
        self.queue.add(project.key(&change.name.namespace, &change.name.name));
    }

    /// An owner that comes, goes or is another one. What else changes about it, such as its status, changes no instance.
    fn deployment(&self, view: &View, project: &Project, change: &Change<WorkloadDeployment>) {
        let owner = |version: &Option<Arc<WorkloadDeployment>>| {
            version.as_ref().map(|owner| {
                let meta = &owner.metadata;
                let hub_namespace = meta::annotation(meta, FEDERATION_NAMESPACE).map(str::to_owned);
                let workload = owner.spec.workload_ref.uid.clone();
                (meta.uid.clone(), meta::is_being_deleted(meta), hub_namespace, workload)
            })
        };
        if owner(&change.before) == owner(&change.after) {
            return;
        }
        if let Some(hub) = view.hub() {
            self.add_copies(&hub.instances_of(project.id(), &change.name.namespace, &change.name.name));
        }
    }

    fn connected(&self, view: &View, project: &Project, kind: Kind) {
        if !matches!(kind, Kind::Deployment | Kind::Instance | Kind::Namespace) {
            return;
        }
        self.add_project(project);
        if let Some(hub) = view.hub() {
            self.add_copies(&hub.instances_of_project(project.id()));
        }
    }

    fn disengaged(&self, _: &View, id: &PlaneId) {
        self.queue.remove_plane(id);
        self.quarantine.forget_project(id);
    }

    fn hub_instance(&self, _: &View, hub: &Hub, change: &Change<Instance>) {
        // A copy that does not say whose it is has no key: this is all that can be done about it.
        match &change.after {
            Some(copy) => match projection::destination(copy) {
                Ok(_) => self.quarantine.keep_only_owned(&change.name),
                Err(why) => self.quarantine.report(
                    hub,
                    &change.name,
                    copy.metadata.uid.as_deref(),
                    None,
                    &why.to_string(),
                ),
            },
            None if change.unreadable => {
                self.quarantine.report(hub, &change.name, None, None, "the instance cannot be decoded");
            }
            None => self.quarantine.release(&change.name),
        }
        if let (Some(before), None) = (&change.before, &change.after) {
            // Its pass may come while the hub is not being watched, and would leave this.
            if let Some(key) = Hub::upstream_key(&before.metadata) {
                self.quarantine.set_waiting(&key, None);
            }
        }
        self.add_copies(change.versions());
        if change.latest().is_none() {
            self.queue.add_all(hub.key_by_namespace(&change.name));
        }
    }

    fn hub_connected(&self, view: &View, hub: &Hub, kind: Kind) {
        if kind != Kind::Instance {
            return;
        }
        view.projects().iter().for_each(|project| self.add_project(project));
        self.add_copies(&hub.instances.list());
    }
}
