//! What running for leader takes, in the namespace of the Lease.

use compute_api::rbac::Rule;

const GROUP: &str = "coordination.k8s.io";

/// To make the Lease.
pub const CREATE: Rule = Rule::new(
    GROUP,
    &["leases"],
    &["create"],
    "the first process to come makes the Lease; a rule cannot name what is not there yet",
);

/// To look who leads, to renew and to give up. Whoever grants it names the Leases.
pub const HOLD: Rule = Rule::new(
    GROUP,
    &["leases"],
    &["get", "update"],
    "who leads is looked up; a leader renews its Lease and gives it up",
);
