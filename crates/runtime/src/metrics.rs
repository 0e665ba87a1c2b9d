//! What the runtime counts, in the form that Prometheus reads.
//!
//! Labels are controllers and kinds, never planes or objects: their number does not grow with what is served.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Upper bounds in seconds: from a pass that finds nothing to do (well under a millisecond) to one that hangs until its time is up.
const BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0];

/// The process's metrics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    shared: Arc<Mutex<BTreeMap<TypeId, Box<dyn Any + Send + Sync>>>>,
    depth: Family<ByController, Gauge>,
    seconds: Family<ByController, Histogram, fn() -> Histogram>,
    reconciles: Family<ByResult, Counter>,
    planes: Gauge,
    refused: Counter,
    undecodable: Family<ByKind, Counter>,
    restarts: Family<ByKind, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByController {
    controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByResult {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByKind {
    kind: String,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let metrics = Self {
            registry: Arc::default(),
            shared: Arc::default(),
            depth: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            reconciles: Family::default(),
            planes: Gauge::default(),
            refused: Counter::default(),
            undecodable: Family::default(),
            restarts: Family::default(),
        };
        metrics.register(|registry| {
            let m = &metrics;
            registry.register(
                "compute_queue_depth",
                "Keys that are due and wait for a worker",
                m.depth.clone(),
            );
            registry.register_with_unit(
                "compute_reconcile",
                "How long a pass over one key takes",
                Unit::Seconds,
                m.seconds.clone(),
            );
            registry.register("compute_reconciles", "Passes over one key, by result", m.reconciles.clone());
            registry.register("compute_engaged_planes", "Planes that are served", m.planes.clone());
            registry.register(
                "compute_refused_planes",
                "Planes that cannot be served, reported once each",
                m.refused.clone(),
            );
            registry.register(
                "compute_undecodable_objects",
                "Versions of objects that could not be decoded and were skipped",
                m.undecodable.clone(),
            );
            registry.register(
                "compute_watch_restarts",
                "Watches that broke and had to be opened again",
                m.restarts.clone(),
            );
        });
        metrics
    }

    /// Adds metrics of the caller's own.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock());
    }

    /// Metrics of the caller's own that several parts of the process count with: made and registered at the first call for
    /// their type, and the same ones ever after.
    pub fn shared<T: Clone + Send + Sync + 'static>(&self, make: impl FnOnce(&mut Registry) -> T) -> T {
        let mut shared = self.shared.lock();
        let made = shared.get(&TypeId::of::<T>()).and_then(|made| made.downcast_ref::<T>()).cloned();
        made.unwrap_or_else(|| {
            let made = make(&mut self.registry.lock());
            shared.insert(TypeId::of::<T>(), Box::new(made.clone()));
            made
        })
    }

    /// All metrics in OpenMetrics text.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut out, &self.registry.lock());
        out
    }

    /// Passes of a controller that ended in this way.
    pub fn reconciles(&self, controller: &'static str, result: &'static str) -> u64 {
        self.reconciles.get_or_create(&ByResult { controller, result }).get()
    }

    /// Planes that are served.
    pub fn engaged_planes(&self) -> i64 {
        self.planes.get()
    }

    pub(crate) fn queue_depth(&self, controller: &'static str) -> Gauge {
        self.depth.get_or_create_owned(&ByController { controller })
    }

    pub(crate) fn reconciled(&self, controller: &'static str, result: &'static str, took: Duration) {
        self.reconciles.get_or_create(&ByResult { controller, result }).inc();
        self.seconds.get_or_create(&ByController { controller }).observe(took.as_secs_f64());
    }

    pub(crate) fn set_engaged_planes(&self, count: usize) {
        self.planes.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(crate) fn plane_refused(&self) {
        self.refused.inc();
    }

    pub(crate) fn undecodable(&self, kind: &str) {
        self.undecodable.get_or_create(&ByKind { kind: kind.to_owned() }).inc();
    }

    pub(crate) fn watch_restarted(&self, kind: &str) {
        self.restarts.get_or_create(&ByKind { kind: kind.to_owned() }).inc();
    }
}
