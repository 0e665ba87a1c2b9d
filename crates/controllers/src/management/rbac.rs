//! What the management controllers may do, plane by plane: no more than they do, each rule with its reason.

use compute_api::rbac::{Rule, policies};
use compute_api::{compute, karmada, milo, networking};
use compute_runtime::leader;
use k8s_openapi::api::rbac::v1::PolicyRule;

/// In each project's plane.
pub const PROJECT: &[Rule] = &[
    Rule::new(
        compute::GROUP,
        &["workloads"],
        &["list", "watch", "patch"],
        "Workloads are followed, and keep a finalizer until their last deployment is gone",
    ),
    Rule::new(
        compute::GROUP,
        &["workloaddeployments"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "one deployment per placement and city is made, kept and removed; a live look tells whether one that the hub still has is gone",
    ),
    Rule::new(
        compute::GROUP,
        &["instances"],
        &["list", "watch", "create", "patch", "delete"],
        "what runs in cells is shown here, and goes when it is gone there",
    ),
    Rule::new(
        compute::GROUP,
        &["workloads/status", "workloaddeployments/status", "instances/status"],
        &["patch"],
        "what is known of each is written to its status",
    ),
    Rule::new(
        compute::GROUP,
        &["workloads/finalizers", "workloaddeployments/finalizers"],
        &["update"],
        "to be named as an owner whose deletion waits, where a server asks for that",
    ),
    Rule::new(
        networking::GROUP,
        &["locationbindings", "networks"],
        &["list", "watch"],
        "which cities are offered to the project, and whether the networks that a template names are there",
    ),
    Rule::new(
        "",
        &["namespaces"],
        &["get", "list", "watch"],
        "the uid of a namespace names its counterpart on the hub, which goes when the namespace is gone",
    ),
    EVENTS,
];

/// In the core plane: to find projects, and to ask whether one still exists.
pub const CORE: &[Rule] = &[Rule::new(
    milo::RESOURCE_MANAGER_GROUP,
    &["projects"],
    &["get", "list", "watch"],
    "each project is served from its first Ready on; a live look tells whether one is really gone before its hub namespaces go",
)];

/// In the core plane besides, where projects are found by the objects that stand for their planes: `internalServiceDiscovery`.
pub const CORE_INTERNAL: &[Rule] = &[Rule::new(
    milo::INFRASTRUCTURE_GROUP,
    &["projectcontrolplanes"],
    &["list", "watch"],
    "each control plane is served from its first ControlPlaneReady on",
)];

/// On the hub.
pub const HUB: &[Rule] = &[
    Rule::new(
        compute::GROUP,
        &["workloaddeployments"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "each project's deployment has a copy here; its owned fields are read before they are taken back",
    ),
    Rule::new(
        compute::GROUP,
        &["instances"],
        &["list", "watch"],
        "what cells write back is shown in the project",
    ),
    Rule::new(
        karmada::POLICY_GROUP,
        &["propagationpolicies"],
        &["list", "watch", "create", "patch", "delete"],
        "one policy per city and namespace sends deployments to the cell of the city",
    ),
    Rule::new(
        karmada::CLUSTER_GROUP,
        &["clusters"],
        &["list", "watch"],
        "whether a city has a cell, and whether that answers",
    ),
    Rule::new(
        "",
        &["namespaces"],
        &["list", "watch", "create", "patch", "delete"],
        "each project namespace that has deployments has a counterpart here",
    ),
    EVENTS,
];

const EVENTS: Rule = Rule::new(
    "",
    &["events"],
    &["get", "create", "patch"],
    "people are told: by a new Event, or by one more of the same",
);

/// [`PROJECT`], as a role has it.
pub fn project() -> Vec<PolicyRule> {
    policies(PROJECT)
}

/// [`CORE`], as a role has it.
pub fn core() -> Vec<PolicyRule> {
    policies(CORE)
}

/// [`CORE_INTERNAL`], as a role has it.
pub fn core_internal() -> Vec<PolicyRule> {
    policies(CORE_INTERNAL)
}

/// [`HUB`], as a role has it.
pub fn hub() -> Vec<PolicyRule> {
    policies(HUB)
}

/// In the namespace of the Leases, in the process's own cluster, where replicas agree on who leads. A Role is enough.
pub fn leader_election() -> Vec<PolicyRule> {
    const OWN: &[&str] = &[super::LEASE];
    policies(&[leader::rbac::CREATE, leader::rbac::HOLD.named(OWN)])
}
