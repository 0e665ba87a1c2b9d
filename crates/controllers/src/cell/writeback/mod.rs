//! Write-back: the hub's copies of this cell's instances.
//!
//! A controller of its own, with its own queue, so that a hub that is slow or gone holds up nothing in the cell. A key is a name that an
//! instance of the cell, a copy on the hub, or both have; one more key stands for the sweep.
//!
//! # Guarantees
//!
//! - A copy is written only while the hub's deployment of that name exists and is not being deleted ([`copy`]).
//! - A copy of this cell that no instance stands behind is deleted, by its uid, after the cell's server has confirmed it: at once if the
//!   hub answers, and else by the sweep at the next connect, start included.
//! - While the hub cannot be watched nothing is tried: the connect that ends this brings everything back into the queue.
//! - A cell that the hub does not know by its name writes and deletes nothing there, and says so loudly ([`identity`]).

mod copy;
mod identity;

use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::labels::{self, SOURCE_CLUSTER};
use compute_core::{meta, writeback};
use compute_runtime::cache::{Change, Closed, Selector};
use compute_runtime::controller::Error;
use compute_runtime::queue::Limits;
use compute_runtime::write::Writer;
use compute_runtime::{Cache, Key, Next, Plane, PlaneId, Queue, Reconciler, Subscription, controller};
use tokio_util::sync::CancellationToken;

use super::Cell;
use super::indexes::{INSTANCES_OF_NAMED, path};
use super::latest::Latest;
use super::told::Told;
use identity::Identity;

const NAME: &str = "writeback";

/// How long the hub may take for one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Keeps the hub's copies of a cell's instances.
struct WriteBack {
    cell: Cell,
    hub: Plane,
    cluster_name: String,
    identity: Arc<Identity>,
    instances: Cache<Instance>,
    copies: Cache<Instance>,
    hub_deployments: Cache<WorkloadDeployment>,
    queue: Queue,
    writer: Writer,
    latest: Latest<Instance>,
    told: Told,
}

/// Runs until `stop`.
pub(super) async fn run(
    cell: Cell,
    hub: Plane,
    cluster_name: String,
    stop: CancellationToken,
) -> Result<(), Closed> {
    let queue = Queue::new(hub.runtime(), NAME, Limits::default());
    let sweep = {
        let (queue, key) = (queue.clone(), sweep_key(hub.id()));
        move || queue.add(key.clone())
    };
    let (identity, clusters) = Identity::watch(&hub, &cluster_name, sweep.clone());
    let write_back = WriteBack {
        instances: cell.plane.cache(),
        copies: hub.cache_of(Selector::labels(format!("{SOURCE_CLUSTER}={cluster_name}"))),
        hub_deployments: hub.cache(),
        writer: Writer::new(NAME).with_timeout(TIMEOUT),
        latest: Latest::new(),
        told: Told::default(),
        queue: queue.clone(),
        identity,
        cell,
        hub,
        cluster_name,
    };
    write_back.instances.index(&INSTANCES_OF_NAMED);
    // The hub may be down for as long as it likes; the cell's own instances have to be known before any absence counts.
    tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        synced = write_back.instances.synced() => synced?,
    }
    let mut subscriptions = write_back.watch();
    subscriptions.extend(clusters);
    let again = sweep.clone();
    subscriptions.push(write_back.copies.on_connect(move |_| again()));
    subscriptions.push(write_back.hub_deployments.on_connect(move |_| sweep()));
    controller::run(Arc::new(write_back), queue, stop.cancelled_owned()).await;
    drop(subscriptions);
    Ok(())
}

/// The key of the sweep. No object has an empty name.
fn sweep_key(hub: &PlaneId) -> Key {
    Key::new(hub, "", "")
}

impl WriteBack {
    fn watch(&self) -> Vec<Subscription> {
        let (queue, hub) = (&self.queue, self.hub.id());
        let named = |hub: &PlaneId| {
            let hub = hub.clone();
            move |change: &Change<Instance>| Some(Key::new(&hub, &change.name.namespace, &change.name.name))
        };
        let (instances, id) = (self.instances.clone(), hub.clone());
        let deployments = queue.watch(&self.hub_deployments, move |change| {
            if !matters(change) {
                return Vec::new();
            }
            let path = path(&change.name.namespace, &change.name.name);
            let found = instances.by_index(&INSTANCES_OF_NAMED, &path);
            found.iter().map(|instance| Key::of(&id, &**instance)).collect()
        });
        vec![queue.watch(&self.instances, named(hub)), queue.watch(&self.copies, named(hub)), deployments]
    }

    /// Whether the hub can be seen, so that what is not there is not there, and may be written to.
    fn is_open(&self) -> bool {
        let seen = self.copies.is_synced()
            && self.copies.is_connected()
            && self.hub_deployments.is_synced()
            && self.hub_deployments.is_connected();
        seen && self.identity.is_confirmed()
    }

    /// Compares every instance with its copy, and every copy with its instance.
    fn sweep(&self) {
        let (instances, copies) = (self.instances.list(), self.copies.list());
        let (instances, copies) = (instances.iter().map(Arc::as_ref), copies.iter().map(Arc::as_ref));
        let stale = writeback::sweep(&self.cluster_name, copies, instances.clone());
        tracing::info!(hub = %self.hub.id(), stale = stale.len(), "comparing the hub's copies with instances");
        self.queue.add_all(stale.iter().map(|stale| Key::new(self.hub.id(), &stale.namespace, &stale.name)));
        self.queue.add_all(instances.map(|instance| Key::of(self.hub.id(), instance)));
    }
}

impl Reconciler for WriteBack {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        if !self.is_open() {
            return Ok(Next::Done);
        }
        if *key == sweep_key(self.hub.id()) {
            self.sweep();
            return Ok(Next::Done);
        }
        match self.instances.get(&key.namespace, &key.name) {
            Some(instance) => self.write(key, &instance).await,
            None if self.instances.is_unreadable(&key.namespace, &key.name) => Ok(Next::Done),
            None => self.remove(key).await,
        }
    }
}

/// Whether a change of a hub deployment means anything to copies: its status, which changes most, does not.
fn matters(change: &Change<WorkloadDeployment>) -> bool {
    type Facts<'a> = (&'a str, bool, &'a str, [Option<&'a str>; 2]);
    fn facts(deployment: &WorkloadDeployment) -> Facts<'_> {
        let label = |key| meta::label(&deployment.metadata, key);
        (
            meta::uid(&deployment.metadata),
            meta::is_being_deleted(&deployment.metadata),
            &deployment.spec.workload_ref.uid,
            [labels::UPSTREAM_CLUSTER_NAME, labels::UPSTREAM_NAMESPACE].map(label),
        )
    }
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => facts(before) != facts(after),
        _ => true,
    }
}
