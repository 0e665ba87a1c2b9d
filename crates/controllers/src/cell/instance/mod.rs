//! The InstanceReconciler: quota, referenced data, the gates of both, and what is said about an instance.
//!
//! Steps of a pass, in order: hold the instance with our finalizer; take out a condition that nobody writes any more; ask for quota; look
//! for referenced data; write our conditions; open the gates that may go. An instance that is being deleted is let go after
//! everybody else, when its claim is released.
//!
//! # Guarantees
//!
//! - A pass over unchanged state makes no request, but for an instance that waits for quota, and for one look an hour at a project's claims.
//! - Conditions are written before a gate goes, and before a failure is returned.
//! - Nothing here waits for the hub, or for another project's ledger.

mod conditions;
mod data;
mod reconcile;
mod removal;

use std::sync::Arc;

use compute_api::annotations::{EXPECTED_REFERENCED_DATA, REFERENCED_DATA_ERROR};
use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::conditions::{self as c, NETWORK_READY};
use compute_api::k8s::Condition;
use compute_core::meta;
use compute_core::rollup::deployment::observed_generation;
use compute_runtime::cache::{Change, Closed};
use compute_runtime::queue::Limits;
use compute_runtime::write::Writer;
use compute_runtime::{Cache, Queue, Subscription, controller};
use tokio_util::sync::CancellationToken;

use super::indexes::{INSTANCES_NAMING, INSTANCES_OF};
use super::latest::Latest;
use super::quota::{Origin, Quota};
use super::told::Told;
use super::{Cell, keys};
use data::Companions;

const NAME: &str = "instance";

/// Reconciles the instances of a cell.
struct Instances {
    cell: Cell,
    instances: Cache<Instance>,
    deployments: Cache<WorkloadDeployment>,
    companions: Companions,
    quota: Quota,
    writer: Writer,
    latest: Latest<Instance>,
    told: Told,
    queue: Queue,
}

/// Runs until `stop`.
pub(super) async fn run(cell: Cell, quota: Option<Origin>, stop: CancellationToken) -> Result<(), Closed> {
    let plane = cell.plane.clone();
    let queue = Queue::new(plane.runtime(), NAME, Limits::default());
    let instances = Instances {
        instances: plane.cache(),
        deployments: plane.cache(),
        companions: Companions::of(&plane),
        quota: Quota::new(&plane, quota, &queue),
        writer: Writer::new(NAME),
        latest: Latest::new(),
        told: Told::default(),
        queue: queue.clone(),
        cell,
    };
    instances.instances.index(&INSTANCES_OF);
    instances.instances.index(&INSTANCES_NAMING);
    tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        synced = instances.synced() => synced?,
    }
    let _subscriptions = instances.watch(&queue);
    controller::run(Arc::new(instances), queue, stop.cancelled_owned()).await;
    Ok(())
}

impl Instances {
    /// Waits until absence means something.
    async fn synced(&self) -> Result<(), Closed> {
        self.instances.synced().await?;
        self.deployments.synced().await?;
        self.companions.synced().await
    }

    fn watch(&self, queue: &Queue) -> Vec<Subscription> {
        let own =
            queue.watch(&self.instances, |change| Some(keys::key(&change.name.namespace, &change.name.name)));
        let instances = self.instances.clone();
        let deployments = queue.watch(&self.deployments, move |change| {
            let uid = change.latest().filter(|_| matters(change)).map(|latest| meta::uid(&latest.metadata));
            let found = uid.map(|uid| instances.by_index(&INSTANCES_OF, uid)).unwrap_or_default();
            found.iter().map(|instance| keys::of(&**instance)).collect::<Vec<_>>()
        });
        let mut all = vec![own, deployments];
        all.extend(self.companions.watch(queue, &self.instances, &self.deployments));
        all
    }
}

/// Whether a change of a deployment means anything to its instances. Its counts, which change most, do not.
fn matters(change: &Change<WorkloadDeployment>) -> bool {
    type Facts<'a> = (Option<&'a Condition>, Option<i64>, [Option<&'a str>; 2]);
    fn facts(deployment: &WorkloadDeployment) -> Facts<'_> {
        let conditions = deployment.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let noted = |key| meta::annotation(&deployment.metadata, key);
        let data = [EXPECTED_REFERENCED_DATA, REFERENCED_DATA_ERROR].map(noted);
        (c::find(conditions, NETWORK_READY), observed_generation(deployment), data)
    }
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => facts(before) != facts(after),
        _ => true,
    }
}
