//! Events: what a controller tells people about an object, where `kubectl describe` shows it.
//!
//! # Guarantees
//! - Telling never waits and never fails: what cannot be queued is dropped and counted.
//! - The same thing told again is one Event with a higher count, also across restarts: its name comes from its content.
//! - One object cannot flood its plane: writes are limited by a token bucket per object. What is told meanwhile is
//!   counted and written with the next write.
//! - A plane that does not answer delays no other: writes go out side by side, one at a time for each plane.

mod correlate;
mod publish;
mod recent;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use compute_api::k8s::{ObjectReference, Timestamp};
use compute_api::kube::{Client, Resource};
use tokio::sync::mpsc;

pub use publish::Publisher;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// All is well.
    Normal,
    /// Somebody should look at it.
    Warning,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// How bad it is.
    pub severity: Severity,
    /// One word in camel case, for machines.
    pub reason: String,
    /// A sentence for people. Cut after 1024 bytes, as servers demand.
    pub message: String,
}

impl Notice {
    /// All is well.
    pub fn normal(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Normal, reason: reason.into(), message: message.into() }
    }

    /// Somebody should look at it.
    pub fn warning(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, reason: reason.into(), message: message.into() }
    }
}

/// Who tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// The program, such as `compute-manager`.
    pub component: String,
    /// The process, such as the pod's name.
    pub instance: String,
}

/// How much is kept and written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Notices that wait for the publisher.
    pub queue: usize,
    /// Events that wait for one plane.
    pub plane_queue: usize,
    /// Events and objects that are remembered, to tell what is new.
    pub remembered: usize,
    /// Writes an object may cause at once.
    pub burst: u32,
    /// How long it takes until it may cause one more.
    pub refill: Duration,
    /// Writes under way at the same time, to all planes.
    pub in_flight: usize,
    /// How long one may take.
    pub timeout: Duration,
    /// How long a stop waits for what is queued.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue: 4096,
            plane_queue: 64,
            remembered: 4096,
            // A rollout that goes wrong tells a handful of things at once; after that, one in a while is enough.
            burst: 10,
            refill: Duration::from_secs(30),
            in_flight: 64,
            timeout: Duration::from_secs(5),
            drain: Duration::from_secs(2),
        }
    }
}

/// What became of all notices so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Writes that went through.
    pub written: u64,
    /// Writes that failed.
    pub failed: u64,
    /// Notices dropped because the publisher or their plane is behind.
    pub dropped: u64,
    /// Notices not written at once because their object is told about too often.
    pub limited: u64,
}

#[derive(Default)]
struct Counters {
    written: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    limited: AtomicU64,
}

fn add_one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Takes notices for all planes. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<Told>,
    counters: Arc<Counters>,
}

/// Takes notices for one plane. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    events: Events,
    plane: Arc<str>,
    client: Client,
}

/// A notice on its way to the publisher.
struct Told {
    plane: Arc<str>,
    client: Client,
    object: ObjectReference,
    notice: Notice,
}

/// Both ends: what takes notices, and what writes them once it is run. `now` is the wall clock.
pub fn events(
    reporter: Reporter,
    limits: Limits,
    now: impl Fn() -> Timestamp + Send + Sync + 'static,
) -> (Events, Publisher) {
    let (queue, told) = mpsc::channel(limits.queue.max(1));
    let counters = Arc::new(Counters::default());
    let publisher = Publisher::new(reporter, limits, Arc::new(now), told, counters.clone());
    (Events { queue, counters }, publisher)
}

impl Events {
    /// Takes notices for the plane that `client` reaches; `plane` tells it apart from others.
    pub fn recorder(&self, plane: impl Into<Arc<str>>, client: Client) -> Recorder {
        Recorder { events: self.clone(), plane: plane.into(), client }
    }

    /// What became of all notices so far.
    pub fn counts(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            written: load(&self.counters.written),
            failed: load(&self.counters.failed),
            dropped: load(&self.counters.dropped),
            limited: load(&self.counters.limited),
        }
    }
}

impl Recorder {
    /// Tells something about an object. Returns at once, whatever happens to it.
    pub fn tell<K: Resource<DynamicType = ()>>(&self, object: &K, notice: Notice) {
        self.tell_of(object.object_ref(&()), notice);
    }

    /// The same for an object that is known by reference only.
    pub fn tell_of(&self, object: ObjectReference, notice: Notice) {
        let told = Told { plane: self.plane.clone(), client: self.client.clone(), object, notice };
        if self.events.queue.try_send(told).is_err() {
            add_one(&self.events.counters.dropped);
        }
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Events").field(&self.counts()).finish()
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Recorder").field(&self.plane).finish()
    }
}
