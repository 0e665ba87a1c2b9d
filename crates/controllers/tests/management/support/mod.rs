//! What the tests share: planes, a manager that can be stopped and started again, and waiting.

mod objects;
mod wire;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use compute_api::kube::api::{Patch, PatchParams};
use compute_api::kube::{Api, Client};
use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use compute_controllers::management::{self, rbac};
use compute_runtime::clock::TimerClock;
use compute_runtime::events::{self, Reporter};
use compute_runtime::tasks::Tasks;
use compute_runtime::{Plane, PlaneId, Planes, Random, Runtime};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use objects::*;
pub use wire::Wire;

/// How long a condition may take to come true. Time is paused, so only what waits for timers takes any.
pub const DEADLINE: Duration = Duration::from_secs(900);

const USER: &str = "compute-manager";

/// Planes and what leads to them. A plane of the runtime is made anew for each manager.
pub struct World {
    server: ApiServer,
    pub runtime: Runtime,
    wires: BTreeMap<&'static str, Arc<Wire>>,
    projects: Vec<&'static str>,
}

impl World {
    /// Hub, core, and projects `a` and `b`, with a network `default` and cells in DFW and IAD, which both are offered.
    pub async fn new() -> Self {
        let world = Self::empty(|_| {}).await;
        for project in ["a", "b"] {
            for city in ["DFW", "IAD"] {
                world.offer(project, city).await;
            }
            world.network(project, "default").await;
        }
        for city in ["DFW", "IAD"] {
            world.cluster(city, "True").await;
        }
        world
    }

    /// The planes with nothing in them. `loosen` may change the definitions, so that more is stored than can be decoded.
    pub async fn empty(loosen: impl Fn(&mut Value)) -> Self {
        // What is logged is shown with RUST_LOG set.
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
        let server = ApiServer::new(Options::default());
        let crds = compute_api::crds::ours().into_iter().chain(compute_api::crds::foreign());
        let mut crds: Vec<Value> = crds.map(|crd| serde_json::to_value(crd).unwrap()).collect();
        crds.iter_mut().for_each(loosen);
        let template = server.template(&crds).await.unwrap();
        let mut world = Self {
            server,
            runtime: Runtime::new(
                TimerClock::starting_at("2026-05-01T12:00:00Z".parse().unwrap()),
                Random::seeded(7),
            ),
            wires: BTreeMap::new(),
            projects: vec!["a", "b"],
        };
        for (name, rules) in
            [("core", rbac::core()), ("hub", rbac::hub()), ("a", rbac::project()), ("b", rbac::project())]
        {
            let plane = plane_name(name);
            world.server.create_plane(plane.clone(), &template).await.unwrap();
            grant(&world.client(name), rules).await;
            let service = world.server.service(&plane, Identity::user(USER));
            world.wires.insert(name, Wire::new(service));
        }
        world.projects_in_core().await;
        world
    }

    /// A client that may do everything in a plane.
    pub fn client(&self, plane: &str) -> Client {
        Client::new(self.server.service(&plane_name(plane), Identity::superuser("test")), "default")
    }

    /// What the manager's requests to a plane go through.
    pub fn wire(&self, plane: &str) -> &Arc<Wire> {
        &self.wires[plane]
    }

    /// The requests that the manager has made so far, but for watches and what they begin with.
    pub fn requests(&self) -> usize {
        self.wires.values().map(|wire| wire.requests().len()).sum()
    }

    /// Waits until the manager makes no request any more.
    pub async fn settle(&self) {
        loop {
            let before = self.requests();
            tokio::time::sleep(Duration::from_secs(7)).await;
            if self.requests() == before {
                return;
            }
        }
    }

    /// Waits until the manager makes no request any more, but no longer than this many seconds.
    pub async fn settle_within(&self, seconds: u64) {
        let _ = tokio::time::timeout(Duration::from_secs(seconds), self.settle()).await;
    }

    /// A manager of the projects, through the hub.
    pub async fn start(&self) -> Manager {
        self.start_with(true).await
    }

    /// A manager of the projects, with or without a hub.
    pub async fn start_with(&self, hub: bool) -> Manager {
        let planes = Planes::new(&self.runtime);
        for project in &self.projects {
            planes.engage(&self.plane(project));
        }
        let reporter = Reporter { component: USER.to_owned(), instance: "test".to_owned() };
        let clock = self.runtime.clock().clone();
        let (events, publisher) = events::events(reporter, events::Limits::default(), move || clock.now());
        let mut tasks = Tasks::new();
        tasks.spawn("events", |stop| publisher.run(stop));
        let setup = management::Setup {
            projects: planes.clone(),
            core: Some(self.plane("core")),
            hub: hub.then(|| self.plane("hub")),
            events,
        };
        management::spawn(&mut tasks, setup);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            tasks.run(stopped, Duration::from_secs(10)).await.unwrap();
        });
        Manager { planes, stop, task }
    }

    /// A plane as a manager reaches it.
    pub fn plane(&self, name: &str) -> Plane {
        Plane::new(&self.runtime, PlaneId::new(name), self.wires[name].client())
    }
}

/// A manager that runs.
pub struct Manager {
    pub planes: Planes,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Manager {
    /// Stops it and waits for what it has in hand.
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}

fn plane_name(plane: &str) -> PlaneName {
    let name = if plane.len() == 1 { format!("project-{plane}") } else { plane.to_owned() };
    PlaneName::new(&name).unwrap()
}

async fn grant(client: &Client, rules: Vec<PolicyRule>) {
    let params = PatchParams::apply("test").force();
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": USER }, "rules": rules,
    });
    roles.patch(USER, &params, &Patch::Apply(role)).await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": USER },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER }],
    });
    bindings.patch(USER, &params, &Patch::Apply(binding)).await.unwrap();
}

/// Asks again and again until `ask` gives `Ok`; fails with its last reason after [`DEADLINE`].
pub async fn eventually<T, E: Display>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(reason) if Instant::now() > deadline => panic!("{what}: not within {DEADLINE:?}: {reason}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Waits until `is` holds.
pub async fn until(what: &str, mut is: impl FnMut() -> bool) {
    eventually(what, async || if is() { Ok(()) } else { Err("it does not hold") }).await;
}
