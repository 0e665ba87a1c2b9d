//! The controllers of the compute service, on any engine: fetch, decide (`compute-core`), apply.
//!
//! [`management`] serves projects: Workloads become deployments, deployments travel to the hub, and instances and status come back.
//! [`cell`] serves one city: deployments become instances, and instances are gated, judged and written back.
//!
//! This crate must never decide anything by itself (that is `compute-core`'s), never ask which engine serves a plane, and never read time
//! or randomness but through `compute-runtime`.
//!
//! Start reading at [`management::Setup`] and [`cell::Setup`], what each side needs to run.

pub mod cell;
pub mod management;
