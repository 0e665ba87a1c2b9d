//! An embeddable Kubernetes API server that hosts many isolated control planes in one process.
//!
//! Clients of Kubernetes (kubectl, kube-rs, client-go and others) work against each plane as against a cluster: discovery,
//! OpenAPI, CRDs with defaulting, pruning, validation and CEL, watches, server-side apply, garbage collection. There is no
//! etcd and no other process; in-process clients need no socket.
//!
//! The crate knows nothing of what runs on it, and reads no clock and no random number but those it is given
//! ([`Options`]).
//!
//! Start reading at [`ApiServer`]; then follow a request inwards: `http` (paths, negotiation, streams), `verbs` (get to
//! deletecollection), `admission` (what happens to an object on its way in), `hooks` (who else is asked), `registry` (built-in kinds and CRDs), `store` (objects
//! and history), `planes`. `limits` keeps one client or plane from slowing the others, `audit` writes down who did what, and
//! `lifecycle` does in the background what the API promises: garbage collection, namespaces, CRDs.
//!
//! ```
//! use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::new(Options::default());
//! let template = server.template(&[]).await?;
//! let name = PlaneName::new("demo")?;
//! server.create_plane(name.clone(), &template).await?;
//!
//! let client = kube::Client::new(server.service(&name, Identity::superuser("me")), "default");
//! let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(client);
//! assert!(namespaces.get_opt("default").await?.is_some());
//! # Ok(())
//! # }
//! ```

mod admission;
pub mod audit;
mod auth;
pub mod authz;
mod clock;
mod error;
pub mod field_error;
pub mod hooks;
mod http;
mod lifecycle;
mod limits;
pub mod managed_fields;
mod meta;
mod openapi;
pub mod patch;
mod pki;
mod planes;
mod private_file;
mod registry;
pub mod schema;
mod selector;
mod server;
mod store;
mod table;
mod verbs;

pub use auth::{Access, Extra, Identity, Tokens};
pub use clock::{Clock, Random, SystemClock};
pub use error::{ApiError, Cause, Subject};
pub use http::{Body, ListenError, NetworkService, Peer, PlaneRoute, PlaneService, Tls, serve};
pub use limits::Limits;
pub use pki::{Authority, Issued, PkiError};
pub use planes::{Plane, PlaneError, PlaneName, PlaneTemplate, TemplateError};
pub use server::{ApiServer, Options};
pub use store::{GroupResource, StorageError, backup};
