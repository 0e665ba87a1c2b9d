//! Locations and networks of a cell: what is there, and who has to hear of it.

use std::sync::Arc;

use compute_api::compute::{LocationReference, WorkloadDeployment};
use compute_api::names;
use compute_api::networking::{Location, NetworkBinding, NetworkContext, Subnet, SubnetClaim};
use compute_core::location::{self, Resolved};
use compute_core::meta;
use compute_core::networks::{self, Create, Delete, Observed, Plan};
use compute_runtime::cache::Closed;
use compute_runtime::write::{Error, Result, Target};
use compute_runtime::{Cache, Key, Plane, Queue, Subscription};
use kube::Api;
use kube::api::PropagationPolicy;

use super::super::indexes::{BINDINGS_OF, BINDINGS_TO, CLAIMS_OF, DEPLOYMENTS_IN, LOCATIONS_OF, path};
use super::super::keys;
use super::super::write::unless_outdated;
use super::Deployments;

/// The networking objects of a cell.
pub(super) struct Networks {
    locations: Cache<Location>,
    bindings: Cache<NetworkBinding>,
    contexts: Cache<NetworkContext>,
    claims: Cache<SubnetClaim>,
    subnets: Cache<Subnet>,
}

impl Networks {
    pub(super) fn of(cell: &Plane) -> Self {
        let networks = Self {
            locations: cell.cache(),
            bindings: cell.cache(),
            contexts: cell.cache(),
            claims: cell.cache(),
            subnets: cell.cache(),
        };
        networks.locations.index(&LOCATIONS_OF);
        networks.bindings.index(&BINDINGS_OF);
        networks.bindings.index(&BINDINGS_TO);
        networks.claims.index(&CLAIMS_OF);
        networks
    }

    /// Waits until absence means something.
    pub(super) async fn synced(&self) -> Result<(), Closed> {
        self.locations.synced().await?;
        self.bindings.synced().await?;
        self.contexts.synced().await?;
        self.claims.synced().await?;
        self.subnets.synced().await
    }

    /// Whatever a deployment's networks are made of brings it into the queue.
    pub(super) fn watch(&self, queue: &Queue, deployments: &Cache<WorkloadDeployment>) -> Vec<Subscription> {
        let deployments = deployments.clone();
        let locations = queue.watch(&self.locations, move |change| {
            let cities = change.versions().filter_map(|location| location.spec.city_code());
            let cities: Vec<_> = cities.map(str::to_ascii_lowercase).collect();
            let found = cities.iter().flat_map(|city| deployments.by_index(&DEPLOYMENTS_IN, city));
            found.map(|deployment| keys::of(&*deployment)).collect::<Vec<_>>()
        });
        let bindings = queue.watch(&self.bindings, |change| {
            let owners = change.latest().and_then(|binding| binding.metadata.owner_references.as_deref());
            let owner = owners.unwrap_or_default().iter().find(|owner| owner.controller == Some(true));
            // One that is not readable, or not ours, may stand where ours should: its name says for whom.
            let named = change.name.name.rsplit_once("-net-").map(|(deployment, _)| deployment);
            let named = owner.map(|owner| owner.name.as_str()).or(named);
            named.map(|name| keys::key(&change.name.namespace, name))
        });
        let bound = self.bindings.clone();
        let contexts = queue
            .watch(&self.contexts, move |change| users(&bound, &change.name.namespace, &change.name.name));
        let bound = self.bindings.clone();
        let claims = queue.watch(&self.claims, move |change| {
            let context = change.latest().map(|claim| claim.spec.network_context.name.clone());
            context.map(|name| users(&bound, &change.name.namespace, &name)).unwrap_or_default()
        });
        let (bound, claimed) = (self.bindings.clone(), self.claims.clone());
        let subnets = queue.watch(&self.subnets, move |change| {
            let namespace = &change.name.namespace;
            let claims = claimed.by_index(&CLAIMS_OF, &path(namespace, &change.name.name));
            let contexts = claims.iter().map(|claim| claim.spec.network_context.name.as_str());
            contexts.flat_map(|name| users(&bound, namespace, name)).collect::<Vec<_>>()
        });
        vec![locations, bindings, contexts, claims, subnets]
    }

    /// The location of a city.
    pub(super) fn location(&self, city: &str) -> Option<Resolved> {
        let found = self.locations.by_index(&LOCATIONS_OF, &city.to_ascii_lowercase());
        location::resolve(city, found.iter().map(Arc::as_ref))
    }

    /// What to do about the networks of a deployment.
    pub(super) fn plan(&self, deployment: &WorkloadDeployment, location: Option<&LocationReference>) -> Plan {
        let (namespace, name) = (meta::namespace(&deployment.metadata), meta::name(&deployment.metadata));
        let interfaces = 0..deployment.spec.template.spec.network_interfaces.len();
        let mut bindings = self.bindings.by_index(&BINDINGS_OF, meta::uid(&deployment.metadata));
        // One that is not the deployment's may stand where its own should.
        let named = interfaces
            .filter_map(|index| self.bindings.get(namespace, &names::network_binding_name(name, index)))
            .filter(|binding| !meta::is_controlled_by(&binding.metadata, meta::uid(&deployment.metadata)));
        bindings.extend(named);
        let contexts: Vec<_> = bindings
            .iter()
            .filter_map(|binding| binding.status.as_ref()?.network_context_ref.as_ref())
            .filter_map(|context| self.contexts.get(&context.namespace, &context.name))
            .collect();
        let claims: Vec<_> = contexts
            .iter()
            .filter_map(|context| {
                let name = names::subnet_claim_name(meta::name(&context.metadata));
                self.claims.get(meta::namespace(&context.metadata), &name)
            })
            .collect();
        let subnets: Vec<_> = claims
            .iter()
            .filter_map(|claim| {
                let subnet = claim.status.as_ref()?.subnet_ref.as_ref()?;
                self.subnets.get(meta::namespace(&claim.metadata), &subnet.name)
            })
            .collect();
        let observed = Observed {
            bindings: bindings.iter().map(Arc::as_ref).collect(),
            contexts: contexts.iter().map(Arc::as_ref).collect(),
            claims: claims.iter().map(Arc::as_ref).collect(),
            subnets: subnets.iter().map(Arc::as_ref).collect(),
        };
        networks::decide(deployment, location, &observed)
    }

    /// Whether something that we cannot read has the name of what is to be created.
    fn is_taken(&self, create: &Create) -> bool {
        match create {
            Create::Binding(new) => {
                self.bindings.is_unreadable(meta::namespace(&new.metadata), meta::name(&new.metadata))
            }
            Create::SubnetClaim(new) => {
                self.claims.is_unreadable(meta::namespace(&new.metadata), meta::name(&new.metadata))
            }
        }
    }
}

/// The deployments that use a network context.
fn users(bindings: &Cache<NetworkBinding>, namespace: &str, context: &str) -> Vec<Key> {
    let bindings = bindings.by_index(&BINDINGS_TO, &path(namespace, context));
    let owners = bindings.iter().flat_map(|binding| {
        let owners = binding.metadata.owner_references.as_deref().unwrap_or_default();
        let owner = owners.iter().find(|owner| owner.controller == Some(true));
        owner.map(|owner| keys::key(meta::namespace(&binding.metadata), &owner.name))
    });
    owners.collect()
}

impl Deployments {
    /// Gives up what networks need no more, and asks for what they still need.
    pub(super) async fn set_up_networks(
        &self,
        deployment: &WorkloadDeployment,
        networks: &Networks,
        plan: &Plan,
    ) -> Result<()> {
        let client = self.cell.plane.client();
        for Delete { name, uid } in &plan.delete {
            let api: Api<NetworkBinding> =
                Api::namespaced(client.clone(), meta::namespace(&deployment.metadata));
            let target = Target { name: name.clone(), uid: uid.clone(), resource_version: None };
            unless_outdated(self.writer.delete(&api, &target, PropagationPolicy::Background).await)?;
        }
        for create in plan.create.iter().filter(|create| !networks.is_taken(create)) {
            let created = match create {
                Create::Binding(new) => {
                    let api = Api::namespaced(client.clone(), meta::namespace(&new.metadata));
                    self.writer.create(&api, &**new).await.map(|_| ())
                }
                Create::SubnetClaim(new) => {
                    let api = Api::namespaced(client.clone(), meta::namespace(&new.metadata));
                    self.writer.create(&api, &**new).await.map(|_| ())
                }
            };
            match created {
                // The cache is about to show it: ours, one that is shared, or one that has to go first.
                Ok(()) | Err(Error::AlreadyExists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
