//! A cell, a hub and a project on an embedded server, the controllers, and waiting.

use std::cell::RefCell;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use compute_api::k8s::Namespace;
use compute_api::{crds, names};
use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use compute_controllers::cell::{self, Quota, Setup, Source, rbac};
use compute_runtime::clock::{Clock as _, TimerClock};
use compute_runtime::events::{self, Reporter};
use compute_runtime::tasks::Tasks;
use compute_runtime::{Plane, PlaneId, Random, Runtime};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::faults::Way;
use super::objects;
use super::platform::Platform;

/// How long a condition may take to come true, in time that jumps.
const DEADLINE: Duration = Duration::from_secs(400);
const USER: &str = "compute-cell";
/// What the cell is called on the hub.
pub const CLUSTER: &str = "cell-dfw";
/// The project.
pub const PROJECT: &str = "shop";

thread_local! {
    /// Uid of the project's namespace. A test is one thread, with one world at a time.
    static NAMESPACE_UID: RefCell<String> = const { RefCell::new(String::new()) };
    /// The namespace in cell and hub.
    static NAMESPACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Uid of the project's namespace.
pub fn namespace_uid() -> String {
    NAMESPACE_UID.with_borrow(String::clone)
}

/// The namespace in cell and hub.
pub fn namespace() -> String {
    NAMESPACE.with_borrow(String::clone)
}

/// How a world differs from the usual one.
#[derive(Clone, Debug)]
pub struct Shape {
    pub networking: bool,
    pub quota: bool,
    pub direct: bool,
    /// Whether the hub has a Cluster of the cell's name.
    pub joined: bool,
    /// Leave the networking kinds out of the cell.
    pub bare: bool,
    /// Leave the schema of Instances out of the cell.
    pub lax: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self { networking: true, quota: true, direct: false, joined: true, bare: false, lax: false }
    }
}

/// Everything a test needs.
pub struct World {
    server: ApiServer,
    clock: TimerClock,
    options: Shape,
    /// Straight to the planes, as one who may do anything.
    pub cell: Client,
    pub hub: Client,
    pub project: Client,
    /// The ways of the controllers.
    pub cell_way: Arc<Way>,
    pub hub_way: Arc<Way>,
    pub project_way: Arc<Way>,
    pub platform: Platform,
    pub runtime: Runtime,
    /// How often a client for a project was made.
    pub connects: Arc<AtomicUsize>,
    running: Option<Running>,
}

struct Running {
    stop: CancellationToken,
    ended: tokio::task::JoinHandle<()>,
}

struct ServerClock(TimerClock);

impl compute_apiserver::Clock for ServerClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl World {
    /// The usual world, with the controllers running.
    pub async fn new() -> Self {
        Self::with(Shape::default()).await
    }

    /// A world with the controllers running.
    pub async fn with(options: Shape) -> Self {
        let mut world = Self::idle(options).await;
        world.start();
        world
    }

    /// A world without controllers.
    pub async fn idle(options: Shape) -> Self {
        let clock = TimerClock::starting_at(Timestamp::from_second(1_800_000_000).unwrap());
        let server = ApiServer::new(Options {
            clock: Arc::new(ServerClock(clock)),
            random: compute_apiserver::Random::seeded(7),
            ..Options::default()
        });
        let client = async |plane: &str, groups: &[&str], rules: Vec<PolicyRule>| {
            let name = PlaneName::new(plane).unwrap();
            let template =
                server.template(&definitions(groups, options.lax && plane == "cell")).await.unwrap();
            server.create_plane(name.clone(), &template).await.unwrap();
            let client = Client::new(server.service(&name, Identity::superuser("test")), "default");
            grant(&client, rules).await;
            client
        };
        let cell_groups: &[&str] = match options.bare {
            true => &["compute.datumapis.com"],
            false => &["compute.datumapis.com", "networking.datumapis.com"],
        };
        let cell = client("cell", cell_groups, rbac::cell()).await;
        let hub = client("hub", &["compute.datumapis.com", "cluster.karmada.io"], rbac::hub()).await;
        let project = client("project-shop", &["quota.miloapis.com"], rbac::project()).await;

        let namespaces: Api<Namespace> = Api::all(project.clone());
        let uid = namespaces.get(objects::PROJECT_NAMESPACE).await.unwrap().metadata.uid.unwrap();
        if options.direct {
            NAMESPACE.with_borrow_mut(|known| *known = objects::PROJECT_NAMESPACE.to_owned());
        } else {
            NAMESPACE.with_borrow_mut(|known| *known = names::hub_namespace(&uid));
            objects::create_namespaces(&cell, &hub).await;
        }
        NAMESPACE_UID.with_borrow_mut(|known| *known = uid);
        if options.joined {
            objects::create_cluster(&hub, CLUSTER).await;
        }
        if !options.bare {
            objects::create_location(&cell, "us-south", "dfw").await;
        }
        let platform = Platform::start(cell.clone(), project.clone(), clock);
        Self {
            runtime: Runtime::new(clock, Random::seeded(5)),
            server,
            clock,
            options,
            cell,
            hub,
            project,
            cell_way: Way::new(),
            hub_way: Way::new(),
            project_way: Way::new(),
            platform,
            connects: Arc::default(),
            running: None,
        }
    }

    /// Starts the controllers, as a process of their own would.
    pub fn start(&mut self) {
        assert!(self.running.is_none());
        self.runtime = Runtime::new(self.clock, Random::seeded(5));
        let reach = |way: &Arc<Way>, plane: &str| {
            let name = PlaneName::new(plane).unwrap();
            way.client(self.server.service(&name, Identity::user(USER)))
        };
        let cell = Plane::new(&self.runtime, PlaneId::new("cell"), reach(&self.cell_way, "cell"));
        let hub = Plane::new(&self.runtime, PlaneId::new("hub"), reach(&self.hub_way, "hub"));
        let source = match self.options.direct {
            true => Source::Project { name: PROJECT.to_owned() },
            false => Source::Hub { hub, cluster_name: CLUSTER.to_owned() },
        };
        let ledger = reach(&self.project_way, "project-shop");
        let connects = self.connects.clone();
        let connect = move |project: &str| match project {
            PROJECT => {
                connects.fetch_add(1, Ordering::SeqCst);
                Ok(ledger.clone())
            }
            other => Err(anyhow::anyhow!("no project {other}")),
        };
        let quota = match self.options.quota {
            true => Quota::Projects(Arc::new(connect)),
            false => Quota::Disabled,
        };
        let mut tasks = Tasks::new();
        let clock = self.clock;
        let reporter = Reporter { component: "compute-manager".to_owned(), instance: "test".to_owned() };
        let (events, publisher) = events::events(reporter, events::Limits::default(), move || clock.now());
        tasks.spawn("events", |stop| publisher.run(stop));
        cell::spawn(&mut tasks, Setup { cell, source, quota, networking: self.options.networking, events });
        let stop = tasks.stop_token();
        let waits = stop.clone();
        let ended = tokio::spawn(async move {
            tasks.run(waits.cancelled_owned(), Duration::from_secs(120)).await.unwrap();
        });
        self.running = Some(Running { stop, ended });
    }

    /// Whether quota is configured, from the next start on.
    pub fn configure_quota(&mut self, quota: bool) {
        self.options.quota = quota;
    }

    /// Makes one more plane, with the kinds of these groups, and gives a client straight to it.
    pub async fn add_plane(&self, name: &str, groups: &[&str]) -> Client {
        let plane = PlaneName::new(name).unwrap();
        let template = self.server.template(&definitions(groups, false)).await.unwrap();
        self.server.create_plane(plane.clone(), &template).await.unwrap();
        Client::new(self.server.service(&plane, Identity::superuser("test")), "default")
    }

    /// A client to a plane on a way of its own, for one who may do anything.
    pub fn reach(&self, way: &Arc<Way>, plane: &str) -> Client {
        way.client(self.server.service(&PlaneName::new(plane).unwrap(), Identity::superuser("platform")))
    }

    /// Stops the controllers, in order.
    pub async fn stop(&mut self) {
        let Running { stop, ended } = self.running.take().unwrap();
        stop.cancel();
        ended.await.unwrap();
    }

    /// Warnings in the cell about an object: reason and message.
    pub async fn warnings(&self, about: &str) -> Vec<(String, String)> {
        let events: Api<Event> = Api::all(self.cell.clone());
        let mut found: Vec<_> = events.list(&ListParams::default()).await.unwrap().items;
        found.retain(|event| event.type_.as_deref() == Some("Warning"));
        found.retain(|event| event.involved_object.name.as_deref() == Some(about));
        found.into_iter().map(|event| (event.reason.unwrap(), event.message.unwrap())).collect()
    }

    /// Reasons of warnings in the cell about the object of this uid.
    pub async fn warned_of(&self, uid: &Option<String>) -> Vec<String> {
        let events: Api<Event> = Api::all(self.cell.clone());
        let found = events.list(&ListParams::default()).await.unwrap().items.into_iter();
        let about = found.filter(|event| event.involved_object.uid == *uid);
        about
            .filter(|event| event.type_.as_deref() == Some("Warning"))
            .filter_map(|event| event.reason)
            .collect()
    }

    /// Waits for a warning about an object.
    pub async fn warned(&self, about: &str, reason: &str) -> String {
        eventually(&format!("a warning {reason} about {about}"), async || {
            let warnings = self.warnings(about).await;
            let found = warnings.iter().find(|(found, _)| found == reason);
            found.map(|(_, message)| message.clone()).ok_or(format!("{warnings:?}"))
        })
        .await
    }

    /// A counter or gauge of the process.
    pub fn metric(&self, line: &str) -> Option<i64> {
        let text = self.runtime.metrics().encode();
        let found =
            text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' ').map(str::to_owned));
        found.and_then(|value| value.parse().ok())
    }

    /// Forgets what was asked so far on all ways.
    pub fn forget_requests(&self) {
        for way in [&self.cell_way, &self.hub_way, &self.project_way] {
            way.take_asked();
        }
    }

    /// Everything that was asked since then.
    pub fn requests(&self) -> Vec<String> {
        [&self.cell_way, &self.hub_way, &self.project_way].iter().flat_map(|way| way.take_asked()).collect()
    }

    /// Waits until nobody asks for anything any more.
    pub async fn settled(&self) {
        loop {
            self.forget_requests();
            tokio::time::sleep(Duration::from_secs(20)).await;
            if self.requests().is_empty() {
                return;
            }
        }
    }
}

/// The definitions of groups.
fn definitions(groups: &[&str], lax: bool) -> Vec<Value> {
    let all = crds::ours().into_iter().chain(crds::foreign());
    let wanted = all.filter(|crd| groups.contains(&crd.spec.group.as_str()));
    wanted
        .map(|crd| {
            let mut value = serde_json::to_value(&crd).unwrap();
            if lax && crd.spec.names.kind == "Instance" {
                value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
                    serde_json::json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            }
            value
        })
        .collect()
}

/// Lets the controllers do what the rules say, and nothing else.
async fn grant(client: &Client, rules: Vec<PolicyRule>) {
    let metadata = ObjectMeta { name: Some(USER.to_owned()), ..ObjectMeta::default() };
    let role = ClusterRole { metadata: metadata.clone(), rules: Some(rules), ..ClusterRole::default() };
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles.create(&PostParams::default(), &role).await.unwrap();
    let binding = ClusterRoleBinding {
        metadata,
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "ClusterRole".to_owned(),
            name: USER.to_owned(),
        },
        subjects: Some(vec![Subject {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "User".to_owned(),
            name: USER.to_owned(),
            namespace: None,
        }]),
    };
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.create(&PostParams::default(), &binding).await.unwrap();
}

/// Asks again and again until `ask` gives `Ok`; fails with its last reason after [`DEADLINE`].
pub async fn eventually<T, E: Display>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(reason) if Instant::now() > deadline => panic!("{what}: not within {DEADLINE:?}: {reason}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
