//! One project whose instances claim: its client, its claims while somebody waits or looks, and the denied in line.
//!
//! # Guarantees
//!
//! - While a project's claims are watched, a granted claim that disappears is noticed, whoever it is for; and when the watch is opened, one
//!   that has disappeared before. The instance asks until it is granted again.
//! - A ledger that did not answer in time is asked by one at a time, now and then, until it answers or its watch is open again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use compute_api::quota::ResourceClaim;
use compute_api::{labels, names};
use compute_core::meta;
use compute_core::quota::claim::{is_answered, is_granted};
use compute_runtime::cache::{Change, Selector};
use compute_runtime::{Cache, Key, Plane, Queue, Subscription};
use kube::Client;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::keys;
use super::line::Line;

/// How long a claim that we have made is believed to be as it was made: a watch shows what became of it sooner.
const FRESH: Duration = Duration::from_secs(1);

/// How long nobody asks a ledger that did not answer in time.
const RESPITE: Duration = Duration::from_secs(15);

/// Instances whose granted claim has disappeared, until another is granted.
pub(super) type Lost = Arc<Mutex<BTreeSet<Key>>>;

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

struct State {
    /// All instances that have joined, and the project's namespace that each one's claim is in.
    members: BTreeMap<Key, String>,
    /// Instances that wait for an answer.
    waiting: BTreeSet<Key>,
    /// Claims that we have made for them, or asked for, and when.
    made: BTreeMap<Key, (Arc<ResourceClaim>, Instant)>,
    /// There while somebody waits, or looks.
    watch: Option<Watch>,
    /// The instance that looks whether the claims of those that ask for nothing are there.
    auditor: Option<Key>,
    /// When all claims were seen last.
    seen: Instant,
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
    fn is_open(&self) -> bool {
        self.claims.is_synced() && self.claims.is_connected()
    }

    /// Whether it shows that an instance has no claim.
    fn shows_none(&self, key: &Key, namespace: &str) -> bool {
        let (claims, name) = (&self.claims, names::claim_name(&key.name));
        claims.is_connected()
            && claims.get(namespace, &name).is_none()
            && !claims.is_unreadable(namespace, &name)
    }
}

impl Project {
    pub(super) fn new(plane: Plane, selector: Selector, queue: &Queue, lost: &Lost) -> Self {
        let state = State {
            members: BTreeMap::new(),
            waiting: BTreeSet::new(),
            made: BTreeMap::new(),
            watch: None,
            auditor: None,
            seen: Instant::now(),
        };
        Self {
            plane,
            selector,
            queue: queue.clone(),
            line: Arc::default(),
            state: Mutex::new(state),
            lost: lost.clone(),
            respite: Mutex::default(),
        }
    }

    pub(super) fn client(&self) -> &Client {
        self.plane.client()
    }

    pub(super) fn name(&self) -> &str {
        self.plane.id().as_str()
    }

    /// The instance waits for an answer: claims are watched from now on.
    pub(super) fn wait(self: &Arc<Self>, key: &Key) {
        self.state.lock().waiting.insert(key.clone());
        self.open();
    }

    /// Looks whether the claims of those that ask for nothing are there: claims are watched until they have been seen. Those that are not
    /// there are asked for again.
    pub(super) fn audit(self: &Arc<Self>, key: &Key) {
        self.state.lock().auditor.get_or_insert_with(|| key.clone());
        self.open();
    }

    /// For how long nobody has looked.
    pub(super) fn unseen_for(&self) -> Duration {
        let state = self.state.lock();
        match &state.watch {
            Some(watch) if watch.is_open() => Duration::ZERO,
            _ => state.seen.elapsed(),
        }
    }

    fn open(self: &Arc<Self>) {
        if self.state.lock().watch.is_some() {
            return;
        }
        // Outside of the lock: whoever subscribes is called back at once.
        let watch = self.watch();
        let is_open = self.state.lock().watch.get_or_insert(watch).claims.is_connected();
        if is_open {
            self.connected();
        }
    }

    pub(super) fn add_members(&self, new: &BTreeSet<Key>, namespace: &str) {
        let mut state = self.state.lock();
        state.members.extend(new.iter().map(|key| (key.clone(), namespace.to_owned())));
        self.look_for_claims(&state, new);
    }

    /// Takes an instance out; whether it was the last.
    pub(super) fn remove_member(&self, key: &Key) -> bool {
        let mut state = self.state.lock();
        state.members.remove(key);
        state.members.is_empty()
    }

    /// Claims are watched again: nobody waits for a timer.
    fn connected(&self) {
        self.answers(true);
        let mut state = self.state.lock();
        state.seen = Instant::now();
        self.queue.add_all(state.waiting.iter().chain(&state.auditor).cloned());
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

    /// The instance has its grant behind it, and does not wait.
    pub(super) fn settled(&self, key: &Key) {
        self.rest(key, |state| state.watch.as_ref().is_some_and(Watch::is_open));
    }

    /// Nothing is asked for the instance any more, nor does it look for others.
    pub(super) fn forget(&self, key: &Key) {
        self.rest(key, |_| true);
    }

    /// The instance does not wait, and has looked if `looked` says so. Claims are not watched for nobody.
    fn rest(&self, key: &Key, looked: impl FnOnce(&State) -> bool) {
        let mut state = self.state.lock();
        state.waiting.remove(key);
        state.made.remove(key);
        if state.auditor.as_ref() == Some(key) && looked(&state) {
            state.auditor = None;
        }
        if state.waiting.is_empty() && state.auditor.is_none() {
            if state.watch.as_ref().is_some_and(Watch::is_open) {
                state.seen = Instant::now();
            }
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

    /// What is known of an instance's claim without a request. If it is not answered for longer than `patience`, it has to be asked
    /// for: the watch may have lost the answer.
    pub(super) fn seen(
        &self,
        key: &Key,
        (namespace, name): (&str, &str),
        instance_uid: &str,
        patience: Option<Duration>,
    ) -> Seen {
        let state = self.state.lock();
        let watch = state.watch.as_ref().filter(|watch| watch.is_open());
        let made = state
            .made
            .get(key)
            .filter(|(claim, _)| meta::label(&claim.metadata, labels::INSTANCE_UID) == Some(instance_uid));
        if let Some(claim) = watch.and_then(|watch| watch.claims.get(namespace, name)) {
            let is_old = |patience| made.is_none_or(|(_, at)| at.elapsed() >= patience);
            let is_doubtful = !is_answered(&claim) && patience.is_some_and(is_old);
            return if is_doubtful { Seen::Made } else { Seen::Claim(claim) };
        }
        match (made, watch) {
            (Some((claim, at)), _) if at.elapsed() < FRESH => Seen::Claim(claim.clone()),
            (_, Some(watch)) if watch.claims.is_unreadable(namespace, name) => Seen::Made,
            (_, Some(_)) => Seen::Absent,
            (Some(_), None) => Seen::Made,
            (None, None) => Seen::Unknown,
        }
    }

    /// A claim has been made, or seen by a request of its own.
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
