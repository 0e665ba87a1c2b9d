//! What the ledger holds of one project: its claims, watched and counted, and the rest while there is a need.
//!
//! # Guarantees
//!
//! Claims are counted as they change, those that this ledger has answered included: what a pass costs does not grow with the claims that
//! there are. One that cannot be read any more counts as it did last.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use compute_api::k8s::{Namespace, PartialObjectMeta, ResourceExt as _};
use compute_api::quota::{AllowanceBucket, ResourceClaim, ResourceGrant};
use compute_core::ledger::Tally;
use compute_runtime::cache::{Object, ObjectName};
use compute_runtime::{Cache, OwnWrites, Plane, PlaneId, Queue, Subscription};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::key;

/// How long the watches of a project that has no claims go on: a project that is rolled or tried out does not open and close them all
/// the time, and one that is new has been given its grants by then.
pub(super) const LINGER: Duration = Duration::from_secs(30);

/// What the ledger holds of one project.
pub(super) struct Book {
    pub(super) plane: Plane,
    pub(super) claims: OwnWrites<ResourceClaim>,
    tally: Mutex<Tally>,
    /// Claims that are not counted as they are.
    uncounted: Uncounted,
    queue: Queue,
    accounts: Mutex<State>,
    _wakes: [Subscription; 2],
}

type Uncounted = Arc<Mutex<BTreeSet<ObjectName>>>;

enum State {
    /// It was never looked at.
    New,
    Open {
        accounts: Arc<Accounts>,
        /// Since when there is no claim.
        idle_since: Option<Instant>,
    },
    /// There was no claim for a while.
    Closed,
}

/// Grants, buckets and namespaces of a project.
pub(super) struct Accounts {
    pub(super) grants: OwnWrites<ResourceGrant>,
    pub(super) buckets: OwnWrites<AllowanceBucket>,
    pub(super) namespaces: Cache<PartialObjectMeta<Namespace>>,
    _wakes: Vec<Subscription>,
}

impl Book {
    pub(super) fn new(plane: &Plane, queue: &Queue) -> Self {
        let uncounted = Uncounted::default();
        // What we have written is forgotten before what is shown instead is counted.
        let claims = OwnWrites::new(plane.cache::<ResourceClaim>());
        let marks = uncounted.clone();
        let wakes = wakes(claims.cache(), plane.id(), queue, move |name| {
            marks.lock().insert(name.clone());
        });
        Self {
            plane: plane.clone(),
            claims,
            tally: Mutex::default(),
            uncounted,
            _wakes: wakes,
            queue: queue.clone(),
            accounts: Mutex::new(State::New),
        }
    }

    pub(super) fn id(&self) -> &PlaneId {
        self.plane.id()
    }

    /// A claim is about to be answered.
    pub(super) fn mark(&self, claim: ObjectName) {
        self.uncounted.lock().insert(claim);
    }

    /// Counts what has changed, and hands over what is counted. Whether something of it is not shown yet: that has to be looked at
    /// again, though nothing may tell.
    pub(super) fn count<T>(&self, read: impl FnOnce(&Tally) -> T) -> (T, bool) {
        let changed = std::mem::take(&mut *self.uncounted.lock());
        let mut tally = self.tally.lock();
        let mut not_shown = Vec::new();
        for name in changed {
            let known = self.claims.get(&name.namespace, &name.name);
            let shown = self.claims.cache().get(&name.namespace, &name.name);
            let version = |claim: &Option<Arc<ResourceClaim>>| {
                claim.as_ref().map(|claim| (claim.uid(), claim.resource_version()))
            };
            let is_shown = version(&known) == version(&shown);
            if known.is_some() || !self.claims.cache().is_unreadable(&name.namespace, &name.name) {
                tally.update(&name.namespace, &name.name, known.as_ref());
            }
            if !is_shown {
                not_shown.push(name);
            }
        }
        let is_behind = !not_shown.is_empty();
        self.uncounted.lock().extend(not_shown);
        (read(&tally), is_behind)
    }

    /// Whether anything depends on what is registered.
    pub(super) fn is_awake(&self) -> bool {
        !matches!(*self.accounts.lock(), State::Closed)
    }

    /// What is needed to answer claims, or to sum up for the first time; None if there is no need. How long to wait until there may
    /// be none, if nothing happens.
    pub(super) fn accounts(&self) -> Option<(Arc<Accounts>, Option<Duration>)> {
        let is_idle = self.claims.cache().is_empty();
        let mut state = self.accounts.lock();
        match &mut *state {
            State::Closed if is_idle => return None,
            State::Open { idle_since: Some(since), .. } if is_idle && since.elapsed() >= LINGER => {
                *state = State::Closed;
                return None;
            }
            State::Open { idle_since, .. } => match (is_idle, &idle_since) {
                (false, _) => *idle_since = None,
                (true, None) => *idle_since = Some(Instant::now()),
                (true, Some(_)) => {}
            },
            State::New | State::Closed => {
                let accounts = Arc::new(Accounts::new(&self.plane, &self.queue));
                *state = State::Open { accounts, idle_since: is_idle.then(Instant::now) };
            }
        }
        let State::Open { accounts, idle_since } = &*state else { return None };
        let rest = idle_since.map(|since| LINGER.saturating_sub(since.elapsed()));
        Some((accounts.clone(), rest))
    }
}

impl Accounts {
    fn new(plane: &Plane, queue: &Queue) -> Self {
        let (grants, buckets) = (plane.cache::<ResourceGrant>(), plane.cache::<AllowanceBucket>());
        let namespaces = plane.cache::<PartialObjectMeta<Namespace>>();
        let mut all = Vec::from(wakes(&grants, plane.id(), queue, |_| {}));
        all.extend(wakes(&buckets, plane.id(), queue, |_| {}));
        all.extend(wakes(&namespaces, plane.id(), queue, |_| {}));
        Self { grants: OwnWrites::new(grants), buckets: OwnWrites::new(buckets), namespaces, _wakes: all }
    }

    /// Whether all of it is known, and stays so. What is not wakes the project when it is.
    pub(super) fn is_connected(&self) -> bool {
        self.grants.cache().is_connected()
            && self.buckets.cache().is_connected()
            && self.namespaces.is_connected()
    }

    /// Uids of the project's namespaces.
    pub(super) fn namespaces(&self) -> Vec<String> {
        self.namespaces.list().iter().filter_map(|namespace| namespace.uid()).collect()
    }
}

/// Makes a project due when anything in a cache changes, after that was noted, and when it is first known.
fn wakes<K: Object>(
    cache: &Cache<K>,
    plane: &PlaneId,
    queue: &Queue,
    note: impl Fn(&ObjectName) + Send + Sync + 'static,
) -> [Subscription; 2] {
    let due = key(plane);
    let changes = queue.watch(cache, move |change| {
        note(&change.name);
        Some(due.clone())
    });
    let (due, queue) = (key(plane), queue.clone());
    [changes, cache.on_connect(move |_| queue.add(due.clone()))]
}
