//! What the tests of networks and quota share: planes on an embedded server that count what is asked of them, tasks, and waiting.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use compute_api::k8s::Timestamp;
use compute_api::kube::Client;
use compute_api::kube::client::Body;
use compute_apiserver::{ApiServer, Identity, Options, PlaneName, PlaneTemplate};
use compute_runtime::clock::TimerClock;
use compute_runtime::tasks::{Ended, Tasks};
use compute_runtime::{Plane, PlaneId, Random, Runtime};
use futures::stream;
use http::Request;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::{BoxError, ServiceExt as _};

/// How long a condition may take to come true, in time that only passes while nothing else happens.
const DEADLINE: Duration = Duration::from_secs(3600);

/// An embedded server whose planes serve all kinds.
pub struct World {
    server: ApiServer,
    template: PlaneTemplate,
    pub runtime: Runtime,
}

/// A plane as a test sees it and as the code under test does.
pub struct TestPlane {
    pub client: Client,
    pub plane: Plane,
    asked: Arc<Mutex<Vec<String>>>,
    /// So many writes to come take effect, and their answers are lost.
    losing: Arc<AtomicUsize>,
    watches: watch::Sender<Watches>,
}

/// What happens to watches whose path ends with this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watches {
    /// They are served.
    #[default]
    Good,
    /// They are broken, and fail.
    Broken(&'static str),
    /// They are open and tell nothing.
    Silent(&'static str),
}

impl Watches {
    fn is_broken(&self, path: &str) -> bool {
        matches!(self, Self::Broken(end) if path.ends_with(end))
    }

    fn is_silent(&self, path: &str) -> bool {
        matches!(self, Self::Silent(end) if path.ends_with(end))
    }
}

impl World {
    pub async fn new() -> Self {
        let server = ApiServer::new(Options::default());
        let crds = compute_api::crds::ours().into_iter().chain(compute_api::crds::foreign());
        let crds: Vec<_> = crds.map(|crd| serde_json::to_value(crd).unwrap()).collect();
        let template = server.template(&crds).await.unwrap();
        let clock = TimerClock::starting_at(Timestamp::from_second(1_700_000_000).unwrap());
        Self { server, template, runtime: Runtime::new(clock, Random::seeded(7)) }
    }

    /// A fresh plane on the server, known to the runtime by `id`.
    pub async fn plane(&self, name: &str, id: &str) -> TestPlane {
        let plane = PlaneName::new(name).unwrap();
        self.server.create_plane(plane.clone(), &self.template).await.unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = asked.clone();
        let service = self.server.service(&plane, Identity::superuser("platform"));
        let losing = Arc::new(AtomicUsize::new(0));
        let lost = losing.clone();
        let watches = watch::Sender::default();
        let faults: watch::Sender<Watches> = watches.clone();
        let counted = tower::service_fn(move |request: Request<Body>| {
            heard.lock().push(format!("{} {}", request.method(), request.uri()));
            let is_write = request.method() != http::Method::GET;
            let less = |left: usize| left.checked_sub(1);
            let is_lost = is_write && lost.try_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
            let (path, faults) = (request.uri().path().to_owned(), faults.subscribe());
            let service = service.clone();
            async move {
                if is_watch && faults.borrow().is_broken(&path) {
                    return Err(BoxError::from("the watch failed"));
                }
                let response = service.oneshot(request).await?;
                if is_lost {
                    return Err("the answer was lost".into());
                }
                let faults = is_watch.then_some((faults, path));
                Ok(response.map(|body| faulty(body.map_err(Into::into).boxed_unsync(), faults)))
            }
        });
        let client = Client::new(self.server.service(&plane, Identity::superuser("test")), "default");
        let plane = Plane::new(&self.runtime, PlaneId::new(id), Client::new(counted, "default"));
        TestPlane { client, plane, asked, losing, watches }
    }
}

impl TestPlane {
    /// The next so many writes take effect, and their answers are lost.
    pub fn lose_answers(&self, writes: usize) {
        self.losing.store(writes, Ordering::SeqCst);
    }

    /// What happens to watches from now on.
    pub fn set_watches(&self, watches: Watches) {
        self.watches.send_replace(watches);
    }

    /// What was asked so far, but for lists and watches.
    pub fn requests(&self) -> Vec<String> {
        let asked = self.asked.lock();
        asked.iter().filter(|line| !line.contains("watch=") && !line.contains("limit=")).cloned().collect()
    }

    /// The watches that were asked for so far.
    pub fn watches(&self) -> Vec<String> {
        self.asked.lock().iter().filter(|line| line.contains("watch=")).cloned().collect()
    }
}

/// The body of a watch, which breaks off, or holds what it has, when it is told to.
fn faulty(
    body: UnsyncBoxBody<Bytes, BoxError>,
    faults: Option<(watch::Receiver<Watches>, String)>,
) -> UnsyncBoxBody<Bytes, BoxError> {
    let Some((faults, path)) = faults else { return body };
    let frames = stream::unfold((body, faults, path), async |(mut body, mut faults, path)| {
        let mut heard = faults.clone();
        let next = async {
            let frame = body.frame().await?;
            let _ = heard.wait_for(|watches| !watches.is_silent(&path)).await;
            Some(frame)
        };
        let frame = tokio::select! {
            biased;
            Ok(_) = faults.wait_for(|watches| watches.is_broken(&path)) => Some(Err("the watch broke".into())),
            frame = next => frame,
        };
        frame.map(|frame| (frame, (body, faults, path)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Tasks that run until this is stopped.
pub struct Running {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), Ended>>,
}

impl Running {
    pub fn start(tasks: Tasks) -> Self {
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        Self { stop, ended: tokio::spawn(tasks.run(stopped, Duration::from_secs(10))) }
    }

    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
    }
}

/// Asks again and again until `ask` gives `Ok`; fails with its last reason after [`DEADLINE`].
pub async fn eventually<T, E: Display>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(reason) if Instant::now() > deadline => panic!("{what}: not within {DEADLINE:?}: {reason}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}
