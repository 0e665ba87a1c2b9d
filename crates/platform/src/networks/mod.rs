//! The network service of a cell in its plain form: every binding gets its network in that location, and every claim a subnet that
//! overlaps no other of the network, in this cell or any other.
//!
//! A pass is over one network of a namespace, so that its addresses are given out by one at a time:
//! 1. each location that bindings name gets a context, owned by them (`contexts`), and both become Ready;
//! 2. each claim of these contexts gets a subnet, owned by it (`subnets`), and both become Ready.
//!
//! # Guarantees
//!
//! - Which addresses are free is worked out from the subnets that there are and from nothing else: what is released is free again, and
//!   nothing can leak.
//! - Each location gives subnets out of addresses of its own ([`Addresses`]). So no cell has to ask another, and none is told what others
//!   have given.
//! - Deletes cascade by owner references: a context goes with its last binding, its claims with it, and their subnets with them.
//!
//! # Failures on demand
//!
//! A NetworkBinding, NetworkContext, SubnetClaim or Subnet with the annotation [`FAILURE`] is said to have failed, with the annotation's text,
//! until the annotation is taken off again.

mod contexts;
mod subnets;

use std::sync::Arc;

use compute_api::conditions::{Status, platform};
use compute_api::k8s::ObjectMeta;
use compute_api::networking::{Location, NetworkBinding, NetworkContext, Subnet, SubnetClaim};
use compute_core::meta;
use compute_core::subnets::blocks::ADDRESSES;
use compute_runtime::controller::{self, Error};
use compute_runtime::queue::Limits;
use compute_runtime::tasks::Tasks;
use compute_runtime::write::{self, Writer};
use compute_runtime::{Cache, Index, Key, Next, OwnWrites, Plane, Queue, Reconciler};
use tokio_util::sync::CancellationToken;

/// What the network service needs.
pub struct Setup {
    /// The cell that it serves.
    pub cell: Plane,
    /// What subnets are given out of.
    pub addresses: Addresses,
}

/// What subnets are given out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// All addresses that networks have: they are nowhere but in this cell.
    Whole,
    /// Those that the platform has set aside for the subnet's location, as the Location in the cell says.
    OfLocations,
}

/// On a networking object: that it fails, and what is said of it.
pub const FAILURE: &str = "simulated.datumapis.com/network-failure";

/// Starts the network service. It runs until the tasks are stopped.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    let name = format!("networks of {}", setup.cell.id());
    tasks.spawn(name, move |stop| async move {
        run(setup, stop).await;
        Ok::<_, std::convert::Infallible>(())
    });
}

const NAME: &str = "networks";

/// On a Subnet: its network. Its context may be gone before it is.
const NETWORK: &str = "networking.datumapis.com/network";

/// What objects are found by: the namespace, and a name in it that is not their own.
fn within(meta: &ObjectMeta, name: &str) -> String {
    format!("{}/{name}", meta::namespace(meta))
}

static BINDINGS_BY_NETWORK: Index<NetworkBinding> =
    Index::new("network", |one| vec![within(&one.metadata, &one.spec.network.name)]);
static CLAIMS_BY_CONTEXT: Index<SubnetClaim> =
    Index::new("context", |one| vec![within(&one.metadata, &one.spec.network_context.name)]);

static CONTEXTS_BY_LOCATION: Index<NetworkContext> =
    Index::new("location", |one| vec![one.spec.location.name.clone()]);

struct Networks {
    cell: Plane,
    /// `None` if every location has all addresses.
    locations: Option<Cache<Location>>,
    writer: Writer,
    bindings: OwnWrites<NetworkBinding>,
    contexts: OwnWrites<NetworkContext>,
    claims: OwnWrites<SubnetClaim>,
    subnets: OwnWrites<Subnet>,
}

impl Networks {
    fn new(Setup { cell, addresses }: Setup) -> Self {
        let bindings = cell.cache::<NetworkBinding>();
        let contexts = cell.cache::<NetworkContext>();
        let claims = cell.cache::<SubnetClaim>();
        bindings.index(&BINDINGS_BY_NETWORK);
        contexts.index(&CONTEXTS_BY_LOCATION);
        claims.index(&CLAIMS_BY_CONTEXT);
        Self {
            locations: (addresses == Addresses::OfLocations).then(|| cell.cache()),
            writer: Writer::new(NAME),
            bindings: OwnWrites::new(bindings),
            contexts: OwnWrites::new(contexts),
            claims: OwnWrites::new(claims),
            subnets: OwnWrites::new(cell.cache()),
            cell,
        }
    }

    async fn synced(&self) -> Result<(), compute_runtime::cache::Closed> {
        self.bindings.cache().synced().await?;
        self.contexts.cache().synced().await?;
        self.claims.cache().synced().await?;
        if let Some(locations) = &self.locations {
            locations.synced().await?;
        }
        self.subnets.cache().synced().await
    }

    /// The contexts of a network, also those that the cache does not show yet: one for each of the cell's few locations.
    fn contexts_of(&self, namespace: &str, network: &str) -> Vec<Arc<NetworkContext>> {
        let all = self.contexts.in_namespace(namespace);
        all.into_iter().filter(|context| context.spec.network.name == network).collect()
    }
}

/// The failure that an object was told to have, as what is said of it.
fn failure(meta: &ObjectMeta) -> Option<(Status, &str, &str)> {
    meta::annotation(meta, FAILURE).map(|text| (Status::False, platform::SIMULATED_FAILURE, text))
}

/// The addresses that a location says it has, as written.
fn addresses_of(location: &Location) -> Option<&str> {
    meta::annotation(&location.metadata, ADDRESSES)
}

impl Reconciler for Networks {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let pass = async {
            let contexts = self.ensure_contexts(&key.namespace, &key.name).await?;
            let subnets = self.ensure_subnets(&key.namespace, &key.name).await?;
            Ok(if contexts && subnets { Next::Done } else { Next::After(write::STALE) })
        };
        pass.await.or_else(write::Error::into_next)
    }
}

async fn run(setup: Setup, stop: CancellationToken) {
    let cell = setup.cell.clone();
    let networks = Arc::new(Networks::new(setup));
    let synced = tokio::select! {
        biased;
        () = stop.cancelled() => return,
        synced = networks.synced() => synced,
    };
    if synced.is_err() {
        // The cell is not served any more, and everything is about to stop.
        return stop.cancelled().await;
    }
    let queue = Queue::new(cell.runtime(), NAME, Limits::default());
    let key = {
        let plane = cell.id().clone();
        move |meta: &ObjectMeta, network: &str| Key::new(&plane, meta::namespace(meta), network)
    };
    let of_binding = key.clone();
    let _bindings = queue.watch(networks.bindings.cache(), move |change| {
        change.latest().map(|one| of_binding(&one.metadata, &one.spec.network.name))
    });
    let of_context = key.clone();
    let _contexts = queue.watch(networks.contexts.cache(), move |change| {
        change.latest().map(|one| of_context(&one.metadata, &one.spec.network.name))
    });
    let (of_claim, contexts): (_, Cache<NetworkContext>) = (key.clone(), networks.contexts.cache().clone());
    let _claims = queue.watch(networks.claims.cache(), move |change| {
        let claim = change.latest()?;
        // Without its context nobody knows its network; the context makes that due when it comes.
        let context = contexts.get(meta::namespace(&claim.metadata), &claim.spec.network_context.name)?;
        Some(of_claim(&claim.metadata, &context.spec.network.name))
    });
    let (of_location, contexts) = (key.clone(), networks.contexts.cache().clone());
    let _locations = networks.locations.as_ref().map(|locations| {
        queue.watch(locations, move |change| {
            let (before, after) = (change.before.as_deref(), change.after.as_deref());
            if before.and_then(addresses_of) == after.and_then(addresses_of) {
                return Vec::new();
            }
            let here = contexts.by_index(&CONTEXTS_BY_LOCATION, &change.name.name);
            here.iter().map(|one| of_location(&one.metadata, &one.spec.network.name)).collect()
        })
    });
    let _subnets = queue.watch(networks.subnets.cache(), move |change| {
        let subnet = change.latest()?;
        Some(key(&subnet.metadata, meta::annotation(&subnet.metadata, NETWORK)?))
    });
    controller::run(networks, queue, stop.cancelled()).await;
}
