//! `compute-manager`: the controllers of the compute service and its admission webhooks, as a process that runs next to real API servers.
//!
//! This crate parses, wires and runs; it must decide nothing about workloads. What it guards is the process: a mistake in the configuration ends
//! it before anything has started, with one line that names the field; a role works only while it holds its Lease; a stop is orderly and bounded.
//!
//! Start reading at [`Config::from`], what the process is to do as a function of flags, environment and files; then [`Manager`], how that is wired.

pub mod config;
pub mod flags;
pub mod logs;

mod cell;
mod connections;
mod management;
mod manager;
mod pages;
mod process;
mod readiness;
mod role;
mod sync;

pub use config::{Config, Mistake};
pub use flags::Flags;
pub use manager::Manager;

use compute_runtime::tasks::Ended;

/// Why the process ended.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It did not start.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// A part of it ended by itself.
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// Does what is configured until `shutdown`.
///
/// # Errors
///
/// If it cannot start, or a part of it ends by itself.
pub async fn run(config: Config, shutdown: impl Future<Output = ()>) -> Result<(), Failure> {
    Ok(Manager::prepare(config).await?.run(shutdown).await?)
}
