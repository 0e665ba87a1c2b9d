//! The network service of a cell in its plain form: every binding gets its network in that location, and every claim a subnet that
//! overlaps no other of the network.
//!
//! A pass is over one network of a namespace, so that its addresses are given out by one at a time:
//! 1. each location that bindings name gets a context, owned by them (`contexts`), and both become Ready;
//! 2. each claim of these contexts gets a subnet, owned by it (`subnets`), and both become Ready.
//!
//! # Guarantees
//!
//! - Which addresses are free is worked out from the subnets that there are and from nothing else: what is released is free again, and
//!   nothing can leak.
//! - Deletes cascade by owner references: a context goes with its last binding, its claims with it, and their subnets with them.
//!
//! # Caveats
//!
//! - Each cell has the whole of a network's addresses to itself. Nothing joins the cells of one network here.

mod contexts;
mod subnets;

use std::sync::Arc;

use compute_api::k8s::ObjectMeta;
use compute_api::networking::{NetworkBinding, NetworkContext, Subnet, SubnetClaim};
use compute_core::meta;
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
}

/// Starts the network service. It runs until the tasks are stopped.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    let name = format!("networks of {}", setup.cell.id());
    tasks.spawn(name, move |stop| async move {
        run(setup.cell, stop).await;
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

struct Networks {
    cell: Plane,
    writer: Writer,
    bindings: OwnWrites<NetworkBinding>,
    contexts: OwnWrites<NetworkContext>,
    claims: OwnWrites<SubnetClaim>,
    subnets: OwnWrites<Subnet>,
}

impl Networks {
    fn new(cell: Plane) -> Self {
        let bindings = cell.cache::<NetworkBinding>();
        let claims = cell.cache::<SubnetClaim>();
        bindings.index(&BINDINGS_BY_NETWORK);
        claims.index(&CLAIMS_BY_CONTEXT);
        Self {
            writer: Writer::new(NAME),
            bindings: OwnWrites::new(bindings),
            contexts: OwnWrites::new(cell.cache()),
            claims: OwnWrites::new(claims),
            subnets: OwnWrites::new(cell.cache()),
            cell,
        }
    }

    async fn synced(&self) -> Result<(), compute_runtime::cache::Closed> {
        self.bindings.cache().synced().await?;
        self.contexts.cache().synced().await?;
        self.claims.cache().synced().await?;
        self.subnets.cache().synced().await
    }

    /// The contexts of a network, also those that the cache does not show yet: one for each of the cell's few locations.
    fn contexts_of(&self, namespace: &str, network: &str) -> Vec<Arc<NetworkContext>> {
        let all = self.contexts.in_namespace(namespace);
        all.into_iter().filter(|context| context.spec.network.name == network).collect()
    }
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

async fn run(cell: Plane, stop: CancellationToken) {
    let networks = Arc::new(Networks::new(cell.clone()));
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
    let _subnets = queue.watch(networks.subnets.cache(), move |change| {
        let subnet = change.latest()?;
        Some(key(&subnet.metadata, meta::annotation(&subnet.metadata, NETWORK)?))
    });
    controller::run(networks, queue, stop.cancelled()).await;
}
