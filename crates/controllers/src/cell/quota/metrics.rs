//! What is counted about quota.

use compute_runtime::Metrics as Registry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// The counters. Cheap to clone.
#[derive(Clone)]
pub(super) struct Metrics {
    enforced: Gauge,
    failures: Family<ByReason, Counter>,
    orphaned: Counter,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByReason {
    reason: String,
}

impl Metrics {
    /// Those of the process.
    pub(super) fn of(registry: &Registry) -> Self {
        registry.shared(|registry| {
            let metrics = Self {
                enforced: Gauge::default(),
                failures: Family::default(),
                orphaned: Counter::default(),
            };
            registry.register(
                "compute_quota_enforcement_enabled",
                "Whether instances have to claim quota before they may run",
                metrics.enforced.clone(),
            );
            registry.register(
                "compute_quota_eval_failures",
                "Times that quota was asked for and not granted, by the reason of the condition",
                metrics.failures.clone(),
            );
            registry.register(
                "compute_quota_claim_orphaned",
                "Claims that could not be released because their project is not known any more",
                metrics.orphaned.clone(),
            );
            metrics
        })
    }

    pub(super) fn set_enforced(&self, enforced: bool) {
        self.enforced.set(i64::from(enforced));
    }

    pub(super) fn failed(&self, reason: &str) {
        self.failures.get_or_create(&ByReason { reason: reason.to_owned() }).inc();
    }

    pub(super) fn orphaned(&self) {
        self.orphaned.inc();
    }
}
