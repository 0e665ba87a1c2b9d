//! A controller runtime for thousands of control planes in one process, on `kube`.
//!
//! Planes come and go while it runs ([`engage`]). What a controller reads comes from ordered caches that all controllers of
//! the process share ([`plane`], [`cache`]); what it has to do comes from one queue per controller, keyed by (plane, namespace, name)
//! ([`queue`]); [`controller`] puts the two together. One dead plane costs the others nothing: no shared path waits for a plane's network,
//! and both the queue and the lists keep a lane for planes that do not answer.
//!
//! This crate must never know what a controller decides, nor which engine serves a plane. It reads time and random numbers only through
//! [`clock`], and no order of it depends on a hash, so that a simulation with a seed replays exactly. Timers are tokio's, so that a
//! test can pause them.
//!
//! Start reading at [`Runtime`], what all of a process shares; then [`Plane`], [`Cache`], [`Queue`] and [`controller::run`]. How planes are
//! reached is [`transport`] (one host, many planes, few connections); what a controller may do to an object, and how that can fail, is
//! [`write`](mod@write); a process lives and ends by [`events`], [`leader`] and [`tasks`].

mod backoff;
pub mod cache;
pub mod clock;
pub mod controller;
pub mod engage;
pub mod events;
pub mod leader;
mod lean;
mod lists;
pub mod metrics;
pub mod own_writes;
pub mod plane;
pub mod queue;
mod runtime;
pub mod tasks;
pub mod transport;
mod turns;
pub mod write;

pub use backoff::Backoff;
pub use cache::{Cache, Change, Index, Subscription};
pub use clock::{Clock, Random};
pub use controller::{Next, Reconciler};
pub use engage::Planes;
pub use metrics::Metrics;
pub use own_writes::OwnWrites;
pub use plane::{Plane, PlaneId};
pub use queue::{Key, Queue};
pub use runtime::Runtime;
