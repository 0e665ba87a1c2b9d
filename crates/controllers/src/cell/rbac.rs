//! What the cell controllers may do, plane by plane: no more than they do.

use compute_api::{compute, karmada, networking, quota};
use k8s_openapi::api::rbac::v1::PolicyRule;

/// In the cell's own plane.
pub fn cell() -> Vec<PolicyRule> {
    const OWN: &str = compute::GROUP;
    const NETWORKS: &str = networking::GROUP;
    vec![
        rule(OWN, &["workloaddeployments"], &["list", "watch", "patch"]),
        rule(OWN, &["workloaddeployments/status"], &["patch"]),
        rule(OWN, &["instances"], &["get", "list", "watch", "create", "patch", "delete"]),
        rule(OWN, &["instances/status"], &["patch"]),
        // References that block an owner's deletion may be set only by who may change its finalizers, where a cluster checks that.
        rule(OWN, &["workloaddeployments/finalizers"], &["update"]),
        rule(NETWORKS, &["networkcontexts/finalizers"], &["update"]),
        rule(NETWORKS, &["locations", "networkcontexts", "subnets"], &["list", "watch"]),
        rule(NETWORKS, &["networkbindings"], &["list", "watch", "create", "delete"]),
        rule(NETWORKS, &["subnetclaims"], &["list", "watch", "create"]),
        rule("", &["namespaces"], &["get"]),
        rule("", &["configmaps", "secrets"], &["list", "watch"]),
        rule("", &["events"], &["get", "create", "patch"]),
    ]
}

/// On the hub.
pub fn hub() -> Vec<PolicyRule> {
    vec![
        rule(compute::GROUP, &["workloaddeployments"], &["list", "watch"]),
        rule(compute::GROUP, &["workloaddeployments/finalizers"], &["update"]),
        rule(compute::GROUP, &["instances"], &["list", "watch", "create", "patch", "delete"]),
        rule(compute::GROUP, &["instances/status"], &["patch"]),
        rule(karmada::CLUSTER_GROUP, &["clusters"], &["list", "watch"]),
    ]
}

/// In the planes of projects, to claim quota.
pub fn project() -> Vec<PolicyRule> {
    vec![
        rule(quota::GROUP, &["resourceclaims"], &["get", "list", "watch", "create", "delete"]),
        rule(quota::GROUP, &["allowancebuckets"], &["list"]),
    ]
}

/// In the namespace of the Leases, in the process's own cluster, where replicas agree on who leads. A Role is enough.
pub fn leader_election() -> Vec<PolicyRule> {
    crate::lease::rules(super::LEASE)
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(owned(&[group])),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}
