//! Annotations that we set or read. Their spelling is part of the contract with other software.

/// On a template: an RFC 3339 time; a new value restarts the instances one after the other.
pub const RESTARTED_AT: &str = "compute.datumapis.com/restartedAt";
/// On a template: SSH keys for virtual machines, one `user:key` a line.
pub const SSH_KEYS: &str = "compute.datumapis.com/ssh-keys";
/// The only keys under our prefix that a template may carry.
pub const ALLOWED_IN_TEMPLATES: [&str; 2] = [RESTARTED_AT, SSH_KEYS];

/// On a project's deployment: its hub namespace, recorded before anything is written there.
pub const FEDERATION_NAMESPACE: &str = "compute.datumapis.com/federation-namespace";
/// On the hub copy of a deployment: the generation of the project's object.
pub const UPSTREAM_GENERATION: &str = "compute.datumapis.com/upstream-generation";
/// On the hub copy of a deployment: the uid of the project's object, so that a copy of its predecessor is told
/// apart.
pub const UPSTREAM_UID: &str = "compute.datumapis.com/upstream-uid";
/// On a deployment: JSON of the companions that must be in the cell, and the generation it was computed for.
pub const EXPECTED_REFERENCED_DATA: &str = "compute.datumapis.com/expected-referenced-data";
/// On a deployment: JSON of why its referenced data cannot be resolved.
pub const REFERENCED_DATA_ERROR: &str = "compute.datumapis.com/referenced-data-error";
/// On a workload: the number of its newest revision.
pub const CURRENT_REVISION: &str = "compute.datumapis.com/current-revision";

/// On a resource definition: the contexts in which a platform offers the kind.
pub const PARENT_CONTEXTS: &str = "discovery.miloapis.com/parent-contexts";
