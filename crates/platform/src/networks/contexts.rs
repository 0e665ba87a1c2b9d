//! Bindings and the contexts that they share: a network in one location.

use std::collections::BTreeMap;
use std::sync::Arc;

use compute_api::conditions::Status;
use compute_api::k8s::{ObjectMeta, OwnerReference};
use compute_api::networking::{
    CONDITION_READY, NetworkBinding, NetworkBindingStatus, NetworkContext, NetworkContextReference,
    NetworkContextSpec, NetworkContextStatus,
};
use compute_api::{labels, names};
use compute_core::meta;
use compute_runtime::write::{self, MetadataPatch};
use kube::{Api, ResourceExt as _};

use super::{BINDINGS_BY_NETWORK, Networks, failure};
use crate::status::{self, Onto};

const READY: (Status, &str, &str) = (Status::True, "Ready", "The network is set up in this location");

impl Networks {
    /// Sees to the contexts of a network's bindings. Whether all is done that can be; else something is on its way out and has
    /// to be waited for.
    pub(super) async fn ensure_contexts(&self, namespace: &str, network: &str) -> write::Result<bool> {
        let bindings =
            self.bindings.cache().by_index(&BINDINGS_BY_NETWORK, &format!("{namespace}/{network}"));
        let mut by_location: BTreeMap<String, Vec<Arc<NetworkBinding>>> = BTreeMap::new();
        for binding in bindings {
            // The latest that is known of it, by its own writes.
            let latest = self.bindings.get(namespace, &binding.name_any()).unwrap_or(binding);
            if !meta::is_being_deleted(&latest.metadata) {
                by_location.entry(latest.spec.location.name.clone()).or_default().push(latest);
            }
        }
        let mut is_done = true;
        for (location, bindings) in &by_location {
            let Some(context) = self.ensure_context(namespace, network, location, bindings).await? else {
                is_done = false;
                continue;
            };
            for binding in bindings {
                self.bind(binding, &context).await?;
            }
        }
        Ok(is_done)
    }

    /// The context of a network in a location, owned by those who ask for it, and Ready unless it was told to fail. None while one of that name is on
    /// its way out.
    async fn ensure_context(
        &self,
        namespace: &str,
        network: &str,
        location: &str,
        bindings: &[Arc<NetworkBinding>],
    ) -> write::Result<Option<Arc<NetworkContext>>> {
        let api: Api<NetworkContext> = Api::namespaced(self.cell.client().clone(), namespace);
        let owners: Vec<_> = bindings.iter().map(|binding| meta::owned_by(&**binding)).collect();
        let found = self.contexts_of(namespace, network);
        let context = match found.into_iter().find(|one| one.spec.location.name == location) {
            Some(context) if meta::is_being_deleted(&context.metadata) => return Ok(None),
            Some(context) => self.own(&api, context, owners).await?,
            None => {
                // What cannot be read is told of when it can be.
                let Some(name) = self.free_name(namespace, network, location) else { return Ok(None) };
                let labels = bindings.first().and_then(|binding| upstream_labels(&binding.metadata));
                let new = new_context(namespace, name, network, location);
                let metadata = ObjectMeta { labels, owner_references: Some(owners), ..new.metadata };
                let new = NetworkContext { metadata, ..new };
                match self.writer.create(&api, &new).await {
                    Ok(made) => self.contexts.wrote(made),
                    // The cache is about to show it.
                    Err(write::Error::AlreadyExists(_)) => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
        };
        let stored = context.status.as_ref();
        let wanted = NetworkContextStatus {
            conditions: self.ready(stored.map_or(&[], |status| &status.conditions), &context.metadata),
            ipam: stored.and_then(|status| status.ipam.clone()),
        };
        if stored == Some(&wanted) {
            return Ok(Some(context));
        }
        let written = status::apply(&self.writer, &api, &*context, &wanted, Onto::Any).await?;
        Ok(Some(self.contexts.wrote(written)))
    }

    /// Brings the owners of a context up to date. Those that are gone go too, so that nothing counts them.
    async fn own(
        &self,
        api: &Api<NetworkContext>,
        context: Arc<NetworkContext>,
        owners: Vec<OwnerReference>,
    ) -> write::Result<Arc<NetworkContext>> {
        let mut wanted: Vec<_> =
            context.owner_references().iter().filter(|owner| owner.kind != BINDING).cloned().collect();
        wanted.extend(owners);
        if context.owner_references() == wanted {
            return Ok(context);
        }
        let patch = MetadataPatch {
            owner_references: Some(wanted),
            uid: context.uid(),
            resource_version: context.resource_version(),
            ..MetadataPatch::default()
        };
        let written = self.writer.patch_metadata(api, &context.name_any(), &patch).await?;
        let mut owned = (*context).clone();
        owned.metadata = written.metadata;
        Ok(self.contexts.wrote(owned))
    }

    /// A name that no other context holds, be it one that cannot be read.
    fn free_name(&self, namespace: &str, network: &str, location: &str) -> Option<String> {
        let cache = self.contexts.cache();
        let plain = names::network_context_name(network, location);
        if self.contexts.get(namespace, &plain).is_none() && !cache.is_unreadable(namespace, &plain) {
            return Some(plain);
        }
        let other = names::network_context_name_on_collision(network, location);
        (!cache.is_unreadable(namespace, &other)).then_some(other)
    }

    async fn bind(&self, binding: &NetworkBinding, context: &NetworkContext) -> write::Result<()> {
        let stored = binding.status.as_ref();
        let wanted = NetworkBindingStatus {
            conditions: self.ready(stored.map_or(&[], |status| &status.conditions), &binding.metadata),
            network_context_ref: Some(NetworkContextReference {
                name: context.name_any(),
                namespace: context.namespace().unwrap_or_default(),
            }),
        };
        if stored == Some(&wanted) {
            return Ok(());
        }
        let api = Api::namespaced(self.cell.client().clone(), meta::namespace(&binding.metadata));
        let written = status::apply(&self.writer, &api, binding, &wanted, Onto::Any).await?;
        self.bindings.wrote(written);
        Ok(())
    }

    fn ready(
        &self,
        stored: &[compute_api::k8s::Condition],
        meta: &ObjectMeta,
    ) -> Vec<compute_api::k8s::Condition> {
        let now = self.cell.runtime().clock().now();
        let said = failure(meta).unwrap_or(READY);
        status::conditions(stored, &[CONDITION_READY], said, meta.generation, now)
    }
}

const BINDING: &str = "NetworkBinding";

/// What is made for a project says so, as far as what it is made for does.
fn upstream_labels(meta: &ObjectMeta) -> Option<BTreeMap<String, String>> {
    let keys = [labels::UPSTREAM_CLUSTER_NAME, labels::UPSTREAM_NAMESPACE];
    let copied: BTreeMap<_, _> = keys
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), meta::label(meta, key)?.to_owned())))
        .collect();
    (!copied.is_empty()).then_some(copied)
}

fn new_context(namespace: &str, name: String, network: &str, location: &str) -> NetworkContext {
    NetworkContext {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        spec: NetworkContextSpec {
            network: network.into(),
            location: location.into(),
            ..NetworkContextSpec::default()
        },
        status: None,
    }
}
