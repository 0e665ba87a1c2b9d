//! `config/base/webhook` on an API server, with nobody behind it: what still goes through is what nobody is asked about. So writes of
//! controllers cost no call, and clearing away goes on while no manager answers; everything else is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{World, workload};
use compute_api::compute::{Instance, Workload};
use compute_apiserver::Identity;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

/// The user that shows Instances, as `config/` has it.
const PROJECTOR: &str = "compute-manager-management";
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const CLEARER: &str = "system:serviceaccount:kube-system:namespace-controller";

/// Makes the API server ask, at an address where nobody answers.
async fn install(world: &World) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/base/webhook");
    for file in ["workloads.yaml", "instances.yaml"] {
        let text = std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
        for mut object in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
            for webhook in object["webhooks"].as_array_mut().unwrap() {
                let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
                webhook["clientConfig"] = json!({ "url": format!("https://127.0.0.1:1{path}") });
            }
            let kind = object["kind"].as_str().unwrap();
            let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
            let api: Api<DynamicObject> = Api::all_with(world.admin(), &ApiResource::from_gvk(&kind));
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    }
}

/// Lets users do everything with our kinds, as far as roles go.
async fn world() -> World {
    let world = World::new().await;
    let rules = json!([{
        "apiGroups": ["compute.datumapis.com"],
        "resources": ["workloads", "workloads/status", "instances", "instances/status"], "verbs": ["*"],
    }]);
    for user in ["ann", PROJECTOR, COLLECTOR, CLEARER] {
        world.grant(user, &rules).await;
    }
    world
}

/// Fails unless somebody was to be asked.
fn asked<T: std::fmt::Debug>(result: Result<T, kube::Error>, webhook: &str) {
    match result {
        Err(kube::Error::Api(status)) => {
            let name = format!("failed calling webhook {webhook:?}");
            assert!(status.message.contains(&name), "{}", status.message);
        }
        other => panic!("expected a question to {webhook}, found {other:?}"),
    }
}

fn merge(patch: Value) -> Patch<Value> {
    Patch::Merge(patch)
}

#[tokio::test]
async fn only_what_changes_a_workload_is_asked_about() {
    let world = world().await;
    let api: Api<Workload> = Api::default_namespaced(world.client(Identity::user("ann")));
    let object: Workload = serde_json::from_value(workload("web")).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    install(&world).await;
    let params = PatchParams::default();

    let other: Workload = serde_json::from_value(workload("other")).unwrap();
    asked(api.create(&PostParams::default(), &other).await, "defaults.compute.datumapis.com");
    let paused = merge(json!({ "spec": { "paused": true } }));
    asked(api.patch("web", &params, &paused).await, "defaults.compute.datumapis.com");

    let held = merge(json!({ "metadata": { "finalizers": ["example.com/hold"], "labels": { "a": "b" } } }));
    api.patch("web", &params, &held).await.unwrap();
    api.patch_status("web", &params, &merge(json!({ "status": { "replicas": 3 } }))).await.unwrap();
    api.delete("web", &DeleteParams::default()).await.unwrap();
    // On its way out, even a change goes through.
    api.patch("web", &params, &paused).await.unwrap();
    api.patch("web", &params, &merge(json!({ "metadata": { "finalizers": null } }))).await.unwrap();
    assert!(api.get_opt("web").await.unwrap().is_none());
}

#[tokio::test]
async fn those_who_show_and_clear_away_instances_are_not_asked_about() {
    const GUARD: &str = "instances.compute.datumapis.com";
    let world = world().await;
    install(&world).await;
    let of = |user: &str| -> Api<Instance> { Api::default_namespaced(world.client(Identity::user(user))) };
    let instance = |name: &str| -> Instance {
        let spec = workload("web")["spec"]["template"]["spec"].take();
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    };
    let (post, params, delete) = (PostParams::default(), PatchParams::default(), DeleteParams::default());
    let labels = merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    let status = merge(json!({ "status": { "conditions": [] } }));
    for name in ["a", "b", "c"] {
        of(PROJECTOR).create(&post, &instance(name)).await.unwrap();
    }
    of(PROJECTOR).patch("a", &params, &labels).await.unwrap();
    of(PROJECTOR).patch_status("a", &params, &status).await.unwrap();

    asked(of("ann").create(&post, &instance("d")).await, GUARD);
    asked(of("ann").patch("a", &params, &labels).await, GUARD);
    asked(of("ann").patch_status("a", &params, &status).await, GUARD);
    asked(of("ann").delete("a", &delete).await, GUARD);

    of(COLLECTOR).delete("a", &delete).await.unwrap();
    of(CLEARER).delete("b", &delete).await.unwrap();
    let master: Api<Instance> = Api::default_namespaced(world.admin());
    master.delete("c", &delete).await.unwrap();
}
