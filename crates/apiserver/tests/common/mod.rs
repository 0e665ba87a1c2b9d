//! What the integration tests share: servers, planes, clients of both transports, a test CRD, and waiting.
//!
//! Every test makes its own server, so tests run in parallel without knowing of each other. Uids and name suffixes
//! come from a seed; the server's clock goes on by a second whenever it is read, so that nothing can rely on two things
//! happening at the same time. Nothing here sleeps for a fixed time: [`eventually`] waits for a condition, up to
//! [`DEADLINE`].

#![allow(dead_code, unused_imports, reason = "each test binary uses its own part")]

mod recorder;
mod tls;
mod widget;

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use compute_apiserver::{ApiServer, Clock, Identity, Options, PlaneName, Random};
use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, PostParams};
use kube::core::Status;
use kube::{Client, CustomResourceExt as _};
use serde_json::Value;
use tokio::time::Instant;

pub use recorder::Recorder;
pub use tls::TlsServer;
pub use widget::{Part, Widget, WidgetSpec, WidgetStatus, widget};

/// How long a condition may take to come true. Only failing tests wait this long.
pub const DEADLINE: Duration = Duration::from_secs(15);

/// How a client reaches its plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Through a tower service, without a socket.
    InProcess,
    /// Over TLS with a bearer token.
    Tls,
}

/// A server with one plane that serves [`Widget`]s, and a client for it.
pub struct Fixture {
    /// The server.
    pub server: ApiServer,
    /// The plane.
    pub plane: PlaneName,
    /// A client for the plane over the fixture's transport.
    pub client: Client,
    tls: Option<TlsServer>,
}

impl Fixture {
    /// A fresh server and plane.
    pub async fn new(transport: Transport) -> Self {
        let server = server();
        let plane = plane(&server, "test").await;
        let tls = match transport {
            Transport::InProcess => None,
            Transport::Tls => Some(TlsServer::start(&server)),
        };
        let client = match &tls {
            None => client(&server, &plane),
            Some(tls) => tls.client(&plane),
        };
        Self { server, plane, client, tls }
    }

    /// Another client, without a socket, for what a test does behind the back of the one under test.
    pub fn backdoor(&self) -> Client {
        client(&self.server, &self.plane)
    }

    /// Breaks every connection of the client. Without a socket there is none: a stream that is not polled is away.
    pub fn cut(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.cut();
        }
    }
}

/// A server without planes.
pub fn server() -> ApiServer {
    let clock = Arc::new(TickingClock(AtomicI64::new(1_800_000_000)));
    ApiServer::new(Options { clock, random: Random::seeded(1), ..Options::default() })
}

/// A clock that goes on by a second whenever it is read.
struct TickingClock(AtomicI64);

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.fetch_add(1, Ordering::Relaxed)).unwrap()
    }
}

/// Makes a plane that serves [`Widget`]s.
pub async fn plane(server: &ApiServer, name: &str) -> PlaneName {
    plane_with(server, name, &[widget_crd()]).await
}

/// Makes a plane that starts with these CRDs.
pub async fn plane_with(server: &ApiServer, name: &str, crds: &[Value]) -> PlaneName {
    let template = server.template(crds).await.unwrap();
    let name = PlaneName::new(name).unwrap();
    server.create_plane(name.clone(), &template).await.unwrap();
    name
}

/// Lets every member of a group do everything in a plane, without being a superuser.
pub async fn empower(server: &ApiServer, plane: &PlaneName, group: &str) {
    let binding: ClusterRoleBinding = serde_json::from_value(serde_json::json!({
        "metadata": { "name": group },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group }],
    }))
    .unwrap();
    Api::all(client(server, plane)).create(&PostParams::default(), &binding).await.unwrap();
}

/// The CRD of [`Widget`].
pub fn widget_crd() -> Value {
    serde_json::to_value(Widget::crd()).unwrap()
}

/// An in-process client for a plane.
pub fn client(server: &ApiServer, plane: &PlaneName) -> Client {
    Client::new(server.service(plane, Identity::superuser("test")), "default")
}

/// Asks again and again until `ask` gives `Ok`; fails with its last reason after [`DEADLINE`].
pub async fn eventually<T, E: Display>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(reason) if Instant::now() > deadline => panic!("{what}: not within {DEADLINE:?}: {reason}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

/// The future's value; fails if it takes longer than [`DEADLINE`].
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {DEADLINE:?}"),
    }
}

/// The `Status` with which the server refused; fails if it did not.
pub fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

/// Code and reason with which the server refused; fails if it did not.
pub fn refused<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    let status = refusal(result);
    (status.code, status.reason)
}
