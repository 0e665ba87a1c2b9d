//! Admission for projects: Workloads get their defaults and are judged, Instances are read-only.
//!
//! What is right and wrong is decided by `compute_core::admission`; this crate looks up what that needs to know in the project of a request,
//! on behalf of the caller, and speaks the protocol. It has two doors: [`Admission`] for hooks that run in the process of an API server, and
//! [`serve`] for API servers elsewhere, which call it as a webhook. It must never write anything but access reviews, and never let
//! through what could not be checked.
//!
//! Start reading at [`Admission`]; [`facts`] asks, [`Projects`] finds the project of a request, [`rbac`] says what asking takes.

pub mod facts;
pub mod rbac;

mod admission;
mod projects;
mod review;
mod server;
mod webhooks;

pub use admission::Admission;
pub use projects::{Connect, ConnectError, NotInProject, Projects, project_of};
pub use review::{Answer, BadReview, Operation, Request, Resource};
pub use server::{CertificateError, Certificates, ServeError, Settings, serve};
pub use webhooks::{MUTATE_WORKLOADS, Phase, VALIDATE_INSTANCES, VALIDATE_WORKLOADS, Webhooks};
