//! What is known of each project whose instances claim: its client, its claims while somebody waits, and the denied in line.
//!
//! A project is known from the first of its instances that needs it to the last.
//!
//! # Guarantees
//!
//! - While a project's claims are watched, a granted claim that disappears is noticed, whoever it is for; and when the watch is opened, one
//!   that has disappeared before, if the project of its instance is known by then. The instance asks until it is granted again.
//! - A ledger that did not answer in time is asked by one at a time, now and then, until it answers or its watch is open again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use compute_api::quota::ResourceClaim;
use compute_api::{labels, names};
use compute_core::federation::Upstream;
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

/// How long nobody asks a ledger that did not answer in time.
const RESPITE: Duration = Duration::from_secs(15);

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
    strangers: BTreeMap<Arc<str>, BTreeSet<Key>>,
}

/// Instances whose granted claim has disappeared, until another is granted.
type Lost = Arc<Mutex<BTreeSet<Key>>>;

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
            let project = Project {
                plane,
                selector: self.selector.clone(),
                queue: self.queue.clone(),
                line: Arc::default(),
                state: Mutex::default(),
                lost: self.lost.clone(),
                respite: Mutex::default(),
            };
            known.projects.insert(name.to_owned(), Arc::new(project));
        }
        let mut new = known.strangers.remove(&key.namespace).unwrap_or_default();
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
                known.strangers.entry(key.namespace.clone()).or_default().insert(key.clone());
            }
            project
        };
        if let Some(project) = project {
            project.settled(key);
        }
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
            project.settled(key);
            project.leave_line(key);
        }
    }

    /// The instance is gone.
    pub(super) fn leave(&self, key: &Key) {
        let left = {
            let mut known = self.known.lock();
            self.lost.lock().remove(key);
            if let Some(strangers) = known.strangers.get_mut(&key.namespace) {
                strangers.remove(key);
                if strangers.is_empty() {
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
    lost: Lost,
    /// Until when nobody asks the ledger, because it did not answer in time.
    respite: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct State {
    /// All instances that have joined, and the project's namespace that each one's claim is in.
    members: BTreeMap<Key, String>,
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

impl Watch {
    /// Whether it shows that an instance has no claim.
    fn shows_none(&self, key: &Key, namespace: &str) -> bool {
        let (claims, name) = (&self.claims, names::claim_name(&key.name));
        claims.is_connected()
            && claims.get(namespace, &name).is_none()
            && !claims.is_unreadable(namespace, &name)
    }
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
            let is_open = self.state.lock().watch.get_or_insert(watch).claims.is_connected();
            if is_open {
                self.connected();
            }
        }
    }

    fn add_members(&self, new: &BTreeSet<Key>, namespace: &str) {
        let mut state = self.state.lock();
        state.members.extend(new.iter().map(|key| (key.clone(), namespace.to_owned())));
        self.look_for_claims(&state, new);
    }

    /// Takes an instance out; whether it was the last.
    fn remove_member(&self, key: &Key) -> bool {
        let mut state = self.state.lock();
        state.members.remove(key);
        state.members.is_empty()
    }

    /// Claims are watched again: nobody waits for a timer.
    fn connected(&self) {
        self.answers(true);
        let state = self.state.lock();
        self.queue.add_all(state.waiting.iter().cloned());
        self.look_for_claims(&state, state.members.keys());
    }

    /// Those that ask for nothing and whose claim is not there have lost it.
    fn look_for_claims<'a>(&self, state: &State, of: impl IntoIterator<Item = &'a Key>) {
        let Some(watch) = &state.watch else { return };
        for key in of {
            let namespace = state.members.get(key).filter(|_| !state.waiting.contains(key));
            if namespace.is_some_and(|namespace| watch.shows_none(key, namespace)) {
                self.lost.lock().insert(key.clone());
                self.queue.add(key.clone());
            }
        }
    }

    /// Whether the ledger may be asked now. One that does not answer is asked by one at a time.
    pub(super) fn may_be_asked(&self) -> bool {
        let (mut respite, now) = (self.respite.lock(), Instant::now());
        match *respite {
            Some(until) if now < until => false,
            Some(_) => {
                *respite = Some(now + RESPITE);
                true
            }
            None => true,
        }
    }

    /// Whether the ledger has answered in time.
    pub(super) fn answers(&self, in_time: bool) {
        *self.respite.lock() = (!in_time).then(|| Instant::now() + RESPITE);
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
        let (queue, line, lost) = (self.queue.clone(), self.line.clone(), self.lost.clone());
        let changes = claims.subscribe(move |change| {
            let instance = instance_of(change);
            // A denied one that goes gives nothing back that could help those who are denied.
            let granted = change.before.as_ref().is_some_and(|claim| is_granted(claim));
            if granted && change.after.is_none() && !change.unreadable {
                lost.lock().extend(instance.clone());
                queue.add_all(line.lock().released(Instant::now()));
            }
            queue.add_all(instance);
        });
        let project: Weak<Self> = Arc::downgrade(self);
        let connects = claims.on_connect(move |_| {
            if let Some(project) = project.upgrade() {
                project.connected();
            }
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
