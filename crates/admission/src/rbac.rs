//! What admission may do in a project's plane: look, and ask about access. Each rule has its reason.

use compute_api::networking;
use compute_api::rbac::{Rule, policies};
use k8s_openapi::api::rbac::v1::PolicyRule;

/// In each project's plane.
pub const PROJECT: &[Rule] = &[
    Rule::new(networking::GROUP, &["networks"], &["get"], "a network that a Workload names must be there"),
    Rule::new(
        networking::GROUP,
        &["locationbindings"],
        &["list"],
        "a city must be offered to the project; a refusal names those that are",
    ),
    Rule::new(
        "authorization.k8s.io",
        &["subjectaccessreviews"],
        &["create"],
        "whether the caller may use a network and read the data that a Workload names",
    ),
];

/// [`PROJECT`], as a role has it.
pub fn project() -> Vec<PolicyRule> {
    policies(PROJECT)
}
