//! The ground that controllers stand on: how a process reaches thousands of control planes, writes to them, and
//! lives and ends in an orderly way.
//!
//! The crate decides nothing about workloads and knows no engine: every plane is an API server behind a
//! [`kube::Client`](compute_api::kube::Client). It reads no wall clock but the one it is given.
//!
//! Start reading at [`transport`] (one host, many planes, few connections); then [`write`](mod@write) (what a
//! controller may do to an object, and how it can fail), [`events`], [`leader`] and [`tasks`].

pub mod events;
pub mod leader;
pub mod tasks;
pub mod transport;
pub mod write;
