//! Propagation from a hub to its members, with Karmada's semantics for the part that we use.
//!
//! What the hub has to say is kept on the hub: which policy has a template and which clusters were chosen for it is noted on the
//! template (`bind`). Each object that is carried is a key of its own for each member (`copy`): namespaces go to all members, templates
//! to the clusters chosen, companions with the templates that depend on them; a template's status comes back. One `Cluster` per member says
//! whether the member answers (`clusters`).
//!
//! # Guarantees
//!
//! - Nothing polls objects: a change on one side is carried by the event that tells of it, and a pass over unchanged state makes no
//!   request.
//! - Nothing on the hub waits for a member. What a member missed while it was cut off is found by comparing both sides when it is back, or
//!   after a restart: nothing comes back, nothing leaks.
//! - A member that does not answer delays no other. While its watch is down nothing is tried.
//! - Only what the hub put on a member is changed or deleted there.

mod bind;
mod clusters;
mod copy;
mod raw;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::WorkloadDeployment;
use compute_api::k8s::{ConfigMap, Namespace, Secret};
use compute_api::karmada::{Cluster, PropagationPolicy};
use compute_api::labels;
use compute_core::propagation::member::MANAGED_LABEL;
use compute_runtime::cache::{Closed, Selector};
use compute_runtime::controller;
use compute_runtime::events::{Events, Recorder};
use compute_runtime::queue::Limits;
use compute_runtime::tasks::Tasks;
use compute_runtime::write::Writer;
use compute_runtime::{Backoff, Cache, Plane, PlaneId, Queue};
use tokio_util::sync::CancellationToken;

use self::bind::Binder;
use self::clusters::Clusters;
use self::copy::Copier;
use self::raw::Raw;

/// What propagation needs.
pub struct Setup {
    /// The hub.
    pub hub: Plane,
    /// Its members.
    pub members: Vec<Member>,
    /// How members are asked whether they answer.
    pub probe: Probe,
    /// Where events go.
    pub events: Events,
}

/// A member of the hub: a cell.
#[derive(Clone, Debug)]
pub struct Member {
    /// The name of its `Cluster`.
    pub name: String,
    /// The city that it serves, in the spelling of its label.
    pub city: String,
    /// How it is reached.
    pub plane: Plane,
}

/// How members are asked whether they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// How long after an answer the next question comes.
    pub every: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
}

impl Default for Probe {
    fn default() -> Self {
        // People wait for the word that a cell is lost; the question is one small request.
        Self { every: Duration::from_secs(10), timeout: Duration::from_secs(3) }
    }
}

/// Starts propagation. It runs until the tasks are stopped.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    tasks.spawn("propagation", |stop| async move {
        run(setup, stop).await;
        Ok::<(), std::convert::Infallible>(())
    });
}

/// The hub, and what is known of it.
struct Hub {
    plane: Plane,
    namespaces: Cache<Raw<Namespace>>,
    templates: Cache<Raw<WorkloadDeployment>>,
    config_maps: Cache<Raw<ConfigMap>>,
    secrets: Cache<Raw<Secret>>,
    policies: Cache<PropagationPolicy>,
    clusters: Cache<Cluster>,
    recorder: Recorder,
}

/// A member, and what is known of it.
struct Cell {
    name: String,
    city: String,
    plane: Plane,
    namespaces: Cache<Raw<Namespace>>,
    templates: Cache<Raw<WorkloadDeployment>>,
    config_maps: Cache<Raw<ConfigMap>>,
    secrets: Cache<Raw<Secret>>,
}

/// Both sides.
struct World {
    hub: Hub,
    cells: BTreeMap<PlaneId, Cell>,
    /// Names of the members.
    names: BTreeSet<String>,
    /// Planes of the members, by name.
    planes: BTreeMap<String, PlaneId>,
}

impl World {
    fn new(hub: Plane, members: Vec<Member>, events: &Events) -> Self {
        let companions = Selector::labels(labels::REFERENCED_DATA);
        let recorder = events.recorder(hub.id().as_str(), hub.client().clone());
        let hub = Hub {
            namespaces: hub.cache(),
            templates: hub.cache(),
            config_maps: hub.cache_of(companions.clone()),
            secrets: hub.cache_of(companions),
            policies: hub.cache(),
            clusters: hub.cache(),
            recorder,
            plane: hub,
        };
        hub.templates.index(&copy::DEPENDENCIES);
        let cells: BTreeMap<_, _> =
            members.into_iter().map(|member| (member.plane.id().clone(), Cell::new(member))).collect();
        let planes: BTreeMap<_, _> =
            cells.values().map(|cell| (cell.name.clone(), cell.plane.id().clone())).collect();
        Self { hub, cells, names: planes.keys().cloned().collect(), planes }
    }

    /// Waits until all of the hub is known: before that, absence means nothing.
    async fn hub_is_known(&self) -> Result<(), Closed> {
        let hub = &self.hub;
        hub.namespaces.synced().await?;
        hub.templates.synced().await?;
        hub.config_maps.synced().await?;
        hub.secrets.synced().await?;
        hub.policies.synced().await?;
        hub.clusters.synced().await
    }
}

impl Cell {
    fn new(Member { name, city, plane }: Member) -> Self {
        // What is not the hub's is nobody's business here, and there may be a lot of it.
        let carried = Selector::labels(format!("{MANAGED_LABEL}=true"));
        Self {
            name,
            city,
            namespaces: plane.cache(),
            templates: plane.cache(),
            config_maps: plane.cache_of(carried.clone()),
            secrets: plane.cache_of(carried),
            plane,
        }
    }
}

/// How much is done at a time. A member that comes back is noticed by its watch; if only requests failed, it is by this backoff.
const LIMITS: Limits = Limits {
    concurrency: 32,
    slow_planes: 128,
    stalled: Duration::from_secs(2),
    timeout: Duration::from_secs(30),
    backoff: Backoff { base: Duration::from_millis(10), max: Duration::from_secs(10) },
    urgent: false,
};

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(5);

/// The queues of all that is done.
struct Queues {
    bind: Queue,
    clusters: Queue,
    namespaces: Queue,
    templates: Queue,
    config_maps: Queue,
    secrets: Queue,
}

async fn run(setup: Setup, stop: CancellationToken) {
    let Setup { hub, members, probe, events } = setup;
    let runtime = hub.runtime().clone();
    let world = Arc::new(World::new(hub, members, &events));
    let queue = |name| Queue::new(&runtime, name, LIMITS.urgent());
    let queues = Arc::new(Queues {
        bind: queue(Binder::NAME),
        clusters: queue(Clusters::NAME),
        namespaces: queue(Copier::<Namespace>::NAME),
        templates: queue(Copier::<WorkloadDeployment>::NAME),
        config_maps: queue(Copier::<ConfigMap>::NAME),
        secrets: queue(Copier::<Secret>::NAME),
    });
    let _subscriptions = watches::start(&world, &queues);
    let known = tokio::select! {
        biased;
        () = stop.cancelled() => return,
        known = world.hub_is_known() => known,
    };
    if known.is_err() {
        // The hub is not served any more, which is not for us to mend.
        return stop.cancelled().await;
    }
    let writer = Writer::new("propagation").with_timeout(REQUEST);
    let binder = Arc::new(Binder::new(world.clone(), writer.clone()));
    let clusters = Arc::new(Clusters::new(world.clone(), writer.clone(), probe));
    tokio::join!(
        controller::run(binder, queues.bind.clone(), stop.cancelled()),
        controller::run(clusters, queues.clusters.clone(), stop.cancelled()),
        copy::run::<Namespace>(&world, &writer, &queues.namespaces, &stop),
        copy::run::<WorkloadDeployment>(&world, &writer, &queues.templates, &stop),
        copy::run::<ConfigMap>(&world, &writer, &queues.config_maps, &stop),
        copy::run::<Secret>(&world, &writer, &queues.secrets, &stop),
    );
}
