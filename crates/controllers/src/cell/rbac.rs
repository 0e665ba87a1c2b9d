//! What the cell controllers may do, plane by plane: no more than they do.

use k8s_openapi::api::rbac::v1::PolicyRule;

/// In the cell's own plane.
pub fn cell() -> Vec<PolicyRule> {
    Vec::new()
}

/// On the hub.
pub fn hub() -> Vec<PolicyRule> {
    Vec::new()
}

/// In the planes of projects, to claim quota.
pub fn project() -> Vec<PolicyRule> {
    Vec::new()
}
