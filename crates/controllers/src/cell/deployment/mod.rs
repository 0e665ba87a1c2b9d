//! The WorkloadDeploymentReconciler: turns a deployment into instances, sets up its networks, and reports.
//!
//! Steps of a pass, in order: hold the deployment with our finalizer; resolve the location; ask for networks ([`networks`]); execute what the
//! planner says about instances ([`instances`]); open the `Network` gate when networks are ready; write status. A deployment
//! that is being deleted has its instances deleted, and is let go after the last.
//!
//! # Guarantees
//!
//! - A pass over unchanged state makes no request.
//! - What one step fails to do does not keep the later ones from being done; the pass then fails and comes again.
//! - An instance's change costs what its own deployment's instances cost, not what the cell holds.

mod instances;
mod networks;
mod pending;
mod reconcile;

use std::sync::Arc;

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::names;
use compute_runtime::cache::{Change, Closed};
use compute_runtime::queue::Limits;
use compute_runtime::write::Writer;
use compute_runtime::{Cache, Key, Queue, Subscription, controller};
use tokio_util::sync::CancellationToken;

use super::indexes::{DEPLOYMENTS_IN, INSTANCES_OF, deployment_name};
use super::latest::Latest;
use super::told::Told;
use super::{Cell, keys};
use networks::Networks;
use pending::Pending;

const NAME: &str = "workload-deployment";

/// Reconciles the deployments of a cell.
struct Deployments {
    cell: Cell,
    deployments: Cache<WorkloadDeployment>,
    instances: Cache<Instance>,
    /// `None` without the networking integration.
    networks: Option<Networks>,
    writer: Writer,
    latest: Latest<WorkloadDeployment>,
    latest_instances: Arc<Latest<Instance>>,
    pending: Arc<Pending>,
    told: Told,
    queue: Queue,
}

/// Runs until `stop`.
pub(super) async fn run(cell: Cell, networking: bool, stop: CancellationToken) -> Result<(), Closed> {
    let plane = cell.plane.clone();
    let queue = Queue::new(plane.runtime(), NAME, Limits::default());
    let deployments = Deployments {
        deployments: plane.cache(),
        instances: plane.cache(),
        networks: networking.then(|| Networks::of(&plane)),
        writer: Writer::new(NAME),
        latest: Latest::new(),
        latest_instances: Arc::new(Latest::new()),
        pending: Arc::default(),
        told: Told::default(),
        queue: queue.clone(),
        cell,
    };
    deployments.deployments.index(&DEPLOYMENTS_IN);
    deployments.instances.index(&INSTANCES_OF);
    tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        synced = deployments.synced() => synced?,
    }
    let _subscriptions = deployments.watch(&queue);
    controller::run(Arc::new(deployments), queue, stop.cancelled_owned()).await;
    Ok(())
}

impl Deployments {
    /// Waits until absence means something.
    async fn synced(&self) -> Result<(), Closed> {
        self.deployments.synced().await?;
        self.instances.synced().await?;
        match &self.networks {
            Some(networks) => networks.synced().await,
            None => Ok(()),
        }
    }

    fn watch(&self, queue: &Queue) -> Vec<Subscription> {
        let own = queue
            .watch(&self.deployments, |change| Some(keys::key(&change.name.namespace, &change.name.name)));
        let (pending, latest) = (self.pending.clone(), self.latest_instances.clone());
        let instances = queue.watch(&self.instances, move |change| {
            for instance in change.versions() {
                pending.seen(instance);
            }
            if change.after.is_none() {
                latest.forget(&keys::key(&change.name.namespace, &change.name.name));
            }
            of_instance(change)
        });
        let mut all = vec![own, instances];
        if let Some(networks) = &self.networks {
            all.extend(networks.watch(queue, &self.deployments));
        }
        all
    }
}

/// The deployments that an instance matters to: the one that controls it, and the one whose slot it stands in.
fn of_instance(change: &Change<Instance>) -> Vec<Key> {
    let namespace = &change.name.namespace;
    let slot = names::split_instance_name(&change.name.name).map(|(deployment, _)| deployment);
    let owner =
        change.latest().and_then(|instance| deployment_name(instance)).filter(|name| slot != Some(*name));
    slot.into_iter().chain(owner).map(|name| keys::key(namespace, name)).collect()
}
