//! What the integration tests share: an API server in the process, a front that speaks TLS and misbehaves on demand, a
//! service that fails on demand, and waiting.
//!
//! Nothing here sleeps for a fixed time: [`eventually`] waits for a condition, up to [`DEADLINE`].

#![allow(dead_code, unused_imports, reason = "each test binary uses its own part")]

mod faults;
mod front;
mod widget;

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use compute_apiserver::{ApiServer, Clock, Identity, Options, PlaneName, Random};
use jiff::Timestamp;
use kube::{Client, CustomResourceExt as _};
use tokio::time::Instant;

pub use faults::{Fault, Faults};
pub use front::{Front, FrontOptions, TOKEN};
pub use widget::{Condition, Gate, Widget, WidgetSpec, WidgetStatus, widget};

/// How long a condition may take to come true. Only failing tests wait this long.
pub const DEADLINE: Duration = Duration::from_secs(20);

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
    let template = server.template(&[serde_json::to_value(Widget::crd()).unwrap()]).await.unwrap();
    let name = PlaneName::new(name).unwrap();
    server.create_plane(name.clone(), &template).await.unwrap();
    name
}

/// A server with one plane and an in-process client for it.
pub async fn plane_client() -> (ApiServer, PlaneName, Client) {
    let server = server();
    let plane = plane(&server, "test").await;
    let client = client(&server, &plane);
    (server, plane, client)
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
