//! What is known of each project whose instances claim: its client, its claims while somebody waits, and the denied in line.
//!
//! A project is known from the first of its instances that needs it to the last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use compute_api::quota::ResourceClaim;
use compute_api::{labels, names};
use compute_core::meta;
use compute_core::quota::claim::is_granted;
use compute_runtime::cache::{Change, Selector};
use compute_runtime::engage::Connect;
use compute_runtime::{Cache, Key, Plane, PlaneId, Queue, Runtime, Subscription};
use kube::Client;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::keys;
use super::line::Line;

/// How long a claim that we have made is believed to be as it was made: a watch shows what became of it sooner.
const FRESH: Duration = Duration::from_secs(1);

/// The projects whose instances claim.
pub(super) struct Projects {
    runtime: Runtime,
    connect: Arc<Connect>,
    /// Claims of this cell.
    selector: Selector,
    queue: Queue,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    projects: BTreeMap<String, (Arc<Project>, BTreeSet<Key>)>,
    /// The project of each instance.
    members: BTreeMap<Key, String>,
}

impl Projects {
    pub(super) fn new(runtime: &Runtime, connect: Arc<Connect>, source_cluster: &str, queue: &Queue) -> Self {
        Self {
            runtime: runtime.clone(),
            connect,
            selector: Selector::labels(format!("{}={source_cluster}", labels::SOURCE_CLUSTER)),
            queue: queue.clone(),
            known: Mutex::default(),
        }
    }

    /// The project of an instance, which from now on counts as one of its.
    ///
    /// # Errors
    ///
    /// If its client cannot be made.
    pub(super) fn join(&self, project: &str, key: &Key) -> Result<Arc<Project>, anyhow::Error> {
        let name = names::bare_project_name(project);
        let mut known = self.known.lock();
        if !known.projects.contains_key(name) {
            let client = (self.connect)(name)?;
            let plane = Plane::new(&self.runtime, PlaneId::new(name), client);
            let project = Project {
                plane,
                selector: self.selector.clone(),
                queue: self.queue.clone(),
                line: Arc::default(),
                state: Mutex::default(),
            };
            known.projects.insert(name.to_owned(), (Arc::new(project), BTreeSet::new()));
        }
        known.members.insert(key.clone(), name.to_owned());
        let (project, members) = known.projects.get_mut(name).expect("it was put there if it was not");
        members.insert(key.clone());
        Ok(project.clone())
    }

    /// The project of an instance, if it has joined one.
    pub(super) fn of(&self, key: &Key) -> Option<Arc<Project>> {
        let known = self.known.lock();
        let project = known.projects.get(known.members.get(key)?)?;
        Some(project.0.clone())
    }

    /// Nothing is asked for the instance for now.
    pub(super) fn pause(&self, key: &Key) {
        if let Some(project) = self.of(key) {
            project.settled(key);
            project.leave_line(key);
        }
    }

    /// The instance is gone.
    pub(super) fn leave(&self, key: &Key) {
        let left = {
            let mut known = self.known.lock();
            let Some(name) = known.members.remove(key) else { return };
            let Some((project, members)) = known.projects.get_mut(&name) else { return };
            members.remove(key);
            let left = project.clone();
            if members.is_empty() {
                known.projects.remove(&name);
            }
            left
        };
        left.settled(key);
        left.leave_line(key);
    }
}

/// One project.
pub(super) struct Project {
    plane: Plane,
    selector: Selector,
    queue: Queue,
    line: Arc<Mutex<Line>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Instances that wait for an answer.
    waiting: BTreeSet<Key>,
    /// Claims that we have made for them.
    made: BTreeMap<Key, (Arc<ResourceClaim>, Instant)>,
    /// There while somebody waits.
    watch: Option<Watch>,
}

struct Watch {
    claims: Cache<ResourceClaim>,
    _subscriptions: [Subscription; 2],
}

/// What is known of a claim without a request.
pub(super) enum Seen {
    /// This is it.
    Claim(Arc<ResourceClaim>),
    /// There is none of this cell's.
    Absent,
    /// One was made, and what became of it is not known.
    Made,
    /// Nothing.
    Unknown,
}

impl Project {
    pub(super) fn client(&self) -> &Client {
        self.plane.client()
    }

    pub(super) fn name(&self) -> &str {
        self.plane.id().as_str()
    }

    /// The instance waits for an answer: claims are watched from now on.
    pub(super) fn wait(self: &Arc<Self>, key: &Key) {
        let starts = {
            let mut state = self.state.lock();
            state.waiting.insert(key.clone());
            state.watch.is_none()
        };
        if starts {
            // Outside of the lock: whoever subscribes is called back at once.
            let watch = self.watch();
            self.state.lock().watch.get_or_insert(watch);
        }
    }

    /// The instance does not wait any more.
    pub(super) fn settled(&self, key: &Key) {
        let mut state = self.state.lock();
        state.waiting.remove(key);
        state.made.remove(key);
        if state.waiting.is_empty() {
            let watch = state.watch.take();
            drop(state);
            drop(watch);
        }
    }

    fn watch(self: &Arc<Self>) -> Watch {
        let claims: Cache<ResourceClaim> = self.plane.cache_of(self.selector.clone());
        let (queue, line) = (self.queue.clone(), self.line.clone());
        let changes = claims.subscribe(move |change| {
            queue.add_all(instance_of(change));
            // A denied one that goes gives nothing back that could help those who are denied.
            let granted = change.before.as_ref().is_some_and(|claim| is_granted(claim));
            if granted && change.after.is_none() && !change.unreadable {
                queue.add_all(line.lock().released(Instant::now()));
            }
        });
        let project: Weak<Self> = Arc::downgrade(self);
        let connects = claims.on_connect(move |_| {
            // The ledger answers again: nobody waits for a timer.
            let Some(project) = project.upgrade() else { return };
            let waiting: Vec<_> = project.state.lock().waiting.iter().cloned().collect();
            project.queue.add_all(waiting);
        });
        Watch { claims, _subscriptions: [changes, connects] }
    }

    /// What is known of an instance's claim without a request.
    pub(super) fn seen(&self, key: &Key, namespace: &str, name: &str, instance_uid: &str) -> Seen {
        let state = self.state.lock();
        let watch =
            state.watch.as_ref().filter(|watch| watch.claims.is_synced() && watch.claims.is_connected());
        if let Some(claim) = watch.and_then(|watch| watch.claims.get(namespace, name)) {
            return Seen::Claim(claim);
        }
        let made = state
            .made
            .get(key)
            .filter(|(claim, _)| meta::label(&claim.metadata, labels::INSTANCE_UID) == Some(instance_uid));
        match (made, watch) {
            (Some((claim, at)), _) if at.elapsed() < FRESH => Seen::Claim(claim.clone()),
            (_, Some(watch)) if watch.claims.is_unreadable(namespace, name) => Seen::Made,
            (_, Some(_)) => Seen::Absent,
            (Some(_), None) => Seen::Made,
            (None, None) => Seen::Unknown,
        }
    }

    /// Whether claims are watched, and the watch shows that there is none of this name.
    pub(super) fn has_lost(&self, namespace: &str, name: &str) -> bool {
        let state = self.state.lock();
        state.watch.as_ref().is_some_and(|Watch { claims, .. }| {
            claims.is_synced()
                && claims.is_connected()
                && claims.get(namespace, name).is_none()
                && !claims.is_unreadable(namespace, name)
        })
    }

    /// A claim has been made.
    pub(super) fn made(&self, key: &Key, claim: Arc<ResourceClaim>) {
        self.state.lock().made.insert(key.clone(), (claim, Instant::now()));
    }

    /// A claim of ours has been deleted.
    pub(super) fn unmade(&self, key: &Key) {
        self.state.lock().made.remove(key);
    }

    /// The denied in line.
    pub(super) fn line(&self) -> parking_lot::MutexGuard<'_, Line> {
        self.line.lock()
    }

    /// The instance got its answer, or cannot get one for a while: the next may claim.
    pub(super) fn answered(&self, key: &Key, pause: Duration) {
        let next = self.line().answered(key, Instant::now(), pause);
        self.queue.add_all(next);
    }

    /// The instance stands in line no more: the next may claim.
    pub(super) fn leave_line(&self, key: &Key) {
        let next = self.line().leave(key, Instant::now());
        self.queue.add_all(next);
    }

    /// A claim of the project was released: whoever is denied may claim again.
    pub(super) fn released(&self) {
        let next = self.line().released(Instant::now());
        self.queue.add_all(next);
    }
}

/// The instance that a claim is for.
fn instance_of(change: &Change<ResourceClaim>) -> Option<Key> {
    let claim = change.latest()?;
    let namespace = meta::label(&claim.metadata, labels::INSTANCE_NAMESPACE)?;
    Some(keys::key(namespace, names::instance_of_claim(&change.name.name)?))
}
