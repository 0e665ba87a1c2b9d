//! What a controller has to do: one queue of keys, over all planes.
//!
//! # Guarantees
//!
//! - A key is never in two workers' hands. One that is added while it is in hand runs once more afterwards; one that is added
//!   several times before it is taken runs once. Nothing that is added is lost.
//! - Planes with due keys take turns.
//! - A plane whose passes take too long gives its workers back to the others after a moment ([`Limits::stalled`]), and then gets one pass
//!   at a time, beside the workers, until one ends in time.
//! - After a failure a key waits, longer each time; what is added meanwhile is not lost, and brings it forward to a second at most. A success
//!   ends that.
//! - Of several timers of a key the soonest counts, and a pass that begins takes the others with it: who asks to be called again asks
//!   again.

mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;
use crate::cache::{Cache, Change, Object, Subscription};
use crate::clock::Random;
use crate::plane::PlaneId;
use crate::runtime::Runtime;
use state::{Outcome, State};

/// Something to look at: an object of one plane, or whatever else a controller names like that. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The plane.
    pub plane: PlaneId,
    /// The namespace; empty if there is none.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of a name in a plane.
    pub fn new(plane: &PlaneId, namespace: &str, name: &str) -> Self {
        Self { plane: plane.clone(), namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object in a plane.
    pub fn of<K: kube::Resource>(plane: &PlaneId, object: &K) -> Self {
        let meta = object.meta();
        Self::new(
            plane,
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.plane, self.namespace, self.name)
    }
}

/// How much a controller does at a time, and how it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Passes in hand at the same time, over planes that answer.
    pub concurrency: usize,
    /// Passes in hand beside those, one for each plane that does not answer.
    pub slow_planes: usize,
    /// After how long a pass does not count as one of the workers any more, and its plane as one that does not answer.
    pub stalled: Duration,
    /// After how long a pass is given up.
    pub timeout: Duration,
    /// How long a key waits after failures.
    pub backoff: Backoff,
    /// Whether passes go first where all of a process take turns.
    pub urgent: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 16,
            // Each is a task that waits for a server that may never answer: some kilobytes.
            slow_planes: 128,
            // A pass is a few requests of milliseconds each. What takes longer is stuck, or waits for something outside.
            stalled: Duration::from_secs(2),
            timeout: Duration::from_secs(60),
            backoff: Backoff { base: Duration::from_millis(10), max: Duration::from_secs(120) },
            urgent: false,
        }
    }
}

impl Limits {
    /// The default with this many passes at the same time.
    pub fn with_concurrency(concurrency: usize) -> Self {
        Self { concurrency, ..Self::default() }
    }

    /// The same, urgent.
    #[must_use]
    pub const fn urgent(self) -> Self {
        Self { urgent: true, ..self }
    }
}

/// A queue of keys for one controller. Cheap to clone.
#[derive(Clone)]
pub struct Queue(Arc<Inner>);

struct Inner {
    limits: Limits,
    runtime: Runtime,
    state: Mutex<State>,
    changed: Notify,
    depth: Gauge,
}

impl Queue {
    /// A queue for the controller of this name.
    pub fn new(runtime: &Runtime, controller: &'static str, limits: Limits) -> Self {
        Self(Arc::new(Inner {
            limits,
            runtime: runtime.clone(),
            state: Mutex::default(),
            changed: Notify::new(),
            depth: runtime.metrics().queue_depth(controller),
        }))
    }

    /// How much is done at a time.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// What it shares with the process's other queues.
    pub fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    /// Keys that are due and wait for a worker.
    pub fn depth(&self) -> usize {
        self.0.state.lock().due()
    }

    /// Makes a key due.
    pub fn add(&self, key: Key) {
        self.change(|state, now| state.add(key, now));
    }

    /// Makes several keys due.
    pub fn add_all(&self, keys: impl IntoIterator<Item = Key>) {
        let mut keys = keys.into_iter().peekable();
        if keys.peek().is_some() {
            self.change(|state, now| keys.for_each(|key| state.add(key, now)));
        }
    }

    /// Makes a key due after a while, if nothing does so sooner.
    pub fn add_after(&self, key: Key, delay: Duration) {
        self.change(|state, now| state.add_at(key, now + delay, now));
    }

    /// Whether a pass holds back a write that is likely to be overtaken. It does until `moment` after the first of the passes in a row that
    /// did; the key is due again then, and what is written is decided anew.
    pub fn hold(&self, key: &Key, moment: Duration) -> bool {
        let mut holds = false;
        self.change(|state, now| holds = state.hold(key, moment, now));
        holds
    }

    /// Forgets a plane's keys and timers. Work in hand ends by itself, and is not repeated.
    pub fn remove_plane(&self, plane: &PlaneId) {
        self.change(|state, _| state.remove_plane(plane));
    }

    /// Makes due what `keys` gives for every change of a cache, beginning with what is there already, until the subscription is
    /// dropped.
    pub fn watch<K: Object, I: IntoIterator<Item = Key>>(
        &self,
        cache: &Cache<K>,
        keys: impl Fn(&Change<K>) -> I + Send + Sync + 'static,
    ) -> Subscription {
        let queue = self.clone();
        cache.subscribe(move |change| queue.add_all(keys(change)))
    }

    /// Makes every object of a cache due when it changes, under its own name.
    pub fn watch_own<K: Object>(&self, cache: &Cache<K>) -> Subscription {
        let plane = cache.plane().clone();
        self.watch(cache, move |change| Some(Key::new(&plane, &change.name.namespace, &change.name.name)))
    }

    /// Waits for the next key to work on. May be dropped at any time; several may wait.
    pub async fn next(&self) -> Work {
        let work = self.reserve().await;
        work.begins();
        work
    }

    /// Waits for the next key, whose pass begins later: see [`Work::begins`].
    pub(crate) async fn reserve(&self) -> Work {
        loop {
            let changed = self.0.changed.notified();
            let wakes_at = {
                let mut state = self.0.state.lock();
                let taken = state.take(&self.0.limits, Instant::now());
                self.0.depth.set(gauge(state.due()));
                if let Some(key) = taken {
                    // Others that wait may have gone to sleep for a timer that is not the next one now.
                    self.0.changed.notify_one();
                    return Work { queue: self.clone(), key, finished: false };
                }
                state.wakes_at()
            };
            match wakes_at {
                None => changed.await,
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = sleep_until(at) => {}
                    }
                }
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut State, Instant)) {
        let mut state = self.0.state.lock();
        change(&mut state, Instant::now());
        self.0.depth.set(gauge(state.due()));
        drop(state);
        self.0.changed.notify_one();
    }

    fn random(&self) -> &Random {
        self.0.runtime.random()
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({} due)", self.depth())
    }
}

/// A key in hand. Nobody else has it until this is finished; to drop it is to fail.
#[must_use = "a key that is dropped has failed"]
pub struct Work {
    queue: Queue,
    key: Key,
    finished: bool,
}

impl Work {
    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The pass begins now: it sees all that has happened before, and is expected to end soon.
    pub(crate) fn begins(&self) {
        let stalled = self.queue.limits().stalled;
        self.queue.0.state.lock().begins(&self.key, stalled, Instant::now());
    }

    /// How often it has failed in a row before.
    pub fn failures(&self) -> u32 {
        self.queue.0.state.lock().failures(&self.key)
    }

    /// It went well.
    pub fn done(self) {
        self.finish(Outcome::Done);
    }

    /// It went well, and wants to be looked at again after a while.
    pub fn again_after(self, delay: Duration) {
        self.finish(Outcome::After(delay));
    }

    /// It failed: it is tried again, later each time.
    pub fn failed(self) {
        self.finish(Outcome::Failed);
    }

    fn finish(mut self, outcome: Outcome) {
        self.finished = true;
        self.end(outcome);
    }

    fn end(&self, outcome: Outcome) {
        let (key, limits) = (self.key.clone(), *self.queue.limits());
        self.queue.change(|state, now| {
            state.finish(key, outcome, state::backoff(&limits, self.queue.random()), &limits, now);
        });
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.finished {
            self.end(Outcome::Failed);
        }
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Work({})", self.key)
    }
}
