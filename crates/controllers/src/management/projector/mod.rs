//! The InstanceProjector: people see in their project what runs for them in the cells.
//!
//! A key is an instance's name in its project. Hub instances lead to it by their labels, projections by being there, so that one whose hub
//! copy went while nobody looked is found.
//!
//! # Guarantees
//!
//! - A projection belongs to the project's own deployment, found by name. It goes when the hub copy is known to be gone, and comes
//!   back as it was when somebody has edited or deleted it.
//! - What no retry can mend is told once, counted by the gauge `compute_federation_quarantined_objects`, and looked at again only when it
//!   or its owner changes.

mod controller;
mod quarantine;
mod reconcile;

pub(super) use controller::Keys;
pub(super) use quarantine::Quarantine;
pub(super) use reconcile::InstanceProjector;

/// What logs and metrics call it.
pub(super) const NAME: &str = "projector";
