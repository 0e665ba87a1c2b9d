//! Projects come with a plane and go with everything in it, against the embedded server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::{Faults, Running, Server, eventually, reads, runtime};
use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::k8s::{ConfigMap, ResourceExt as _};
use compute_api::labels;
use compute_api::milo::Project;
use compute_api::networking::Network;
use compute_api::quota::ResourceClaim;
use compute_apiserver::{PlaneError, PlaneName};
use compute_platform::projects::{self, Content, Host, Setup};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Planes of projects on the embedded server.
struct Planes {
    server: Server,
    faults: Mutex<BTreeMap<String, Arc<Faults>>>,
    /// What was asked, in order.
    asked: Mutex<Vec<String>>,
    broken: Mutex<bool>,
}

impl Planes {
    fn plane(project: &str) -> PlaneName {
        PlaneName::new(&format!("project-{project}")).unwrap()
    }

    fn faults(&self, project: &str) -> Arc<Faults> {
        self.faults.lock().entry(project.to_owned()).or_default().clone()
    }

    fn exists(&self, project: &str) -> bool {
        self.server.server.plane(&Self::plane(project)).is_some()
    }

    fn client(&self, project: &str) -> Client {
        self.server.client(&format!("project-{project}"))
    }
}

impl Host for Planes {
    fn ensure<'a>(&'a self, project: &'a str) -> BoxFuture<'a, anyhow::Result<Client>> {
        async move {
            self.asked.lock().push(format!("ensure {project}"));
            anyhow::ensure!(!*self.broken.lock(), "there is no room");
            match self.server.server.create_plane(Self::plane(project), &self.server.template).await {
                Ok(_) | Err(PlaneError::Exists(_)) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(self.server.faulty(&format!("project-{project}"), &self.faults(project)))
        }
        .boxed()
    }

    fn remove<'a>(&'a self, project: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        async move {
            self.asked.lock().push(format!("remove {project}"));
            self.server.server.drop_plane(&Self::plane(project)).await?;
            Ok(())
        }
        .boxed()
    }
}

struct Core {
    planes: Arc<Planes>,
    projects: Api<Project>,
    faults: Arc<Faults>,
    running: Option<Running>,
}

impl Core {
    async fn new() -> Self {
        let server = Server::new().await;
        let client = server.make("core").await;
        let planes = Arc::new(Planes {
            server,
            faults: Mutex::default(),
            asked: Mutex::default(),
            broken: Mutex::default(),
        });
        let mut core = Self { planes, projects: Api::all(client), faults: Faults::new(), running: None };
        core.start();
        core
    }

    fn start(&mut self) {
        let runtime = runtime();
        let core = self.planes.server.plane(&runtime, "core", &self.faults);
        let host = self.planes.clone();
        let network: Network = serde_json::from_value(json!({
            "metadata": { "name": "default", "namespace": "default" }, "spec": { "ipam": { "mode": "Auto" } },
        }))
        .unwrap();
        let content = vec![Content::of(&network).unwrap()];
        let starting_content = Arc::new(move |_: &str| content.clone());
        self.running = Some(Running::start(&runtime, |tasks, _| {
            let cells = ["cell-dfw".to_owned()].into();
            projects::spawn(tasks, Setup { core, host, starting_content, cells });
        }));
    }

    async fn stop(&mut self) {
        self.running.take().unwrap().stop().await;
    }

    async fn create(&self, name: &str) {
        let project = json!({
            "metadata": { "name": name }, "spec": { "ownerRef": { "kind": "Organization", "name": "o" } },
        });
        self.projects
            .create(&PostParams::default(), &serde_json::from_value(project).unwrap())
            .await
            .unwrap();
    }

    async fn delete(&self, name: &str) {
        self.projects.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Status, reason and message of `Ready`.
    async fn ready(&self, name: &str) -> (String, String, String) {
        let status = self.projects.get_opt(name).await.unwrap().and_then(|project| project.status);
        let ready = status.and_then(|status| status.conditions.into_iter().next());
        ready.map(|c| (c.status, c.reason, c.message)).unwrap_or_default()
    }

    async fn is_ready(&self, name: &str) {
        reads("Ready", "True".to_owned(), async || self.ready(name).await.0).await;
    }

    async fn is_gone(&self, name: &str) {
        reads("whether it exists", false, async || self.projects.get_opt(name).await.unwrap().is_some())
            .await;
    }
}

async fn make<K>(client: &Client, name: &str, mut object: Value)
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    object["metadata"]["name"] = name.into();
    let api: Api<K> = Api::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

fn workload() -> Value {
    json!({
        "metadata": { "finalizers": ["test/held"] },
        "spec": {
            "template": { "spec": {
                "runtime": {
                    "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "app", "image": "app:1" }] },
                },
                "networkInterfaces": [{ "network": { "name": "default" } }],
            } },
            "placements": [{ "name": "main", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 1 } }],
        },
    })
}

fn claim(labels: &Value) -> Value {
    json!({
        "metadata": { "labels": labels },
        "spec": {
            "consumerRef": { "apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "a" },
            "resourceRef": { "apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "a" },
            "requests": [{ "resourceType": "compute.datumapis.com/instances", "amount": 1 }],
        },
    })
}

async fn let_go<K>(client: &Client, name: &str)
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), "default");
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn a_project_is_ready_once_its_plane_serves_what_it_starts_with() {
    let mut core = Core::new().await;
    core.create("a").await;
    core.is_ready("a").await;
    let networks: Api<Network> = Api::namespaced(core.planes.client("a"), "default");
    networks.get("default").await.unwrap();

    // What a person has deleted stays deleted, and a plane is made sure of at every start.
    networks.delete("default", &DeleteParams::default()).await.unwrap();
    core.stop().await;
    core.planes.asked.lock().clear();
    core.faults.forget();
    core.start();
    reads("what the host was asked", vec!["ensure a".to_owned()], async || core.planes.asked.lock().clone())
        .await;
    core.create("b").await;
    core.is_ready("b").await;
    assert!(networks.get_opt("default").await.unwrap().is_none());
    let about_a: Vec<_> =
        core.faults.requests().into_iter().filter(|line| line.contains("projects/a")).collect();
    assert_eq!(about_a, Vec::<String>::new());
}

#[tokio::test]
async fn a_project_whose_name_is_too_long_is_refused() {
    let core = Core::new().await;
    let name = "p".repeat(60);
    core.create(&name).await;
    reads("the reason", "InvalidName".to_owned(), async || core.ready(&name).await.1).await;
    assert!(core.ready(&name).await.2.contains("63 are allowed"), "{:?}", core.ready(&name).await);
    assert!(!core.planes.exists(&name));
    core.delete(&name).await;
    core.is_gone(&name).await;
}

#[tokio::test]
async fn a_plane_that_cannot_be_made_is_told_of_and_tried_again() {
    let core = Core::new().await;
    *core.planes.broken.lock() = true;
    core.create("a").await;
    reads("what is said", "there is no room".to_owned(), async || core.ready("a").await.2).await;
    *core.planes.broken.lock() = false;
    core.is_ready("a").await;
}

#[tokio::test]
async fn a_project_goes_after_everything_in_it() {
    let mut core = Core::new().await;
    core.create("a").await;
    core.create("b").await;
    core.is_ready("a").await;
    core.is_ready("b").await;
    let client = core.planes.client("a");
    make::<ConfigMap>(&client, "own", json!({ "metadata": {} })).await;
    make::<Workload>(&client, "web", workload()).await;
    make::<WorkloadDeployment>(
        &client,
        "stray",
        json!({ "metadata": {}, "spec": {
        "workloadRef": { "name": "web", "uid": "u" }, "placementName": "main", "cityCode": "DFW",
        "scaleSettings": { "minReplicas": 1 }, "template": workload()["spec"]["template"],
    } }),
    )
    .await;
    let instance = json!({ "metadata": {}, "spec": workload()["spec"]["template"]["spec"] });
    make::<Instance>(&client, "web-0", instance).await;
    make::<ResourceClaim>(&client, "of-cell", claim(&json!({ labels::SOURCE_CLUSTER: "cell-dfw" }))).await;
    make::<ResourceClaim>(&client, "by-hand", claim(&json!({}))).await;
    make::<ResourceClaim>(&client, "of-gone", claim(&json!({ labels::SOURCE_CLUSTER: "cell-gone" }))).await;

    core.delete("a").await;
    let waits = async |wanted: &str| {
        reads("what is waited for", wanted.to_owned(), async || core.ready("a").await.2).await
    };
    waits("Waiting for Workloads, WorkloadDeployments, Instances and ResourceClaims to be gone").await;
    assert_eq!(core.ready("a").await.1, "Deleting");
    let workloads: Api<Workload> = Api::namespaced(client.clone(), "default");
    eventually("the Workload is being deleted", async || {
        match workloads.get("web").await.unwrap().metadata {
            meta if meta.deletion_timestamp.is_some() => Ok(()),
            _ => Err("it is not"),
        }
    })
    .await;
    let deployments: Api<WorkloadDeployment> = Api::namespaced(client.clone(), "default");
    assert!(
        deployments.get("stray").await.unwrap().metadata.deletion_timestamp.is_none(),
        "Workloads go first"
    );

    let_go::<Workload>(&client, "web").await;
    waits("Waiting for Instances and ResourceClaims to be gone").await;
    core.stop().await;
    core.start();
    let instances: Api<Instance> = Api::namespaced(client.clone(), "default");
    instances.delete("web-0", &DeleteParams::default()).await.unwrap();
    let waits = async |wanted: &str| {
        reads("what is waited for", wanted.to_owned(), async || core.ready("a").await.2).await
    };
    waits("Waiting for ResourceClaims to be gone").await;
    let claims: Api<ResourceClaim> = Api::namespaced(client, "default");
    reads("the claims", vec!["of-cell".to_owned()], async || {
        claims.list(&Default::default()).await.unwrap().items.iter().map(|claim| claim.name_any()).collect()
    })
    .await;
    assert!(core.planes.exists("a"));
    claims.delete("of-cell", &DeleteParams::default()).await.unwrap();
    core.is_gone("a").await;
    assert!(!core.planes.exists("a"));
    core.is_ready("b").await;

    // Another of that name is another project.
    core.create("a").await;
    core.is_ready("a").await;
    let networks: Api<Network> = Api::namespaced(core.planes.client("a"), "default");
    networks.get("default").await.unwrap();
}

#[tokio::test]
async fn a_plane_that_does_not_answer_is_kept() {
    let core = Core::new().await;
    core.create("a").await;
    core.is_ready("a").await;
    let client = core.planes.client("a");
    make::<Workload>(&client, "web", workload()).await;
    core.planes.faults("a").cut();
    core.delete("a").await;
    // It is looked at, and others go on.
    reads("the lists that failed", true, async || core.planes.faults("a").count(common::Asked::Watch) >= 4)
        .await;
    core.create("b").await;
    core.is_ready("b").await;
    let said = "The project's control plane does not answer".to_owned();
    reads("what is said", said, async || core.ready("a").await.2).await;
    assert!(core.planes.exists("a"));
    core.planes.faults("a").mend();
    let said = "Waiting for Workloads to be gone".to_owned();
    reads("what is said", said, async || core.ready("a").await.2).await;
    let_go::<Workload>(&client, "web").await;
    core.is_gone("a").await;
    assert!(!core.planes.exists("a"));
}

#[tokio::test]
async fn any_write_may_be_the_last_before_a_crash() {
    // In core: finalizer, Ready. In the project: the network.
    for (in_core, in_project) in [(0, 9), (1, 9), (2, 9), (9, 0), (9, 1)] {
        let mut core = Core::new().await;
        core.faults.cut_after_writes(in_core);
        core.planes.faults("a").cut_after_writes(in_project);
        core.create("a").await;
        let (cut, seen) = (core.faults.clone(), core.planes.clone());
        let stuck = async || {
            let writes = |faults: &Faults| faults.count(common::Asked::Write);
            writes(&cut) > in_core
                || writes(&seen.faults("a")) > in_project
                || core.ready("a").await.0 == "True"
        };
        reads("whether it got stuck", true, stuck).await;
        core.stop().await;
        core.faults.mend();
        core.planes.faults("a").mend();
        core.start();
        core.is_ready("a").await;
        let networks: Api<Network> = Api::namespaced(core.planes.client("a"), "default");
        networks.get("default").await.unwrap();
    }
    // In core: Deleting, its last word, the finalizer. In the project: the Workload.
    for (in_core, in_project) in [(0, 9), (1, 9), (2, 9), (3, 9), (9, 0), (9, 1)] {
        let mut core = Core::new().await;
        core.create("a").await;
        core.is_ready("a").await;
        let client = core.planes.client("a");
        let mut free = workload();
        free["metadata"]["finalizers"] = json!([]);
        make::<Workload>(&client, "web", free).await;
        core.faults.forget();
        core.planes.faults("a").forget();
        core.faults.cut_after_writes(in_core);
        core.planes.faults("a").cut_after_writes(in_project);
        core.delete("a").await;
        let (cut, seen) = (core.faults.clone(), core.planes.clone());
        let stuck = async || {
            let writes = |faults: &Faults| faults.count(common::Asked::Write);
            writes(&cut) > in_core
                || writes(&seen.faults("a")) > in_project
                || core.projects.get_opt("a").await.unwrap().is_none()
        };
        reads("whether it got stuck", true, stuck).await;
        core.stop().await;
        core.faults.mend();
        core.planes.faults("a").mend();
        core.start();
        core.is_gone("a").await;
        reads("whether the plane is there", false, async || core.planes.exists("a")).await;
        tokio::time::timeout(Duration::from_secs(30), core.stop()).await.unwrap();
    }
}
