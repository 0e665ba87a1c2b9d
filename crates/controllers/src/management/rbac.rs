//! What the management controllers may do, plane by plane: no more than they do.

use compute_api::{compute, karmada, milo, networking};
use k8s_openapi::api::rbac::v1::PolicyRule;

/// In each project's plane.
pub fn project() -> Vec<PolicyRule> {
    vec![
        rule(compute::GROUP, &["workloads"], &["list", "watch", "patch"]),
        rule(
            compute::GROUP,
            &["workloaddeployments"],
            &["get", "list", "watch", "create", "patch", "delete"],
        ),
        rule(compute::GROUP, &["instances"], &["list", "watch", "create", "patch", "delete"]),
        rule(
            compute::GROUP,
            &["workloads/status", "workloaddeployments/status", "instances/status"],
            &["patch"],
        ),
        // To be named as an owner whose deletion waits, where a server asks for that.
        rule(compute::GROUP, &["workloads/finalizers", "workloaddeployments/finalizers"], &["update"]),
        rule(networking::GROUP, &["locationbindings", "networks"], &["list", "watch"]),
        rule("", &["namespaces"], &["get", "list", "watch"]),
        events(),
    ]
}

/// In the core plane: to find projects, and to ask whether one still exists.
pub fn core() -> Vec<PolicyRule> {
    vec![rule(milo::RESOURCE_MANAGER_GROUP, &["projects"], &["get", "list", "watch"])]
}

/// In the core plane besides, where projects are found by the objects that stand for their planes: `internalServiceDiscovery`.
pub fn core_internal() -> Vec<PolicyRule> {
    vec![rule(milo::INFRASTRUCTURE_GROUP, &["projectcontrolplanes"], &["list", "watch"])]
}

/// On the hub.
pub fn hub() -> Vec<PolicyRule> {
    vec![
        rule(
            compute::GROUP,
            &["workloaddeployments"],
            &["get", "list", "watch", "create", "patch", "delete"],
        ),
        rule(compute::GROUP, &["instances"], &["list", "watch"]),
        rule(
            karmada::POLICY_GROUP,
            &["propagationpolicies"],
            &["list", "watch", "create", "patch", "delete"],
        ),
        rule(karmada::CLUSTER_GROUP, &["clusters"], &["list", "watch"]),
        rule("", &["namespaces"], &["list", "watch", "create", "patch", "delete"]),
        events(),
    ]
}

/// To tell people something: a new Event, or one more of the same.
fn events() -> PolicyRule {
    rule("", &["events"], &["get", "create", "patch"])
}

/// In the namespace of the Leases, in the process's own cluster, where replicas agree on who leads. A Role is enough.
pub fn leader_election() -> Vec<PolicyRule> {
    crate::lease::rules(super::LEASE)
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}
