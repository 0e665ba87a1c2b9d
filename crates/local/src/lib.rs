//! The whole platform in one process: the planes in the embedded API server, the compute service's controllers, a provider per cell, and
//! the stand-ins for what surrounds them.
//!
//! The binary `compute-local` runs it; tests and benchmarks run it in parts, to stop, start and cut off each. This crate wires, and must
//! decide nothing that another could.
//!
//! Start reading at [`Platform`]. [`workers`] says who works here and what each may do; [`planes`] what each plane serves.

mod admission;
pub mod census;
pub mod content;
pub mod ledger_admission;
pub mod planes;
mod platform;
mod projects;
pub mod workers;

pub use platform::{Connect, Platform, Settings};
pub use projects::Projects;
pub use workers::Worker;
