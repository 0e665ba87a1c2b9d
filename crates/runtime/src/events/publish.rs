//! The task that writes Events: what is told comes in, is sorted by plane, and goes out side by side.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use compute_api::k8s::Timestamp;
use compute_api::kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::correlate::{Correlator, Decision, Key, Occurrence};
use super::{Counters, Limits, Reporter, Told, add_one, store};
use crate::write::{Error, Outage};

/// Writes what is told. There is one; run it as a task.
#[must_use = "nothing is written unless it runs"]
pub struct Publisher {
    reporter: Arc<Reporter>,
    limits: Limits,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    told: mpsc::Receiver<Told>,
    counters: Arc<Counters>,
    correlator: Correlator,
    lanes: BTreeMap<Arc<str>, Lane>,
    /// Planes that have something to write and are not writing, first come first served.
    ready: VecDeque<Arc<str>>,
    writes: JoinSet<Done>,
}

/// What one plane waits for.
#[derive(Default)]
struct Lane {
    queue: VecDeque<(Arc<Key>, Client)>,
    is_writing: bool,
}

struct Done {
    key: Arc<Key>,
    occurrence: Occurrence,
    result: Result<i32, Error>,
}

impl Publisher {
    pub(super) fn new(
        reporter: Reporter,
        limits: Limits,
        now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
        told: mpsc::Receiver<Told>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            reporter: Arc::new(reporter),
            correlator: Correlator::new(&limits),
            limits,
            now,
            told,
            counters,
            lanes: BTreeMap::new(),
            ready: VecDeque::new(),
            writes: JoinSet::new(),
        }
    }

    /// Writes until `stop` is cancelled, and then for a moment what is already queued.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), Infallible> {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.work() => {
                // Nobody is left who could tell anything; but a task ends only when it is told to.
                stop.cancelled().await;
            }
        }
        self.told.close();
        if tokio::time::timeout(self.limits.drain, self.work()).await.is_err() {
            tracing::debug!("events that were not written in time are dropped");
        }
        Ok(())
    }

    /// Works until there is nothing to do and nothing can come.
    async fn work(&mut self) {
        let mut is_open = true;
        while is_open || !self.writes.is_empty() {
            tokio::select! {
                biased;
                Some(done) = self.writes.join_next() => if let Ok(done) = done { self.finish(done) },
                told = self.told.recv(), if is_open => match told {
                    Some(told) => self.take(told),
                    None => is_open = false,
                },
            }
            self.start();
        }
    }

    fn take(&mut self, Told { plane, client, object, notice }: Told) {
        let key = Key::new(plane.clone(), object, notice);
        match self.correlator.told(&key, (self.now)()) {
            Decision::Merged => {}
            Decision::Limited => add_one(&self.counters.limited),
            Decision::Queue => {
                let lane = self.lanes.entry(plane.clone()).or_default();
                if lane.queue.len() >= self.limits.plane_queue {
                    add_one(&self.counters.dropped);
                    self.correlator.abandon(&key);
                    return;
                }
                if lane.queue.is_empty() && !lane.is_writing {
                    self.ready.push_back(plane);
                }
                lane.queue.push_back((key, client));
            }
        }
    }

    fn start(&mut self) {
        while self.writes.len() < self.limits.in_flight.max(1) {
            let Some(plane) = self.ready.pop_front() else { return };
            let Some(lane) = self.lanes.get_mut(&plane) else { continue };
            let next = lane.queue.pop_front();
            let next = next.and_then(|(key, client)| Some((self.correlator.begin(&key)?, key, client)));
            let Some((occurrence, key, client)) = next else {
                self.rest(&plane);
                continue;
            };
            lane.is_writing = true;
            let (reporter, timeout) = (self.reporter.clone(), self.limits.timeout);
            self.writes.spawn(async move {
                let write = store::write(client, reporter, key.clone(), occurrence);
                let result = tokio::time::timeout(timeout, write).await;
                let result = result.unwrap_or(Err(Error::Unavailable(Outage::Timeout)));
                Done { key, occurrence, result }
            });
        }
    }

    fn finish(&mut self, Done { key, occurrence, result }: Done) {
        match result {
            Ok(count) => {
                add_one(&self.counters.written);
                self.correlator.written(&key, count);
            }
            Err(error) => {
                add_one(&self.counters.failed);
                self.correlator.failed(&key, occurrence);
                tracing::debug!(plane = %key.about.plane, %error, "event not written");
            }
        }
        self.rest(&key.about.plane);
    }

    /// A plane is not writing: it gets in line again if it has more, and is forgotten if not.
    fn rest(&mut self, plane: &Arc<str>) {
        let Some(lane) = self.lanes.get_mut(plane) else { return };
        lane.is_writing = false;
        if lane.queue.is_empty() {
            self.lanes.remove(plane);
        } else {
            self.ready.push_back(plane.clone());
        }
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Publisher")
    }
}
