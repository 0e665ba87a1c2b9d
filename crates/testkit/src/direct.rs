//! Direct mode: one plane that is project and cell in one, and no hub.

use std::sync::Arc;
use std::time::Duration;

use compute_api::networking::{Location, LocationBinding};
use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use compute_controllers::{cell, management};
use compute_platform::networks;
use compute_providers::{Locations, Subnets, simulated};
use compute_runtime::events::{self, Reporter};
use compute_runtime::tasks::{Ended, Tasks};
use compute_runtime::{Plane, PlaneId, Planes, Runtime};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A manager with both roles, one project and no federation.
pub struct Direct {
    /// A client for the one plane, with full rights.
    pub client: Client,
    running: JoinHandle<Result<(), Ended>>,
}

impl Direct {
    /// Starts it, with one city offered.
    pub async fn start(city: &str) -> Self {
        let server = ApiServer::new(Options::default());
        let crds = compute_api::crds::ours().into_iter().chain(compute_api::crds::foreign());
        let mut objects: Vec<Value> = crds.map(|crd| serde_json::to_value(crd).unwrap()).collect();
        let rules =
            [management::rbac::project(), cell::rbac::cell(), compute_providers::rbac::cell()].concat();
        let manager = json!({ "apiGroup": RBAC, "kind": "User", "name": "manager" });
        objects.push(json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
            "metadata": { "name": "manager" }, "rules": rules }));
        objects.push(json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": { "name": "manager" }, "subjects": [manager],
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": "manager" } }));
        let template = server.template(&objects).await.unwrap();
        let name = PlaneName::new("single").unwrap();
        server.create_plane(name.clone(), &template).await.unwrap();
        let client = Client::new(server.service(&name, Identity::superuser("test")), "default");
        offer(&client, city).await;

        let runtime = Runtime::beside_planes();
        let manager = Client::new(server.service(&name, Identity::user("manager")), "default");
        let plane = Plane::new(&runtime, PlaneId::new("single"), manager);
        let mut tasks = Tasks::new();
        let reporter = Reporter { component: "manager".to_owned(), instance: "test".to_owned() };
        let clock = runtime.clock().clone();
        let (events, publisher) = events::events(reporter, events::Limits::default(), move || clock.now());
        tasks.spawn("events", |stop| publisher.run(stop));
        let projects = Planes::single(&plane);
        management::spawn(
            &mut tasks,
            management::Setup { projects, core: None, hub: None, events: events.clone() },
        );
        cell::spawn(
            &mut tasks,
            cell::Setup {
                cell: plane.clone(),
                source: cell::Source::Project { name: "single".to_owned() },
                quota: cell::Quota::Disabled,
                networking: true,
                events: events.clone(),
            },
        );
        let (subnets, clock) = (Subnets::of(&plane), runtime.clock().clone());
        let engine = Arc::new(simulated::Simulated::on(&subnets, clock, simulated::Options::default()));
        let setup = compute_providers::Setup { cell: plane, engine, locations: Locations::All, events };
        compute_providers::spawn(&mut tasks, setup);
        let surroundings = Plane::new(&runtime, PlaneId::new("single"), client.clone());
        let addresses = networks::Addresses::Whole;
        networks::spawn(&mut tasks, networks::Setup { cell: surroundings, addresses });
        let running = tokio::spawn(tasks.run(std::future::pending(), Duration::from_secs(5)));
        Self { client, running }
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// What the platform around would have put there.
async fn offer(client: &Client, city: &str) {
    let topology = json!({ compute_api::labels::TOPOLOGY_CITY_CODE: city });
    let name = city.to_lowercase();
    let available = json!({ "status": { "conditions": [{ "type": "Available", "status": "True", "reason": "Offered",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    let location = json!({ "metadata": { "name": name },
        "spec": { "locationClassName": "datum-managed", "topology": topology, "provider": {} } });
    let location: Location = serde_json::from_value(location).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &location).await.unwrap();
    let binding = json!({ "metadata": { "name": name },
        "spec": { "locationRef": { "name": name }, "topology": topology } });
    let binding: LocationBinding = serde_json::from_value(binding).unwrap();
    let bindings: Api<LocationBinding> = Api::all(client.clone());
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    bindings.patch_status(&name, &PatchParams::default(), &Patch::Merge(available)).await.unwrap();
    let network = json!({ "metadata": { "name": "default" }, "spec": { "ipam": { "mode": "Auto" } } });
    let network: compute_api::networking::Network = serde_json::from_value(network).unwrap();
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &network).await.unwrap();
}

impl Drop for Direct {
    fn drop(&mut self) {
        if self.running.is_finished() && !std::thread::panicking() {
            panic!("the manager ended by itself");
        }
        self.running.abort();
    }
}
