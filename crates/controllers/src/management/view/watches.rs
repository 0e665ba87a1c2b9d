//! Which projects are watched in full: one key for each project, looked at when it gets its first object or loses its last.

use std::sync::Arc;

use compute_api::compute::{Workload, WorkloadDeployment};
use compute_runtime::controller::Error;
use compute_runtime::{Change, Key, Next, PlaneId, Queue, Reconciler};

use super::{Project, View, Watcher};

/// What logs and metrics call it.
pub(in crate::management) const NAME: &str = "project-watches";

/// Hears of first and last objects.
pub(in crate::management) struct Watches(Queue);

impl Watches {
    pub(in crate::management) fn new(queue: &Queue) -> Self {
        Self(queue.clone())
    }

    fn changed<K>(&self, project: &Project, change: &Change<K>) {
        if change.before.is_some() != change.after.is_some() {
            self.0.add(project.key("", ""));
        }
    }
}

impl Watcher for Watches {
    fn workload(&self, _: &View, project: &Project, change: &Change<Workload>) {
        self.changed(project, change);
    }

    fn deployment(&self, _: &View, project: &Project, change: &Change<WorkloadDeployment>) {
        self.changed(project, change);
    }

    fn disengaged(&self, _: &View, id: &PlaneId) {
        self.0.remove_plane(id);
    }
}

/// Starts and stops the watches of projects.
pub(in crate::management) struct WatchesReconciler(Arc<View>);

impl WatchesReconciler {
    pub(in crate::management) fn new(view: &Arc<View>) -> Self {
        Self(view.clone())
    }
}

impl Reconciler for WatchesReconciler {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Only this starts and stops them, and for one project one pass at a time.
    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(project) = self.0.project(&key.plane) else { return Ok(Next::Done) };
        match (project.active().is_some(), project.is_idle()) {
            (false, false) => self.0.activate(&project),
            (true, true) => project.deactivate(),
            (true, false) | (false, true) => {}
        }
        Ok(Next::Done)
    }
}
