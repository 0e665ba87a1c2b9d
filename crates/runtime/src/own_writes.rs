//! What this process has written and its cache has not shown yet.
//!
//! A cache follows the server a moment later, so a pass that begins right after a write would see the object as it was and write again,
//! or decide without what it has just decided. Reading through this gives the newer of what the cache holds and what a write answered.
//!
//! A write whose answer was lost may have happened. Where the next decision depends on that (what is given out, and to whom), the write
//! goes through [`OwnWrites::write`], and a pass begins with [`OwnWrites::make_sure`].
//!
//! # Guarantees
//!
//! - What it gives is never older than what the cache holds, nor than what was told to it, until the cache shows the object's end.
//! - It holds nothing that the cache has shown: a controller that has nothing to do costs nothing here.
//!
//! # Caveats
//!
//! - If an object is made and ends before the cache shows it and before the answer is told here, it is believed in for [`BELIEVED`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::cache::{Cache, Object, ObjectName, Subscription};
use crate::write::{self, Error, Writer};

/// For how long an answer counts that an open watch does not show. A watch is a moment behind, and never this long.
pub const BELIEVED: Duration = Duration::from_secs(60);

/// A cache, and what this process has written since.
pub struct OwnWrites<K: Object> {
    cache: Cache<K>,
    written: Arc<Mutex<Written<K>>>,
    /// Objects of which nobody knows whether they were written, and whether the write is still under way.
    doubts: Mutex<BTreeMap<ObjectName, bool>>,
    _subscription: Subscription,
}

type Written<K> = BTreeMap<ObjectName, (Arc<K>, Instant)>;

impl<K: Object> OwnWrites<K> {
    /// Reads this cache, and has written nothing yet.
    pub fn new(cache: Cache<K>) -> Self {
        let written = Arc::new(Mutex::new(Written::new()));
        let forget = written.clone();
        let subscription = cache.subscribe(move |change| {
            let mut written = forget.lock();
            let shown = |(mine, _): &(Arc<K>, Instant)| match &change.after {
                Some(after) => is_as_new(after.meta(), mine.meta()),
                None => true,
            };
            if written.get(&change.name).is_some_and(shown) {
                written.remove(&change.name);
            }
        });
        Self { cache, written, doubts: Mutex::default(), _subscription: subscription }
    }

    /// The cache itself.
    pub fn cache(&self) -> &Cache<K> {
        &self.cache
    }

    /// Takes over what a write answered.
    pub fn wrote(&self, object: K) -> Arc<K> {
        let (name, object) = (ObjectName::of(&object), Arc::new(object));
        let mut written = self.written.lock();
        let cached = self.cache.get(&name.namespace, &name.name);
        if !cached.is_some_and(|cached| is_as_new(cached.meta(), object.meta())) {
            written.insert(name, (object.clone(), Instant::now()));
        }
        object
    }

    /// Writes an object, and takes over the answer. If there is none, or the write is cut short, or an object is there that was not
    /// expected, the object is in doubt until [`make_sure`](Self::make_sure).
    ///
    /// # Errors
    /// Those of the write.
    pub async fn write(
        &self,
        name: ObjectName,
        write: impl Future<Output = write::Result<K>>,
    ) -> write::Result<Arc<K>> {
        self.doubts.lock().insert(name.clone(), true);
        let under_way = UnderWay { doubts: &self.doubts, name: &name };
        let result = write.await;
        drop(under_way);
        match result {
            Err(error @ (Error::Unavailable(_) | Error::Other(_) | Error::AlreadyExists(_))) => Err(error),
            result => {
                self.doubts.lock().remove(&name);
                result.map(|object| self.wrote(object))
            }
        }
    }

    /// Asks the server for everything that is in doubt, but for what is being written just now.
    ///
    /// # Errors
    /// If it does not answer. What it has answered is not in doubt any more.
    pub async fn make_sure(&self, writer: &Writer, client: &Client) -> write::Result<()>
    where
        K: write::Object + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    {
        let doubts: Vec<_> = {
            let doubts = self.doubts.lock();
            doubts.iter().filter(|(_, under_way)| !**under_way).map(|(name, _)| name.clone()).collect()
        };
        for name in doubts {
            let api: Api<K> = Api::namespaced(client.clone(), &name.namespace);
            if let Some(found) = writer.request(api.get_opt(&name.name)).await? {
                self.wrote(found);
            }
            let mut doubts = self.doubts.lock();
            if doubts.get(&name) == Some(&false) {
                doubts.remove(&name);
            }
        }
        Ok(())
    }

    /// One object, as it is known last.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let mut written = self.written.lock();
        if !written.is_empty() {
            let name = ObjectName { namespace: namespace.to_owned(), name: name.to_owned() };
            match written.get(&name) {
                Some((_, at)) if at.elapsed() >= BELIEVED && self.cache.is_connected() => {
                    written.remove(&name);
                }
                Some((mine, _)) => return Some(mine.clone()),
                None => {}
            }
        }
        // With the lock held: what the cache shows between the two would else be missed.
        self.cache.get(namespace, name)
    }

    /// All objects as they are known last, by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.merged(|_| true, Cache::list)
    }

    /// The objects of one namespace as they are known last, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.merged(|name| name.namespace == namespace, |cache| cache.in_namespace(namespace))
    }

    fn merged(
        &self,
        is_meant: impl Fn(&ObjectName) -> bool,
        cached: impl FnOnce(&Cache<K>) -> Vec<Arc<K>>,
    ) -> Vec<Arc<K>> {
        let mut written = self.written.lock();
        self.forget_old(&mut written);
        let cached = cached(&self.cache);
        if written.is_empty() {
            return cached;
        }
        let mut all: BTreeMap<_, _> =
            cached.into_iter().map(|object| (ObjectName::of(&*object), object)).collect();
        let mine = written.iter().filter(|(name, _)| is_meant(name));
        all.extend(mine.map(|(name, (object, _))| (name.clone(), object.clone())));
        all.into_values().collect()
    }

    fn forget_old(&self, written: &mut Written<K>) {
        if self.cache.is_connected() {
            written.retain(|_, (_, at)| at.elapsed() < BELIEVED);
        }
    }
}

/// A write that is under way until this is dropped, whatever becomes of it.
struct UnderWay<'a> {
    doubts: &'a Mutex<BTreeMap<ObjectName, bool>>,
    name: &'a ObjectName,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(under_way) = self.doubts.lock().get_mut(self.name) {
            *under_way = false;
        }
    }
}

impl<K: Object> fmt::Debug for OwnWrites<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnWrites({:?}, {} not shown)", self.cache, self.written.lock().len())
    }
}

/// Whether what the cache shows is what was written, or came after it. A version that is not a number tells nothing, and then the
/// cache is right.
fn is_as_new(shown: &ObjectMeta, written: &ObjectMeta) -> bool {
    let version = |meta: &ObjectMeta| meta.resource_version.as_deref()?.parse::<u64>().ok();
    match (version(shown), version(written)) {
        (Some(shown), Some(written)) => shown >= written,
        _ => true,
    }
}
