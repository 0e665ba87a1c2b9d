//! Subnet claims and the subnets that answer them.

use std::sync::Arc;

use compute_api::conditions::Status;
use compute_api::k8s::{Condition, ObjectMeta};
use compute_api::networking::{
    NetworkContext, Subnet, SubnetClaim, SubnetClaimStatus, SubnetSpec, SubnetStatus,
};
use compute_core::meta;
use compute_core::subnets::{self, Blocks, IpNet, Refusal};
use compute_runtime::cache::ObjectName;
use compute_runtime::write;
use kube::{Api, ResourceExt as _};

use super::{CLAIMS_BY_CONTEXT, NETWORK, Networks, addresses_of, failure};
use crate::status::{self, Onto};

/// What is said of a claim and of a subnet.
const TYPES: [&str; 3] = ["Allocated", "Programmed", "Ready"];
const READY: (Status, &str, &str) = (Status::True, "Ready", "The subnet is set up");

impl Networks {
    /// Sees to the subnets of a network's claims, oldest first. Whether all is done that can be; else something is on its way
    /// out and has to be waited for.
    pub(super) async fn ensure_subnets(&self, namespace: &str, network: &str) -> write::Result<bool> {
        // What became of subnets that were asked for and not acknowledged: their addresses may be taken.
        self.subnets.make_sure(&self.writer, self.cell.client()).await?;
        let contexts = self.contexts_of(namespace, network);
        let mut claims = self.claims_of(namespace, &contexts);
        // Many at a time are rare; each is looked at once more than needed, and then not again.
        claims.sort_by_key(|claim| (meta::created(&claim.metadata), claim.name_any()));
        let mut taken = self.taken(namespace, network, &contexts);
        let mut is_done = true;
        for claim in claims {
            let found = self.subnets.get(namespace, &claim.name_any());
            let is_own = |subnet: &Arc<Subnet>| {
                meta::is_controlled_by(&subnet.metadata, meta::uid(&claim.metadata))
                    && !meta::is_being_deleted(&subnet.metadata)
            };
            let subnet = match found {
                Some(subnet) if is_own(&subnet) => Ok(subnet),
                // Of a claim that is gone: it goes too.
                Some(_) => {
                    is_done = false;
                    continue;
                }
                // One that cannot be read holds addresses that nobody knows.
                None if self.subnets.cache().is_unreadable(namespace, &claim.name_any()) => continue,
                None => match self.allocate(&claim, &contexts, &taken) {
                    Ok(given) => {
                        // Something else of that name holds addresses that nobody knows yet: none is given before that.
                        let Some(made) = self.create(&claim, network, given).await? else { return Ok(false) };
                        taken.push(given);
                        Ok(made)
                    }
                    Err(refusal) => Err(refusal),
                },
            };
            if let Ok(subnet) = &subnet {
                self.set_up(subnet).await?;
            }
            self.answer(&claim, subnet.as_deref()).await?;
        }
        Ok(is_done)
    }

    fn claims_of(&self, namespace: &str, contexts: &[Arc<NetworkContext>]) -> Vec<Arc<SubnetClaim>> {
        let of_context = |context: &Arc<NetworkContext>| {
            let value = format!("{namespace}/{}", context.name_any());
            self.claims.cache().by_index(&CLAIMS_BY_CONTEXT, &value)
        };
        let latest = |claim: Arc<SubnetClaim>| self.claims.get(namespace, &claim.name_any()).unwrap_or(claim);
        let all = contexts.iter().flat_map(of_context).map(latest);
        all.filter(|claim| !meta::is_being_deleted(&claim.metadata)).collect()
    }

    /// Addresses for a claim: of those that its location has, the first that are free.
    fn allocate(
        &self,
        claim: &SubnetClaim,
        contexts: &[Arc<NetworkContext>],
        taken: &[IpNet],
    ) -> Result<IpNet, Refusal> {
        let blocks = match &self.locations {
            None => Blocks::WHOLE,
            Some(locations) => {
                let context = contexts.iter().find(|one| one.name_any() == claim.spec.network_context.name);
                let location = context.map_or("", |context| &context.spec.location.name);
                let found = locations.get("", location);
                let blocks = found.as_deref().and_then(addresses_of).and_then(|text| text.parse().ok());
                blocks.ok_or_else(|| Refusal::NoBlock(location.to_owned()))?
            }
        };
        subnets::allocate(&claim.spec, &blocks, taken.iter().copied())
    }

    /// The addresses of a network that are taken, also by subnets whose context or claim is gone and that are about to go.
    fn taken(&self, namespace: &str, network: &str, contexts: &[Arc<NetworkContext>]) -> Vec<IpNet> {
        let all = self.subnets.in_namespace(namespace);
        let of_network = |subnet: &&Arc<Subnet>| {
            meta::annotation(&subnet.metadata, NETWORK) == Some(network)
                || contexts.iter().any(|one| one.name_any() == subnet.spec.network_context.name)
        };
        all.iter().filter(of_network).filter_map(|subnet| subnets::addresses_of(&subnet.spec)).collect()
    }

    /// Makes the subnet of a claim. None if something of that name is there that the cache is about to show.
    async fn create(
        &self,
        claim: &SubnetClaim,
        network: &str,
        given: IpNet,
    ) -> write::Result<Option<Arc<Subnet>>> {
        let spec = &claim.spec;
        let new = Subnet {
            metadata: ObjectMeta {
                name: claim.metadata.name.clone(),
                namespace: claim.metadata.namespace.clone(),
                labels: claim.metadata.labels.clone(),
                annotations: Some([(NETWORK.to_owned(), network.to_owned())].into()),
                owner_references: Some(vec![meta::controlled_by(claim)]),
                ..ObjectMeta::default()
            },
            spec: SubnetSpec {
                subnet_class: spec.subnet_class.clone(),
                network_context: spec.network_context.clone(),
                location: spec.location.clone(),
                ip_family: spec.ip_family.clone(),
                start_address: given.network().to_string(),
                prefix_length: i64::from(given.prefix_len()),
            },
            status: None,
        };
        let api = self.api(&claim.metadata);
        match self.subnets.write(ObjectName::of(claim), self.writer.create(&api, &new)).await {
            Ok(made) => Ok(Some(made)),
            Err(write::Error::AlreadyExists(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn set_up(&self, subnet: &Subnet) -> write::Result<()> {
        let stored = subnet.status.as_ref();
        let wanted = SubnetStatus {
            conditions: self.said(stored.map_or(&[], |status| &status.conditions), READY, &subnet.metadata),
            start_address: Some(subnet.spec.start_address.clone()),
            prefix_length: Some(subnet.spec.prefix_length),
        };
        if stored != Some(&wanted) {
            let api = self.api(&subnet.metadata);
            let written = status::apply(&self.writer, &api, subnet, &wanted, Onto::Any).await?;
            self.subnets.wrote(written);
        }
        Ok(())
    }

    async fn answer(&self, claim: &SubnetClaim, subnet: Result<&Subnet, &Refusal>) -> write::Result<()> {
        let stored = claim.status.as_ref();
        let before = stored.map_or(&[][..], |status| &status.conditions);
        let wanted = match subnet {
            Ok(subnet) => SubnetClaimStatus {
                conditions: self.said(before, READY, &claim.metadata),
                subnet_ref: Some(subnet.name_any().as_str().into()),
                start_address: Some(subnet.spec.start_address.clone()),
                prefix_length: Some(subnet.spec.prefix_length),
            },
            Err(refusal) => {
                let said = (Status::False, refusal.reason(), &*refusal.to_string());
                SubnetClaimStatus {
                    conditions: self.said(before, said, &claim.metadata),
                    ..SubnetClaimStatus::default()
                }
            }
        };
        if stored != Some(&wanted) {
            let api = Api::namespaced(self.cell.client().clone(), meta::namespace(&claim.metadata));
            let written = status::apply(&self.writer, &api, claim, &wanted, Onto::Any).await?;
            self.claims.wrote(written);
        }
        Ok(())
    }

    fn said(&self, stored: &[Condition], said: (Status, &str, &str), meta: &ObjectMeta) -> Vec<Condition> {
        let now = self.cell.runtime().clock().now();
        let said = failure(meta).unwrap_or(said);
        status::conditions(stored, &TYPES, said, meta.generation, now)
    }

    fn api(&self, meta: &ObjectMeta) -> Api<Subnet> {
        Api::namespaced(self.cell.client().clone(), meta::namespace(meta))
    }
}
