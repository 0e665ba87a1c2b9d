//! Admission on the planes of projects: what people may write there, and what the platform itself must be able to.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use compute_api::compute::{Instance, Workload};
use compute_apiserver::{ApiServer, Identity, Options};
use compute_local::{Platform, Settings, planes, workers};
use compute_runtime::Runtime;
use compute_runtime::tasks::{Ended, Tasks};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, Status};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const DEADLINE: Duration = Duration::from_secs(30);

struct Local {
    server: ApiServer,
    platform: Platform,
    running: JoinHandle<Result<(), Ended>>,
}

impl Local {
    /// Three cities and everybody at work.
    async fn start() -> Self {
        let server = ApiServer::new(Options { routes: vec![planes::project_route()], ..Options::default() });
        let platform = Platform::new(&server, Runtime::system(), Settings::default()).await.unwrap();
        let mut tasks = Tasks::new();
        platform.spawn_all(&mut tasks);
        let running = tokio::spawn(tasks.run(std::future::pending(), Duration::from_secs(5)));
        Self { server, platform, running }
    }

    fn client(&self, project: &str, identity: Identity) -> Client {
        Client::new(self.server.service(&planes::project(project).unwrap(), identity), "default")
    }

    /// Somebody who may do everything in a project that its rules allow.
    fn person(&self, project: &str) -> Client {
        self.client(project, Identity::user("ann").in_group(workers::PROJECT_ADMINS))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.running.abort();
    }
}

fn workload(name: &str) -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload", "metadata": { "name": name },
        "spec": {
            "template": { "spec": {
                "runtime": {
                    "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "app", "image": "docker.io/library/nginx:1.29" }] },
                },
                "networkInterfaces": [{ "network": { "name": "default" } }],
            } },
            "placements": [{ "name": "main", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 1 } }],
        },
    })
}

fn typed(object: Value) -> Workload {
    serde_json::from_value(object).unwrap()
}

fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

async fn eventually<T, E: std::fmt::Display>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(reason) if tokio::time::Instant::now() > deadline => {
                panic!("{what}: not within {DEADLINE:?}: {reason}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn instance_of(api: &Api<Instance>) -> Instance {
    eventually("an instance is shown", async || {
        api.list(&ListParams::default()).await.unwrap().items.pop().ok_or("none yet")
    })
    .await
}

#[tokio::test]
async fn every_sample_is_accepted() {
    let local = Local::start().await;
    local.platform.make_project("demo").await.unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut workloads = 0;
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        for document in text.split("\n---\n") {
            let object: DynamicObject = serde_saphyr::from_str(document).unwrap();
            let types = object.types.clone().unwrap();
            let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).unwrap());
            let api: Api<DynamicObject> = Api::default_namespaced_with(local.person("demo"), &kind);
            let apply = PatchParams::apply("kubectl").force();
            if let Err(error) = api.patch(&object.name_any(), &apply, &Patch::Apply(&object)).await {
                panic!("{}: {error}", file.display());
            }
            workloads += usize::from(types.kind == "Workload");
        }
    }
    assert!(workloads >= 4, "only {workloads} samples");
}

#[tokio::test]
async fn a_bad_workload_is_refused_with_everything_that_is_wrong() {
    let local = Local::start().await;
    // Projects that come later have the same rules.
    for project in ["first", "second"] {
        local.platform.make_project(project).await.unwrap();
        let api: Api<Workload> = Api::default_namespaced(local.person(project));
        let mut bad = workload("bad");
        bad["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!("huge");
        bad["spec"]["template"]["spec"]["networkInterfaces"][0]["network"]["name"] = json!("nowhere");
        bad["spec"]["template"]["metadata"] = json!({ "ownerReferences": [{ "name": "x" }] });
        bad["spec"]["placements"][0]["cityCodes"] = json!(["DFW", "ATLANTIS"]);
        bad["spec"]["placements"][0]["scaleSettings"] = json!({ "minReplicas": 3, "maxReplicas": 2 });
        let status = refusal(api.create(&PostParams::default(), &typed(bad)).await);
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
        let details = status.details.unwrap();
        assert_eq!(
            (details.name.as_str(), details.kind.as_str(), details.group.as_str()),
            ("bad", "Workload", "compute.datumapis.com")
        );
        let causes: Vec<_> =
            details.causes.iter().map(|cause| (cause.field.as_str(), cause.message.as_str())).collect();
        assert_eq!(
            causes,
            [
                (
                    "spec.template.metadata.ownerReferences",
                    "Forbidden: the service says who owns instances; leave them out"
                ),
                (
                    "spec.template.spec.runtime.resources.instanceType",
                    "Unsupported value: \"huge\": supported values: \"datumcloud/d1-standard-2\""
                ),
                (
                    "spec.placements[0].scaleSettings.maxReplicas",
                    "Invalid value: 2: must be at least minReplicas, which is 3"
                ),
                (
                    "spec.template.spec.networkInterfaces[0].network.name",
                    "Not found: \"nowhere\": there is no network of this name in namespace \"default\""
                ),
                (
                    "spec.placements[0].cityCodes[1]",
                    "Unsupported value: \"ATLANTIS\": city ATLANTIS is not offered to this project; offered are DFW, IAD, LHR"
                ),
            ]
        );
        assert!(api.get_opt("bad").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn who_may_write_workloads_but_not_use_a_network_or_read_a_secret_is_refused() {
    let local = Local::start().await;
    local.platform.make_project("demo").await.unwrap();
    let admin = local.platform.client(&planes::project("demo").unwrap());
    let role = json!({ "metadata": { "name": "writers" }, "rules": [
        { "apiGroups": ["compute.datumapis.com"], "resources": ["workloads"], "verbs": ["*"] },
    ] });
    let role: ClusterRole = serde_json::from_value(role).unwrap();
    Api::all(admin.clone()).create(&PostParams::default(), &role).await.unwrap();
    let binding = json!({ "metadata": { "name": "writers" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writers" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob" }] });
    let binding: ClusterRoleBinding = serde_json::from_value(binding).unwrap();
    Api::all(admin).create(&PostParams::default(), &binding).await.unwrap();
    let api: Api<Workload> = Api::default_namespaced(local.client("demo", Identity::user("bob")));
    let mut object = workload("web");
    object["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"] =
        json!([{ "secretRef": { "name": "s" } }]);
    let status = refusal(api.create(&PostParams::default(), &typed(object.clone())).await);
    let reasons: Vec<_> = status.details.unwrap().causes.iter().map(|cause| cause.reason.clone()).collect();
    assert_eq!(reasons, ["FieldValueForbidden", "FieldValueForbidden"]);
    // Somebody who may has made it: bob may scale it.
    let of_ann: Api<Workload> = Api::default_namespaced(local.person("demo"));
    of_ann.create(&PostParams::default(), &typed(object)).await.unwrap();
    let scaled = Patch::Merge(json!({ "spec": { "placements": [
        { "name": "main", "cityCodes": ["dfw"], "scaleSettings": { "minReplicas": 2 } },
    ] } }));
    api.patch("web", &PatchParams::default(), &scaled).await.unwrap();
}

#[tokio::test]
async fn instances_are_read_only_for_people_and_foreign_accounts() {
    let local = Local::start().await;
    local.platform.make_project("demo").await.unwrap();
    let workloads: Api<Workload> = Api::default_namespaced(local.person("demo"));
    workloads.create(&PostParams::default(), &typed(workload("web"))).await.unwrap();
    let seen: Api<Instance> = Api::default_namespaced(local.person("demo"));
    let instance = instance_of(&seen).await;
    let name = instance.name_any();
    let admins = workers::PROJECT_ADMINS;
    for identity in [
        Identity::user("ann").in_group(admins),
        Identity::user("system:serviceaccount:default:builder").in_group(admins),
        // A projector of old, and a cell: neither is who shows instances here.
        Identity::user("compute-manager-management-old").in_group(admins).in_group("compute:management"),
        Identity::user("compute-manager-cell-dfw").in_group(admins).in_group("compute:cells"),
    ] {
        let api: Api<Instance> = Api::default_namespaced(local.client("demo", identity));
        let label = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
        let status = Patch::Merge(json!({ "status": { "networkInterfaces": [] } }));
        let mut other = instance.clone();
        other.metadata = kube::api::ObjectMeta { name: Some("mine".to_owned()), ..Default::default() };
        let params = PatchParams::default();
        for refused in [
            refusal(api.patch(&name, &params, &label).await),
            refusal(api.patch_status(&name, &params, &status).await),
            refusal(api.delete(&name, &DeleteParams::default()).await),
            refusal(api.delete_collection(&DeleteParams::default(), &ListParams::default()).await),
            refusal(api.create(&PostParams::default(), &other).await),
        ] {
            assert_eq!((refused.code, refused.reason.as_str()), (403, "Forbidden"));
            assert!(refused.message.contains("Instances in a project are read-only"), "{}", refused.message);
        }
    }
    assert!(seen.get_opt(&name).await.unwrap().is_some());
}

#[tokio::test]
async fn the_platform_itself_clears_instances_away() {
    let local = Local::start().await;
    local.platform.make_project("demo").await.unwrap();
    let admin = local.platform.client(&planes::project("demo").unwrap());
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": "team" } })).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let workloads: Api<Workload> = Api::default_namespaced(local.person("demo"));
    workloads.create(&PostParams::default(), &typed(workload("web"))).await.unwrap();
    let seen: Api<Instance> = Api::default_namespaced(local.person("demo"));
    instance_of(&seen).await;
    // By its controllers and the garbage collector.
    workloads.delete("web", &DeleteParams::default()).await.unwrap();
    eventually("nothing is left", async || {
        match seen.list(&ListParams::default()).await.unwrap().items.len() {
            0 if workloads.get_opt("web").await.unwrap().is_none() => Ok(()),
            left => Err(format!("{left} instances")),
        }
    })
    .await;
    // By the end of its namespace.
    let masters: Api<Instance> = Api::namespaced(admin, "team");
    let spec = &workload("web")["spec"]["template"]["spec"];
    let stray = serde_json::from_value(json!({ "metadata": { "name": "stray" }, "spec": spec })).unwrap();
    masters.create(&PostParams::default(), &stray).await.unwrap();
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    eventually("the namespace is gone", async || match namespaces.get_opt("team").await.unwrap() {
        None => Ok(()),
        Some(_) => Err("it is there"),
    })
    .await;
}
