//! The platform: its planes, and who works on them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use compute_api::conditions as c;
use compute_api::milo::{CONDITION_READY, Project};
use compute_api::networking::{Location, LocationBinding};
use compute_apiserver::{ApiServer, Identity, PlaneName};
use compute_controllers::{cell, management};
use compute_core::location::Offered;
use compute_platform::{locations, networks, projects, propagation, quota};
use compute_providers::{Locations, Subnets, simulated};
use compute_runtime::engage::milo;
use compute_runtime::events::{self, Events, Reporter};
use compute_runtime::tasks::Tasks;
use compute_runtime::{Plane, PlaneId, Planes, Runtime};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource};
use tokio::time::Instant;

use crate::admission::{self, Host};
use crate::content;
use crate::ledger_admission::{self, Registrations};
use crate::planes::{self, Role};
use crate::projects::Projects;
use crate::workers::Worker;

/// How a worker reaches a plane.
pub type Connect = dyn Fn(&Worker, &PlaneName) -> Client + Send + Sync;

/// How long a project may take to become ready, or to go.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Who makes the platform's first objects, and whose eyes see every plane.
const OPERATOR: &str = "platform-operator";

/// What a platform is like.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cities that have a cell, by code.
    pub cities: Vec<String>,
    /// Whether instances are put on networks: the feature gate `NetworkingIntegration`.
    pub networking: bool,
    /// How long an instance takes to start, where it does not say so itself.
    pub start_delay: Duration,
    /// How long access to the service takes to be activated once it is asked for.
    pub entitle_after: Duration,
    /// How cells are asked whether they answer.
    pub probe: propagation::Probe,
    /// Whether what is written to projects is judged.
    pub admission: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cities: ["DFW", "IAD", "LHR"].map(str::to_owned).to_vec(),
            networking: true,
            start_delay: Duration::ZERO,
            entitle_after: Duration::ZERO,
            probe: propagation::Probe::default(),
            admission: true,
        }
    }
}

/// The planes of a platform, and all it takes to work on them. Cheap to clone.
#[derive(Clone)]
pub struct Platform(Arc<Inner>);

struct Inner {
    server: ApiServer,
    runtime: Runtime,
    settings: Settings,
    connect: Box<Connect>,
    projects: Arc<Projects>,
    /// What the ledger's admission goes by, for as long as there is a platform.
    _registrations: Option<Arc<Registrations>>,
}

impl Host for Inner {
    fn client(&self, plane: &PlaneName, worker: &Worker) -> Client {
        in_process(&self.server, plane, worker.identity())
    }
}

impl Platform {
    /// Makes the planes in a server, or finds them again there, with what they start with. Nobody works on them yet.
    ///
    /// # Errors
    ///
    /// If a plane cannot be made, or does not take its first objects.
    pub async fn new(server: &ApiServer, runtime: Runtime, settings: Settings) -> Result<Self> {
        let at = server.clone();
        let connect = move |worker: &Worker, plane: &PlaneName| in_process(&at, plane, worker.identity());
        Self::with(server, runtime, settings, Box::new(connect)).await
    }

    /// The same with another way for workers to reach planes.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub async fn with(
        server: &ApiServer,
        runtime: Runtime,
        settings: Settings,
        connect: Box<Connect>,
    ) -> Result<Self> {
        let mut templates = BTreeMap::new();
        for role in [Role::Core, Role::Hub, Role::Cell, Role::Project] {
            templates.insert(role, planes::template(server, role).await?);
        }
        server.create_plane(planes::core(), &templates[&Role::Core]).await?;
        server.create_plane(planes::hub(), &templates[&Role::Hub]).await?;
        for city in &settings.cities {
            server.create_plane(planes::cell(city)?, &templates[&Role::Cell]).await?;
        }
        let projects = Projects::new(server, templates.remove(&Role::Project).expect("made above"));
        let core = in_process(server, &planes::core(), Identity::superuser(OPERATOR));
        let registrations = settings.admission.then(|| {
            let registrations = Registrations::of(Plane::new(&runtime, PlaneId::new("core"), core));
            server.add_hook(ledger_admission::hook(&registrations));
            registrations
        });
        let platform = Self(Arc::new(Inner {
            server: server.clone(),
            runtime,
            settings,
            connect,
            projects: Arc::new(projects),
            _registrations: registrations,
        }));
        if platform.0.settings.admission {
            let host: Weak<dyn Host> = Arc::downgrade(&platform.0) as Weak<Inner>;
            admission::install(server, platform.0.settings.networking, &host);
        }
        let (core, hub) = (platform.client(&planes::core()), platform.client(&planes::hub()));
        for city in &platform.0.settings.cities {
            make(&core, &content::location(city)).await?;
            make(&hub, &content::cluster(city)).await?;
        }
        for registration in quota::registrations() {
            make(&core, &registration).await?;
        }
        make(&core, &locations::catalog()).await?;
        Ok(platform)
    }

    /// The cities that have a cell.
    pub fn cities(&self) -> &[String] {
        &self.0.settings.cities
    }

    /// The planes of projects.
    pub fn projects(&self) -> &Arc<Projects> {
        &self.0.projects
    }

    /// The names of all planes.
    pub fn plane_names(&self) -> Vec<PlaneName> {
        self.0.server.plane_names()
    }

    /// A client for a plane whom nothing holds back.
    pub fn client(&self, plane: &PlaneName) -> Client {
        in_process(&self.0.server, plane, Identity::superuser(OPERATOR))
    }

    /// Everybody who works on the platform.
    pub fn workers(&self) -> Vec<Worker> {
        let cells = self.cities().iter().cloned().map(Worker::Cell);
        [Worker::Surroundings, Worker::Management].into_iter().chain(cells).collect()
    }

    /// Lets everybody work until the tasks are stopped.
    pub fn spawn_all(&self, tasks: &mut Tasks) {
        for worker in self.workers() {
            self.spawn(&worker, tasks);
        }
    }

    /// Lets one worker work until the tasks are stopped.
    pub fn spawn(&self, worker: &Worker, tasks: &mut Tasks) {
        let events = self.events(worker, tasks);
        match worker {
            Worker::Management => self.spawn_management(worker, events, tasks),
            Worker::Cell(city) => self.spawn_cell(worker, city, events, tasks),
            Worker::Surroundings => self.spawn_surroundings(worker, events, tasks),
        }
    }

    fn spawn_management(&self, worker: &Worker, events: Events, tasks: &mut Tasks) {
        let core = self.plane(worker, &planes::core());
        let projects = self.discover(worker, &core, tasks);
        let hub = Some(self.plane(worker, &planes::hub()));
        management::spawn(tasks, management::Setup { projects, core: Some(core), hub, events });
    }

    fn spawn_cell(&self, worker: &Worker, city: &str, events: Events, tasks: &mut Tasks) {
        let cluster_name = planes::cluster_name(city);
        let plane = planes::cell(city).expect("the cell was made under this name");
        let here = self.plane(worker, &plane);
        let source = cell::Source::Hub { hub: self.plane(worker, &planes::hub()), cluster_name };
        let quota = cell::Quota::Projects(self.to_projects(worker));
        let networking = self.0.settings.networking;
        cell::spawn(
            tasks,
            cell::Setup { cell: here.clone(), source, quota, networking, events: events.clone() },
        );
        let options =
            simulated::Options { start_delay: self.0.settings.start_delay, ..simulated::Options::default() };
        let subnets = if networking { Subnets::of(&here) } else { Subnets::none() };
        let engine = Arc::new(simulated::Simulated::on(&subnets, self.0.runtime.clock().clone(), options));
        let setup = compute_providers::Setup { cell: here, engine, locations: Locations::All, events };
        compute_providers::spawn(tasks, setup);
    }

    fn spawn_surroundings(&self, worker: &Worker, events: Events, tasks: &mut Tasks) {
        let core = self.plane(worker, &planes::core());
        let hub = self.plane(worker, &planes::hub());
        let cells: Vec<(String, Plane)> = self
            .cities()
            .iter()
            .map(|city| {
                let plane = planes::cell(city).expect("the cell was made under this name");
                (city.clone(), self.plane(worker, &plane))
            })
            .collect();
        let all = self.discover(worker, &core, tasks);
        let host: Arc<dyn projects::Host> = Arc::new(self.0.projects.host(self.to_projects(worker)));
        let starting_content = Arc::new(content::of_a_project);
        let names = cells.iter().map(|(city, _)| planes::cluster_name(city)).collect();
        projects::spawn(tasks, projects::Setup { core: core.clone(), host, starting_content, cells: names });
        quota::spawn(tasks, quota::Setup { projects: all.clone(), core: core.clone() });
        for (_, cell) in &cells {
            let addresses = networks::Addresses::OfLocations;
            networks::spawn(tasks, networks::Setup { cell: cell.clone(), addresses });
        }
        let members = cells.iter().map(|(city, plane)| propagation::Member {
            name: planes::cluster_name(city),
            city: city.clone(),
            plane: plane.clone(),
        });
        let members = members.collect();
        propagation::spawn(tasks, propagation::Setup { hub, members, probe: self.0.settings.probe, events });
        locations::spawn(
            tasks,
            locations::Setup {
                core,
                projects: all,
                cells,
                rules: locations::Rules {
                    entitle_after: self.0.settings.entitle_after,
                    ..locations::Rules::default()
                },
            },
        );
    }

    /// The planes of projects as a worker sees them come and go.
    fn discover(&self, worker: &Worker, core: &Plane, tasks: &mut Tasks) -> Planes {
        let projects = Planes::new(&self.0.runtime);
        let (core, found, connect) = (core.clone(), projects.clone(), self.to_projects(worker));
        tasks.spawn(format!("discovery of projects for {worker:?}"), |stop| async move {
            milo::<Project>(&core, &found, connect, stop.cancelled()).await;
            Ok::<(), std::convert::Infallible>(())
        });
        projects
    }

    /// How a worker reaches projects, by name.
    fn to_projects(&self, worker: &Worker) -> Arc<compute_runtime::engage::Connect> {
        let (inner, worker) = (self.0.clone(), worker.clone());
        Arc::new(move |project| Ok((inner.connect)(&worker, &planes::project(project)?)))
    }

    fn plane(&self, worker: &Worker, name: &PlaneName) -> Plane {
        let client = (self.0.connect)(worker, name);
        Plane::new(&self.0.runtime, PlaneId::new(name.as_str()), client)
    }

    fn events(&self, worker: &Worker, tasks: &mut Tasks) -> Events {
        let reporter = Reporter { component: worker.identity().user, instance: "compute-local".to_owned() };
        let clock = self.0.runtime.clock().clone();
        let (events, publisher) = events::events(reporter, events::Limits::default(), move || clock.now());
        tasks.spawn(format!("events of {worker:?}"), |stop| publisher.run(stop));
        events
    }

    /// The names of all projects, whether their planes are there yet or not.
    ///
    /// # Errors
    ///
    /// If core does not answer.
    pub async fn project_names(&self) -> Result<Vec<String>> {
        let api: Api<Project> = Api::all(self.client(&planes::core()));
        let found = api.list_metadata(&ListParams::default()).await.context("cannot list the projects")?;
        Ok(found.items.into_iter().filter_map(|project| project.metadata.name).collect())
    }

    /// Waits until every project that there is has its plane, as after a restart.
    ///
    /// # Errors
    ///
    /// If core does not answer.
    pub async fn until_projects_are_there(&self) -> Result<()> {
        let mut changes = self.0.projects.changes();
        loop {
            let there = self.0.projects.planes();
            let all = self.project_names().await?;
            let named = all.iter().filter_map(|name| planes::project(name).ok());
            if named.into_iter().all(|plane| there.contains(&plane)) {
                return Ok(());
            }
            // A project may also have gone meanwhile.
            let _ = tokio::time::timeout(Duration::from_secs(1), changes.changed()).await;
        }
    }

    /// Waits until every cell knows where it is, which is the last thing that a new platform gets by itself.
    ///
    /// # Errors
    ///
    /// If a cell does not answer, or does not get to know it in time.
    pub async fn until_cells_are_there(&self) -> Result<()> {
        let began = Instant::now();
        for city in self.cities() {
            let locations: Api<Location> = Api::all(self.client(&planes::cell(city)?));
            while locations.list(&ListParams::default()).await?.items.is_empty() {
                if began.elapsed() > PATIENCE {
                    bail!("the cell of {city} has no location within {} s", PATIENCE.as_secs());
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }

    /// Waits until a project is offered every city of ours that nothing is in the way of: without that, nothing can be deployed there.
    async fn until_cities_are_offered(&self, project: &str, began: Instant) -> Result<()> {
        let locations: Api<Location> = Api::all(self.client(&planes::core()));
        let bindings: Api<LocationBinding> = Api::all(self.client(&planes::project(project)?));
        for city in self.cities() {
            let name = content::location_name(city);
            loop {
                // One that somebody broke is not waited for.
                let location = locations.get_opt(&name).await.ok().flatten();
                if !location.is_some_and(|location| content::can_be_offered(&location)) {
                    break;
                }
                let binding = bindings.get_opt(&name).await.context("cannot read what is offered")?;
                if Offered::of(&binding).find(city).is_ok() {
                    break;
                }
                if began.elapsed() > PATIENCE {
                    bail!("project {project} is not offered city {city} within {} s", PATIENCE.as_secs());
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }

    /// Makes a project and waits until it is ready and offered cities. One that is there already is taken as it is.
    ///
    /// # Errors
    ///
    /// If core does not take it, or if it does not become ready in time: with what it says of itself.
    pub async fn make_project(&self, name: &str) -> Result<()> {
        let core = self.client(&planes::core());
        make(&core, &content::project(name)).await?;
        let api: Api<Project> = Api::all(core);
        let began = Instant::now();
        loop {
            let status = api.get(name).await.context("cannot read the project")?.status.unwrap_or_default();
            if c::is_true(&status.conditions, CONDITION_READY) {
                return self.until_cities_are_offered(name, began).await;
            }
            if began.elapsed() > PATIENCE {
                let said =
                    c::find(&status.conditions, CONDITION_READY).map_or("nothing", |said| &said.message);
                bail!("project {name} is not ready within {} s; it says: {said}", PATIENCE.as_secs());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Makes a project with an empty plane that says it is ready, though nobody is at work.
    ///
    /// # Errors
    ///
    /// If core does not take it, or the plane cannot be made.
    pub async fn make_idle_project(&self, name: &str) -> Result<()> {
        let core = self.client(&planes::core());
        make(&core, &content::project(name)).await?;
        self.0.projects.make(name).await?;
        let ready = serde_json::json!({ "status": { "conditions": [{
            "type": CONDITION_READY, "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": self.0.runtime.clock().now().to_string(),
        }] } });
        let api: Api<Project> = Api::all(core);
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(ready)).await?;
        Ok(())
    }

    /// Deletes a project with everything in it, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// If core does not take it, or if it is still there in the end.
    pub async fn delete_project(&self, name: &str) -> Result<()> {
        let api: Api<Project> = Api::all(self.client(&planes::core()));
        api.delete(name, &DeleteParams::default()).await.context("cannot delete the project")?;
        let began = Instant::now();
        while let Some(project) = api.get_opt(name).await.context("cannot read the project")? {
            if began.elapsed() > PATIENCE {
                let status = project.status.unwrap_or_default();
                let said =
                    c::find(&status.conditions, CONDITION_READY).map_or("nothing", |said| &said.message);
                bail!("project {name} is not gone within {} s; it says: {said}", PATIENCE.as_secs());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

fn in_process(server: &ApiServer, plane: &PlaneName, identity: Identity) -> Client {
    Client::new(server.service(plane, identity), "default")
}

/// Makes an object of a whole plane, or sees to it that it is as it should be.
async fn make<K>(client: &Client, object: &K) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let name = object.meta().name.clone().unwrap_or_default();
    let api: Api<K> = Api::all(client.clone());
    api.patch(&name, &PatchParams::apply(OPERATOR).force(), &Patch::Apply(object))
        .await
        .with_context(|| format!("cannot make {} {name}", K::kind(&())))?;
    Ok(())
}
