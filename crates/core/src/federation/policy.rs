//! The one policy for each city of a hub namespace, which sends the city's deployments to its cell.
//!
//! # Guarantees
//!
//! A policy exists if and only if a hub deployment with its city does, and is owned by each of these and by
//! nothing else. Its key is the city in lower case; where deployments spell the city differently, it selects
//! every spelling, since labels are matched exactly. It carries the upstream labels of its namespace; one that
//! does not, and is not owned by deployments alone, is not ours to delete.

use std::collections::{BTreeMap, BTreeSet};

use compute_api::{
    compute::{API_VERSION, WorkloadDeployment},
    k8s::{LabelSelector, ObjectMeta, OwnerReference, Toleration},
    k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement,
    karmada::{
        ClusterAffinity, Placement, PropagationPolicy, PropagationPolicySpec, ResourceSelector,
        SPREAD_BY_CLUSTER, SpreadConstraint, match_labels,
    },
    labels,
};

use serde_json::{Value, json};

use super::Upstream;
use crate::{location::same_city, meta, patch};

/// Marks that Karmada puts on a cluster that it cannot reach.
const CUT_OFF_TAINTS: [&str; 2] = ["cluster.karmada.io/not-ready", "cluster.karmada.io/unreachable"];
/// What such a mark does: keep new objects away, and after a while evict those that are there.
const TAINT_EFFECTS: [&str; 2] = ["NoSchedule", "NoExecute"];

/// What the name of every policy starts with.
const PREFIX: &str = "city-";

/// The name of a city's policy.
pub fn name(city: &str) -> String {
    format!("{PREFIX}{}", city.to_ascii_lowercase())
}

/// The city, in lower case, whose policy has that name. `None` if it is not a name that [`name`] gives.
pub fn city_of_name(name: &str) -> Option<&str> {
    let city = name.strip_prefix(PREFIX)?;
    (!city.is_empty() && !city.bytes().any(|byte| byte.is_ascii_uppercase())).then_some(city)
}

/// The city of a hub deployment, as its label spells it.
pub fn city(hub: &WorkloadDeployment) -> Option<&str> {
    meta::label(&hub.metadata, labels::TOPOLOGY_CITY_CODE).filter(|city| !city.is_empty())
}

/// What to do about a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Apply it: it has the fields that are ours, whole, and no other.
    Apply(Box<PropagationPolicy>),
    /// Delete it, on condition that it is still the one that was looked at.
    Delete {
        /// Its uid.
        uid: String,
    },
    /// It is on its way out and is made again when it is gone.
    Wait,
    /// Nothing.
    Nothing,
}

/// What to do about the policy of a city. `deployments` may hold any of the hub namespace, of which at least name and labels are given.
pub fn decide<'a>(
    hub_namespace: &ObjectMeta,
    of_city: &str,
    deployments: impl IntoIterator<Item = &'a WorkloadDeployment>,
    stored: Option<&PropagationPolicy>,
) -> Step {
    let mut users: Vec<_> = deployments
        .into_iter()
        .filter(|deployment| city(deployment).is_some_and(|city| same_city(city, of_city)))
        .collect();
    users.sort_by_key(|deployment| (meta::name(&deployment.metadata), meta::uid(&deployment.metadata)));
    match stored {
        Some(stored) if meta::is_being_deleted(&stored.metadata) => {
            if users.is_empty() {
                Step::Nothing
            } else {
                Step::Wait
            }
        }
        Some(stored) if users.is_empty() && is_ours(stored) => {
            Step::Delete { uid: meta::uid(&stored.metadata).to_owned() }
        }
        Some(_) | None if users.is_empty() => Step::Nothing,
        stored => {
            let wanted = policy(hub_namespace, of_city, &users);
            if stored.is_some_and(|stored| is_equal(stored, &wanted)) {
                Step::Nothing
            } else {
                Step::Apply(Box::new(wanted))
            }
        }
    }
}

/// What is left to patch after `wanted` was applied: an apply leaves what somebody else has added, and each later pass would find the
/// difference again. `None` if the policy, as the server answered, is as it should be.
pub fn correction(applied: &PropagationPolicy, wanted: &PropagationPolicy) -> Option<Value> {
    if is_equal(applied, wanted) {
        return None;
    }
    let ours = owning_deployments(&wanted.metadata);
    let owners = applied.metadata.owner_references.iter().flatten();
    let owners: Vec<_> =
        owners.filter(|owner| !is_deployment(owner) || ours.contains_key(&*owner.uid)).collect();
    let mut spec = applied.spec.clone();
    spec.resource_selectors.clone_from(&wanted.spec.resource_selectors);
    spec.propagate_deps = wanted.spec.propagate_deps;
    if let (Some(held), Some(placement)) = (&mut spec.placement, &wanted.spec.placement) {
        held.cluster_affinity.clone_from(&placement.cluster_affinity);
        held.spread_constraints.clone_from(&placement.spread_constraints);
    }
    let to_value = |spec: &PropagationPolicySpec| {
        serde_json::to_value(spec).expect("our types have string keys and no failing serialiser")
    };
    Some(json!({
        "metadata": {
            "uid": applied.metadata.uid,
            "resourceVersion": applied.metadata.resource_version,
            "ownerReferences": owners,
        },
        "spec": patch::between(&to_value(&applied.spec), &to_value(&spec)),
    }))
}

/// Whether a stored policy has everything that is ours, and nothing in its place.
fn is_equal(stored: &PropagationPolicy, wanted: &PropagationPolicy) -> bool {
    owning_deployments(&stored.metadata) == owning_deployments(&wanted.metadata)
        && meta::covers(stored.metadata.labels.as_ref(), wanted.metadata.labels.as_ref())
        && covers_spec(&stored.spec, &wanted.spec)
}

/// Whether a policy was made from here: its name alone does not tell.
fn is_ours(stored: &PropagationPolicy) -> bool {
    let mut owners = stored.metadata.owner_references.iter().flatten().peekable();
    Upstream::of(&stored.metadata).is_some() || (owners.peek().is_some() && owners.all(is_deployment))
}

fn is_deployment(owner: &OwnerReference) -> bool {
    owner.kind == "WorkloadDeployment"
}

/// The deployments that own a policy, in any order. Other owners are somebody else's.
fn owning_deployments(meta: &ObjectMeta) -> BTreeMap<&str, &OwnerReference> {
    let owners = meta.owner_references.iter().flatten();
    owners.filter(|owner| is_deployment(owner)).map(|owner| (owner.uid.as_str(), owner)).collect()
}

fn policy(hub_namespace: &ObjectMeta, of_city: &str, users: &[&WorkloadDeployment]) -> PropagationPolicy {
    let spellings: BTreeSet<_> = users.iter().filter_map(|deployment| city(deployment)).collect();
    let selector = selector(&spellings);
    let tolerations = CUT_OFF_TAINTS.iter().flat_map(|key| {
        TAINT_EFFECTS.iter().map(|effect| Toleration {
            key: Some((*key).to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some((*effect).to_owned()),
            ..Toleration::default()
        })
    });
    PropagationPolicy {
        metadata: ObjectMeta {
            name: Some(name(of_city)),
            namespace: hub_namespace.name.clone(),
            // It says where what is in it comes from.
            labels: Upstream::of(hub_namespace).and_then(|upstream| upstream.labels().ok()),
            owner_references: Some(users.iter().map(|user| meta::owned_by(*user)).collect()),
            ..ObjectMeta::default()
        },
        spec: PropagationPolicySpec {
            resource_selectors: vec![ResourceSelector {
                api_version: API_VERSION.to_owned(),
                kind: "WorkloadDeployment".to_owned(),
                label_selector: Some(selector.clone()),
                ..ResourceSelector::default()
            }],
            placement: Some(Placement {
                cluster_affinity: Some(ClusterAffinity {
                    label_selector: Some(selector),
                    ..ClusterAffinity::default()
                }),
                cluster_tolerations: tolerations.collect(),
                spread_constraints: vec![SpreadConstraint {
                    spread_by_field: Some(SPREAD_BY_CLUSTER.to_owned()),
                    min_groups: Some(1),
                    max_groups: Some(1),
                    ..SpreadConstraint::default()
                }],
            }),
            propagate_deps: Some(true),
            ..PropagationPolicySpec::default()
        },
    }
}

fn selector(spellings: &BTreeSet<&str>) -> LabelSelector {
    if let (Some(only), 1) = (spellings.first(), spellings.len()) {
        return match_labels([(labels::TOPOLOGY_CITY_CODE, only)]);
    }
    LabelSelector {
        match_labels: None,
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: labels::TOPOLOGY_CITY_CODE.to_owned(),
            operator: "In".to_owned(),
            values: Some(spellings.iter().map(|city| (*city).to_owned()).collect()),
        }]),
    }
}

/// Whether what is stored has every field that is ours. The hub fills in defaults beside them, and may add
/// tolerations.
fn covers_spec(stored: &PropagationPolicySpec, wanted: &PropagationPolicySpec) -> bool {
    let (Some(held), Some(placement)) = (&stored.placement, &wanted.placement) else { return false };
    // The hub writes the policy's own namespace into a selector that has none.
    let bare = |selector: &ResourceSelector| ResourceSelector { namespace: None, ..selector.clone() };
    stored.resource_selectors.iter().map(bare).eq(wanted.resource_selectors.iter().map(bare))
        && held.cluster_affinity == placement.cluster_affinity
        && held.spread_constraints == placement.spread_constraints
        && placement.cluster_tolerations.iter().all(|wanted| held.cluster_tolerations.contains(wanted))
        && stored.propagate_deps == wanted.propagate_deps
}
