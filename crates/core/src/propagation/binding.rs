//! Where an object of the hub goes: the policy that has it, and the clusters that were chosen for it, as noted
//! on the object itself.
//!
//! # Guarantees
//!
//! A choice outlives a restart and the loss of a cluster, since it is read back from the object. An object
//! whose policy is deleted is let go of by name only: what was sent stays where it is until another policy
//! claims the object or the object goes, as with Karmada. A member whose `Cluster` is missing for a moment
//! loses nothing.

use std::collections::{BTreeMap, BTreeSet};

use compute_api::{
    k8s::ObjectMeta,
    karmada::{Cluster, PropagationPolicy},
};

use super::{Template, choose, claim};
use crate::meta;

/// On an object of the hub: the policy that has it.
const POLICY: &str = "propagationpolicy.karmada.io/name";
/// On an object of the hub: the namespace of that policy.
const POLICY_NAMESPACE: &str = "propagationpolicy.karmada.io/namespace";
/// On an object of the hub: the clusters that it is sent to.
const CLUSTERS: &str = "resourcebinding.karmada.io/clusters";
/// On an object of the hub: that what it depends on goes with it.
const PROPAGATE_DEPS: &str = "resourcebinding.karmada.io/propagate-deps";

/// The notes on an object of the hub. They stay there: a member does not need them.
pub const ANNOTATIONS: [&str; 4] = [POLICY, POLICY_NAMESPACE, CLUSTERS, PROPAGATE_DEPS];

/// Where an object of the hub goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// The policy that has it; `None` if none does.
    pub policy: Option<String>,
    /// The clusters that it is sent to.
    pub clusters: BTreeSet<String>,
    /// Whether what it depends on goes with it.
    pub propagate_deps: bool,
}

impl Binding {
    /// What an object's notes say.
    pub fn of(object: &ObjectMeta) -> Self {
        let clusters = meta::annotation(object, CLUSTERS).unwrap_or_default();
        Self {
            policy: meta::annotation(object, POLICY).map(str::to_owned),
            clusters: clusters.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            propagate_deps: meta::annotation(object, PROPAGATE_DEPS) == Some("true"),
        }
    }

    /// The notes that say so; those without a value go.
    pub fn annotations(&self, namespace: &str) -> BTreeMap<String, Option<String>> {
        let clusters: Vec<_> = self.clusters.iter().map(String::as_str).collect();
        let clusters = (!clusters.is_empty()).then(|| clusters.join(","));
        BTreeMap::from([
            (POLICY.to_owned(), self.policy.clone()),
            (POLICY_NAMESPACE.to_owned(), self.policy.as_ref().map(|_| namespace.to_owned())),
            (CLUSTERS.to_owned(), clusters),
            (PROPAGATE_DEPS.to_owned(), self.propagate_deps.then(|| "true".to_owned())),
        ])
    }
}

/// Where an object should go. `members` are the names of the clusters that are served.
pub fn decide<'a>(
    template: &Template<'_>,
    held: &Binding,
    policies: impl IntoIterator<Item = &'a PropagationPolicy>,
    clusters: &[&Cluster],
    members: &BTreeSet<String>,
) -> Binding {
    let Some(policy) = claim(template, policies, held.policy.as_deref()) else {
        return Binding { policy: None, ..held.clone() };
    };
    let is_there = |name: &String| {
        clusters.iter().any(|cluster| {
            meta::name(&cluster.metadata) == name && !meta::is_being_deleted(&cluster.metadata)
        })
    };
    let waits = held.clusters.iter().any(|name| members.contains(name) && !is_there(name));
    let chosen = if waits {
        held.clusters.clone()
    } else {
        choose(policy.spec.placement.as_ref(), clusters.iter().copied(), &held.clusters)
    };
    Binding {
        policy: Some(meta::name(&policy.metadata).to_owned()),
        clusters: chosen,
        propagate_deps: policy.spec.propagate_deps == Some(true),
    }
}
