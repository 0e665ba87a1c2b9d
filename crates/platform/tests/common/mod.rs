//! What the tests share: an embedded server with the planes of a platform, clients with faults on the way, and waiting.

#![allow(dead_code, unused_imports, reason = "each test binary uses its own part")]

mod faults;

use std::fmt::{Debug, Display};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use compute_apiserver::{ApiServer, Identity, Options, PlaneName, PlaneTemplate};
use compute_runtime::clock::SystemClock;
use compute_runtime::events::{self, Events, Reporter};
use compute_runtime::tasks::Tasks;
use compute_runtime::{Plane, PlaneId, Random, Runtime};
use kube::Client;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use faults::{Asked, Faults};

/// How long a condition may take to come true. Only failing tests wait this long.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// An embedded server whose planes serve every kind.
pub struct Server {
    pub server: ApiServer,
    pub template: PlaneTemplate,
}

impl Server {
    pub async fn new() -> Self {
        let server = ApiServer::new(Options::default());
        let crds = compute_api::crds::ours().into_iter().chain(compute_api::crds::foreign());
        let crds: Vec<_> = crds.map(|crd| serde_json::to_value(crd).unwrap()).collect();
        let template = server.template(&crds).await.unwrap();
        Self { server, template }
    }

    /// Makes a plane, and gives a client straight to it.
    pub async fn make(&self, name: &str) -> Client {
        self.server.create_plane(PlaneName::new(name).unwrap(), &self.template).await.unwrap();
        self.client(name)
    }

    /// A client straight to a plane.
    pub fn client(&self, name: &str) -> Client {
        let plane = PlaneName::new(name).unwrap();
        Client::new(self.server.service(&plane, Identity::superuser("test")), "default")
    }

    /// A client to a plane through faults.
    pub fn faulty(&self, name: &str, faults: &Arc<Faults>) -> Client {
        let plane = PlaneName::new(name).unwrap();
        faults.client(self.server.service(&plane, Identity::superuser("platform")))
    }

    /// The plane as the runtime reaches it, through faults.
    pub fn plane(&self, runtime: &Runtime, name: &str, faults: &Arc<Faults>) -> Plane {
        Plane::new(runtime, PlaneId::new(name), self.faulty(name, faults))
    }
}

/// A runtime with the machine's own time.
pub fn runtime() -> Runtime {
    Runtime::new(SystemClock, Random::seeded(7))
}

/// Tasks that run, with events written.
pub struct Running {
    stop: CancellationToken,
    ended: JoinHandle<()>,
}

impl Running {
    /// Starts what `spawn` adds.
    pub fn start(runtime: &Runtime, spawn: impl FnOnce(&mut Tasks, Events)) -> Self {
        let mut tasks = Tasks::new();
        let reporter = Reporter { component: "test".to_owned(), instance: "test".to_owned() };
        let clock = runtime.clock().clone();
        let (events, publisher) = events::events(reporter, events::Limits::default(), move || clock.now());
        tasks.spawn("events", |stop| publisher.run(stop));
        spawn(&mut tasks, events);
        let stop = tasks.stop_token();
        let ended = tokio::spawn(async move {
            tasks.run(std::future::pending(), Duration::from_secs(30)).await.unwrap();
        });
        Self { stop, ended }
    }

    /// Stops it, and waits until it has.
    pub async fn stop(self) {
        self.stop.cancel();
        self.ended.await.unwrap();
    }
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

/// Waits until what is read is what is wanted.
pub async fn reads<T: PartialEq + Debug>(what: &str, wanted: T, mut read: impl AsyncFnMut() -> T) {
    eventually(what, async || {
        let is = read().await;
        if is == wanted { Ok(()) } else { Err(format!("it is {is:?}")) }
    })
    .await;
}
