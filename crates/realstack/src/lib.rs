//! A real Kubernetes and a real Karmada on loopback, as plain processes: no containers, no root, nothing to install but Go.
//!
//! | process | what it is |
//! | --- | --- |
//! | `etcd` | the data of all planes, each under a prefix of its own |
//! | `management-apiserver`, `management-controller-manager` | the management plane |
//! | `karmada-apiserver`, `karmada-kube-controller-manager` | the hub |
//! | `karmada-aggregated-apiserver`, `karmada-webhook`, `karmada-controller-manager`, `karmada-scheduler` | Karmada |
//! | `cell-dfw-apiserver`, `cell-dfw-controller-manager`, and the same for `ord` | the cells, joined to the hub with their city's label |
//!
//! RBAC is on, every plane has certificates and tokens of its own, and every API server writes down who asked what and was answered how
//! ([`Server::audit_log`]). No kubelet and no kube-scheduler run: Pods stay as they are written.
//!
//! `cargo xtask realstack up` brings it up and `down` takes it down; it outlives the command. Tests open it with [`Running::open`] from the folder
//! that `COMPUTE_REALSTACK` names, stop and start its processes, and sign certificates for whoever they want to be
//! ([`Server::certificate`]).
//!
//! What it runs is pinned in `tools/realstack` and built from the Go module registry once ([`up`] says when); `docs/operations/supported-versions.md`
//! has the list.
//!
//! Start reading at [`up()`]. This crate knows nothing of compute but the label that tells which city a member serves.

mod certs;
mod clients;
mod down;
mod error;
mod files;
mod join;
mod karmada;
mod kubernetes;
mod manifests;
mod objects;
mod ports;
mod process;
mod procfs;
mod running;
mod server;
mod state;
mod tools;
mod up;

use std::sync::Arc;

pub use certs::{Authority, Certificate};
pub use clients::Credential;
pub use down::down;
pub use error::Error;
pub use procfs::Usage;
pub use running::Running;
pub use server::{Cell, Server};
pub use state::Versions;
pub use tools::DEFAULT_KUBERNETES;
pub use up::{Options, Up, up};

/// The variable that names the state folder to tests.
pub const STATE_VARIABLE: &str = "COMPUTE_REALSTACK";

/// Takes a line about how far things are.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;
