//! The networks of a deployment in its cell: what to ask for next, and what to say as `NetworkReady`.
//!
//! For each interface there is a NetworkBinding, owned by the deployment. When it is Ready it names a
//! NetworkContext; when that is Ready, one SubnetClaim, owned by the context and shared by all that use it,
//! leads to a Subnet. A binding's network cannot be changed: one of a network that the interface names no more, or of an
//! interface that is no more, is deleted, and awaited where another takes its place.

use std::collections::{BTreeMap, BTreeSet};

use compute_api::{
    compute::{LocationReference, NetworkReference, WorkloadDeployment},
    conditions::{self as c, Status, Update},
    k8s::{Condition, ObjectMeta},
    names,
    networking::{
        CONDITION_READY, IPV4, NameReference, NetworkBinding, NetworkBindingSpec, NetworkContext,
        SUBNET_CLASS_PRIVATE, Subnet, SubnetClaim, SubnetClaimSpec,
    },
};

use crate::meta;

/// What is there, as far as caches tell. Each may hold more than the deployment needs.
#[derive(Clone, Debug, Default)]
pub struct Observed<'a> {
    /// Bindings that the deployment controls, and those that have the names of its own.
    pub bindings: Vec<&'a NetworkBinding>,
    /// Contexts that bindings name.
    pub contexts: Vec<&'a NetworkContext>,
    /// Subnet claims of these.
    pub claims: Vec<&'a SubnetClaim>,
    /// Subnets of these.
    pub subnets: Vec<&'a Subnet>,
}

/// What to create.
#[derive(Clone, Debug, PartialEq)]
pub enum Create {
    /// A binding.
    Binding(Box<NetworkBinding>),
    /// A subnet claim. That it is already there is no error: it is shared.
    SubnetClaim(Box<SubnetClaim>),
}

/// A binding to be deleted, in the deployment's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// Its name.
    pub name: String,
    /// Its uid: another one of that name is left alone.
    pub uid: String,
}

/// What to do about the networks of a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What to delete.
    pub delete: Vec<Delete>,
    /// What to create, in order.
    pub create: Vec<Create>,
    /// What to say as `NetworkReady`.
    pub condition: Update,
}

impl Plan {
    /// Whether the network gate of the deployment's instances may go.
    pub fn is_ready(&self) -> bool {
        self.condition.status == Status::True
    }
}

/// How far one interface is.
enum Progress {
    Create(Create, String),
    Delete(Delete, String),
    Waits(String),
    Failed(String),
    Ready,
}

/// What to do about the networks of a deployment. A deployment that is being deleted asks for nothing more.
pub fn decide(
    deployment: &WorkloadDeployment,
    location: Option<&LocationReference>,
    observed: &Observed<'_>,
) -> Plan {
    let (mut create, mut waits, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    let mut delete = surplus(deployment, observed);
    let mut claimed = BTreeSet::new();
    for (index, interface) in deployment.spec.template.spec.network_interfaces.iter().enumerate() {
        match progress(deployment, index, &interface.network, location, observed) {
            Progress::Create(step, message) => {
                // Two interfaces of one network share its claim.
                let fresh = match &step {
                    Create::SubnetClaim(claim) => claimed.insert(meta::name(&claim.metadata).to_owned()),
                    Create::Binding(_) => true,
                };
                if fresh && !meta::is_being_deleted(&deployment.metadata) {
                    create.push(step);
                }
                waits.push(message);
            }
            Progress::Delete(step, message) => {
                delete.push(step);
                waits.push(message);
            }
            Progress::Waits(message) => waits.push(message),
            Progress::Failed(message) => failed.push(message),
            Progress::Ready => {}
        }
    }
    let condition = match (failed.into_iter().next(), waits.into_iter().next()) {
        (Some(message), _) => refused(message),
        (None, Some(message)) => provisioning(message),
        (None, None) => Update::new(c::NETWORK_READY, Status::True, c::DATA_READY, "The networks are set up"),
    };
    if meta::is_being_deleted(&deployment.metadata) {
        // What it controls goes with it.
        delete.clear();
    }
    Plan { delete, create, condition }
}

/// The deployment's bindings for interfaces that it does not have any more.
fn surplus(deployment: &WorkloadDeployment, observed: &Observed<'_>) -> Vec<Delete> {
    let (name, uid) = (meta::name(&deployment.metadata), meta::uid(&deployment.metadata));
    let interfaces = deployment.spec.template.spec.network_interfaces.len();
    let wanted: BTreeSet<_> = (0..interfaces).map(|index| names::network_binding_name(name, index)).collect();
    let owned = observed.bindings.iter().filter(|binding| meta::is_controlled_by(&binding.metadata, uid));
    let left = owned.filter(|binding| {
        !meta::is_being_deleted(&binding.metadata) && !wanted.contains(meta::name(&binding.metadata))
    });
    left.map(|binding| Delete::of(&binding.metadata)).collect()
}

impl Delete {
    fn of(meta: &ObjectMeta) -> Self {
        Self { name: meta::name(meta).to_owned(), uid: meta::uid(meta).to_owned() }
    }
}

/// What to say when something that networks need is refused.
pub fn refused(message: impl Into<String>) -> Update {
    Update::new(c::NETWORK_READY, Status::False, c::NETWORK_FAILED_TO_CREATE, message)
}

fn provisioning(message: String) -> Update {
    Update::new(c::NETWORK_READY, Status::False, c::NETWORK_PROVISIONING, message)
}

fn progress(
    deployment: &WorkloadDeployment,
    index: usize,
    network: &NetworkReference,
    location: Option<&LocationReference>,
    observed: &Observed<'_>,
) -> Progress {
    let name = names::network_binding_name(meta::name(&deployment.metadata), index);
    let namespace = meta::namespace(&deployment.metadata);
    let found = find(&observed.bindings, namespace, &name, |binding| &binding.metadata);
    let nowhere = || {
        let city = &deployment.spec.city_code;
        Progress::Waits(format!(
            "The location of city {city} is not known in this cell yet; the operators of the platform add it"
        ))
    };
    let Some(binding) = found else {
        let Some(location) = location else { return nowhere() };
        let new = binding(deployment, &name, network, location);
        let message = format!("Network {} is being asked for; nothing is asked of you", network.name);
        return Progress::Create(Create::Binding(Box::new(new)), message);
    };
    if !meta::is_controlled_by(&binding.metadata, meta::uid(&deployment.metadata)) {
        return Progress::Waits(format!(
            "A network binding {name} of something else must go first; the operators of the cell can delete it"
        ));
    }
    if !is_same(&binding.spec.network, network, namespace) && !meta::is_being_deleted(&binding.metadata) {
        // Nothing is given up that could not be asked for again.
        if location.is_none() {
            return nowhere();
        }
        let message = format!(
            "Network {} gives way to {}; nothing is asked of you",
            binding.spec.network.name, network.name
        );
        return Progress::Delete(Delete::of(&binding.metadata), message);
    }
    let status = binding.status.as_ref();
    if let Some(not_ready) = not_ready(status.map_or(&[], |s| &s.conditions), &binding.metadata, || {
        format!("Network {} is being set up in this location; nothing is asked of you", network.name)
    }) {
        return not_ready;
    }
    let Some(context_ref) = status.and_then(|status| status.network_context_ref.as_ref()) else {
        return Progress::Waits(format!(
            "Network {} has no context in this location yet; nothing is asked of you",
            network.name
        ));
    };
    let context = find(&observed.contexts, &context_ref.namespace, &context_ref.name, |one| &one.metadata);
    let waits = || format!("Network context {} is being set up; nothing is asked of you", context_ref.name);
    let Some(context) = context else { return Progress::Waits(waits()) };
    let conditions = context.status.as_ref().map_or(&[][..], |status| &status.conditions);
    if let Some(not_ready) = not_ready(conditions, &context.metadata, waits) {
        return not_ready;
    }
    // Where it is set up was decided with the binding: it stays, also when the location is not known any more.
    subnet(context, &binding.spec.location, observed)
}

/// Whether two references, both of objects in `namespace`, mean the same network.
fn is_same(one: &NetworkReference, other: &NetworkReference, namespace: &str) -> bool {
    let of = |network: &NetworkReference| {
        network.namespace.as_deref().filter(|held| !held.is_empty()).unwrap_or(namespace).to_owned()
    };
    one.name == other.name && of(one) == of(other)
}

fn subnet(context: &NetworkContext, location: &NameReference, observed: &Observed<'_>) -> Progress {
    let namespace = meta::namespace(&context.metadata);
    let name = names::subnet_claim_name(meta::name(&context.metadata));
    let Some(claim) = find(&observed.claims, namespace, &name, |one| &one.metadata) else {
        let new = subnet_claim(context, &name, location);
        return Progress::Create(
            Create::SubnetClaim(Box::new(new)),
            format!("Subnet {name} is being asked for; nothing is asked of you"),
        );
    };
    let status = claim.status.as_ref();
    if let Some(not_ready) = not_ready(status.map_or(&[], |s| &s.conditions), &claim.metadata, || {
        format!("Subnet {name} is being set up; nothing is asked of you")
    }) {
        return not_ready;
    }
    let named = status.and_then(|status| status.subnet_ref.as_ref()).map(|subnet| subnet.name.as_str());
    let subnet = named.and_then(|named| find(&observed.subnets, namespace, named, |one| &one.metadata));
    let waits = || format!("Subnet {} is being set up; nothing is asked of you", named.unwrap_or(&name));
    let Some(subnet) = subnet else { return Progress::Waits(waits()) };
    let conditions = subnet.status.as_ref().map_or(&[][..], |status| &status.conditions);
    not_ready(conditions, &subnet.metadata, waits).unwrap_or(Progress::Ready)
}

/// Why an object is not ready, if it is not. What it says itself goes out verbatim if it is a failure.
fn not_ready(conditions: &[Condition], meta: &ObjectMeta, waits: impl Fn() -> String) -> Option<Progress> {
    if meta::is_being_deleted(meta) {
        return Some(Progress::Waits(waits()));
    }
    if c::is_true(conditions, CONDITION_READY) {
        return None;
    }
    let failure =
        conditions.iter().find(|said| Status::of(said) == Status::False && is_failure(&said.reason));
    Some(match failure {
        Some(said) if said.message.is_empty() => Progress::Failed(said.reason.clone()),
        Some(said) => Progress::Failed(said.message.clone()),
        None => Progress::Waits(waits()),
    })
}

/// Whether a reason of the networking service speaks of something that waiting does not mend. Its other reasons
/// are steps on the way.
fn is_failure(reason: &str) -> bool {
    ["Fail", "Error", "Invalid", "Exhausted", "Denied", "NotFound"].iter().any(|word| reason.contains(word))
}

fn find<'a, T>(all: &[&'a T], namespace: &str, name: &str, of: fn(&T) -> &ObjectMeta) -> Option<&'a T> {
    all.iter().copied().find(|one| meta::namespace(of(one)) == namespace && meta::name(of(one)) == name)
}

fn binding(
    deployment: &WorkloadDeployment,
    name: &str,
    network: &NetworkReference,
    location: &LocationReference,
) -> NetworkBinding {
    NetworkBinding {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: deployment.metadata.namespace.clone(),
            labels: upstream_labels(&deployment.metadata),
            owner_references: Some(vec![meta::controlled_by(deployment)]),
            ..ObjectMeta::default()
        },
        spec: NetworkBindingSpec {
            network: network.clone(),
            location: location.name.as_str().into(),
            consumer: None,
        },
        status: None,
    }
}

fn subnet_claim(context: &NetworkContext, name: &str, location: &NameReference) -> SubnetClaim {
    SubnetClaim {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: context.metadata.namespace.clone(),
            labels: upstream_labels(&context.metadata),
            owner_references: Some(vec![meta::controlled_by(context)]),
            ..ObjectMeta::default()
        },
        spec: SubnetClaimSpec {
            subnet_class: SUBNET_CLASS_PRIVATE.to_owned(),
            network_context: meta::name(&context.metadata).into(),
            location: location.clone(),
            ip_family: IPV4.to_owned(),
            start_address: None,
            prefix_length: None,
        },
        status: None,
    }
}

/// What is made for a project says so, as far as what it is made for does.
fn upstream_labels(meta: &ObjectMeta) -> Option<BTreeMap<String, String>> {
    use compute_api::labels::{UPSTREAM_CLUSTER_NAME, UPSTREAM_NAMESPACE};
    let copied: BTreeMap<_, _> = [UPSTREAM_CLUSTER_NAME, UPSTREAM_NAMESPACE]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), meta::label(meta, key)?.to_owned())))
        .collect();
    (!copied.is_empty()).then_some(copied)
}

#[cfg(test)]
mod tests;
