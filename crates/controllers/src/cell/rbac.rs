//! What the cell controllers may do, plane by plane: no more than they do, each rule with its reason.

use compute_api::rbac::{Rule, policies};
use compute_api::{compute, karmada, networking, quota};
use compute_runtime::leader;
use k8s_openapi::api::rbac::v1::PolicyRule;

/// In the cell's own plane.
pub const CELL: &[Rule] = &[
    Rule::new(
        compute::GROUP,
        &["workloaddeployments"],
        &["list", "watch", "patch"],
        "deployments that the hub sent are followed, and keep a finalizer until their instances are gone",
    ),
    Rule::new(
        compute::GROUP,
        &["workloaddeployments/status"],
        &["patch"],
        "counts and conditions of a deployment",
    ),
    Rule::new(
        compute::GROUP,
        &["instances"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "instances are made, replaced and removed; gates, labels and the finalizer are patched; a live look precedes every sweep of the hub",
    ),
    Rule::new(compute::GROUP, &["instances/status"], &["patch"], "conditions of an instance"),
    Rule::new(
        compute::GROUP,
        &["workloaddeployments/finalizers"],
        &["update"],
        "to be named as an owner whose deletion waits, where a server asks for that",
    ),
    Rule::new(
        networking::GROUP,
        &["networkcontexts/finalizers"],
        &["update"],
        "to be named as an owner whose deletion waits, where a server asks for that",
    ),
    Rule::new(
        networking::GROUP,
        &["locations", "networkcontexts", "subnets"],
        &["list", "watch"],
        "where the cell is, and whether its networks are ready",
    ),
    Rule::new(
        networking::GROUP,
        &["networkbindings"],
        &["list", "watch", "create", "delete"],
        "each interface of a deployment has a binding",
    ),
    Rule::new(
        networking::GROUP,
        &["subnetclaims"],
        &["list", "watch", "create"],
        "each network context has a subnet, shared by all who use it",
    ),
    Rule::new(
        "",
        &["namespaces"],
        &["get"],
        "a namespace says which project it is of; one look, remembered by uid",
    ),
    Rule::new(
        "",
        &["configmaps", "secrets"],
        &["list", "watch"],
        "whether companions have arrived; metadata only, see docs/decisions/0009-companions-in-cells.md",
    ),
    Rule::new(
        "",
        &["events"],
        &["get", "create", "patch"],
        "people are told: by a new Event, or by one more of the same",
    ),
];

/// On the hub.
pub const HUB: &[Rule] = &[
    Rule::new(
        compute::GROUP,
        &["workloaddeployments"],
        &["list", "watch"],
        "an instance is written back only while its deployment is here",
    ),
    Rule::new(
        compute::GROUP,
        &["workloaddeployments/finalizers"],
        &["update"],
        "to be named as an owner whose deletion waits, where a server asks for that",
    ),
    Rule::new(
        compute::GROUP,
        &["instances"],
        &["list", "watch", "create", "patch", "delete"],
        "each instance of the cell has a copy here, and copies without an instance are swept",
    ),
    Rule::new(compute::GROUP, &["instances/status"], &["patch"], "what is known of an instance"),
    Rule::new(
        karmada::CLUSTER_GROUP,
        &["clusters"],
        &["list", "watch"],
        "whether the hub knows the cell by the name that it goes by; if not, nothing is written",
    ),
];

/// In the planes of projects, to claim quota.
pub const PROJECT: &[Rule] = &[
    Rule::new(
        quota::GROUP,
        &["resourceclaims"],
        &["get", "list", "watch", "create", "delete"],
        "each instance claims before it may run, and releases when it has stopped",
    ),
    Rule::new(
        quota::GROUP,
        &["allowancebuckets"],
        &["list"],
        "a denial says how much is left, and tells a project without a budget from one that used it up",
    ),
];

/// [`CELL`], as a role has it.
pub fn cell() -> Vec<PolicyRule> {
    policies(CELL)
}

/// [`HUB`], as a role has it.
pub fn hub() -> Vec<PolicyRule> {
    policies(HUB)
}

/// [`PROJECT`], as a role has it.
pub fn project() -> Vec<PolicyRule> {
    policies(PROJECT)
}

/// In the namespace of the Leases, in the process's own cluster, where replicas agree on who leads. A Role is enough.
pub fn leader_election() -> Vec<PolicyRule> {
    const OWN: &[&str] = &[super::LEASE];
    policies(&[leader::rbac::CREATE, leader::rbac::HOLD.named(OWN)])
}
