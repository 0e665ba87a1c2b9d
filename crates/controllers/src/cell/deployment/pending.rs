//! Instances that we have created or deleted and the cache does not show so yet.
//!
//! Without this, a pass that comes before the cache is told would take a second Ready instance down for a template that has just
//! changed again, or let a deployment go whose newest instance it does not see.
//!
//! # Guarantees
//!
//! What is remembered is forgotten as soon as the cache shows it, and else when the cache's watch has been open for [`PATIENCE`] since: then
//! the cache is believed again. While the watch is broken nothing is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::Instance;
use compute_api::k8s::{Time, Timestamp};
use compute_core::meta;
use compute_runtime::Cache;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a cache may be behind while its watch is open. Far longer than any watch is, and shorter than anybody waits.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Writes by the uid of the deployment that they are for.
#[derive(Default)]
pub(super) struct Pending(Mutex<BTreeMap<String, Writes>>);

#[derive(Default)]
struct Writes {
    /// By name.
    created: BTreeMap<String, (Arc<Instance>, Mark)>,
    /// By uid.
    deleted: BTreeMap<String, Mark>,
}

/// Since when the cache has had the time to show what was written, and the cache's epoch then.
#[derive(Clone, Copy)]
struct Mark(Instant, u64);

impl Mark {
    fn of(instances: &Cache<Instance>) -> Self {
        Self(Instant::now(), instances.epoch())
    }

    fn counts(&mut self, instances: &Cache<Instance>) -> bool {
        if !instances.is_connected() {
            return true;
        }
        if self.1 != instances.epoch() {
            // A watch that was opened again has yet to show what it missed.
            *self = Self::of(instances);
        }
        self.0.elapsed() < PATIENCE
    }
}

impl Pending {
    /// An instance has been created.
    pub(super) fn created(&self, instances: &Cache<Instance>, instance: Instance) {
        let Some(owner) = meta::controller_uid(&instance.metadata).map(str::to_owned) else { return };
        let name = meta::name(&instance.metadata).to_owned();
        let created = (Arc::new(instance), Mark::of(instances));
        self.0.lock().entry(owner).or_default().created.insert(name, created);
    }

    /// An instance of a deployment has been deleted.
    pub(super) fn deleted(&self, instances: &Cache<Instance>, deployment_uid: &str, uid: &str) {
        let mut all = self.0.lock();
        all.entry(deployment_uid.to_owned()).or_default().deleted.insert(uid.to_owned(), Mark::of(instances));
    }

    /// The cache shows this version of an instance, or that it is gone.
    pub(super) fn seen(&self, instance: &Instance) {
        let Some(owner) = meta::controller_uid(&instance.metadata) else { return };
        let mut all = self.0.lock();
        let Some(writes) = all.get_mut(owner) else { return };
        let name = meta::name(&instance.metadata);
        if writes.created.get(name).is_some_and(|(made, _)| made.metadata.uid == instance.metadata.uid) {
            writes.created.remove(name);
        }
        if writes.created.is_empty() && writes.deleted.is_empty() {
            all.remove(owner);
        }
    }

    /// What is true of a deployment's instances, given what the cache shows of them; and whether that is more than the cache shows.
    pub(super) fn overlay(
        &self,
        instances: &Cache<Instance>,
        deployment_uid: &str,
        mut shown: Vec<Arc<Instance>>,
        now: Timestamp,
    ) -> (Vec<Arc<Instance>>, bool) {
        let mut all = self.0.lock();
        let Some(writes) = all.get_mut(deployment_uid) else { return (shown, false) };
        let staying: BTreeSet<&str> = shown
            .iter()
            .filter(|instance| !meta::is_being_deleted(&instance.metadata))
            .map(|instance| meta::uid(&instance.metadata))
            .collect();
        writes.deleted.retain(|uid, mark| mark.counts(instances) && staying.contains(uid.as_str()));
        writes.created.retain(|name, (made, mark)| {
            let namespace = meta::namespace(&made.metadata);
            mark.counts(instances) && instances.get(namespace, name).is_none()
        });
        for instance in &mut shown {
            if writes.deleted.contains_key(meta::uid(&instance.metadata)) {
                Arc::make_mut(instance).metadata.deletion_timestamp = Some(Time(now));
            }
        }
        shown.extend(writes.created.values().map(|(made, _)| made.clone()));
        let more = !(writes.created.is_empty() && writes.deleted.is_empty());
        if !more {
            all.remove(deployment_uid);
        }
        (shown, more)
    }

    /// The deployment is gone.
    pub(super) fn forget(&self, deployment_uid: &str) {
        self.0.lock().remove(deployment_uid);
    }
}
