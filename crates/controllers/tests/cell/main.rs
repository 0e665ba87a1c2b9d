//! The cell's controllers against the embedded API server, under no more rights than `cell::rbac` gives them. The test plays the
//! provider, the network service and the quota ledger. Time is paused: it jumps to the next timer when nothing is left to do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod deletion;
mod direct;
mod faults;
mod gates;
mod hub;
mod ledger;
mod objects;
mod platform;
mod quiet;
mod quota;
mod rollout;
mod scale;
mod status;
mod world;
