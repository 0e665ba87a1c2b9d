//! Propagation from a hub to cells, against the embedded server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::{Asked, DEADLINE, Faults, Running, Server, eventually, reads, runtime};
use compute_api::compute::WorkloadDeployment;
use compute_api::k8s::{ConfigMap, Event, Namespace, ResourceExt as _, Secret};
use compute_api::karmada::{Cluster, PropagationPolicy};
use compute_api::labels::{REFERENCED_DATA, TOPOLOGY_CITY_CODE};
use compute_core::propagation::member::MANAGED_LABEL;
use compute_platform::propagation::{self, Member, Probe, Setup};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

const NS: &str = "ns-1";

/// A hub and cells, and the propagation between them.
struct Fleet {
    server: Server,
    hub: Client,
    hub_faults: Arc<Faults>,
    cells: BTreeMap<String, (String, Client, Arc<Faults>)>,
    running: Option<Running>,
}

impl Fleet {
    /// One cell for each name and city, with a namespace on the hub.
    async fn new(cells: &[(&str, &str)]) -> Self {
        let server = Server::new().await;
        let hub = server.make("hub").await;
        let mut all = BTreeMap::new();
        for (name, city) in cells {
            let client = server.make(name).await;
            all.insert((*name).to_owned(), ((*city).to_owned(), client, Faults::new()));
        }
        let mut fleet = Self { server, hub, hub_faults: Faults::new(), cells: all, running: None };
        fleet.start();
        namespace(&fleet.hub, NS).await;
        fleet
    }

    fn start(&mut self) {
        let runtime = runtime();
        let hub = self.server.plane(&runtime, "hub", &self.hub_faults);
        let members = self.cells.iter().map(|(name, (city, _, faults))| Member {
            name: name.clone(),
            city: city.clone(),
            plane: self.server.plane(&runtime, name, faults),
        });
        let members = members.collect();
        let probe = Probe { every: Duration::from_millis(50), timeout: Duration::from_millis(500) };
        self.running = Some(Running::start(&runtime, |tasks, events| {
            propagation::spawn(tasks, Setup { hub, members, probe, events });
        }));
    }

    async fn stop(&mut self) {
        self.running.take().unwrap().stop().await;
    }

    fn cell(&self, name: &str) -> Client {
        self.cells[name].1.clone()
    }

    fn faults(&self, name: &str) -> &Arc<Faults> {
        &self.cells[name].2
    }

    /// Which cells have a deployment.
    async fn holders(&self, name: &str) -> Vec<&str> {
        let mut holders = Vec::new();
        for (cell, (_, client, _)) in &self.cells {
            if deployments(client).get_opt(name).await.unwrap().is_some() {
                holders.push(cell.as_str());
            }
        }
        holders
    }

    async fn is_held_by(&self, name: &str, wanted: &[&str]) {
        reads("which cells have it", wanted.to_vec(), async || self.holders(name).await).await;
    }

    async fn ready_reason(&self, cluster: &str, wanted: &str) {
        reads("the reason of Ready", wanted.to_owned(), async || {
            let clusters: Api<Cluster> = Api::all(self.hub.clone());
            let status = clusters.get_opt(cluster).await.unwrap().and_then(|cluster| cluster.status);
            status
                .and_then(|status| status.conditions.into_iter().next())
                .map(|c| c.reason)
                .unwrap_or_default()
        })
        .await;
    }
}

fn deployments(client: &Client) -> Api<WorkloadDeployment> {
    Api::namespaced(client.clone(), NS)
}

async fn namespace(client: &Client, name: &str) {
    let namespace = json!({ "metadata": { "name": name, "labels": { "of": "test" } } });
    create::<Namespace>(&Api::all(client.clone()), namespace).await;
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

async fn merge<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn delete<K>(api: &Api<K>, name: &str)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.delete(name, &DeleteParams::default()).await.unwrap();
}

fn deployment(name: &str, city: &str) -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
        "metadata": {
            "name": name, "namespace": NS,
            "labels": { TOPOLOGY_CITY_CODE: city }, "annotations": { "note": "one" },
        },
        "spec": {
            "workloadRef": { "name": "web", "uid": "u" }, "placementName": "main", "cityCode": city,
            "scaleSettings": { "minReplicas": 1 },
            "template": { "spec": {
                "runtime": {
                    "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "app", "image": "app:1" }] },
                },
                "networkInterfaces": [{ "network": { "name": "default" } }],
            } },
        },
    })
}

fn reading(mut deployment: Value) -> Value {
    deployment["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"] =
        json!([{ "configMapRef": { "name": "c" } }, { "secretRef": { "name": "s" } }]);
    deployment
}

fn policy(name: &str, city: &str) -> Value {
    let selector = json!({ "matchLabels": { TOPOLOGY_CITY_CODE: city } });
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "name": name, "namespace": NS },
        "spec": {
            "resourceSelectors": [{
                "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment", "labelSelector": selector,
            }],
            "placement": {
                "clusterAffinity": { "labelSelector": selector },
                "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 }],
            },
            "propagateDeps": true,
        },
    })
}

async fn with_policy(fleet: &Fleet, city: &str) {
    let policies: Api<PropagationPolicy> = Api::namespaced(fleet.hub.clone(), NS);
    create(&policies, policy(&format!("city-{}", city.to_lowercase()), city)).await;
}

async fn report(client: &Client, name: &str, status: Value) {
    let params = PatchParams::default();
    let patch = Patch::Merge(json!({ "status": status }));
    deployments(client).patch_status(name, &params, &patch).await.unwrap();
}

async fn ready_replicas(client: &Client, name: &str) -> Option<i64> {
    let status = deployments(client).get_opt(name).await.unwrap()?.status?;
    status.ready_replicas
}

#[tokio::test]
async fn a_template_follows_its_policy_and_its_status_comes_back() {
    let fleet = Fleet::new(&[("cell-dfw", "DFW"), ("cell-iad", "IAD")]).await;
    create(&deployments(&fleet.hub), deployment("web", "DFW")).await;
    create(&deployments(&fleet.hub), deployment("api", "IAD")).await;
    create(&deployments(&fleet.hub), deployment("lost", "LHR")).await;
    with_policy(&fleet, "DFW").await;
    with_policy(&fleet, "IAD").await;
    fleet.is_held_by("web", &["cell-dfw"]).await;
    fleet.is_held_by("api", &["cell-iad"]).await;
    assert!(fleet.holders("lost").await.is_empty());

    let cell = fleet.cell("cell-dfw");
    let held = deployments(&cell).get("web").await.unwrap();
    assert_eq!(held.spec, deployments(&fleet.hub).get("web").await.unwrap().spec);
    assert_eq!(held.labels()[MANAGED_LABEL], "true");
    assert_eq!(held.labels()[TOPOLOGY_CITY_CODE], "DFW");
    assert_eq!(held.annotations()["note"], "one");
    let own: Api<Namespace> = Api::all(cell.clone());
    assert_eq!(own.get(NS).await.unwrap().labels()["of"], "test");

    // The status comes back as it is, and what the cell sets stays.
    report(&cell, "web", json!({ "readyReplicas": 1, "replicas": 2, "observedGeneration": 7 })).await;
    reads("the hub's status", Some(1), async || ready_replicas(&fleet.hub, "web").await).await;
    let status = deployments(&fleet.hub).get("web").await.unwrap().status;
    assert_eq!(status, deployments(&cell).get("web").await.unwrap().status);
    merge(
        &deployments(&cell),
        "web",
        json!({ "spec": { "replicas": 3 }, "metadata": { "labels": { "own": "x" } } }),
    )
    .await;
    merge(
        &deployments(&fleet.hub),
        "web",
        json!({
            "spec": { "paused": true }, "metadata": { "annotations": { "note": null, "other": "two" } },
        }),
    )
    .await;
    reads("what the cell has", (Some(true), Some(3)), async || {
        let held = deployments(&cell).get("web").await.unwrap();
        (held.spec.paused, held.spec.replicas)
    })
    .await;
    let held = deployments(&cell).get("web").await.unwrap();
    assert_eq!(
        (held.labels().get("own").map(String::as_str), held.annotations().get("note")),
        (Some("x"), None)
    );
    assert_eq!(held.status.as_ref().unwrap().ready_replicas, Some(1), "its status is its own");
    merge(&deployments(&fleet.hub), "web", json!({ "spec": { "replicas": 2 } })).await;
    reads("the hub's word", Some(2), async || deployments(&cell).get("web").await.unwrap().spec.replicas)
        .await;

    delete(&deployments(&fleet.hub), "web").await;
    fleet.is_held_by("web", &[]).await;
    fleet.is_held_by("api", &["cell-iad"]).await;
}

#[tokio::test]
async fn a_choice_sticks_through_all_that_happens() {
    let mut fleet = Fleet::new(&[("cell-b", "DFW"), ("cell-c", "DFW")]).await;
    create(&deployments(&fleet.hub), deployment("web", "DFW")).await;
    with_policy(&fleet, "DFW").await;
    fleet.is_held_by("web", &["cell-b"]).await;

    // A cluster that would be chosen first joins; the propagation is another process.
    fleet.stop().await;
    let client = fleet.server.make("cell-a").await;
    fleet.cells.insert("cell-a".to_owned(), ("DFW".to_owned(), client, Faults::new()));
    fleet.start();
    fleet.ready_reason("cell-a", "ClusterReady").await;
    create(&deployments(&fleet.hub), deployment("second", "DFW")).await;
    fleet.is_held_by("second", &["cell-a"]).await;
    fleet.is_held_by("web", &["cell-b"]).await;

    // The policy goes: what was sent stays, follows, and goes with the template.
    let policies: Api<PropagationPolicy> = Api::namespaced(fleet.hub.clone(), NS);
    delete(&policies, "city-dfw").await;
    let claim = "propagationpolicy.karmada.io/name";
    let claimed = async |name: &str| {
        let template = deployments(&fleet.hub).get(name).await.unwrap();
        template.annotations().get(claim).cloned()
    };
    reads("the claim", None, async || claimed("web").await).await;
    reads("the other claim", None, async || claimed("second").await).await;
    create(&deployments(&fleet.hub), deployment("third", "DFW")).await;
    with_policy(&fleet, "DFW").await;
    fleet.is_held_by("third", &["cell-a"]).await;
    reads("the claim", Some("city-dfw".to_owned()), async || claimed("web").await).await;
    fleet.is_held_by("web", &["cell-b"]).await;

    // A Cluster that is deleted by mistake comes back, and nothing has moved.
    let clusters: Api<Cluster> = Api::all(fleet.hub.clone());
    delete(&clusters, "cell-b").await;
    fleet.ready_reason("cell-b", "ClusterReady").await;
    fleet.is_held_by("web", &["cell-b"]).await;

    // One that serves another city is not it any more.
    delete(&deployments(&fleet.hub), "web").await;
    fleet.is_held_by("web", &[]).await;
}

#[tokio::test]
async fn a_lost_cell_keeps_what_it_has_and_nothing_remains_after() {
    let mut fleet = Fleet::new(&[("cell-dfw", "DFW"), ("cell-iad", "IAD")]).await;
    for (name, city) in [("gone", "DFW"), ("stays", "DFW"), ("again", "DFW"), ("api", "IAD")] {
        create(&deployments(&fleet.hub), deployment(name, city)).await;
    }
    with_policy(&fleet, "DFW").await;
    with_policy(&fleet, "IAD").await;
    fleet.is_held_by("gone", &["cell-dfw"]).await;
    fleet.is_held_by("stays", &["cell-dfw"]).await;
    fleet.is_held_by("again", &["cell-dfw"]).await;
    report(&fleet.cell("cell-dfw"), "stays", json!({ "readyReplicas": 4 })).await;
    reads("the hub's status", Some(4), async || ready_replicas(&fleet.hub, "stays").await).await;
    fleet.ready_reason("cell-dfw", "ClusterReady").await;

    fleet.faults("cell-dfw").cut();
    fleet.ready_reason("cell-dfw", "ClusterNotReachable").await;
    // Nothing on the hub waits for it, and the other cell does not either.
    delete(&deployments(&fleet.hub), "gone").await;
    delete(&deployments(&fleet.hub), "again").await;
    reads("the hub's copy", None, async || {
        deployments(&fleet.hub).get_opt("gone").await.unwrap().map(|found| found.name_any())
    })
    .await;
    create(&deployments(&fleet.hub), deployment("again", "DFW")).await;
    create(&deployments(&fleet.hub), deployment("new", "DFW")).await;
    create(&deployments(&fleet.hub), deployment("api2", "IAD")).await;
    fleet.is_held_by("api2", &["cell-iad"]).await;
    assert_eq!(fleet.holders("gone").await, ["cell-dfw"]);
    assert_eq!(ready_replicas(&fleet.hub, "stays").await, Some(4), "the last status stays");

    // Another process, for which the cell was never there.
    fleet.stop().await;
    fleet.start();
    create(&deployments(&fleet.hub), deployment("api3", "IAD")).await;
    fleet.is_held_by("api3", &["cell-iad"]).await;
    assert_eq!(fleet.holders("gone").await, ["cell-dfw"]);
    let old = deployments(&fleet.cell("cell-dfw")).get("again").await.unwrap().uid();

    fleet.faults("cell-dfw").mend();
    fleet.is_held_by("gone", &[]).await;
    fleet.is_held_by("new", &["cell-dfw"]).await;
    fleet.is_held_by("stays", &["cell-dfw"]).await;
    reads("whether the copy is of the new one", true, async || {
        deployments(&fleet.cell("cell-dfw"))
            .get_opt("again")
            .await
            .unwrap()
            .is_some_and(|found| found.uid() != old)
    })
    .await;
    fleet.ready_reason("cell-dfw", "ClusterReady").await;
}

#[tokio::test]
async fn a_cell_that_hangs_delays_no_other() {
    let fleet = Fleet::new(&[("cell-dfw", "DFW"), ("cell-iad", "IAD")]).await;
    with_policy(&fleet, "DFW").await;
    with_policy(&fleet, "IAD").await;
    fleet.ready_reason("cell-dfw", "ClusterReady").await;
    fleet.faults("cell-dfw").hang();
    fleet.ready_reason("cell-dfw", "ClusterNotReachable").await;
    for number in 0..40 {
        create(&deployments(&fleet.hub), deployment(&format!("slow-{number}"), "DFW")).await;
    }
    create(&deployments(&fleet.hub), deployment("api", "IAD")).await;
    fleet.is_held_by("api", &["cell-iad"]).await;
    fleet.faults("cell-dfw").mend();
    fleet.is_held_by("slow-39", &["cell-dfw"]).await;
    reads("how many the cell has", 40, async || {
        deployments(&fleet.cell("cell-dfw")).list(&ListParams::default()).await.unwrap().items.len()
    })
    .await;
}

#[tokio::test]
async fn companions_follow_the_deployments_that_read_them() {
    let fleet = Fleet::new(&[("cell-dfw", "DFW"), ("cell-iad", "IAD")]).await;
    let label = json!({ REFERENCED_DATA: "true" });
    let config_maps: Api<ConfigMap> = Api::namespaced(fleet.hub.clone(), NS);
    let secrets: Api<Secret> = Api::namespaced(fleet.hub.clone(), NS);
    create(
        &config_maps,
        json!({ "metadata": { "name": "configmap.c", "labels": label }, "data": { "a": "1" } }),
    )
    .await;
    create(
        &secrets,
        json!({ "metadata": { "name": "secret.s", "labels": label }, "stringData": { "k": "v" } }),
    )
    .await;
    create(&secrets, json!({ "metadata": { "name": "secret.other", "labels": label } })).await;
    create(&deployments(&fleet.hub), reading(deployment("one", "DFW"))).await;
    create(&deployments(&fleet.hub), reading(deployment("two", "DFW"))).await;
    create(&deployments(&fleet.hub), deployment("api", "IAD")).await;
    with_policy(&fleet, "DFW").await;
    with_policy(&fleet, "IAD").await;
    let cell = fleet.cell("cell-dfw");
    let own: Api<Secret> = Api::namespaced(cell.clone(), NS);
    let own_maps: Api<ConfigMap> = Api::namespaced(cell, NS);
    let names = async || {
        let found = own.list(&ListParams::default()).await.unwrap();
        found.items.iter().map(|secret| secret.name_any()).collect::<Vec<_>>()
    };
    reads("the cell's secrets", vec!["secret.s".to_owned()], names).await;
    let held = own.get("secret.s").await.unwrap();
    assert_eq!(held.data, secrets.get("secret.s").await.unwrap().data);
    assert_eq!(held.type_.as_deref(), Some("Opaque"));

    merge(&config_maps, "configmap.c", json!({ "data": { "a": null, "b": "2" } })).await;
    reads("the cell's values", Some(BTreeMap::from([("b".to_owned(), "2".to_owned())])), async || {
        own_maps.get_opt("configmap.c").await.unwrap().and_then(|found| found.data)
    })
    .await;
    fleet.is_held_by("api", &["cell-iad"]).await;
    let elsewhere: Api<Secret> = Api::namespaced(fleet.cell("cell-iad"), NS);
    assert!(elsewhere.list(&ListParams::default()).await.unwrap().items.is_empty());

    delete(&deployments(&fleet.hub), "one").await;
    fleet.is_held_by("one", &[]).await;
    assert!(own.get_opt("secret.s").await.unwrap().is_some(), "the other one reads it");
    delete(&deployments(&fleet.hub), "two").await;
    reads("the cell's secrets", Vec::new(), names).await;
    reads("the cell's config map", false, async || own_maps.get_opt("configmap.c").await.unwrap().is_some())
        .await;
}

#[tokio::test]
async fn namespaces_go_everywhere_and_go_with_the_hubs() {
    let fleet = Fleet::new(&[("cell-dfw", "DFW"), ("cell-iad", "IAD")]).await;
    for own in ["kube-own", "karmada-own", "gone"] {
        namespace(&fleet.hub, own).await;
    }
    let names = async |cell: &str| {
        let api: Api<Namespace> = Api::all(fleet.cell(cell));
        let labelled = ListParams::default().labels("of=test");
        let found = api.list(&labelled).await.unwrap();
        found.items.iter().map(|namespace| namespace.name_any()).collect::<Vec<_>>()
    };
    for cell in ["cell-dfw", "cell-iad"] {
        reads("the namespaces", vec!["gone".to_owned(), NS.to_owned()], async || names(cell).await).await;
    }
    let own: Api<Namespace> = Api::all(fleet.cell("cell-dfw"));
    create(&own, json!({ "metadata": { "name": "private" } })).await;
    delete(&Api::<Namespace>::all(fleet.hub.clone()), "gone").await;
    for cell in ["cell-dfw", "cell-iad"] {
        reads("the namespaces", vec![NS.to_owned()], async || names(cell).await).await;
    }
    // What is the cell's own stays, and one that was deleted there comes back with what is in it.
    assert!(own.get_opt("private").await.unwrap().is_some());
    create(&deployments(&fleet.hub), deployment("web", "DFW")).await;
    with_policy(&fleet, "DFW").await;
    fleet.is_held_by("web", &["cell-dfw"]).await;
    let before = own.get(NS).await.unwrap().uid();
    delete(&own, NS).await;
    eventually("the namespace is another one", async || match own.get_opt(NS).await.unwrap() {
        Some(found) if found.uid() != before => Ok(()),
        _ => Err("it is not"),
    })
    .await;
    fleet.is_held_by("web", &["cell-dfw"]).await;
}

#[tokio::test]
async fn what_is_not_the_hubs_is_left_alone() {
    let fleet = Fleet::new(&[("cell-dfw", "DFW")]).await;
    let cell = fleet.cell("cell-dfw");
    eventually("the namespace", async || Api::<Namespace>::all(cell.clone()).get(NS).await.map(|_| ())).await;
    create(&deployments(&cell), deployment("web", "LHR")).await;
    create(&deployments(&fleet.hub), deployment("web", "DFW")).await;
    with_policy(&fleet, "DFW").await;
    let events: Api<Event> = Api::namespaced(fleet.hub.clone(), NS);
    reads("what is told", Some("SyncFailed".to_owned()), async || {
        events.list(&ListParams::default()).await.unwrap().items.into_iter().find_map(|event| event.reason)
    })
    .await;
    assert_eq!(deployments(&cell).get("web").await.unwrap().spec.city_code, "LHR");
    delete(&deployments(&cell), "web").await;
    reads("the city", Some("DFW".to_owned()), async || {
        deployments(&cell).get_opt("web").await.unwrap().map(|found| found.spec.city_code)
    })
    .await;
}

#[tokio::test]
async fn a_copy_that_is_deleted_in_the_cell_says_nothing_and_comes_back() {
    let fleet = Fleet::new(&[("cell-dfw", "DFW")]).await;
    create(&deployments(&fleet.hub), deployment("web", "DFW")).await;
    with_policy(&fleet, "DFW").await;
    fleet.is_held_by("web", &["cell-dfw"]).await;
    let cell = fleet.cell("cell-dfw");
    report(&cell, "web", json!({ "readyReplicas": 1 })).await;
    reads("the hub's status", Some(1), async || ready_replicas(&fleet.hub, "web").await).await;
    merge(&deployments(&cell), "web", json!({ "metadata": { "finalizers": ["test/held"] } })).await;
    delete(&deployments(&cell), "web").await;
    reads("the hub's conditions", Some(0), async || {
        let status = deployments(&fleet.hub).get("web").await.unwrap().status;
        status.map(|status| {
            status.conditions.len() + usize::try_from(status.ready_replicas.unwrap_or(0)).unwrap()
        })
    })
    .await;
    let before = deployments(&cell).get("web").await.unwrap().uid();
    merge(&deployments(&cell), "web", json!({ "metadata": { "finalizers": null } })).await;
    eventually("another copy", async || match deployments(&cell).get_opt("web").await.unwrap() {
        Some(found) if found.uid() != before => Ok(()),
        _ => Err("there is none"),
    })
    .await;
}

#[tokio::test]
async fn two_hundred_at_once_arrive_and_a_second_look_asks_for_nothing() {
    let mut fleet = Fleet::new(&[("cell-dfw", "DFW"), ("cell-iad", "IAD")]).await;
    with_policy(&fleet, "DFW").await;
    with_policy(&fleet, "IAD").await;
    fleet.ready_reason("cell-dfw", "ClusterReady").await;
    fleet.ready_reason("cell-iad", "ClusterReady").await;
    let creates = (0..200).flat_map(|number| {
        ["DFW", "IAD"].map(|city| {
            let (api, name) = (deployments(&fleet.hub), format!("web-{number}-{}", city.to_lowercase()));
            async move { create(&api, deployment(&name, city)).await }
        })
    });
    let began = tokio::time::Instant::now();
    futures::future::join_all(creates).await;
    for cell in ["cell-dfw", "cell-iad"] {
        reads("how many there are", 200, async || {
            deployments(&fleet.cell(cell)).list(&ListParams::default()).await.unwrap().items.len()
        })
        .await;
    }
    println!("200 deployments in each of two cells after {:?}", began.elapsed());
    let cell = fleet.cell("cell-dfw");
    for number in 0..200 {
        report(&cell, &format!("web-{number}-dfw"), json!({ "readyReplicas": 1 })).await;
    }
    reads("how many are ready on the hub", 200, async || {
        let all = deployments(&fleet.hub).list(&ListParams::default()).await.unwrap();
        all.items
            .iter()
            .filter(|one| one.status.as_ref().is_some_and(|s| s.ready_replicas == Some(1)))
            .count()
    })
    .await;

    // Another process looks at all of it, and has nothing to do.
    fleet.stop().await;
    let all = [&fleet.hub_faults, fleet.faults("cell-dfw"), fleet.faults("cell-iad")].map(Arc::clone);
    all.iter().for_each(|faults| faults.forget());
    fleet.start();
    let probes = || fleet.faults("cell-iad").count(Asked::Probe);
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while probes() < 10 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(probes() >= 10);
    for faults in &all {
        assert_eq!(faults.requests(), Vec::<String>::new());
    }
    // One change among them is a handful of requests.
    merge(&deployments(&fleet.hub), "web-7-dfw", json!({ "spec": { "paused": true } })).await;
    reads("the change", Some(true), async || {
        deployments(&fleet.cell("cell-dfw")).get("web-7-dfw").await.unwrap().spec.paused
    })
    .await;
    let requests: Vec<_> = all.iter().flat_map(|faults| faults.requests()).collect();
    assert_eq!(requests.len(), 1, "{requests:?}");
}
