//! The stand-ins for the platform around, in this process: projects, locations, networks, the quota ledger. What carries objects from
//! the hub to cells is Karmada's part, and stood in for only where there is no Karmada.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use compute_api::milo::Project;
use compute_apiserver::Identity;
use compute_local::census::Census;
use compute_local::{content, planes};
use compute_platform::propagation::{self, Probe};
use compute_platform::{locations, networks, projects, quota};
use compute_runtime::engage::{self, milo};
use compute_runtime::events::{self, Reporter};
use compute_runtime::tasks::Tasks;
use compute_runtime::{Plane, PlaneId, Planes, Runtime};
use kube::Client;

use super::foundation::{Engine, Foundation};
use super::milo::Milo;
use super::projects::ProjectHost;
use super::way::{self, Credentials};
use crate::faults::Wires;
use crate::stack::Worker;

/// What the stand-ins work with.
#[derive(Clone)]
pub struct Surroundings {
    runtime: Runtime,
    wires: Wires,
    milo: Arc<Milo>,
    hub: Client,
    /// By city: the name of the cell's Cluster, and a client.
    cells: BTreeMap<String, (String, Client)>,
    real: Client,
    bare: Census,
    propagates: bool,
}

const WORKER: Worker = Worker::Surroundings;

impl Surroundings {
    /// On these servers. `bare` is what was on the real project's server before any project.
    pub fn new(foundation: &Foundation, milo: &Arc<Milo>, wires: &Wires, bare: Census) -> Self {
        let cells = foundation
            .cells
            .iter()
            .map(|(city, cell)| (city.clone(), (cell.cluster.clone(), cell.server.admin())));
        Self {
            runtime: Runtime::system(),
            wires: wires.clone(),
            milo: milo.clone(),
            hub: foundation.hub.admin(),
            cells: cells.collect(),
            real: foundation.management.admin(),
            bare,
            propagates: matches!(foundation.engine, Engine::Embedded { .. }),
        }
    }

    fn identity() -> Identity {
        WORKER.identity()
    }

    fn core(&self) -> Plane {
        let (plane, way) = self.milo.way(None, &Self::identity()).unwrap();
        let client = Client::new(self.wires.wire(&WORKER, &plane, way), "default");
        Plane::new(&self.runtime, PlaneId::new(plane.as_str()), client)
    }

    fn hub(&self) -> Plane {
        let way = way::remote(&self.hub, Credentials::Own);
        let client = Client::new(self.wires.wire(&WORKER, &planes::hub(), way), "default");
        Plane::new(&self.runtime, PlaneId::new("hub"), client)
    }

    fn cell(&self, city: &str) -> Plane {
        let plane = planes::cell(city).unwrap();
        let way = way::remote(&self.cells[city].1, Credentials::Own);
        let client = Client::new(self.wires.wire(&WORKER, &plane, way), "default");
        Plane::new(&self.runtime, PlaneId::new(plane.as_str()), client)
    }

    fn to_projects(&self) -> Arc<engage::Connect> {
        let this = self.clone();
        Arc::new(move |project| {
            let way = this.milo.way(Some(project), &Self::identity());
            let (plane, way) = way.ok_or_else(|| anyhow::anyhow!("there can be no project {project}"))?;
            Ok(Client::new(this.wires.wire(&WORKER, &plane, way), "default"))
        })
    }

    /// Lets them work until the tasks are stopped.
    pub fn spawn(&self, tasks: &mut Tasks) {
        let core = self.core();
        let all = Planes::new(&self.runtime);
        let (at, found, connect) = (core.clone(), all.clone(), self.to_projects());
        tasks.spawn("discovery of projects", |stop| async move {
            milo::<Project>(&at, &found, connect, stop.cancelled()).await;
            Ok::<(), std::convert::Infallible>(())
        });
        let host = ProjectHost {
            milo: self.milo.clone(),
            connect: self.to_projects(),
            real: self.real.clone(),
            bare: self.bare.clone(),
        };
        let setup = projects::Setup {
            core: core.clone(),
            host: Arc::new(host),
            starting_content: Arc::new(content::of_a_project),
            cells: self.cells.values().map(|(cluster, _)| cluster.clone()).collect(),
        };
        projects::spawn(tasks, setup);
        quota::spawn(tasks, quota::Setup { projects: all.clone(), core: core.clone() });
        let cells: Vec<(String, Plane)> =
            self.cells.keys().map(|city| (city.clone(), self.cell(city))).collect();
        for (_, cell) in &cells {
            let addresses = networks::Addresses::OfLocations;
            networks::spawn(tasks, networks::Setup { cell: cell.clone(), addresses });
        }
        if self.propagates {
            self.spawn_propagation(&cells, tasks);
        }
        locations::spawn(
            tasks,
            locations::Setup { core, projects: all, cells, rules: locations::Rules::default() },
        );
    }

    fn spawn_propagation(&self, cells: &[(String, Plane)], tasks: &mut Tasks) {
        let reporter = Reporter { component: "karmada".to_owned(), instance: "stand-in".to_owned() };
        let clock = self.runtime.clock().clone();
        let (events, publisher) = events::events(reporter, events::Limits::default(), move || clock.now());
        tasks.spawn("events of propagation", |stop| publisher.run(stop));
        let members = cells.iter().map(|(city, plane)| propagation::Member {
            name: self.cells[city].0.clone(),
            city: city.clone(),
            plane: plane.clone(),
        });
        let probe = Probe { every: Duration::from_millis(100), timeout: Duration::from_secs(2) };
        let setup = propagation::Setup { hub: self.hub(), members: members.collect(), probe, events };
        propagation::spawn(tasks, setup);
    }
}
