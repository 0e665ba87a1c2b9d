//! The WorkloadReconciler: a Workload becomes one deployment per placement and city, and says what became of them.
//!
//! A pass, in this order: put the finalizer on; create, update and delete deployments (`compute_core::deployments`); write the status
//! (`compute_core::rollup`). Of a Workload that is being deleted the deployments go first, then the finalizer.
//!
//! # Guarantees
//!
//! - Nothing that the Workload does not control is ever touched, and `spec.replicas` of a deployment never written.
//! - One deployment that cannot be written keeps no other from being written, nor the status.
//! - The finalizer goes only after the project itself has said that no deployment is left.

mod controller;
mod reconcile;
mod release;

pub(super) use controller::Keys;
pub(super) use reconcile::WorkloadReconciler;

/// What logs and metrics call it.
pub(super) const NAME: &str = "workload";
