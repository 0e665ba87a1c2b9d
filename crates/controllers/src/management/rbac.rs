//! What the management controllers may do, plane by plane: no more than they do.

use k8s_openapi::api::rbac::v1::PolicyRule;

/// In each project's plane.
pub fn project() -> Vec<PolicyRule> {
    Vec::new()
}

/// In the core plane.
pub fn core() -> Vec<PolicyRule> {
    Vec::new()
}

/// On the hub.
pub fn hub() -> Vec<PolicyRule> {
    Vec::new()
}
