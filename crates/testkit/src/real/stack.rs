//! The stack: everything put together, with its levers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use compute_api::conditions as c;
use compute_api::labels;
use compute_api::milo::{CONDITION_READY, Project};
use compute_api::networking::{Location, LocationBinding};
use compute_apiserver::{ApiServer, Authority, Identity, Options, PlaneName};
use compute_core::location::Offered;
use compute_local::census::Census;
use compute_local::content;
use compute_local::ledger_admission::{self, Registrations};
use compute_local::planes::{self, Role};
use compute_platform::{locations, quota};
use compute_runtime::tasks::{Ended, Tasks};
use compute_runtime::{Plane, PlaneId, Runtime};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::audit::{Asked, Logs, Memory};
use super::balancer::Balancer;
use super::foundation::{Endpoint, Foundation};
use super::install;
use super::manager::{Launch, Manager, free_address};
use super::milo::Milo;
use super::proxy::{Host, Listener};
use super::surroundings::Surroundings;
use super::{members, projects, webhooks};
use crate::faults::Wires;
use crate::stack::{Place, Stack, Worker};
use crate::wait::eventually;

/// How many replicas of the management role can run at once.
const REPLICAS: usize = 2;
/// Whose eyes and hands the stories' are.
const OPERATOR: &str = "platform-operator";

/// A stack on API servers elsewhere.
pub struct RealStack {
    /// The API servers.
    pub foundation: Foundation,
    /// What workers' requests go over.
    pub wires: Wires,
    pub(super) milo: Arc<Milo>,
    surroundings: Surroundings,
    pub(super) authority: Authority,
    pub(super) dir: PathBuf,
    /// Where each replica of the management role serves webhooks, and the address in front of both.
    pub(super) webhooks: [SocketAddr; REPLICAS],
    _balancer: Balancer,
    /// The tokens that count at the host of core and projects.
    pub(super) tokens: BTreeMap<Worker, Arc<Mutex<BTreeSet<String>>>>,
    /// How each worker is started, by replica.
    pub(super) launches: BTreeMap<Worker, Vec<Launch>>,
    running: Mutex<BTreeMap<Worker, Running>>,
    pub(super) listeners: Vec<Listener>,
    _registrations: Arc<Registrations>,
    audit: (Logs, Arc<Memory>),
}

enum Running {
    Process(Box<Manager>),
    Here(JoinHandle<Result<(), Ended>>),
}

impl RealStack {
    /// Installs everything on a foundation and lets everybody work. Files and logs go to a folder.
    pub async fn start(foundation: Foundation, dir: &Path) -> Self {
        let authority = Authority::generate("wires").unwrap();
        let wires = Wires::default();
        let webhooks = std::array::from_fn(|_| free_address());
        let balancer = Balancer::start(webhooks.to_vec()).await;
        let hooks = webhooks::configurations(balancer.address, authority.certificate());
        let bare = install_all(&foundation, &hooks).await;

        let (logs, memory) = (Logs::of(&foundation), Arc::new(Memory::default()));
        let server = ApiServer::new(Options {
            routes: vec![planes::project_route()],
            audit: Some(memory.clone()),
            ..Options::default()
        });
        let core = server.template(&planes::objects(Role::Core).unwrap()).await.unwrap();
        server.create_plane(planes::core(), &core).await.unwrap();
        let project: Vec<Value> = planes::objects(Role::Project).unwrap().into_iter().chain(hooks).collect();
        let template = server.template(&project).await.unwrap();
        let real = (foundation.management.bare(), foundation.management.admin_token.clone());
        let milo = Arc::new(Milo { server, template, real, on_real: Mutex::default() });
        let operator = Client::new(milo.way(None, &Identity::superuser(OPERATOR)).unwrap().1, "default");
        let registrations =
            Registrations::of(Plane::new(&Runtime::system(), PlaneId::new("core"), operator.clone()));
        milo.server.add_hook(ledger_admission::hook(&registrations));
        for city in foundation.cells.keys() {
            make(&operator, &content::location(city)).await;
        }
        for registration in quota::registrations() {
            make(&operator, &registration).await;
        }
        make(&operator, &locations::catalog()).await;

        let surroundings = Surroundings::new(&foundation, &milo, &wires, bare);
        let mut stack = Self {
            foundation,
            wires,
            milo,
            surroundings,
            authority,
            dir: dir.to_owned(),
            webhooks,
            _balancer: balancer,
            tokens: BTreeMap::new(),
            launches: BTreeMap::new(),
            running: Mutex::default(),
            listeners: Vec::new(),
            _registrations: registrations,
            audit: (logs, memory),
        };
        stack.join().await;
        stack.prepare().await;
        for worker in stack.workers() {
            stack.start(&worker).await;
        }
        stack.until_cells_are_there().await;
        stack
    }

    /// What managers have asked of API servers since the start.
    pub fn asked(&self) -> Asked {
        self.audit.0.read(&self.audit.1)
    }

    /// What servers elsewhere have written down.
    pub fn audit_logs(&self) -> &Logs {
        &self.audit.0
    }

    /// Everybody who works here.
    pub fn workers(&self) -> Vec<Worker> {
        let cells = self.foundation.cells.keys().cloned().map(Worker::Cell);
        [Worker::Surroundings, Worker::Management].into_iter().chain(cells).collect()
    }

    /// Lets the hub reach its members over wires. The stand-in for Karmada has wires of its own.
    async fn join(&mut self) {
        let Some(running) = self.foundation.running() else { return };
        let mut listeners = Vec::new();
        for (city, cell) in &self.foundation.cells {
            let host = Host::Plane { plane: planes::cell(city).unwrap(), upstream: cell.server.bare() };
            let listener = Listener::start(&self.authority, &self.wires, &Worker::Surroundings, host).await;
            members::lead(&self.foundation.hub, &cell.cluster, &listener.url(), self.authority.certificate())
                .await;
            listeners.push(listener);
        }
        members::reconnect(running, &self.foundation).await;
        self.listeners.extend(listeners);
    }

    /// Waits until every cell knows where it is.
    async fn until_cells_are_there(&self) {
        for city in self.cities() {
            let locations: Api<Location> = Api::all(self.client(&Place::Cell(city.clone())));
            eventually(&format!("the cell of {city} has its location"), async || {
                let found = locations.list(&ListParams::default()).await.unwrap();
                if found.items.is_empty() { Err("none") } else { Ok(()) }
            })
            .await;
        }
    }

    /// Takes away what a story has made, and sets everything right that it broke; fails if something stays, or if a manager has ended by
    /// itself.
    pub async fn clear(&self) {
        self.wires.mend_all();
        for worker in self.workers() {
            let runs = self.running.lock().contains_key(&worker);
            if !runs {
                self.start(&worker).await;
            }
            self.wires.unlimited(&worker);
        }
        self.assert_all_run();
        let all: Api<Project> = Api::all(self.client(&Place::Core));
        for project in all.list(&ListParams::default()).await.unwrap() {
            let _ = all.delete(&project.name_any(), &DeleteParams::default()).await;
        }
        eventually("all projects are gone", async || {
            let left = all.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
            match left.first() {
                None => Ok(()),
                Some(project) => Err(format!("{}: {:?}", project.name_any(), project.status)),
            }
        })
        .await;
        let cells = self.cities().into_iter().map(Place::Cell);
        for place in [Place::Hub].into_iter().chain(cells) {
            let namespaces: Api<Namespace> = Api::all(self.client(&place));
            eventually(&format!("no namespace of a project is left in {place:?}"), async || {
                let labelled = ListParams::default().labels(labels::UPSTREAM_CLUSTER_NAME);
                let left = namespaces.list(&labelled).await.map_err(|error| error.to_string())?.items;
                let names: Vec<String> = left.iter().map(|left| left.name_any()).collect();
                if names.is_empty() { Ok(()) } else { Err(format!("{names:?}")) }
            })
            .await;
        }
        self.assert_all_run();
    }

    /// The managers that run, each with its number for the system.
    pub fn managers(&self) -> Vec<(String, u32)> {
        let running = self.running.lock();
        let managers = running.values().filter_map(|running| match running {
            Running::Process(manager) => Some((manager.name().to_owned(), manager.pid())),
            Running::Here(_) => None,
        });
        managers.collect()
    }

    /// Fails if somebody has ended by themselves.
    pub fn assert_all_run(&self) {
        for (worker, running) in self.running.lock().iter_mut() {
            match running {
                Running::Process(manager) => manager.assert_runs(),
                Running::Here(task) => assert!(!task.is_finished(), "{worker:?} has ended by itself"),
            }
        }
    }

    /// Stops everybody, in good order.
    pub async fn stop(self) {
        let running = std::mem::take(&mut *self.running.lock());
        for (worker, running) in running {
            match running {
                Running::Process(manager) => manager.stop().await,
                Running::Here(task) => {
                    assert!(!task.is_finished(), "{worker:?} has ended by itself");
                    task.abort();
                }
            }
        }
        // Members are reached without wires again, by who comes after.
        for cell in self.foundation.cells.values().filter(|_| self.foundation.running().is_some()) {
            let Endpoint { url, ca_pem, .. } = &cell.server;
            members::lead(&self.foundation.hub, &cell.cluster, url, ca_pem).await;
        }
    }
}

/// Installs kinds and roles on all servers; what is on the management server then.
async fn install_all(foundation: &Foundation, hooks: &[Value]) -> Census {
    let management = foundation.management.admin();
    install::role(&management, Role::Project).await;
    install::all(&management, hooks).await;
    install::identity(&management, &Worker::Management, &[]).await;
    install::leases(&management, &Worker::Management).await;
    install::role(&foundation.hub.admin(), Role::Hub).await;
    members::install(foundation).await;
    for cell in foundation.cells.values() {
        install::role(&cell.server.admin(), Role::Cell).await;
    }
    // Every project has this namespace. It stays, since a namespace takes its time to go; what is in it goes.
    install::apply(&management, &install::namespace(quota::NAMESPACE)).await;
    projects::take(&management).await.unwrap()
}

/// Makes an object of a whole plane, or sees to it that it is as it should be.
pub(super) async fn make<K>(client: &Client, object: &K)
where
    K: Resource<DynamicType = ()> + Clone + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let name = object.meta().name.clone().unwrap();
    api.patch(&name, &PatchParams::apply(OPERATOR).force(), &Patch::Apply(object)).await.unwrap();
}

impl Stack for RealStack {
    fn cities(&self) -> Vec<String> {
        self.foundation.cells.keys().cloned().collect()
    }

    fn client(&self, place: &Place) -> Client {
        let operator = Identity::superuser(OPERATOR);
        let milo = |project| Client::new(self.milo.way(project, &operator).unwrap().1, "default");
        match place {
            Place::Core => milo(None),
            Place::Project(name) => milo(Some(name)),
            Place::Hub => self.foundation.hub.admin(),
            Place::Cell(city) => self.foundation.cells[city].server.admin(),
        }
    }

    async fn census(&self, place: &Place) -> Census {
        projects::take(&self.client(place)).await.unwrap()
    }

    async fn make_project(&self, name: &str) {
        self.milo.on_real.lock().get_or_insert_with(|| name.to_owned());
        let core = self.client(&Place::Core);
        make(&core, &content::project(name)).await;
        let projects: Api<Project> = Api::all(core.clone());
        eventually(&format!("project {name} is ready"), async || {
            let status = projects.get(name).await.unwrap().status.unwrap_or_default();
            if c::is_true(&status.conditions, CONDITION_READY) { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
        let locations: Api<Location> = Api::all(core);
        let bindings: Api<LocationBinding> = Api::all(self.client(&Place::Project(name.to_owned())));
        for city in self.cities() {
            let location = content::location_name(&city);
            eventually(&format!("project {name} is offered {city}"), async || {
                let known = locations.get_opt(&location).await.unwrap();
                if !known.is_some_and(|known| content::can_be_offered(&known)) {
                    return Ok(());
                }
                let binding = bindings.get_opt(&location).await.unwrap();
                Offered::of(&binding).find(&city).map(|_| ()).map_err(|_| "not yet")
            })
            .await;
        }
    }

    async fn cut(&self, place: &Place) {
        self.wires.cut(&plane(place));
    }

    async fn mend(&self, place: &Place) {
        self.wires.mend(&plane(place));
    }

    async fn crash(&self, worker: &Worker) {
        let running = self.running.lock().remove(worker);
        match running {
            None => panic!("{worker:?} does not run"),
            Some(Running::Process(manager)) => manager.kill().await,
            Some(Running::Here(task)) => {
                assert!(!task.is_finished(), "{worker:?} had ended by itself");
                task.abort();
                let _ = task.await;
            }
        }
    }

    async fn start(&self, worker: &Worker) {
        self.wires.unlimited(worker);
        let running = match self.launches.get(worker) {
            Some(launches) => {
                let mut manager = Manager::launch(&launches[0]);
                manager.until_ready().await;
                Running::Process(Box::new(manager))
            }
            None => {
                let mut tasks = Tasks::new();
                self.surroundings.spawn(&mut tasks);
                Running::Here(tokio::spawn(tasks.run(std::future::pending(), Duration::from_secs(5))))
            }
        };
        let before = self.running.lock().insert(worker.clone(), running);
        assert!(before.is_none(), "{worker:?} runs already");
    }

    fn allow_writes(&self, worker: &Worker, writes: u64) {
        self.wires.allow_writes(worker, writes);
    }

    fn is_out_of_writes(&self, worker: &Worker) -> bool {
        self.wires.is_spent(worker)
    }
}

fn plane(place: &Place) -> PlaneName {
    match place {
        Place::Core => planes::core(),
        Place::Hub => planes::hub(),
        Place::Cell(city) => planes::cell(city).unwrap(),
        Place::Project(name) => planes::project(name).unwrap(),
    }
}
