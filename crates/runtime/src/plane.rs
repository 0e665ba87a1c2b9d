//! A control plane as this process sees it: how to reach it, and the caches of what is in it.
//!
//! There is one watch per kind and selector, shared by all who ask, from the first handle to the last.

use std::any::TypeId;
use std::fmt;
use std::sync::{Arc, Weak};

use kube::Client;
use parking_lot::Mutex;

use crate::cache::{AnyCache, Cache, Feed, Object, Selector};
use crate::runtime::Runtime;

/// Tells planes apart: the name of a project, or that of a hub or cell. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaneId(Arc<str>);

impl PlaneId {
    /// The plane of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for PlaneId {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for PlaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A control plane. Cheap to clone.
#[derive(Clone)]
pub struct Plane(Arc<Inner>);

struct Inner {
    id: PlaneId,
    client: Client,
    runtime: Runtime,
    caches: Mutex<Caches>,
}

#[derive(Default)]
struct Caches {
    closed: bool,
    /// A plane has few kinds, and often two: a list is smaller than any map, and finds as fast.
    open: Vec<Open>,
}

struct Open {
    kind: TypeId,
    selector: Selector,
    cache: Weak<dyn AnyCache>,
}

impl Plane {
    /// A plane that is reached through this client.
    pub fn new(runtime: &Runtime, id: PlaneId, client: Client) -> Self {
        Self(Arc::new(Inner { id, client, runtime: runtime.clone(), caches: Mutex::default() }))
    }

    /// Which plane it is.
    pub fn id(&self) -> &PlaneId {
        &self.0.id
    }

    /// How to reach it.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// What it shares with the process's other planes.
    pub fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    /// The cache of all objects of a kind: one and the same for all who ask while somebody holds it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, as does everything that starts a task.
    pub fn cache<K: Object>(&self) -> Cache<K> {
        self.cache_of(Selector::default())
    }

    /// The cache of those objects of a kind that a selector matches.
    ///
    /// # Panics
    ///
    /// As [`cache`](Self::cache).
    pub fn cache_of<K: Object>(&self, selector: Selector) -> Cache<K> {
        let kind = TypeId::of::<K>();
        let mut caches = self.0.caches.lock();
        caches.open.retain(|open| open.cache.strong_count() > 0);
        let mut same = caches.open.iter().filter(|open| open.kind == kind && open.selector == selector);
        if let Some(cache) = same.find_map(|open| Cache::upgrade(&open.cache)) {
            return cache;
        }
        let feed = (!caches.closed).then(|| Feed::new(self.clone(), selector.clone()));
        let cache = Cache::start(self.0.id.clone(), feed);
        caches.open.reserve_exact(1);
        caches.open.push(Open { kind, selector, cache: cache.downgrade() });
        cache
    }

    /// Ends all watches for good: the plane is not served any more. Caches stay as they are.
    pub(crate) fn close(&self) {
        let caches: Vec<_> = {
            let mut caches = self.0.caches.lock();
            caches.closed = true;
            caches.open.iter().filter_map(|open| open.cache.upgrade()).collect()
        };
        for cache in caches {
            cache.close();
        }
    }
}

impl fmt::Debug for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plane({})", self.0.id)
    }
}
