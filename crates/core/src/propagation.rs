//! How a hub sends objects to its members, as Karmada does it, for the part of it that we use.
//!
//! [`claim`] says which policy an object belongs to, [`choose`] which clusters that policy sends it to,
//! [`binding`] how both are kept, and [`member`] what happens on one of these. Namespaces go to all members ([`namespace_goes_to_members`]); what
//! a deployment depends on follows it ([`dependencies`]); its status comes back ([`member::reflected`]).
//!
//! # Guarantees
//!
//! An object belongs to one policy only, and the first claim sticks while it matches. A choice of clusters
//! sticks as well: nothing moves because something better came.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use compute_api::{
    compute::WorkloadDeployment,
    k8s::{LabelSelector, Taint, Toleration},
    karmada::{Cluster, Placement, PropagationPolicy, ResourceSelector, SPREAD_BY_CLUSTER},
};

use crate::{
    meta,
    referenced_data::{self, Source},
};

pub mod binding;
pub mod member;

/// What a policy looks at.
#[derive(Clone, Copy, Debug)]
pub struct Template<'a> {
    /// Group and version.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Namespace.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// Labels.
    pub labels: Option<&'a BTreeMap<String, String>>,
}

/// Whether labels are what a selector asks for. An empty selector asks for nothing; an operator that is none
/// matches nothing.
pub fn matches(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let equal = selector.match_labels.iter().flatten().all(|(key, wanted)| value(key) == Some(wanted));
    equal
        && selector.match_expressions.iter().flatten().all(|one| {
            let listed = |value: &String| one.values.as_ref().is_some_and(|values| values.contains(value));
            match one.operator.as_str() {
                "In" => value(&one.key).is_some_and(listed),
                "NotIn" => !value(&one.key).is_some_and(listed),
                "Exists" => value(&one.key).is_some(),
                "DoesNotExist" => value(&one.key).is_none(),
                _ => false,
            }
        })
}

/// How closely a policy names an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    Kind,
    Labels,
    Name,
}

fn closeness(policy: &PropagationPolicy, template: &Template<'_>) -> Option<Closeness> {
    // A policy of a namespace chooses in that namespace, whatever its selectors say.
    if meta::namespace(&policy.metadata) != template.namespace {
        return None;
    }
    policy.spec.resource_selectors.iter().filter_map(|selector| selects(selector, template)).max()
}

fn selects(selector: &ResourceSelector, template: &Template<'_>) -> Option<Closeness> {
    let other = |wanted: &Option<String>, is: &str| {
        wanted.as_deref().is_some_and(|wanted| !wanted.is_empty() && wanted != is)
    };
    if selector.api_version != template.api_version
        || selector.kind != template.kind
        || other(&selector.namespace, template.namespace)
        || other(&selector.name, template.name)
    {
        return None;
    }
    if selector.name.as_deref().is_some_and(|name| !name.is_empty()) {
        return Some(Closeness::Name);
    }
    match &selector.label_selector {
        None => Some(Closeness::Kind),
        Some(labels) => matches(labels, template.labels).then_some(Closeness::Labels),
    }
}

/// The policy that an object belongs to: the one that has it, while that matches; else of those that match the
/// one of the highest priority, then the one that names it most closely, then the one with the lowest name.
pub fn claim<'a>(
    template: &Template<'_>,
    policies: impl IntoIterator<Item = &'a PropagationPolicy>,
    held_by: Option<&str>,
) -> Option<&'a PropagationPolicy> {
    policies
        .into_iter()
        .filter(|policy| !meta::is_being_deleted(&policy.metadata))
        .filter_map(|policy| Some((closeness(policy, template)?, policy)))
        .max_by_key(|(closeness, policy)| {
            let name = meta::name(&policy.metadata);
            let priority = policy.spec.priority.unwrap_or_default();
            (held_by == Some(name), priority, *closeness, Reverse(name))
        })
        .map(|(_, policy)| policy)
}

/// The clusters that a placement chooses. Those that are chosen already stay while they may; of the others the
/// lowest names come first.
pub fn choose<'a>(
    placement: Option<&Placement>,
    clusters: impl IntoIterator<Item = &'a Cluster>,
    chosen: &BTreeSet<String>,
) -> BTreeSet<String> {
    let default = Placement::default();
    let placement = placement.unwrap_or(&default);
    let mut possible: Vec<_> = clusters
        .into_iter()
        .filter(|cluster| !meta::is_being_deleted(&cluster.metadata) && is_wanted(placement, cluster))
        .filter(|cluster| {
            let has_it = chosen.contains(meta::name(&cluster.metadata));
            !cluster.spec.taints.iter().any(|taint| keeps_away(placement, taint, has_it))
        })
        .map(|cluster| meta::name(&cluster.metadata))
        .collect();
    possible.sort_unstable_by_key(|name| (!chosen.contains(*name), *name));
    possible.dedup();
    let limits = placement
        .spread_constraints
        .iter()
        .find(|constraint| constraint.spread_by_field.as_deref() == Some(SPREAD_BY_CLUSTER));
    let limit = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
    if let Some(limits) = limits {
        if possible.len() < limit(limits.min_groups).unwrap_or(0) {
            return BTreeSet::new();
        }
        possible.truncate(limit(limits.max_groups).filter(|most| *most > 0).unwrap_or(usize::MAX));
    }
    possible.into_iter().map(str::to_owned).collect()
}

fn is_wanted(placement: &Placement, cluster: &Cluster) -> bool {
    let Some(affinity) = &placement.cluster_affinity else { return true };
    let name = cluster.metadata.name.clone().unwrap_or_default();
    !affinity.exclude.contains(&name)
        && (affinity.cluster_names.is_empty() || affinity.cluster_names.contains(&name))
        && affinity
            .label_selector
            .as_ref()
            .is_none_or(|selector| matches(selector, cluster.metadata.labels.as_ref()))
}

/// Whether a mark on a cluster keeps an object from coming, or, if it is there, from staying.
fn keeps_away(placement: &Placement, taint: &Taint, has_it: bool) -> bool {
    let counts = match taint.effect.as_str() {
        "NoExecute" => true,
        "NoSchedule" => !has_it,
        _ => false,
    };
    counts && !placement.cluster_tolerations.iter().any(|toleration| tolerates(toleration, taint))
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let empty_or = |wanted: &Option<String>, is: &str| {
        wanted.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == is)
    };
    let value = match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => {
            toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
        }
        Some(_) => false,
    };
    empty_or(&toleration.key, &taint.key) && empty_or(&toleration.effect, &taint.effect) && value
}

/// Whether a namespace of the hub goes to all members. Those of the hub's own machinery do not.
pub fn namespace_goes_to_members(name: &str) -> bool {
    !name.starts_with("kube-") && !name.starts_with("karmada-") && name != "default"
}

/// What follows a deployment to its cluster: the companions of what its template names.
pub fn dependencies(deployment: &WorkloadDeployment) -> BTreeSet<Source> {
    referenced_data::required(&deployment.spec.template.spec)
}

#[cfg(test)]
mod tests;
