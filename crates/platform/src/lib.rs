//! Stand-ins for the platform around the compute service, for one machine and for tests: projects, locations, propagation from the hub to cells, networks and
//! the quota ledger.
//!
//! They keep the rules of the services they stand for, and work on any plane that speaks the Kubernetes API. This crate must never know a
//! controller of `compute-controllers`, nor which engine serves a plane.

pub mod locations;
pub mod networks;
pub mod projects;
pub mod propagation;
pub mod quota;

mod status;
