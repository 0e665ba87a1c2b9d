//! Background work that the API promises: owner-reference garbage collection, namespace deletion, CRD deletion, the
//! rules of aggregated roles.
//!
//! Every commit says what may have become due ([`Queue::notice`]); one task works that off. There is no
//! scan and no timer: a plane in which nothing happens costs nothing. Work is decided from what the store holds when
//! it is done, so doing it twice, late or in another order is harmless.

mod contents;
pub(crate) mod expiry;
mod garbage;
mod roles;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

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
/// When work that failed is tried again. Failure here means a fault of the server, not of an object.
const RETRY: Duration = Duration::from_secs(1);

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
    woken: Notify,
}

impl Due {
    /// Takes at most `most` items, one of each plane in turn: a busy plane never holds up another.
    fn take(&self, most: usize) -> Vec<Item> {
        let mut planes = self.items.lock();
        let mut taken = Vec::new();
        while taken.len() < most && !planes.is_empty() {
            let room = most - taken.len();
            taken.extend(planes.values_mut().take(room).filter_map(BTreeSet::pop_first));
            planes.retain(|_, items| !items.is_empty());
        }
        taken
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
    let due = Arc::new(Due::default());
    let queue = Queue(due.clone());
    tokio::spawn(async move {
        loop {
            // Each turn holds the server only while there is work, so that the last clone can go.
            let batch = due.take(BATCH);
            if batch.is_empty() {
                due.woken.notified().await;
                if shared.strong_count() == 0 {
                    return;
                }
                continue;
            }
            let Some(shared) = shared.upgrade() else { return };
            // Each item is a task of its own: a fault in one must not end the work for all planes.
            let mut tasks = tokio::task::JoinSet::new();
            for item in batch {
                tasks.spawn(work(shared.clone(), item));
            }
            while let Some(done) = tasks.join_next().await {
                if let Err(error) = done {
                    tracing::error!(%error, "background work failed");
                }
            }
        }
    });
    queue
}

async fn work(shared: Arc<Shared>, item: Item) {
    let Some(plane) = shared.planes.find(&item.plane) else { return };
    if let Err(error) = process(&shared, &plane, &item).await {
        tracing::warn!(plane = %item.plane, resource = %item.resource.resource, name = %item.key.name, %error,
            "background deletion is tried again");
        let queue = shared.lifecycle.clone();
        tokio::spawn(async move {
            tokio::time::sleep(RETRY).await;
            queue.add(item);
        });
    }
}

async fn process(shared: &Arc<Shared>, plane: &Arc<Plane>, item: &Item) -> Result<()> {
    let registry = plane.registry();
    // A kind that is no longer served has no objects: its CRD waited for them.
    let Some(resource) = registry.find_table(&item.resource) else { return Ok(()) };
    let target = Target::new(shared, plane, resource, Arc::new(Identity::server()));
    if *item == Item::aggregation(&item.plane) {
        return roles::aggregate(&target).await;
    }
    let Some(object) = plane.store.get(&item.resource, &item.key) else { return Ok(()) };
    if item.expired_at == Some(object.revision) {
        let resource_version = Some(object.revision.to_string());
        let options = DeleteOptions { resource_version, ..DeleteOptions::default() };
        return settled(verbs::delete(&target, &item.key, &options).await);
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
