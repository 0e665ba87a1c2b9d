//! Objects that cannot be decoded, among good ones: they are left alone, nothing is concluded from them, and the others are served.

use std::time::Duration;

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use serde_json::{Value, json};

use crate::support::*;

/// Planes whose kinds let a number through where a word belongs.
async fn world() -> World {
    let world = World::empty(|crd| {
        if crd["spec"]["group"] != "compute.datumapis.com" {
            return;
        }
        let anything = json!({ "x-kubernetes-preserve-unknown-fields": true });
        for version in crd["spec"]["versions"].as_array_mut().unwrap() {
            let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
            for field in ["placementName", "paused", "volumes"] {
                if spec.get(field).is_some() {
                    spec[field] = anything.clone();
                }
            }
        }
    })
    .await;
    for project in ["a", "b"] {
        world.offer(project, "DFW").await;
        world.network(project, "default").await;
    }
    world.cluster("DFW", "True").await;
    world
}

fn spoiled(mut object: Value, field: &str) -> Value {
    object["spec"][field] = json!(5);
    object
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_cannot_be_decoded_is_skipped() {
    let world = world().await;
    world.store::<Workload>("a", &spoiled(workload("bad", &[("main", &["DFW"])]), "paused")).await;
    world.create::<Workload>("a", &workload("good", &[("main", &["DFW"])])).await;
    let _manager = world.start().await;
    world.copy("a", "good-main-dfw").await;
    world.settle().await;
    assert_eq!(world.names::<WorkloadDeployment>("a").await, ["good-main-dfw"]);
    // Mended, it is served.
    let mend = compute_api::kube::api::Patch::Merge(json!({ "spec": { "paused": true } }));
    world.api::<Workload>("a", NS).patch("bad", &Default::default(), &mend).await.unwrap();
    world.copy("a", "bad-main-dfw").await;
}

/// It may be the very deployment that is wanted: no second one is made, and it does not outlive its Workload.
#[tokio::test(start_paused = true)]
async fn a_deployment_that_cannot_be_decoded_keeps_its_place() {
    let world = world().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.create::<Workload>("a", &workload("other", &[("main", &["DFW"])])).await;
    let copy = world.copy("a", "web-main-dfw").await;
    world.copy("a", "other-main-dfw").await;
    world.settle().await;
    let api = world.dynamic::<WorkloadDeployment>("a", NS);
    let spoil = compute_api::kube::api::Patch::Merge(json!({ "spec": { "placementName": 5 } }));
    api.patch("web-main-dfw", &Default::default(), &spoil).await.unwrap();
    world.settle().await;
    world.patch::<Workload>("a", NS, "other", json!({ "spec": { "paused": true } })).await;
    let hub_namespace = copy.metadata.namespace.clone().unwrap();
    world
        .becomes("hub", &hub_namespace, "other-main-dfw", |one: &WorkloadDeployment| {
            one.spec.paused == Some(true)
        })
        .await;
    let all = api.list_metadata(&Default::default()).await.unwrap();
    assert_eq!(all.items.len(), 2);
    assert_eq!(
        world.copy("a", "web-main-dfw").await.metadata.uid,
        copy.metadata.uid,
        "its copy is no orphan"
    );

    // Its Workload goes, and takes it along with its copy: its metadata is all that this needs.
    world.delete::<Workload>("a", NS, "web").await;
    world.disappears::<Workload>("a", NS, "web").await;
    world.has_only::<WorkloadDeployment>("hub", &["other-main-dfw"]).await;
}

/// A copy that cannot be decoded goes with the project's deployment.
#[tokio::test(start_paused = true)]
async fn a_copy_that_cannot_be_decoded_holds_nothing() {
    let world = world().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let copy = world.copy("a", "web-main-dfw").await;
    world.settle().await;
    let copies = world.dynamic::<WorkloadDeployment>("hub", &copy.metadata.namespace.clone().unwrap());
    let spoil = compute_api::kube::api::Patch::Merge(json!({ "spec": { "placementName": 5 } }));
    copies.patch("web-main-dfw", &Default::default(), &spoil).await.unwrap();
    world.settle().await;
    world.delete::<Workload>("a", NS, "web").await;
    world.disappears::<Workload>("a", NS, "web").await;
    assert!(copies.list_metadata(&Default::default()).await.unwrap().items.is_empty());
}

/// A projection that cannot be decoded is there: nobody tries to make it again and again.
#[tokio::test(start_paused = true)]
async fn a_projection_that_cannot_be_decoded_is_left_alone() {
    let world = world().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.write_back("a", "web-main-dfw", 0, ("False", "Starting")).await;
    world.has_only::<Instance>("a", &["web-main-dfw-0"]).await;
    world.settle().await;
    let projections = world.dynamic::<Instance>("a", NS);
    let patch =
        |volumes: Value| compute_api::kube::api::Patch::Merge(json!({ "spec": { "volumes": volumes } }));
    projections.patch("web-main-dfw-0", &Default::default(), &patch(json!(5))).await.unwrap();
    world.settle().await;
    let before = world.wire("a").requests().len();
    world.write_back("a", "web-main-dfw", 0, ("True", "Available")).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(world.wire("a").requests()[before..], [] as [String; 0]);
    projections.patch("web-main-dfw-0", &Default::default(), &patch(Value::Null)).await.unwrap();
    let ready = |instance: &Instance| {
        let conditions = &instance.status.as_ref().unwrap().conditions;
        conditions.iter().any(|said| said.type_ == "Ready" && said.status == "True")
    };
    world.becomes("a", NS, "web-main-dfw-0", ready).await;
}

/// On the hub: neither is its policy removed, nor its projection, nor is it written over.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_decoded_on_the_hub_is_left_alone() {
    let world = world().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    for ordinal in 0..2 {
        world.write_back("a", "web-main-dfw", ordinal, ("True", "Available")).await;
    }
    world.has_only::<Instance>("a", &["web-main-dfw-0", "web-main-dfw-1"]).await;
    let hub_namespace = world.hub_namespace("a").await;
    world.settle().await;
    let spoil = |field: &str| compute_api::kube::api::Patch::Merge(json!({ "spec": { field: 5 } }));
    let instances = world.dynamic::<Instance>("hub", &hub_namespace);
    instances.patch("web-main-dfw-1", &Default::default(), &spoil("volumes")).await.unwrap();
    let deployments = world.dynamic::<WorkloadDeployment>("hub", &hub_namespace);
    deployments.patch("web-main-dfw", &Default::default(), &spoil("placementName")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(world.names::<Instance>("a").await, ["web-main-dfw-0", "web-main-dfw-1"]);
    assert_eq!(world.policies("a").await, ["city-dfw"]);
    assert!(world.runtime.metrics().encode().contains("compute_federation_quarantined_objects 1"));
    assert_eq!(deployments.get("web-main-dfw").await.unwrap().data["spec"]["placementName"], 5);

    // Others are served meanwhile, and it is once it is mended.
    world.create::<Workload>("a", &workload("new", &[("main", &["DFW"])])).await;
    world.copy("a", "new-main-dfw").await;
    let mend = compute_api::kube::api::Patch::Merge(json!({ "spec": { "placementName": "wrong" } }));
    deployments.patch("web-main-dfw", &Default::default(), &mend).await.unwrap();
    world
        .becomes("hub", &hub_namespace, "web-main-dfw", |one: &WorkloadDeployment| {
            one.spec.placement_name == "main"
        })
        .await;
    instances.delete("web-main-dfw-1", &Default::default()).await.unwrap();
    world.has_only::<Instance>("a", &["web-main-dfw-0"]).await;
    assert!(world.runtime.metrics().encode().contains("compute_federation_quarantined_objects 0"));
}
