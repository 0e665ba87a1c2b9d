//! What the tests share: a cell on an embedded server, a provider in it, instances, and waiting.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::{
    Instance, InstanceControl, NetworkInterface, Sandbox, SandboxContainer, SchedulingGate,
};
use compute_api::conditions;
use compute_api::k8s::{Condition, Timestamp};
use compute_api::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use compute_api::kube::client::Body;
use compute_api::kube::{Client, ResourceExt as _};
use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use compute_providers::simulated::{self, Simulated};
use compute_providers::{Engine, Locations, Setup, Subnets};
use compute_runtime::clock::TimerClock;
use compute_runtime::events::{self, Events, Reporter};
use compute_runtime::tasks::{Ended, Tasks};
use compute_runtime::{Plane, PlaneId, Random, Runtime};
use http::Request;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::ServiceExt as _;

/// How long a condition may take to come true, in time that only passes while nothing else happens.
const DEADLINE: Duration = Duration::from_secs(36_000);

/// An embedded server with one cell.
pub struct Cell {
    _server: ApiServer,
    pub client: Client,
    pub runtime: Runtime,
    pub instances: Api<Instance>,
    pub plane: Plane,
    asked: Arc<parking_lot::Mutex<Vec<String>>>,
}

/// A provider that runs until this is stopped.
pub struct Running {
    pub engine: Simulated,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), Ended>>,
}

impl Running {
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
    }
}

impl Cell {
    pub async fn new() -> Self {
        let server = ApiServer::new(Options::default());
        let crds = compute_api::crds::ours().into_iter().chain(compute_api::crds::foreign());
        let crds: Vec<_> = crds.map(|crd| serde_json::to_value(crd).unwrap()).collect();
        let template = server.template(&crds).await.unwrap();
        let name = PlaneName::new("cell-dfw").unwrap();
        server.create_plane(name.clone(), &template).await.unwrap();
        let clock = TimerClock::starting_at(Timestamp::from_second(1_700_000_000).unwrap());
        let runtime = Runtime::new(clock, Random::seeded(7));
        let asked = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let heard = asked.clone();
        let service = server.service(&name, Identity::superuser("provider"));
        let counted = service.map_request(move |request: Request<Body>| {
            heard.lock().push(format!("{} {}", request.method(), request.uri()));
            request
        });
        let plane = Plane::new(&runtime, PlaneId::new("cell-dfw"), Client::new(counted, "default"));
        let client = Client::new(server.service(&name, Identity::superuser("test")), "default");
        let instances = Api::namespaced(client.clone(), "default");
        Self { _server: server, client, runtime, instances, plane, asked }
    }

    /// Starts a provider with a fresh engine.
    pub fn provide(&self, options: simulated::Options, locations: Locations) -> Running {
        self.provide_on(&Subnets::none(), options, locations)
    }

    /// The same with addresses from these subnets.
    pub fn provide_on(
        &self,
        subnets: &Subnets,
        options: simulated::Options,
        locations: Locations,
    ) -> Running {
        let engine = Simulated::on(subnets, self.runtime.clock().clone(), options);
        let mut tasks = Tasks::new();
        let events = self.events(&mut tasks);
        let setup = Setup { cell: self.plane.clone(), engine: Arc::new(engine.clone()), locations, events };
        compute_providers::spawn(&mut tasks, setup);
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(tasks.run(
            async {
                let _ = stopped.await;
            },
            Duration::from_secs(10),
        ));
        Running { engine, stop, ended }
    }

    fn events(&self, tasks: &mut Tasks) -> Events {
        let reporter = Reporter { component: "provider".to_owned(), instance: "test".to_owned() };
        let clock = self.runtime.clock().clone();
        let (events, publisher) = events::events(reporter, events::Limits::default(), move || clock.now());
        tasks.spawn("events", move |stop| publisher.run(stop));
        events
    }

    /// What the provider has asked for so far, but for lists and watches.
    pub fn requests(&self) -> Vec<String> {
        let asked = self.asked.lock();
        asked.iter().filter(|line| !line.contains("watch=") && !line.contains("limit=")).cloned().collect()
    }

    pub async fn create(&self, instance: &Instance) -> Instance {
        self.instances.create(&PostParams::default(), instance).await.unwrap()
    }

    pub async fn patch(&self, name: &str, patch: Value) {
        self.instances.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn annotate(&self, name: &str, key: &str, value: Option<&str>) {
        self.patch(name, json!({ "metadata": { "annotations": { key: value } } })).await;
    }

    pub async fn delete(&self, name: &str) {
        self.instances.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until `Available` has this reason, and gives the instance as it is then.
    pub async fn available(&self, name: &str, reason: &str) -> Instance {
        eventually(&format!("{name} {reason}"), async || {
            let found = self.instances.get(name).await.map_err(|error| error.to_string())?;
            let said = said(&found, conditions::AVAILABLE);
            if said.reason == reason { Ok(found) } else { Err(format!("{said:?}")) }
        })
        .await
    }

    /// Waits until an instance is gone.
    pub async fn gone(&self, name: &str) {
        eventually(&format!("{name} gone"), async || match self.instances.get_opt(name).await.unwrap() {
            None => Ok(()),
            Some(there) => Err(format!("{:?} {:?}", there.finalizers(), there.status)),
        })
        .await;
    }
}

/// An instance without gates.
pub fn instance(name: &str, image: &str) -> Instance {
    let mut instance = Instance::default();
    instance.metadata.name = Some(name.to_owned());
    let container =
        SandboxContainer { name: "app".to_owned(), image: image.to_owned(), ..SandboxContainer::default() };
    instance.spec.runtime.sandbox = Some(Sandbox { containers: vec![container], ..Sandbox::default() });
    instance.spec.network_interfaces = vec![NetworkInterface::default()];
    instance.spec.controller =
        Some(InstanceControl { template_hash: "v1-abc".to_owned(), scheduling_gates: Vec::new() });
    instance
}

/// The same with an annotation.
pub fn with(mut instance: Instance, key: &str, value: &str) -> Instance {
    instance.annotations_mut().insert(key.to_owned(), value.to_owned());
    instance
}

/// The same with a gate.
pub fn gated(mut instance: Instance) -> Instance {
    let control = instance.spec.controller.as_mut().unwrap();
    control.scheduling_gates = vec![SchedulingGate { name: "Quota".to_owned() }];
    instance
}

/// What a condition says.
pub fn said(instance: &Instance, type_: &str) -> Condition {
    conditions::find(&instance.status.as_ref().unwrap().conditions, type_).unwrap().clone()
}

/// Asks again and again until `ask` gives `Ok`; fails with its last reason after [`DEADLINE`].
pub async fn eventually<T, E: Display>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(reason) if Instant::now() > deadline => panic!("{what}: not within {DEADLINE:?}: {reason}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// The name of the simulated engine's finalizer.
pub fn finalizer(engine: &dyn Engine) -> String {
    compute_api::finalizers::provider(engine.name())
}
