//! What a cache holds, and who is told of changes.
//!
//! There is one writer, the feed. It holds the subscribers' lock for the length of a change, so that subscribers hear of changes one by
//! one and in order, and the state's lock only to put the change in place, so that readers wait for no subscriber.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt as _};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::{Change, Index, ObjectName};

/// How far a cache is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// A whole list has been taken over.
    pub(crate) synced: bool,
    /// A watch is open.
    pub(crate) connected: bool,
    /// The plane is gone; nothing will change any more.
    pub(crate) closed: bool,
    /// How many times a watch was opened after nothing or after an interruption.
    pub(crate) epoch: u64,
}

pub(crate) struct Store<K> {
    state: RwLock<State<K>>,
    subscribers: Mutex<Subscribers<K>>,
    status: watch::Sender<Status>,
}

struct State<K> {
    objects: BTreeMap<String, BTreeMap<String, Arc<K>>>,
    count: usize,
    /// The version in which each was found to be unreadable.
    unreadable: BTreeMap<ObjectName, Option<String>>,
    indexes: Vec<Built<K>>,
}

struct Built<K> {
    index: Index<K>,
    values: BTreeMap<String, BTreeMap<ObjectName, Arc<K>>>,
}

type OnChange<K> = dyn Fn(&Change<K>) + Send + Sync;
type OnConnect = dyn Fn(u64) + Send + Sync;

struct Subscribers<K> {
    changes: Vec<Subscriber<OnChange<K>>>,
    connects: Vec<Subscriber<OnConnect>>,
}

struct Subscriber<F: ?Sized> {
    alive: Arc<AtomicBool>,
    call: Box<F>,
}

impl<F: ?Sized> Subscriber<F> {
    /// One that panics has lost this change and no other; nobody else is touched.
    fn tell(&self, call: impl FnOnce(&F)) {
        if self.alive.load(Ordering::Acquire) && catch_unwind(AssertUnwindSafe(|| call(&self.call))).is_err()
        {
            tracing::error!("a subscriber of a cache panicked");
        }
    }
}

impl<K: Resource<DynamicType = ()>> Store<K> {
    pub(crate) fn new() -> Self {
        Self {
            state: RwLock::new(State {
                objects: BTreeMap::new(),
                count: 0,
                unreadable: BTreeMap::new(),
                indexes: Vec::new(),
            }),
            subscribers: Mutex::new(Subscribers { changes: Vec::new(), connects: Vec::new() }),
            status: watch::Sender::new(Status::default()),
        }
    }

    // What readers ask.

    pub(crate) fn status(&self) -> &watch::Sender<Status> {
        &self.status
    }

    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.state.read().objects.get(namespace)?.get(name).cloned()
    }

    pub(crate) fn list(&self) -> Vec<Arc<K>> {
        let state = self.state.read();
        let mut all = Vec::with_capacity(state.count);
        all.extend(state.objects.values().flat_map(|namespace| namespace.values().cloned()));
        all
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.state
            .read()
            .objects
            .get(namespace)
            .map(|all| all.values().cloned().collect())
            .unwrap_or_default()
    }

    pub(crate) fn is_namespace_empty(&self, namespace: &str) -> bool {
        self.state.read().objects.get(namespace).is_none_or(BTreeMap::is_empty)
    }

    pub(crate) fn len(&self) -> usize {
        self.state.read().count
    }

    pub(crate) fn is_unreadable(&self, name: &ObjectName) -> bool {
        self.state.read().unreadable.contains_key(name)
    }

    pub(crate) fn has_unreadable(&self, namespace: &str) -> bool {
        let from = ObjectName { namespace: namespace.to_owned(), name: String::new() };
        let state = self.state.read();
        state.unreadable.range(from..).next().is_some_and(|(name, _)| name.namespace == namespace)
    }

    pub(crate) fn by_index(&self, index: &Index<K>, value: &str) -> Vec<Arc<K>> {
        if let Some(found) = self.state.read().by_index(index, value) {
            return found;
        }
        self.add_index(index);
        self.state.read().by_index(index, value).unwrap_or_default()
    }

    pub(crate) fn add_index(&self, index: &Index<K>) {
        let mut state = self.state.write();
        if state.indexes.iter().any(|built| built.index.name == index.name) {
            return;
        }
        let mut built = Built { index: *index, values: BTreeMap::new() };
        for object in state.objects.values().flat_map(BTreeMap::values) {
            built.add(&ObjectName::of(&**object), object);
        }
        state.indexes.push(built);
    }

    // Who is told.

    /// From now on, and of what is here already first.
    pub(crate) fn subscribe(&self, alive: Arc<AtomicBool>, call: Box<OnChange<K>>) {
        let mut subscribers = self.subscribers.lock();
        let (objects, unreadable) = {
            let state = self.state.read();
            let objects: Vec<_> = state.objects.values().flat_map(BTreeMap::values).cloned().collect();
            (objects, state.unreadable.keys().cloned().collect::<Vec<_>>())
        };
        let subscriber = Subscriber { alive, call };
        for object in objects {
            let change = Change {
                name: ObjectName::of(&*object),
                before: None,
                after: Some(object),
                unreadable: false,
            };
            subscriber.tell(|call| call(&change));
        }
        for name in unreadable {
            let change = Change { name, before: None, after: None, unreadable: true };
            subscriber.tell(|call| call(&change));
        }
        subscribers.changes.push(subscriber);
    }

    /// From now on, and at once if a watch is open.
    pub(crate) fn subscribe_to_connects(&self, alive: Arc<AtomicBool>, call: Box<OnConnect>) {
        let mut subscribers = self.subscribers.lock();
        let subscriber = Subscriber { alive, call };
        let status = *self.status.borrow();
        if status.connected {
            subscriber.tell(|call| call(status.epoch));
        }
        subscribers.connects.push(subscriber);
    }

    /// Forgets subscribers that have gone. Does nothing while they are being told, which may be what calls it; the
    /// next change forgets them.
    pub(crate) fn forget_gone_subscribers(&self) {
        if let Some(mut subscribers) = self.subscribers.try_lock() {
            subscribers.forget_gone();
        }
    }

    // What the writer does.

    /// Takes over a version of an object, if it is not the one that is held.
    pub(crate) fn put(&self, object: K) {
        self.take_over(object, |old, new| same_version(old.meta(), new.meta()));
    }

    /// Takes over an object, whatever its version.
    pub(crate) fn replace(&self, object: K) {
        self.take_over(object, |_, _| false);
    }

    fn take_over(&self, object: K, is_known: impl FnOnce(&K, &K) -> bool) {
        let name = ObjectName::of(&object);
        let mut subscribers = self.subscribers.lock();
        let mut before = self.get(&name.namespace, &name.name);
        if let Some(old) = &before {
            if is_known(old, &object) {
                return;
            }
            if old.meta().uid != object.meta().uid {
                // Its deletion was not seen. No change ever spans two objects.
                let gone = self.state.write().remove(&name);
                subscribers.tell(&Change {
                    name: name.clone(),
                    before: gone,
                    after: None,
                    unreadable: false,
                });
                before = None;
            }
        }
        let after = Arc::new(object);
        self.state.write().insert(&name, &after);
        subscribers.tell(&Change { name, before, after: Some(after), unreadable: false });
    }

    /// Takes over that an object is there but cannot be decoded in this version. Whether that is news.
    pub(crate) fn put_unreadable(&self, name: &ObjectName, version: Option<String>) -> bool {
        let mut subscribers = self.subscribers.lock();
        let (known, before) = {
            let mut state = self.state.write();
            let known = state.unreadable.remove(name);
            let before = state.remove(name);
            state.unreadable.insert(name.clone(), version.clone());
            (known, before)
        };
        let news = known != Some(version);
        if news {
            // It may be being deleted by now, which its metadata tells.
            subscribers.tell(&Change { name: name.clone(), before, after: None, unreadable: true });
        }
        news
    }

    /// Takes over that an object is gone.
    pub(crate) fn remove(&self, name: ObjectName) {
        let mut subscribers = self.subscribers.lock();
        let (before, known) = {
            let mut state = self.state.write();
            let known = state.unreadable.contains_key(&name);
            (state.remove(&name), known)
        };
        if before.is_some() || known {
            subscribers.tell(&Change { name, before, after: None, unreadable: false });
        }
    }

    /// Removes what a whole list did not show.
    pub(crate) fn retain(&self, listed: &BTreeSet<ObjectName>) {
        let gone: Vec<ObjectName> = {
            let state = self.state.read();
            let readable = state.objects.values().flat_map(BTreeMap::values).map(|o| ObjectName::of(&**o));
            readable.chain(state.unreadable.keys().cloned()).filter(|name| !listed.contains(name)).collect()
        };
        for name in gone {
            self.remove(name);
        }
    }

    /// A whole list has been taken over.
    pub(crate) fn set_synced(&self) {
        self.status.send_if_modified(|status| !std::mem::replace(&mut status.synced, true));
    }

    /// A watch has been opened after nothing or after an interruption.
    pub(crate) fn set_connected(&self) {
        let mut subscribers = self.subscribers.lock();
        let mut epoch = 0;
        self.status.send_modify(|status| {
            status.connected = true;
            status.epoch += 1;
            epoch = status.epoch;
        });
        subscribers.forget_gone();
        for subscriber in &subscribers.connects {
            subscriber.tell(|call| call(epoch));
        }
    }

    /// The watch has been interrupted.
    pub(crate) fn set_disconnected(&self) {
        self.status.send_if_modified(|status| std::mem::replace(&mut status.connected, false));
    }

    /// Nothing will change any more.
    pub(crate) fn set_closed(&self) {
        self.status.send_modify(|status| {
            status.connected = false;
            status.closed = true;
        });
    }
}

impl<K> State<K> {
    fn by_index(&self, index: &Index<K>, value: &str) -> Option<Vec<Arc<K>>> {
        let built = self.indexes.iter().find(|built| built.index.name == index.name)?;
        Some(built.values.get(value).map(|found| found.values().cloned().collect()).unwrap_or_default())
    }

    fn insert(&mut self, name: &ObjectName, object: &Arc<K>) {
        self.remove(name);
        if !self.objects.contains_key(&name.namespace) {
            self.objects.insert(name.namespace.clone(), BTreeMap::new());
        }
        if let Some(namespace) = self.objects.get_mut(&name.namespace) {
            namespace.insert(name.name.clone(), object.clone());
        }
        self.count += 1;
        for built in &mut self.indexes {
            built.add(name, object);
        }
    }

    fn remove(&mut self, name: &ObjectName) -> Option<Arc<K>> {
        self.unreadable.remove(name);
        let namespace = self.objects.get_mut(&name.namespace)?;
        let object = namespace.remove(&name.name)?;
        if namespace.is_empty() {
            self.objects.remove(&name.namespace);
        }
        self.count -= 1;
        for built in &mut self.indexes {
            built.remove(name, &object);
        }
        Some(object)
    }
}

impl<K> Built<K> {
    fn add(&mut self, name: &ObjectName, object: &Arc<K>) {
        for value in (self.index.values)(object) {
            self.values.entry(value).or_default().insert(name.clone(), object.clone());
        }
    }

    fn remove(&mut self, name: &ObjectName, object: &K) {
        for value in (self.index.values)(object) {
            if let Some(found) = self.values.get_mut(&value) {
                found.remove(name);
                if found.is_empty() {
                    self.values.remove(&value);
                }
            }
        }
    }
}

impl<K> Subscribers<K> {
    fn tell(&mut self, change: &Change<K>) {
        self.forget_gone();
        for subscriber in &self.changes {
            subscriber.tell(|call| call(change));
        }
    }

    fn forget_gone(&mut self) {
        self.changes.retain(|subscriber| subscriber.alive.load(Ordering::Acquire));
        self.connects.retain(|subscriber| subscriber.alive.load(Ordering::Acquire));
    }
}

fn same_version(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.resource_version.is_some() && one.resource_version == other.resource_version && one.uid == other.uid
}

impl ObjectName {
    /// The name of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}
