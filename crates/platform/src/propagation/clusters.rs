//! One `Cluster` on the hub for each member: that it is there, its city, and whether the member answers.
//!
//! The question is one small request every so often; the answer is written only when it differs from what is stored. A `Cluster` that is no
//! member's (a cell that was there before a restart) is said to be unreachable, and otherwise left alone: what is bound to
//! it waits for it.

use std::sync::Arc;

use compute_api::conditions::{self, Status, Update};
use compute_api::k8s::ObjectMeta;
use compute_api::karmada::{CONDITION_READY, Cluster, ClusterSpec, ClusterStatus};
use compute_api::kube::{Api, Client, Resource as _};
use compute_api::labels::TOPOLOGY_CITY_CODE;
use compute_core::meta;
use compute_runtime::controller::Error;
use compute_runtime::write::Writer;
use compute_runtime::{Key, Next, Reconciler};
use serde_json::json;
use tokio::time::timeout;

use super::{Cell, Probe, World};

/// `syncMode` of a member that the hub writes to.
const PUSH: &str = "Push";
/// Where an API server says whether it serves.
const READYZ: &str = "/readyz";
/// How often a member is asked before it counts as lost: one lost answer is no lost cell.
const ATTEMPTS: u32 = 2;

/// Keeps `Cluster`s. Keys are their names, in the plane of the member, or in the hub's if there is none.
pub(super) struct Clusters {
    world: Arc<World>,
    writer: Writer,
    probe: Probe,
}

impl Clusters {
    pub(super) const NAME: &'static str = "propagation-clusters";

    pub(super) fn new(world: Arc<World>, writer: Writer, probe: Probe) -> Self {
        Self { world, writer, probe }
    }

    fn api(&self) -> Api<Cluster> {
        Api::all(self.world.hub.plane.client().clone())
    }

    /// Makes the Cluster, or sets what is ours on it.
    async fn ensure(&self, cell: &Cell) -> Result<Arc<Cluster>, Error> {
        let stored = self.world.hub.clusters.get("", &cell.name);
        if let Some(stored) = stored.as_ref().filter(|stored| {
            meta::label(&stored.metadata, TOPOLOGY_CITY_CODE) == Some(cell.city.as_str())
                && stored.spec.sync_mode == PUSH
        }) {
            return Ok(stored.clone());
        }
        let wanted = Cluster {
            metadata: ObjectMeta {
                name: Some(cell.name.clone()),
                labels: Some([(TOPOLOGY_CITY_CODE.to_owned(), cell.city.clone())].into()),
                ..ObjectMeta::default()
            },
            spec: ClusterSpec { sync_mode: PUSH.to_owned(), ..ClusterSpec::default() },
            status: None,
        };
        Ok(Arc::new(self.writer.apply(&self.api(), &cell.name, &wanted).await?))
    }

    async fn say(&self, cluster: &Cluster, answers: bool) -> Result<(), Error> {
        let update = if answers {
            let message = "cluster is healthy and ready to accept workloads";
            Update::new(CONDITION_READY, Status::True, conditions::platform::CLUSTER_READY, message)
        } else {
            Update::new(
                CONDITION_READY,
                Status::False,
                conditions::platform::CLUSTER_NOT_REACHABLE,
                "cluster is not reachable",
            )
        };
        let mut status: ClusterStatus = cluster.status.clone().unwrap_or_default();
        let now = self.world.hub.plane.runtime().clock().now();
        if !conditions::set(&mut status.conditions, update, now) {
            return Ok(());
        }
        let name = meta::name(&cluster.metadata);
        if answers {
            tracing::info!(cluster = name, "answers");
        } else {
            tracing::warn!(cluster = name, "does not answer");
        }
        let fields = json!({
            "apiVersion": Cluster::api_version(&()), "kind": Cluster::kind(&()),
            "status": { "conditions": status.conditions },
        });
        self.writer.apply_status(&self.api(), name, &fields).await?;
        Ok(())
    }
}

impl Reconciler for Clusters {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(cell) = self.world.cells.get(&key.plane) else {
            if let Some(stale) = self.world.hub.clusters.get("", &key.name) {
                self.say(&stale, false).await?;
            }
            return Ok(Next::Done);
        };
        if self.world.hub.clusters.is_unreadable("", &cell.name) {
            return Ok(Next::After(self.probe.every));
        }
        let cluster = self.ensure(cell).await?;
        if meta::is_being_deleted(&cluster.metadata) {
            return Ok(Next::After(self.probe.every));
        }
        let answers = answers(cell.plane.client(), self.probe).await;
        self.say(&cluster, answers).await?;
        Ok(Next::After(self.probe.every))
    }
}

/// Whether a member answers.
async fn answers(client: &Client, probe: Probe) -> bool {
    for _ in 0..ATTEMPTS {
        let Ok(request) = http::Request::get(READYZ).body(Vec::new()) else { return false };
        match timeout(probe.timeout, client.request_text(request)).await {
            Ok(Ok(_)) => return true,
            Ok(Err(error)) => tracing::debug!(%error, "a probe failed"),
            Err(_) => tracing::debug!("a probe was not answered in time"),
        }
    }
    false
}
