//! Background work that the API promises: owner-reference garbage collection, namespace deletion, CRD deletion, the
//! rules of aggregated roles.
//!
//! Every commit says what may have become due ([`Queue::notice`]); one task works that off. There is no
//! scan and no timer: a plane in which nothing happens costs nothing. Work is decided from what the store holds when
//! it is done, so doing it twice, late or in another order is harmless. What fails is tried again, ever more rarely.
//!
//! # Hooks
//! The objects that go because their owner or their namespace goes are deletes like any other, and hooks are asked: one that
//! refuses, or cannot answer, keeps the object, and is asked again. Planes in which hooks are asked are worked on apart, so
//! that one that hangs holds up its own plane alone. What only keeps the books is done without asking, so that no
//! hook can stop it: finalizers and owner references that this module serves, events past their time, and what a
//! CRD takes with it.

mod contents;
pub(crate) mod expiry;
mod garbage;
mod retry;
mod roles;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::auth::Identity;
use crate::error::{ApiError, Result};
use crate::meta::{FOREGROUND, ORPHAN};
use crate::planes::{Plane, PlaneName};
use crate::server::Shared;
use crate::store::{Change, Event, GroupResource, Object, ObjectKey, Owner};
use crate::verbs::{self, DeleteOptions, Target, namespaces};

/// Finalizer of a CRD whose objects go first.
pub(crate) const CRD_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How many objects are worked on at once: enough to share durable commits, few enough to leave room for clients.
const BATCH: usize = 64;
/// How many of one plane are worked on at once if hooks are asked there.
const ASKING: usize = 8;

/// An object to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    plane: PlaneName,
    resource: GroupResource,
    key: ObjectKey,
    /// An owner that is known to be gone. Uids are never used again, so this stays true; it is
    /// needed when the owner's kind went with it.
    gone_owner: Option<Box<str>>,
    /// The object is past its time if it is still at this revision.
    expired_at: Option<u64>,
}

impl Item {
    /// Stands for all aggregated roles of a plane: it names no object.
    fn aggregation(plane: &PlaneName) -> Self {
        let key = ObjectKey::new("", "");
        Self { plane: plane.clone(), resource: roles::table(), key, gone_owner: None, expired_at: None }
    }
}

/// What is due, by plane.
#[derive(Debug, Default)]
struct Due {
    items: Mutex<BTreeMap<PlaneName, BTreeSet<Item>>>,
    /// Planes that are worked on apart.
    busy: Mutex<BTreeSet<PlaneName>>,
    failures: retry::Failures,
    woken: Notify,
}

/// What is to be done next.
#[derive(Debug, Default)]
struct Turn {
    /// Items of planes where nobody is asked.
    batch: Vec<Item>,
    /// Everything that is due in planes where somebody is.
    apart: Vec<(PlaneName, BTreeSet<Item>)>,
}

impl Due {
    /// Takes at most `most` items, one of each plane in turn: a busy plane never holds up another. Of planes where
    /// hooks are asked it takes everything, unless they are being worked on.
    fn take(&self, most: usize, asks: impl Fn(&PlaneName) -> bool) -> Turn {
        let mut planes = self.items.lock();
        let mut busy = self.busy.lock();
        let mut turn = Turn::default();
        while turn.batch.len() < most {
            let room = most - turn.batch.len();
            let next: Vec<PlaneName> =
                planes.keys().filter(|plane| !busy.contains(plane)).take(room).cloned().collect();
            if next.is_empty() {
                break;
            }
            for plane in next {
                if asks(&plane) {
                    busy.insert(plane.clone());
                    turn.apart.extend(planes.remove_entry(&plane));
                } else if let Some(items) = planes.get_mut(&plane) {
                    turn.batch.extend(items.pop_first());
                    if items.is_empty() {
                        planes.remove(&plane);
                    }
                }
            }
        }
        turn
    }
}

/// Marks a plane as worked on apart until it is dropped.
struct Busy(Queue, PlaneName);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.busy.lock().remove(&self.1);
        self.0.0.woken.notify_one();
    }
}

/// The way in.
#[derive(Clone, Debug)]
pub(crate) struct Queue(Arc<Due>);

impl Queue {
    fn add(&self, item: Item) {
        self.0.items.lock().entry(item.plane.clone()).or_default().insert(item);
        self.0.woken.notify_one();
    }

    /// Lets the task see that the server is gone.
    pub(crate) fn close(&self) {
        self.0.woken.notify_one();
    }

    /// Works out what a change may have made due.
    pub(crate) fn notice(&self, plane: &Plane, resource: &GroupResource, event: &Event, now: Timestamp) {
        let object = &event.object;
        let item = |resource: &GroupResource, key: ObjectKey, gone_owner: Option<&str>| Item {
            plane: plane.name().clone(),
            resource: resource.clone(),
            key,
            gone_owner: gone_owner.map(Into::into),
            expired_at: None,
        };
        for (key, revision) in plane.expiry.exchange(now, resource, event) {
            self.add(Item { expired_at: Some(revision), ..item(resource, key, None) });
        }
        if *resource == roles::table() {
            self.add(Item::aggregation(plane.name()));
        }
        let registry = plane.registry();
        let owners_before = event.before.as_ref().map_or(&[][..], |before| &before.meta.owners);
        let owners_after = if event.change == Change::Deleted { &[][..] } else { &object.meta.owners };
        // An owner that no longer has to wait for this object may go.
        let blocks = |owner: &Owner| owners_after.iter().any(|kept| kept.uid == owner.uid && kept.blocks);
        for owner in owners_before.iter().filter(|owner| owner.blocks && !blocks(owner)) {
            if let Some(found) = registry.find_kind(&owner.api_version, &owner.kind) {
                let namespace = if found.def.namespaced { &*object.meta.key.namespace } else { "" };
                self.add(item(&found.table, ObjectKey::new(namespace, &owner.name), None));
            }
        }
        if event.change != Change::Deleted {
            let same_owners = event.before.is_some() && *owners_before == *object.meta.owners;
            let finalizers_of_ours =
                object.meta.finalizers.iter().any(|f| matches!(&**f, FOREGROUND | ORPHAN | CRD_FINALIZER));
            let is_namespace = *resource == namespaces();
            if (!object.meta.owners.is_empty() && !same_owners)
                || (object.meta.deleting && (finalizers_of_ours || is_namespace))
            {
                self.add(item(resource, object.meta.key.clone(), None));
            }
            return;
        }
        for (dependent, key) in plane.store.dependents(&object.meta.uid) {
            self.add(item(&dependent, key, Some(&object.meta.uid)));
        }
        let namespace = &object.meta.key.namespace;
        if !namespace.is_empty() {
            let key = ObjectKey::new("", namespace);
            if plane.store.get(&namespaces(), &key).is_some_and(|found| found.meta.deleting) {
                self.add(item(&namespaces(), key, None));
            }
        }
        if registry.is_terminating(resource) {
            let crds = GroupResource::new(crate::registry::APIEXTENSIONS, "customresourcedefinitions");
            let name = format!("{}.{}", resource.resource, resource.group);
            self.add(item(&crds, ObjectKey::new("", &name), None));
        }
    }
}

/// Starts the task; it ends when the server is dropped.
pub(crate) fn start(shared: Weak<Shared>) -> Queue {
    let queue = Queue(Arc::default());
    let started = queue.clone();
    tokio::spawn(async move {
        // Each item is a task of its own: a fault in one must not end the work for all planes.
        let mut tasks = JoinSet::new();
        // The server is not there before the first notice, and nothing is due before it.
        queue.0.woken.notified().await;
        // Only work holds the server, so that the last clone can go.
        while let Some(shared) = shared.upgrade() {
            begin(&shared, &queue, &mut tasks);
            drop(shared);
            tokio::select! {
                biased;
                Some(done) = tasks.join_next() => ended(done),
                () = queue.0.woken.notified() => {}
            }
        }
    });
    started
}

/// Begins with what is due, as far as there is room.
fn begin(shared: &Arc<Shared>, queue: &Queue, tasks: &mut JoinSet<()>) {
    let asks = |plane: &PlaneName| {
        let plane = shared.planes.find(plane);
        plane.is_some_and(|plane| !plane.chain(&shared.hooks).is_empty())
    };
    let Turn { batch, apart } = queue.0.take(BATCH - tasks.len().min(BATCH), asks);
    for item in batch {
        tasks.spawn(work(shared.clone(), item));
    }
    for (plane, items) in apart {
        tokio::spawn(work_apart(shared.clone(), Busy(queue.clone(), plane), items));
    }
}

/// Works on items of a plane in which hooks are asked.
async fn work_apart(shared: Arc<Shared>, busy: Busy, items: BTreeSet<Item>) {
    let mut tasks = JoinSet::new();
    for item in items {
        if tasks.len() == ASKING
            && let Some(done) = tasks.join_next().await
        {
            ended(done);
        }
        tasks.spawn(work(shared.clone(), item));
    }
    while let Some(done) = tasks.join_next().await {
        ended(done);
    }
    drop(busy);
}

fn ended(done: Result<(), tokio::task::JoinError>) {
    if let Err(error) = done {
        tracing::error!(%error, "background work failed");
    }
}

async fn work(shared: Arc<Shared>, item: Item) {
    let result = match shared.planes.find(&item.plane) {
        Some(plane) => process(&shared, &plane, &item).await,
        None => Ok(()),
    };
    let Err(error) = result else {
        shared.lifecycle.0.failures.forget(&item);
        return;
    };
    tracing::warn!(plane = %item.plane, resource = %item.resource.resource, name = %item.key.name, %error,
        "background deletion is tried again");
    retry::later(&shared.lifecycle, item);
}

async fn process(shared: &Arc<Shared>, plane: &Arc<Plane>, item: &Item) -> Result<()> {
    let registry = plane.registry();
    // A kind that is no longer served has no objects: its CRD waited for them.
    let Some(resource) = registry.find_table(&item.resource) else { return Ok(()) };
    let target = Target::new(shared, plane, resource, Arc::new(Identity::server()));
    if *item == Item::aggregation(&item.plane) {
        return roles::aggregate(&target.unasked()).await;
    }
    let Some(object) = plane.store.get(&item.resource, &item.key) else { return Ok(()) };
    if item.expired_at == Some(object.revision) {
        let resource_version = Some(object.revision.to_string());
        let options = DeleteOptions { resource_version, ..DeleteOptions::default() };
        return settled(verbs::delete(&target.unasked(), &item.key, &options).await);
    }
    if object.meta.deleting {
        if resource.is_namespace() {
            contents::empty_namespace(&target, &object).await?;
        }
        if resource.is_crd() && has_finalizer(&object, CRD_FINALIZER) {
            return contents::empty_crd(&target, &object).await;
        }
        if has_finalizer(&object, ORPHAN) {
            return garbage::orphan_dependents(&target, &object).await;
        }
        if has_finalizer(&object, FOREGROUND) {
            garbage::delete_dependents(&target, &object, |resource, key| {
                let plane = item.plane.clone();
                shared.lifecycle.add(Item { resource, key, gone_owner: None, expired_at: None, plane });
            })
            .await?;
        }
    }
    garbage::collect(&target, &object, item.gone_owner.as_deref()).await
}

fn has_finalizer(object: &Object, finalizer: &str) -> bool {
    object.meta.finalizers.iter().any(|found| **found == *finalizer)
}

/// A lost race and an object that is gone are no failures: whoever won has told the queue.
fn settled<T>(result: Result<T>) -> Result<()> {
    match result {
        Ok(_) | Err(ApiError::NotFound(_) | ApiError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
