//! What the ledger holds of one project: the watch of its claims, and of the rest while there is a need.

use std::sync::Arc;
use std::time::Duration;

use compute_api::k8s::{Namespace, PartialObjectMeta, ResourceExt as _};
use compute_api::quota::{AllowanceBucket, ResourceClaim, ResourceGrant};
use compute_runtime::cache::Object;
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
    queue: Queue,
    accounts: Mutex<State>,
    _wakes: [Subscription; 2],
}

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
        let claims = plane.cache::<ResourceClaim>();
        Self {
            plane: plane.clone(),
            _wakes: wakes(&claims, plane.id(), queue),
            claims: OwnWrites::new(claims),
            queue: queue.clone(),
            accounts: Mutex::new(State::New),
        }
    }

    pub(super) fn id(&self) -> &PlaneId {
        self.plane.id()
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
        let mut all = Vec::from(wakes(&grants, plane.id(), queue));
        all.extend(wakes(&buckets, plane.id(), queue));
        all.extend(wakes(&namespaces, plane.id(), queue));
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

/// Makes a project due when anything in a cache changes, and when it is first known.
fn wakes<K: Object>(cache: &Cache<K>, plane: &PlaneId, queue: &Queue) -> [Subscription; 2] {
    let due = key(plane);
    let changes = queue.watch(cache, move |_| Some(due.clone()));
    let (due, queue) = (key(plane), queue.clone());
    [changes, cache.on_connect(move |_| queue.add(due.clone()))]
}
