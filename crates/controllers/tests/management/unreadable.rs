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

    // Its Workload goes; it is asked to go too, and is waited for.
    world.delete::<Workload>("a", NS, "web").await;
    eventually("it is being deleted", async || match api.get_metadata("web-main-dfw").await {
        Ok(found) if found.metadata.deletion_timestamp.is_some() => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.appears::<Workload>("a", NS, "web").await;
    let mend = compute_api::kube::api::Patch::Merge(json!({ "spec": { "placementName": "main" } }));
    api.patch("web-main-dfw", &Default::default(), &mend).await.unwrap();
    world.disappears::<Workload>("a", NS, "web").await;
    world.has_only::<WorkloadDeployment>("hub", &["other-main-dfw"]).await;
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
