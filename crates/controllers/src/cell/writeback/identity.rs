//! Whether the hub knows this cell by the name that it goes by.
//!
//! What a cell writes and sweeps on the hub is told apart by that name. If it is not that of a member cluster, another cell may go by
//! it, and this one must not touch anything there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use compute_api::karmada::Cluster;
use compute_runtime::cache::Selector;
use compute_runtime::{Cache, Metrics, Plane, Subscription};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// What is known of the name.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Known {
    /// Nothing: the hub has not been seen.
    Nothing,
    /// It is that of a member cluster.
    Confirmed,
    /// It is not.
    Mismatch,
}

/// Whether the hub knows this cell.
pub(super) struct Identity {
    cluster_name: String,
    known: AtomicU8,
    enabled: Gauge,
}

#[derive(Clone, Default)]
struct Enabled(Family<ByCluster, Gauge>);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByCluster {
    cluster: String,
}

fn gauge(metrics: &Metrics, cluster: &str) -> Gauge {
    let Enabled(family) = metrics.shared(|registry| {
        let enabled = Enabled::default();
        registry.register(
            "compute_writeback_enabled",
            "Whether the hub knows the cell by its name, so that instances are written back",
            enabled.0.clone(),
        );
        enabled
    });
    family.get_or_create_owned(&ByCluster { cluster: cluster.to_owned() })
}

impl Identity {
    /// Keeps an eye on the cluster of that name; `on_confirmed` is called when it turns out to be there.
    pub(super) fn watch(
        hub: &Plane,
        cluster_name: &str,
        on_confirmed: impl Fn() + Send + Sync + 'static,
    ) -> (Arc<Self>, [Subscription; 2]) {
        let selector =
            Selector { fields: Some(format!("metadata.name={cluster_name}")), ..Selector::default() };
        let clusters: Cache<Cluster> = hub.cache_of(selector);
        let identity = Arc::new(Self {
            cluster_name: cluster_name.to_owned(),
            known: AtomicU8::new(Known::Nothing as u8),
            enabled: gauge(hub.runtime().metrics(), cluster_name),
        });
        let changes = {
            let identity = identity.clone();
            clusters.subscribe(move |change| {
                // One that cannot be read is there all the same.
                if change.after.is_some() || change.unreadable {
                    if identity.set(Known::Confirmed) {
                        on_confirmed();
                    }
                } else {
                    identity.set(Known::Mismatch);
                }
            })
        };
        // By now the whole list is known: what was not in it is not there.
        let found = identity.clone();
        let connects = clusters.on_connect(move |_| {
            if !found.is_confirmed() {
                found.set(Known::Mismatch);
            }
        });
        (identity, [changes, connects])
    }

    /// Whether the hub knows this cell.
    pub(super) fn is_confirmed(&self) -> bool {
        self.known.load(Ordering::Acquire) == Known::Confirmed as u8
    }

    /// Whether that is news.
    fn set(&self, known: Known) -> bool {
        if self.known.swap(known as u8, Ordering::AcqRel) == known as u8 {
            return false;
        }
        self.enabled.set(i64::from(known == Known::Confirmed));
        let cluster = &self.cluster_name;
        match known {
            Known::Mismatch => tracing::error!(
                cluster,
                "the hub has no Cluster of the name that this cell goes by (discovery.clusterName): \
                 instances are not written back, and stale copies are not removed"
            ),
            Known::Nothing | Known::Confirmed => tracing::info!(cluster, "the hub knows this cell"),
        }
        true
    }
}
