//! Hub instances that no retry can bring into their project: told once, counted, and left alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::{API_VERSION, Instance};
use compute_api::k8s::ObjectReference;
use compute_runtime::cache::ObjectName;
use compute_runtime::events::{Events, Notice, Recorder};
use compute_runtime::{Key, PlaneId};
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

use crate::management::view::Hub;

/// What is in quarantine.
pub(in crate::management) struct Quarantine {
    /// By the name of the hub copy.
    held: Mutex<BTreeMap<ObjectName, Held>>,
    /// Which copies wait for an owner, by uid, and since when as far as has been seen.
    waiting: Mutex<BTreeMap<Key, (String, Instant)>>,
    gauge: Gauge,
    recorder: Recorder,
}

struct Held {
    uid: Option<String>,
    /// Whose it is, if it says.
    project: Option<PlaneId>,
    why: String,
}

impl Quarantine {
    pub(in crate::management) fn new(hub: &Hub, events: &Events) -> Arc<Self> {
        let gauge = Gauge::default();
        hub.plane().runtime().metrics().register(|registry| {
            registry.register(
                "compute_federation_quarantined_objects",
                "Objects on the hub that cannot be brought into their project, and that no retry can mend",
                gauge.clone(),
            );
        });
        let recorder = events.recorder(hub.id().as_str(), hub.client());
        Arc::new(Self { held: Mutex::default(), waiting: Mutex::default(), gauge, recorder })
    }

    /// Puts a copy into quarantine, and tells why unless that has been told.
    pub(super) fn report(
        &self,
        hub: &Hub,
        name: &ObjectName,
        uid: Option<&str>,
        project: Option<&PlaneId>,
        why: &str,
    ) {
        let known = self.change(|held| {
            let now = Held { uid: uid.map(str::to_owned), project: project.cloned(), why: why.to_owned() };
            let before = held.insert(name.clone(), now);
            before.is_some_and(|before| before.uid.as_deref() == uid && before.why == why)
        });
        if known {
            return;
        }
        tracing::error!(plane = %hub.id(), namespace = name.namespace, instance = name.name, why,
            "an instance cannot be shown in its project");
        let object = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some("Instance".to_owned()),
            namespace: Some(name.namespace.clone()),
            name: Some(name.name.clone()),
            uid: uid.map(str::to_owned),
            ..ObjectReference::default()
        };
        self.recorder
            .tell_of(object, Notice::warning("ProjectionFailed", format!("Not shown in its project: {why}")));
    }

    /// Lets a copy go, whatever it was in for.
    pub(super) fn release(&self, name: &ObjectName) {
        self.change(|held| drop(held.remove(name)));
    }

    /// Lets go a copy that was in for not saying whose it is, now that it does.
    pub(super) fn keep_only_owned(&self, name: &ObjectName) {
        self.change(|held| {
            if held.get(name).is_some_and(|one| one.project.is_none()) {
                held.remove(name);
            }
        });
    }

    /// Lets the copies of a project go that is not served any more.
    pub(super) fn forget_project(&self, project: &PlaneId) {
        self.change(|held| held.retain(|_, one| one.project.as_ref() != Some(project)));
        self.waiting.lock().retain(|key, _| key.plane != *project);
    }

    /// How long the copy of that uid has waited for an owner. What another one of that name waited is not its wait.
    pub(super) fn waited(&self, key: &Key, uid: &str) -> Duration {
        let waiting = self.waiting.lock();
        waiting.get(key).filter(|(copy, _)| copy == uid).map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }

    /// The copy that waits for an owner, by its uid; `None` if none does.
    pub(super) fn set_waiting(&self, key: &Key, uid: Option<&str>) {
        let mut waiting = self.waiting.lock();
        match uid {
            None => drop(waiting.remove(key)),
            Some(uid) if waiting.get(key).is_some_and(|(copy, _)| copy == uid) => {}
            Some(uid) => drop(waiting.insert(key.clone(), (uid.to_owned(), Instant::now()))),
        }
    }

    /// Lets go what is known to be well.
    pub(super) fn release_copy(&self, copy: &Instance) {
        self.release(&ObjectName::of(copy));
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<ObjectName, Held>) -> T) -> T {
        let mut held = self.held.lock();
        let result = change(&mut held);
        self.gauge.set(i64::try_from(held.len()).unwrap_or(i64::MAX));
        result
    }
}
