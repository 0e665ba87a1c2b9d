//! An ordered copy of the objects of one kind in one plane, kept up to date by one watch that all who ask share.
//!
//! # Guarantees
//!
//! - Objects are decoded one by one. One that cannot be decoded is reported once for each version, is not in the cache, and is told from
//!   one that is absent by [`Cache::is_unreadable`]; the others are served.
//! - Subscribers hear of every change that the server showed, one by one and in order, initial objects and deletions found by a later
//!   list included. No change spans two objects of the same name.
//! - A watch that breaks, expires or hangs is resumed or replaced, with backoff and jitter, until the last handle is dropped.
//!
//! # Caveats
//!
//! - Objects come without `managedFields`: nobody here reads them, and they are often the larger half.
//! - A subscriber is called while the cache waits: it must be quick (put keys into a queue), and it must not hold a handle
//!   of the cache that it subscribes to, which would keep both alive for ever, nor subscribe to it.

mod decode;
mod feed;
mod fetch;
mod store;

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use kube::Resource;
use serde::de::DeserializeOwned;
use tokio::task::AbortHandle;

use crate::plane::PlaneId;
use store::{Status, Store};

pub(crate) use feed::Feed;

/// What a cache can hold: a kind that is known at compile time, or [`PartialObjectMeta`](kube::core::PartialObjectMeta) of one, which
/// fetches metadata only.
pub trait Object: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static {}

impl<K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static> Object for K {}

/// Which objects of a kind a cache holds. All, by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// A label selector, in the form of a query.
    pub labels: Option<String>,
    /// A field selector, in the form of a query.
    pub fields: Option<String>,
}

impl Selector {
    /// The objects with these labels.
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { labels: Some(selector.into()), fields: None }
    }
}

/// Tells objects of one kind in one plane apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace; empty if the kind has none.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What happened to one object.
#[derive(Debug)]
pub struct Change<K> {
    /// Which object.
    pub name: ObjectName,
    /// What the cache held; `None` if it was not there or not readable.
    pub before: Option<Arc<K>>,
    /// What the cache holds now; `None` if it is not there or not readable.
    pub after: Option<Arc<K>>,
    /// Whether it is there but not readable.
    pub unreadable: bool,
}

impl<K> Change<K> {
    /// The object as it is, or else as it was.
    pub fn latest(&self) -> Option<&Arc<K>> {
        self.after.as_ref().or(self.before.as_ref())
    }

    /// Both versions that there are.
    pub fn versions(&self) -> impl Iterator<Item = &Arc<K>> {
        self.before.iter().chain(&self.after)
    }
}

/// A way to find objects other than by name. Two indexes of one kind with one name are the same index.
///
/// ```
/// use compute_runtime::Index;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// static BY_OWNER: Index<ConfigMap> = Index::new("owner", |object| {
///     object.metadata.owner_references.iter().flatten().map(|owner| owner.uid.clone()).collect()
/// });
/// ```
pub struct Index<K> {
    name: &'static str,
    values: fn(&K) -> Vec<String>,
}

impl<K> Index<K> {
    /// An index by the values that `values` gives for an object.
    pub const fn new(name: &'static str, values: fn(&K) -> Vec<String>) -> Self {
        Self { name, values }
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Index<K> {}

/// A handle of a cache. The watch goes on until the last handle, and the last [`Subscription`], is dropped. Cheap to clone.
pub struct Cache<K: Object>(Arc<Shared<K>>);

pub(crate) struct Shared<K: Object> {
    plane: PlaneId,
    store: Arc<Store<K>>,
    feed: AbortHandle,
}

impl<K: Object> Drop for Shared<K> {
    fn drop(&mut self) {
        self.feed.abort();
    }
}

/// What can be said of a cache without knowing its kind.
pub(crate) trait AnyCache: Send + Sync {
    /// Ends the watch for good.
    fn close(&self);
    /// Forgets subscribers that have gone.
    fn forget_gone_subscribers(&self);
    /// Itself, to find out its kind.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Object> AnyCache for Shared<K> {
    fn close(&self) {
        self.feed.abort();
        self.store.set_closed();
    }

    fn forget_gone_subscribers(&self) {
        self.store.forget_gone_subscribers();
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl<K: Object> Cache<K> {
    /// Starts to fill a cache. Needs a tokio runtime.
    pub(crate) fn start(plane: PlaneId, feed: Option<Feed<K>>) -> Self {
        let store = Arc::new(Store::new());
        let task = match feed {
            Some(feed) => tokio::spawn(feed.run(store.clone())),
            None => {
                store.set_closed();
                tokio::spawn(std::future::ready(()))
            }
        };
        Self(Arc::new(Shared { plane, store, feed: task.abort_handle() }))
    }

    /// What the plane remembers of it, which does not keep it going.
    pub(crate) fn downgrade(&self) -> Weak<dyn AnyCache> {
        let weak: Weak<Shared<K>> = Arc::downgrade(&self.0);
        weak
    }

    /// Another handle of a cache that the plane remembers, if it is still going and of this kind.
    pub(crate) fn upgrade(remembered: &Weak<dyn AnyCache>) -> Option<Self> {
        remembered.upgrade()?.into_any().downcast().ok().map(Self)
    }

    fn status(&self) -> Status {
        *self.0.store.status().borrow()
    }

    /// The plane whose objects it holds.
    pub fn plane(&self) -> &PlaneId {
        &self.0.plane
    }

    /// One object. The namespace is empty for kinds that have none.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.0.store.get(namespace, name)
    }

    /// All objects, by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.0.store.list()
    }

    /// The objects of one namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.0.store.in_namespace(namespace)
    }

    /// Whether a namespace holds none that could be decoded; [`has_unreadable`](Self::has_unreadable) tells of the others.
    pub fn is_namespace_empty(&self, namespace: &str) -> bool {
        self.0.store.is_namespace_empty(namespace)
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.0.store.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Builds an index ahead of its first use.
    pub fn index(&self, index: &Index<K>) {
        self.0.store.add_index(index);
    }

    /// The objects with this value in an index, by namespace and name. Builds the index if this is its first use.
    pub fn by_index(&self, index: &Index<K>, value: &str) -> Vec<Arc<K>> {
        self.0.store.by_index(index, value)
    }

    /// Whether the object is there but could not be decoded.
    pub fn is_unreadable(&self, namespace: &str, name: &str) -> bool {
        self.0.store.is_unreadable(&ObjectName { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Whether a namespace has objects that could not be decoded: what is counted there may be too little.
    pub fn has_unreadable(&self, namespace: &str) -> bool {
        self.0.store.has_unreadable(namespace)
    }

    /// Whether a whole list has been taken over: before that, absence means nothing.
    pub fn is_synced(&self) -> bool {
        self.status().synced
    }

    /// Waits until a whole list has been taken over.
    ///
    /// # Errors
    ///
    /// If the plane is gone before that.
    pub async fn synced(&self) -> Result<(), Closed> {
        let mut status = self.0.store.status().subscribe();
        // The store outlives the wait, so the channel does not close.
        let found = status.wait_for(|status| status.synced || status.closed).await.map_err(|_| Closed)?;
        if found.synced { Ok(()) } else { Err(Closed) }
    }

    /// Whether a watch is open. A watch that ends when its time is up and is opened again at once is not interrupted.
    pub fn is_connected(&self) -> bool {
        self.status().connected
    }

    /// How many times a watch was opened after nothing or after an interruption.
    pub fn epoch(&self) -> u64 {
        self.status().epoch
    }

    /// Calls back for every change, beginning with what is here already, until the subscription is dropped.
    pub fn subscribe(&self, call: impl Fn(&Change<K>) + Send + Sync + 'static) -> Subscription {
        let subscription = Subscription::new(self.0.clone());
        self.0.store.subscribe(subscription.alive.clone(), Box::new(call));
        subscription
    }

    /// Calls back with the [`epoch`](Self::epoch) each time a watch is opened after nothing or after an interruption, and at once if
    /// one is open. The cache is synced then.
    pub fn on_connect(&self, call: impl Fn(u64) + Send + Sync + 'static) -> Subscription {
        let subscription = Subscription::new(self.0.clone());
        self.0.store.subscribe_to_connects(subscription.alive.clone(), Box::new(call));
        subscription
    }
}

impl<K: Object> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Object> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache<{}>({}, {} objects, {:?})", K::kind(&()), self.plane(), self.len(), self.status())
    }
}

/// The plane is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the plane is gone")]
pub struct Closed;

/// Calls back until it is dropped, and keeps the watch going as a handle does.
#[must_use = "nobody is called back once the subscription is dropped"]
pub struct Subscription {
    alive: Arc<AtomicBool>,
    cache: Arc<dyn AnyCache>,
}

impl Subscription {
    fn new(cache: Arc<dyn AnyCache>) -> Self {
        Self { alive: Arc::new(AtomicBool::new(true)), cache }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.alive.store(false, Ordering::Release);
        self.cache.forget_gone_subscribers();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}
