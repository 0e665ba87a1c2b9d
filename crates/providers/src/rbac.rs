//! What a provider may do in its cell: no more than it does, each rule with its reason.

use compute_api::compute::GROUP;
use compute_api::networking;
use compute_api::rbac::{Rule, policies};
use k8s_openapi::api::rbac::v1::PolicyRule;

/// In the cell's own plane, whatever the engine.
pub const CELL: &[Rule] = &[
    Rule::new(
        GROUP,
        &["instances"],
        &["list", "watch", "patch"],
        "instances without gates are run, and keep a finalizer until they have stopped",
    ),
    Rule::new(GROUP, &["instances/status"], &["patch"], "whether an instance runs, and its addresses"),
    Rule::new(
        networking::GROUP,
        &["networkcontexts", "subnetclaims", "subnets"],
        &["list", "watch"],
        "where addresses come from, if the cell has networks",
    ),
    Rule::new(
        "",
        &["events"],
        &["create", "get", "patch"],
        "people are told: by a new Event, or by one more of the same",
    ),
];

/// [`CELL`], as a role has it.
pub fn cell() -> Vec<PolicyRule> {
    policies(CELL)
}
