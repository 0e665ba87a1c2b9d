//! The subnets of a cell, as a provider needs them: which one an interface of an instance is in.

use std::net::Ipv4Addr;
use std::sync::Arc;

use compute_api::compute::Instance;
use compute_api::names;
use compute_api::networking::{NetworkContext, Subnet, SubnetClaim};
use compute_core::meta;
use compute_core::subnets::{IpNet, addresses_of};
use compute_runtime::cache::Object;
use compute_runtime::{Cache, Index, Plane, Subscription};

/// Finds subnets. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Subnets(Source);

#[derive(Clone, Debug)]
enum Source {
    /// There are no networks: every interface is in this one.
    One(IpNet),
    Cell(Arc<Caches>),
}

#[derive(Debug)]
struct Caches {
    contexts: Cache<NetworkContext>,
    claims: Cache<SubnetClaim>,
    subnets: Cache<Subnet>,
}

/// Contexts by namespace and network.
static CONTEXTS_OF: Index<NetworkContext> = Index::new("provider-network", |context| {
    vec![format!("{}/{}", meta::namespace(&context.metadata), context.spec.network.name)]
});

impl Subnets {
    /// One for all instances, from the range that is set aside for benchmarks (RFC 2544), so that nobody takes its addresses for real: for a
    /// cell without networks.
    pub fn none() -> Self {
        let range = IpNet::new(Ipv4Addr::new(198, 18, 0, 0).into(), 15);
        Self::one(range.expect("a family has more than fifteen bits"))
    }

    /// One for all instances.
    pub fn one(range: IpNet) -> Self {
        Self(Source::One(range))
    }

    /// Those that the networks of a cell have.
    pub fn of(cell: &Plane) -> Self {
        let caches = Caches { contexts: cell.cache(), claims: cell.cache(), subnets: cell.cache() };
        caches.contexts.index(&CONTEXTS_OF);
        Self(Source::Cell(Arc::new(caches)))
    }

    /// The addresses of the subnet that an interface of an instance is in. `None` while that is not known.
    ///
    /// It is the subnet of the interface's network in the instance's location. Where the network was set up elsewhere in the cell before
    /// the location was known, it is the one there.
    pub fn find(&self, instance: &Instance, interface: usize) -> Option<IpNet> {
        let caches = match &self.0 {
            Source::One(range) => return Some(*range),
            Source::Cell(caches) => caches,
        };
        let namespace = meta::namespace(&instance.metadata);
        let network = &instance.spec.network_interfaces.get(interface)?.network.name;
        let location = instance.spec.location.as_ref().map(|location| location.name.as_str());
        let mut contexts = caches.contexts.by_index(&CONTEXTS_OF, &format!("{namespace}/{network}"));
        contexts.sort_by_key(|context| Some(context.spec.location.name.as_str()) != location);
        contexts.iter().find_map(|context| {
            let claim = names::subnet_claim_name(meta::name(&context.metadata));
            let claim = caches.claims.get(namespace, &claim)?;
            let given = claim.status.as_ref()?.subnet_ref.as_ref()?;
            addresses_of(&caches.subnets.get(namespace, &given.name)?.spec)
        })
    }

    /// Calls back whenever a subnet may have come, with its namespace.
    pub(crate) fn on_change(&self, tell: impl Fn(&str) + Clone + Send + Sync + 'static) -> Vec<Subscription> {
        fn hear<K: Object>(cache: &Cache<K>, tell: impl Fn(&str) + Send + Sync + 'static) -> Subscription {
            cache.subscribe(move |change| tell(&change.name.namespace))
        }
        match &self.0 {
            Source::One(_) => Vec::new(),
            Source::Cell(caches) => vec![
                hear(&caches.contexts, tell.clone()),
                hear(&caches.claims, tell.clone()),
                hear(&caches.subnets, tell),
            ],
        }
    }
}
