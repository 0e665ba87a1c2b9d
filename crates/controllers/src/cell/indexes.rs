//! Ways to find objects of a cell. Nothing is ever searched for in a list.

use compute_api::annotations::EXPECTED_REFERENCED_DATA;
use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::k8s::OwnerReference;
use compute_api::networking::{Location, NetworkBinding, SubnetClaim};
use compute_core::meta;
use compute_core::referenced_data::{Expected, required};
use compute_runtime::Index;

/// A name in a namespace, as one value of an index.
pub(super) fn path(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Instances by the uid of the deployment that controls them.
pub(super) static INSTANCES_OF: Index<Instance> = Index::new("cell-controller-uid", |instance| {
    meta::controller_uid(&instance.metadata).map(str::to_owned).into_iter().collect()
});

/// Instances by the [`path`] of the deployment that controls them.
pub(super) static INSTANCES_OF_NAMED: Index<Instance> = Index::new("cell-controller-name", |instance| {
    let deployment = deployment_name(instance);
    deployment.map(|name| path(meta::namespace(&instance.metadata), name)).into_iter().collect()
});

/// Instances by the [`path`]s of companions that they cannot start without.
pub(super) static INSTANCES_NAMING: Index<Instance> = Index::new("cell-companion", |instance| {
    let namespace = meta::namespace(&instance.metadata);
    required(&instance.spec).iter().map(|source| path(namespace, &source.companion_name())).collect()
});

/// Deployments by city, in lower case.
pub(super) static DEPLOYMENTS_IN: Index<WorkloadDeployment> =
    Index::new("cell-city", |deployment| vec![deployment.spec.city_code.to_ascii_lowercase()]);

/// Deployments by the [`path`]s of companions that they expect.
pub(super) static DEPLOYMENTS_EXPECTING: Index<WorkloadDeployment> =
    Index::new("cell-companion", |deployment| {
        let namespace = meta::namespace(&deployment.metadata);
        let noted = meta::annotation(&deployment.metadata, EXPECTED_REFERENCED_DATA);
        let companions = noted.and_then(Expected::parse).map(|expected| expected.companions);
        companions.into_iter().flatten().map(|name| path(namespace, &name)).collect()
    });

/// Locations by city, in lower case.
pub(super) static LOCATIONS_OF: Index<Location> = Index::new("cell-city", |location| {
    location.spec.city_code().map(str::to_ascii_lowercase).into_iter().collect()
});

/// Network bindings by the uid of the deployment that controls them.
pub(super) static BINDINGS_OF: Index<NetworkBinding> = Index::new("cell-controller-uid", |binding| {
    meta::controller_uid(&binding.metadata).map(str::to_owned).into_iter().collect()
});

/// Network bindings by the [`path`] of the context that they are bound to.
pub(super) static BINDINGS_TO: Index<NetworkBinding> = Index::new("cell-context", |binding| {
    let context = binding.status.as_ref().and_then(|status| status.network_context_ref.as_ref());
    context.map(|context| path(&context.namespace, &context.name)).into_iter().collect()
});

/// Subnet claims by the [`path`] of the subnet that they were given.
pub(super) static CLAIMS_OF: Index<SubnetClaim> = Index::new("cell-subnet", |claim| {
    let subnet = claim.status.as_ref().and_then(|status| status.subnet_ref.as_ref());
    subnet.map(|subnet| path(meta::namespace(&claim.metadata), &subnet.name)).into_iter().collect()
});

/// Name of the deployment that controls an instance.
pub(super) fn deployment_name(instance: &Instance) -> Option<&str> {
    let owners = instance.metadata.owner_references.as_deref().unwrap_or_default();
    let controls =
        |owner: &&OwnerReference| owner.controller == Some(true) && owner.kind == "WorkloadDeployment";
    owners.iter().find(controls).map(|owner| owner.name.as_str())
}
