//! Locations are offered to projects by their rules, and given to cells, against the embedded server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::{Asked, Faults, Running, Server, reads, runtime};
use compute_api::k8s::{ConfigMap, ResourceExt as _};
use compute_api::labels::TOPOLOGY_CITY_CODE;
use compute_api::milo::{ServiceConfiguration, ServiceEntitlement};
use compute_api::networking::{Location, LocationBinding};
use compute_core::subnets::blocks::{ADDRESSES, Blocks};
use compute_platform::locations::{self, Rules, Setup};
use compute_runtime::{PlaneId, Planes};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

struct World {
    server: Server,
    core: Client,
    core_faults: Arc<Faults>,
    projects: BTreeMap<&'static str, Arc<Faults>>,
    cells: BTreeMap<&'static str, Arc<Faults>>,
    planes: Option<Planes>,
    running: Option<Running>,
    rules: Rules,
}

impl World {
    async fn new(projects: &[&'static str], rules: Rules) -> Self {
        let server = Server::new().await;
        let core = server.make("core").await;
        for plane in projects.iter().chain(&["cell-dfw", "cell-iad"]) {
            server.make(plane).await;
        }
        locations::seed_core(&server.plane(&runtime(), "core", &Faults::new())).await.unwrap();
        let mut world = Self {
            server,
            core,
            core_faults: Faults::new(),
            projects: projects.iter().map(|name| (*name, Faults::new())).collect(),
            cells: [("cell-dfw", Faults::new()), ("cell-iad", Faults::new())].into(),
            planes: None,
            running: None,
            rules,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        let runtime = runtime();
        let core = self.server.plane(&runtime, "core", &self.core_faults);
        let planes = Planes::new(&runtime);
        for (name, faults) in &self.projects {
            planes.engage(&self.server.plane(&runtime, name, faults));
        }
        let cells = self.cells.iter().map(|(name, faults)| {
            let city = name.trim_start_matches("cell-").to_owned();
            (city, self.server.plane(&runtime, name, faults))
        });
        let (cells, rules) = (cells.collect(), self.rules.clone());
        self.planes = Some(planes.clone());
        self.running = Some(Running::start(&runtime, |tasks, _| {
            locations::spawn(tasks, Setup { core, projects: planes, cells, rules });
        }));
    }

    async fn stop(&mut self) {
        self.running.take().unwrap().stop().await;
        self.planes = None;
    }

    fn locations(&self) -> Api<Location> {
        Api::all(self.core.clone())
    }

    async fn location(&self, name: &str, city: &str, class: &str) {
        let location = json!({
            "metadata": { "name": name },
            "spec": { "locationClassName": class, "topology": { TOPOLOGY_CITY_CODE: city }, "provider": {} },
        });
        let location = serde_json::from_value(location).unwrap();
        self.locations().create(&PostParams::default(), &location).await.unwrap();
    }

    async fn judge(&self, name: &str, status: &str, message: &str) {
        let patch = condition("Ready", status, message);
        self.locations().patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    fn entitlements(&self, project: &str) -> Api<ServiceEntitlement> {
        Api::all(self.server.client(project))
    }

    async fn request(&self, project: &str) {
        self.request_service(project, "compute").await;
    }

    async fn request_service(&self, project: &str, service: &str) {
        let request =
            json!({ "metadata": { "name": service }, "spec": { "serviceRef": { "name": service } } });
        let request = serde_json::from_value(request).unwrap();
        self.entitlements(project).create(&PostParams::default(), &request).await.unwrap();
    }

    /// Waits until a request for access says this of `Ready`.
    async fn says(&self, project: &str, service: &str, wanted: &str) {
        reads("what a request for access says", wanted.to_owned(), async || {
            let status = self.entitlements(project).get(service).await.unwrap().status.unwrap_or_default();
            status
                .conditions
                .iter()
                .map(|c| format!("{} {} {}", c.type_, c.status, c.reason))
                .collect::<String>()
        })
        .await;
    }

    async fn support(&self, classes: &[&str]) {
        let api: Api<ServiceConfiguration> = Api::all(self.core.clone());
        let patch = Patch::Merge(json!({ "spec": { "locations": { "supportedClasses": classes } } }));
        api.patch("compute", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Name, status and reason of each binding.
    async fn bindings(&self, project: &str) -> Vec<String> {
        let api: Api<LocationBinding> = Api::all(self.server.client(project));
        let all = api.list(&ListParams::default()).await.unwrap();
        let line = |binding: &LocationBinding| {
            let conditions =
                binding.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
            let said: Vec<_> = conditions.iter().map(|c| format!("{} {}", c.status, c.reason)).collect();
            format!("{} {}", binding.name_any(), said.join(" "))
        };
        all.items.iter().map(line).collect()
    }

    async fn has(&self, project: &str, wanted: &[&str]) {
        let wanted: Vec<_> = wanted.iter().map(|line| (*line).to_owned()).collect();
        reads("the bindings", wanted, async || self.bindings(project).await).await;
    }

    async fn in_cell(&self, cell: &str, wanted: &[&str]) {
        let wanted: Vec<_> = wanted.iter().map(|name| (*name).to_owned()).collect();
        let api: Api<Location> = Api::all(self.server.client(cell));
        reads("the cell's locations", wanted, async || {
            api.list(&ListParams::default()).await.unwrap().items.iter().map(|one| one.name_any()).collect()
        })
        .await;
    }
}

fn condition(type_: &str, status: &str, message: &str) -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({ "status": { "conditions": [{
        "type": type_, "status": status, "reason": "Test", "message": message, "lastTransitionTime": time,
    }] } })
}

#[tokio::test]
async fn a_project_is_offered_what_the_rules_allow() {
    let rules = Rules { judge_locations: false, ..Rules::default() };
    let world = World::new(&["a", "b"], rules).await;
    world.location("dfw", "DFW", "datum-managed").await;
    world.location("iad", "IAD", "datum-managed").await;
    world.location("own", "LHR", "self-managed").await;
    world.judge("dfw", "True", "").await;
    world.judge("own", "True", "").await;
    world.request("a").await;
    world.has("a", &["dfw True Available", "iad False LocationNotReady"]).await;
    assert!(world.bindings("b").await.is_empty(), "it is not entitled");

    // What happens to a location happens to its binding.
    world.judge("iad", "False", "the power is off").await;
    let api: Api<LocationBinding> = Api::all(world.server.client("a"));
    reads("what is said", "Location iad is not ready: the power is off".to_owned(), async || {
        api.get("iad").await.unwrap().status.unwrap().conditions[0].message.clone()
    })
    .await;
    world.judge("iad", "True", "").await;
    world.has("a", &["dfw True Available", "iad True Available"]).await;
    let binding = api.get("iad").await.unwrap();
    assert_eq!(binding.spec.city_code(), Some("IAD"));
    assert_eq!(binding.spec.location_ref.name, "iad");
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": ["test/held"] } }));
    world.locations().patch("iad", &PatchParams::default(), &patch).await.unwrap();
    world.locations().delete("iad", &DeleteParams::default()).await.unwrap();
    world.has("a", &["dfw True Available", "iad False LocationTerminating"]).await;
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    world.locations().patch("iad", &PatchParams::default(), &patch).await.unwrap();
    world.has("a", &["dfw True Available"]).await;

    // A binding that is deleted or edited by hand is put right; one that is somebody else's is left alone.
    api.delete("dfw", &DeleteParams::default()).await.unwrap();
    world.has("a", &["dfw True Available"]).await;
    api.patch_status("dfw", &PatchParams::default(), &Patch::Merge(condition("Available", "False", "")))
        .await
        .unwrap();
    world.has("a", &["dfw True Available"]).await;
    let own = json!({ "metadata": { "name": "mine" }, "spec": { "locationRef": { "name": "nowhere" } } });
    api.create(&PostParams::default(), &serde_json::from_value(own).unwrap()).await.unwrap();

    // Access that is lost, and comes again.
    world.entitlements("a").delete("compute", &DeleteParams::default()).await.unwrap();
    world.has("a", &["dfw False NotEntitled", "mine "]).await;
    world.request("a").await;
    world.has("a", &["dfw True Available", "mine "]).await;
}

#[tokio::test]
async fn access_is_granted_after_a_while_and_never_against_a_refusal() {
    let rules = Rules { entitle_after: Duration::from_secs(2), ..Rules::default() };
    let world = World::new(&["a", "b"], rules).await;
    world.location("dfw", "DFW", "datum-managed").await;
    world.request("b").await;
    let refused = Patch::Merge(condition("Ready", "False", "no"));
    world.entitlements("b").patch_status("compute", &PatchParams::default(), &refused).await.unwrap();
    world.request("a").await;
    world.says("a", "compute", "Ready Unknown Activating").await;
    assert!(world.bindings("a").await.is_empty(), "it is not active yet");
    world.says("a", "compute", "Ready True Ready").await;
    world.has("a", &["dfw True Available"]).await;
    assert!(world.bindings("b").await.is_empty());
    let stored = world.entitlements("b").get("compute").await.unwrap();
    assert_eq!(stored.status.unwrap().conditions[0].status, "False");
}

#[tokio::test]
async fn the_catalog_says_which_services_there_are_and_where() {
    let world = World::new(&["a"], Rules::default()).await;
    world.location("dfw", "DFW", "datum-managed").await;
    world.location("own", "LHR", "self-managed").await;
    world.request_service("a", "storage").await;
    world.says("a", "storage", "Ready Unknown ServiceNotFound").await;
    world.request("a").await;
    world.says("a", "compute", "Ready True Ready").await;
    world.has("a", &["dfw True Available"]).await;
    // A service that comes later is granted then.
    let api: Api<ServiceConfiguration> = Api::all(world.core.clone());
    let mut storage = locations::catalog();
    storage.metadata.name = Some("storage".to_owned());
    api.create(&PostParams::default(), &storage).await.unwrap();
    world.says("a", "storage", "Ready True Ready").await;
    // One more class, another instead of the first, and the first again.
    world.support(&["datum-managed", "self-managed"]).await;
    world.has("a", &["dfw True Available", "own True Available"]).await;
    world.support(&["self-managed"]).await;
    world.has("a", &["dfw False LocationClassNotSupported", "own True Available"]).await;
    world.support(&["datum-managed"]).await;
    world.has("a", &["dfw True Available", "own False LocationClassNotSupported"]).await;
    // A service that is withdrawn is offered nowhere, though who has access keeps it.
    api.delete("compute", &DeleteParams::default()).await.unwrap();
    world.has("a", &["dfw False LocationClassNotSupported", "own False LocationClassNotSupported"]).await;
    world.says("a", "compute", "Ready True Ready").await;
    api.create(&PostParams::default(), &locations::catalog()).await.unwrap();
    world.has("a", &["dfw True Available", "own False LocationClassNotSupported"]).await;
    world.locations().delete("own", &DeleteParams::default()).await.unwrap();
    world.has("a", &["dfw True Available"]).await;
    // Access that is taken away by hand, and given back.
    let patch = Patch::Merge(condition("Ready", "False", "unpaid"));
    world.entitlements("a").patch_status("compute", &PatchParams::default(), &patch).await.unwrap();
    world.has("a", &["dfw False NotEntitled"]).await;
    let patch = Patch::Merge(condition("Ready", "True", ""));
    world.entitlements("a").patch_status("compute", &PatchParams::default(), &patch).await.unwrap();
    world.has("a", &["dfw True Available"]).await;
    // A location that fails and comes back.
    for (ready, says) in [
        ("False", "dfw False LocationNotReady"),
        ("Unknown", "dfw False LocationNotReady"),
        ("True", "dfw True Available"),
    ] {
        world.judge("dfw", ready, "").await;
        world.has("a", &[says]).await;
    }
}

#[tokio::test]
async fn cells_have_the_locations_of_their_city() {
    let mut world = World::new(&[], Rules::default()).await;
    world.location("dfw", "DFW", "datum-managed").await;
    world.location("dfw2", "dfw", "other").await;
    world.location("iad", "IAD", "datum-managed").await;
    world.in_cell("cell-dfw", &["dfw", "dfw2"]).await;
    world.in_cell("cell-iad", &["iad"]).await;
    let api: Api<Location> = Api::all(world.server.client("cell-dfw"));
    reads("whether it is Ready", Some("True".to_owned()), async || {
        api.get("dfw")
            .await
            .unwrap()
            .status
            .and_then(|status| Some(status.conditions.first()?.status.clone()))
    })
    .await;

    // A cell that is cut off catches up, whatever was missed.
    world.cells["cell-dfw"].cut();
    world.locations().delete("dfw2", &DeleteParams::default()).await.unwrap();
    world.location("dfw3", "DFW", "datum-managed").await;
    world.location("iad2", "IAD", "datum-managed").await;
    world.in_cell("cell-iad", &["iad", "iad2"]).await;
    world.stop().await;
    world.start();
    world.in_cell("cell-dfw", &["dfw", "dfw2"]).await;
    world.cells["cell-dfw"].mend();
    world.in_cell("cell-dfw", &["dfw", "dfw3"]).await;

    // What is the cell's own stays.
    let own = json!({ "metadata": { "name": "mine" }, "spec": {
        "locationClassName": "own", "topology": { TOPOLOGY_CITY_CODE: "DFW" }, "provider": {},
    } });
    api.create(&PostParams::default(), &serde_json::from_value(own).unwrap()).await.unwrap();
    world.locations().delete("dfw", &DeleteParams::default()).await.unwrap();
    world.in_cell("cell-dfw", &["dfw3", "mine"]).await;
}

#[tokio::test]
async fn an_idle_project_holds_few_watches_and_a_second_look_asks_for_nothing() {
    let mut world = World::new(&["a", "b"], Rules::default()).await;
    world.location("dfw", "DFW", "datum-managed").await;
    world.request("a").await;
    world.has("a", &["dfw True Available"]).await;
    world.in_cell("cell-dfw", &["dfw"]).await;
    reads("whether the cell says so", true, async || {
        let api: Api<Location> = Api::all(world.server.client("cell-dfw"));
        api.get("dfw").await.unwrap().status.is_some_and(|status| !status.conditions.is_empty())
    })
    .await;
    world.stop().await;
    let faults: Vec<_> =
        world.projects.values().chain(world.cells.values()).chain([&world.core_faults]).cloned().collect();
    faults.iter().for_each(|faults| faults.forget());
    world.start();
    // A list and a watch for each kind; the one that is not entitled looked at its bindings once.
    let watches = |project| world.projects[project].count(Asked::Watch);
    reads("what was asked of the entitled", true, async || watches("a") >= 4).await;
    reads("what was asked of the other", true, async || watches("b") >= 3).await;
    // Everything has been looked at once a change has gone through.
    world.location("iad", "IAD", "datum-managed").await;
    world.has("a", &["dfw True Available", "iad True Available"]).await;
    world.in_cell("cell-iad", &["iad"]).await;
    let is_register = |line: &String| line.contains("/location-addresses");
    let asked = |faults: &Faults| {
        let all = faults.requests().into_iter();
        all.filter(|line| !line.contains("/iad") && !is_register(line)).collect::<Vec<_>>()
    };
    // Once for what is there, and once more for what is new, which is written down.
    assert_eq!(world.core_faults.requests().iter().filter(|line| is_register(line)).count(), 3);
    for faults in &faults {
        assert_eq!(asked(faults), Vec::<String>::new());
    }
    assert_eq!(world.projects["b"].requests(), Vec::<String>::new());
    let planes = world.planes.clone().unwrap();
    assert_eq!(watches("a"), 4);
    assert!(watches("b") <= 4);
    // A project that has gone is not asked any more.
    assert!(planes.disengage(&PlaneId::new("b")));
    world.location("lhr", "LHR", "datum-managed").await;
    world.has("a", &["dfw True Available", "iad True Available", "lhr True Available"]).await;
    assert_eq!(world.projects["b"].requests(), Vec::<String>::new());
}

/// The addresses that the copies of locations in a cell say they have.
async fn addresses(world: &World, cell: &str) -> BTreeMap<String, String> {
    let api: Api<Location> = Api::all(world.server.client(cell));
    let all = api.list(&ListParams::default()).await.unwrap();
    let of = |location: &Location| location.annotations().get(ADDRESSES).cloned().unwrap_or_default();
    all.iter().map(|location| (location.name_any(), of(location))).collect()
}

fn pairs(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

const FIRST: &str = "10.128.0.0/16,fd64:6174:756d::/56";
const SECOND: &str = "10.129.0.0/16,fd64:6174:756d:100::/56";
const THIRD: &str = "10.130.0.0/16,fd64:6174:756d:200::/56";

#[tokio::test]
async fn each_location_has_addresses_to_itself_for_good() {
    let mut world = World::new(&[], Rules::default()).await;
    let register: Api<ConfigMap> = Api::namespaced(world.core.clone(), "kube-system");
    world.location("dfw", "DFW", "datum-managed").await;
    reads("the first", pairs(&[("dfw", FIRST)]), async || addresses(&world, "cell-dfw").await).await;
    world.location("iad", "IAD", "datum-managed").await;
    reads("the second", pairs(&[("iad", SECOND)]), async || addresses(&world, "cell-iad").await).await;

    // A location that is away keeps its own; another of its city gets others, also from another process that lost its memory.
    world.locations().delete("dfw", &DeleteParams::default()).await.unwrap();
    reads("gone", pairs(&[]), async || addresses(&world, "cell-dfw").await).await;
    world.stop().await;
    world.start();
    world.location("dal", "DFW", "datum-managed").await;
    reads("the third", pairs(&[("dal", THIRD)]), async || addresses(&world, "cell-dfw").await).await;
    world.location("dfw", "DFW", "datum-managed").await;
    let both = pairs(&[("dal", THIRD), ("dfw", FIRST)]);
    reads("the same again", both.clone(), async || addresses(&world, "cell-dfw").await).await;

    // What is lost is made again from what cells know.
    world.stop().await;
    register.delete("location-addresses", &DeleteParams::default()).await.unwrap();
    world.start();
    let recorded = async || match register.get_opt("location-addresses").await.unwrap() {
        Some(found) => found.data.unwrap_or_default(),
        None => BTreeMap::new(),
    };
    let all = pairs(&[("dal", THIRD), ("dfw", FIRST), ("iad", SECOND)]);
    reads("the register", all, recorded).await;
    assert_eq!(addresses(&world, "cell-dfw").await, both);
    // And what somebody takes off a copy is put back.
    let cell: Api<Location> = Api::all(world.server.client("cell-dfw"));
    let patch = json!({ "metadata": { "annotations": { ADDRESSES: null } } });
    cell.patch("dfw", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    reads("put back", both, async || addresses(&world, "cell-dfw").await).await;
    world.stop().await;
}

#[tokio::test]
async fn a_crash_after_any_write_gives_no_addresses_twice() {
    for writes in 0..8 {
        let mut world = World::new(&[], Rules::default()).await;
        world.core_faults.cut_after_writes(writes);
        world.location("dfw", "DFW", "datum-managed").await;
        world.location("iad", "IAD", "datum-managed").await;
        tokio::time::timeout(Duration::from_millis(200), async {
            while addresses(&world, "cell-dfw").await.is_empty()
                || addresses(&world, "cell-iad").await.is_empty()
            {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await
        .ok();
        world.stop().await;
        world.core_faults.mend();
        world.start();
        reads("both have some", [true, true], async || {
            let all = [addresses(&world, "cell-dfw").await, addresses(&world, "cell-iad").await];
            all.map(|cell| cell.values().any(|text| !text.is_empty()))
        })
        .await;
        let (dfw, iad) = (addresses(&world, "cell-dfw").await, addresses(&world, "cell-iad").await);
        let blocks = [&dfw["dfw"], &iad["iad"]].map(|text| text.parse::<Blocks>().unwrap());
        assert!(!blocks[0].overlap(&blocks[1]), "{blocks:?}");
        world.stop().await;
    }
}
