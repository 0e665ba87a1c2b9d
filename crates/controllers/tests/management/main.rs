//! The management controllers against embedded planes: a hub, core and two projects, reached under no more rights than they are given.
//! The tests play the cells and the hub's own controllers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cascade;
mod federation;
mod hub_down;
mod hub_namespaces;
mod one_watch;
mod planes;
mod policies;
mod projection;
mod quarantine;
mod quiet;
mod status;
mod support;
mod unreadable;
mod workloads;
