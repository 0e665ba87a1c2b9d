//! The projects whose instances claim, and which instance is of which.
//!
//! A project is known, and has its client, from the first of its instances that needs it to the last. Instances that were granted before this
//! process began need nothing: their project is not known until one of their namespace asks, or until it is time to look whether their claims
//! are still there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use compute_api::{labels, names};
use compute_core::federation::Upstream;
use compute_runtime::cache::Selector;
use compute_runtime::engage::Connect;
use compute_runtime::{Key, Plane, PlaneId, Queue, Runtime};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::project::{Lost, Project};

/// The projects whose instances claim.
pub(super) struct Projects {
    runtime: Runtime,
    connect: Arc<Connect>,
    /// Claims of this cell.
    selector: Selector,
    queue: Queue,
    known: Mutex<Known>,
    lost: Lost,
}

#[derive(Default)]
struct Known {
    projects: BTreeMap<String, Arc<Project>>,
    /// The project of each instance.
    members: BTreeMap<Key, String>,
    /// Instances that have their grant behind them and whose project is not known, by namespace of the cell. They ask for nothing, and
    /// join when one of their namespace does.
    strangers: BTreeMap<Arc<str>, Strangers>,
}

/// Instances of one namespace whose project is not known.
struct Strangers {
    /// Since when nobody has looked whether their claims are there.
    since: Instant,
    keys: BTreeSet<Key>,
}

impl Projects {
    pub(super) fn new(runtime: &Runtime, connect: Arc<Connect>, source_cluster: &str, queue: &Queue) -> Self {
        Self {
            runtime: runtime.clone(),
            connect,
            selector: Selector::labels(format!("{}={source_cluster}", labels::SOURCE_CLUSTER)),
            queue: queue.clone(),
            known: Mutex::default(),
            lost: Lost::default(),
        }
    }

    /// The project of an instance, which from now on counts as one of its.
    ///
    /// # Errors
    ///
    /// If its client cannot be made.
    pub(super) fn join(&self, upstream: &Upstream, key: &Key) -> Result<Arc<Project>, anyhow::Error> {
        let name = names::bare_project_name(&upstream.project);
        let mut known = self.known.lock();
        if !known.projects.contains_key(name) {
            let client = (self.connect)(name)?;
            let plane = Plane::new(&self.runtime, PlaneId::new(name), client);
            let project = Project::new(plane, self.selector.clone(), &self.queue, &self.lost);
            known.projects.insert(name.to_owned(), Arc::new(project));
        }
        let strangers = known.strangers.remove(&key.namespace);
        let mut new = strangers.map(|strangers| strangers.keys).unwrap_or_default();
        if !known.members.contains_key(key) {
            new.insert(key.clone());
        }
        known.members.extend(new.iter().map(|key| (key.clone(), name.to_owned())));
        let project = known.projects.get(name).expect("it was put there if it was not");
        project.add_members(&new, &upstream.namespace);
        Ok(project.clone())
    }

    /// The instance has its grant behind it, and asks for nothing.
    pub(super) fn settled(&self, key: &Key) {
        let project = {
            let mut known = self.known.lock();
            let project = known.members.get(key).and_then(|name| known.projects.get(name)).cloned();
            if project.is_none() {
                let new = || Strangers { since: Instant::now(), keys: BTreeSet::new() };
                known.strangers.entry(key.namespace.clone()).or_insert_with(new).keys.insert(key.clone());
            }
            project
        };
        if let Some(project) = project {
            project.settled(key);
        }
    }

    /// For how long nobody has looked whether the claim of an instance that asks for nothing is there.
    pub(super) fn unseen_for(&self, key: &Key) -> Duration {
        if let Some(project) = self.of(key) {
            return project.unseen_for();
        }
        let known = self.known.lock();
        known.strangers.get(&key.namespace).map_or(Duration::ZERO, |strangers| strangers.since.elapsed())
    }

    /// Whether the instance's granted claim has disappeared, and no other is granted yet.
    pub(super) fn has_lost(&self, key: &Key) -> bool {
        self.lost.lock().contains(key)
    }

    /// The instance's claim is granted.
    pub(super) fn granted(&self, key: &Key) {
        self.lost.lock().remove(key);
    }

    /// The project of an instance, if it has joined one.
    pub(super) fn of(&self, key: &Key) -> Option<Arc<Project>> {
        let known = self.known.lock();
        known.projects.get(known.members.get(key)?).cloned()
    }

    /// Nothing is asked for the instance for now.
    pub(super) fn pause(&self, key: &Key) {
        if let Some(project) = self.of(key) {
            project.forget(key);
            project.leave_line(key);
        }
    }

    /// The instance is gone.
    pub(super) fn leave(&self, key: &Key) {
        let left = {
            let mut known = self.known.lock();
            self.lost.lock().remove(key);
            if let Some(strangers) = known.strangers.get_mut(&key.namespace) {
                strangers.keys.remove(key);
                if strangers.keys.is_empty() {
                    known.strangers.remove(&key.namespace);
                }
            }
            let Some(name) = known.members.remove(key) else { return };
            let Some(left) = known.projects.get(&name).cloned() else { return };
            if left.remove_member(key) {
                known.projects.remove(&name);
            }
            left
        };
        left.forget(key);
        left.leave_line(key);
    }
}
