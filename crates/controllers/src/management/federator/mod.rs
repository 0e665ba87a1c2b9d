//! The WorkloadDeploymentFederator: a project's deployments travel to the hub, and their status comes back.
//!
//! Three kinds of keys, each with a queue of its own, since each waits for something else:
//! [`deployments`] (a project's deployment and its hub copy, either of which may be missing), [`policies`] (a hub namespace and a city)
//! and [`namespaces`] (a hub namespace).
//!
//! # Guarantees
//!
//! - Before anything is written on the hub, the project's object says where and holds our finalizer; it goes after the delete call for the
//!   copy. Whatever is left on the hub without a project's object is found by its labels and deleted.
//! - Only what carries the labels of the project and namespace at hand is deleted, and only on condition that it is still the one that
//!   was looked at.
//! - If the hub is down, everything here waits and is tried again, at the latest when the hub is back.

pub(super) mod deployments;
pub(super) mod namespaces;
pub(super) mod policies;
mod release;

/// The field manager of all three.
const WRITER: &str = "federator";
