//! What it takes to run for a Lease.

use compute_runtime::leader::rbac::{CREATE, HOLD};
use k8s_openapi::api::rbac::v1::PolicyRule;

/// To run for the Lease of this name, to renew it and to give it up, in the namespace where it is: no other Lease, and no list.
pub(crate) fn rules(name: &str) -> Vec<PolicyRule> {
    // What is created has no name yet, as far as a server's rules can tell.
    vec![CREATE.to_policy(), PolicyRule { resource_names: Some(vec![name.to_owned()]), ..HOLD.to_policy() }]
}
