//! Status comes back from the hub by itself, and only what speaks of this very object is believed.

use compute_api::compute::{Workload, WorkloadDeployment};
use compute_api::karmada::Cluster;
use compute_api::kube::Api;
use compute_api::kube::api::DeleteParams;
use compute_api::{annotations, conditions as c};
use serde_json::json;

use crate::support::*;

fn says(reason: &'static str) -> impl Fn(&WorkloadDeployment) -> bool {
    move |deployment| available(&deployment.status.clone().unwrap_or_default().conditions).1 == reason
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_the_cell_lies_over_what_it_said() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.offer("a", "LHR").await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW", "LHR"])])).await;
    let none = world.becomes("a", NS, "web-main-lhr", says(c::NO_MATCHING_LOCATION)).await;
    assert_eq!(available(&none.status.unwrap().conditions).0, "False");
    world.report("a", "web-main-dfw", 2).await;
    world.becomes("a", NS, "web-main-dfw", says(c::STABLE_INSTANCE_FOUND)).await;

    world.cluster("DFW", "Unknown").await;
    let lost = world.becomes("a", NS, "web-main-dfw", says(c::CELL_NOT_READY)).await.status.unwrap();
    assert_eq!((available(&lost.conditions).0, lost.ready_replicas), ("Unknown", Some(2)));
    assert!(c::find(&lost.conditions, c::AVAILABLE).unwrap().message.contains("2026-05-01T10:00:00Z"));
    world.cluster("DFW", "True").await;
    world.becomes("a", NS, "web-main-dfw", says(c::STABLE_INSTANCE_FOUND)).await;

    world.cluster("LHR", "True").await;
    world.becomes("a", NS, "web-main-lhr", says(c::PENDING)).await;
    let clusters: Api<Cluster> = Api::all(world.client("hub"));
    clusters.delete("cell-lhr", &DeleteParams::default()).await.unwrap();
    world.becomes("a", NS, "web-main-lhr", says(c::NO_MATCHING_LOCATION)).await;
}

/// What a cluster reports all the time is not what deployments are looked at for.
#[tokio::test(start_paused = true)]
async fn heartbeats_of_cells_cost_nothing() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.report("a", "web-main-dfw", 2).await;
    world.becomes("a", NS, "web-main-dfw", says(c::STABLE_INSTANCE_FOUND)).await;
    world.settle().await;
    let passes = || world.runtime.metrics().reconciles("federator", "success");
    let (before, requests) = (passes(), world.requests());
    let clusters: Api<Cluster> = Api::all(world.client("hub"));
    for version in ["v1.34.1", "v1.34.2"] {
        let status = json!({ "status": { "kubernetesVersion": version } });
        let patch = compute_api::kube::api::Patch::Merge(status);
        clusters.patch_status("cell-dfw", &Default::default(), &patch).await.unwrap();
    }
    world.settle().await;
    assert_eq!((passes(), world.requests()), (before, requests));
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_predecessor_is_not_believed() {
    let world = World::new().await;
    let manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.report("a", "web-main-dfw", 2).await;
    let first = world.becomes("a", NS, "web-main-dfw", says(c::STABLE_INSTANCE_FOUND)).await;
    let copy = world.copy("a", "web-main-dfw").await;
    manager.stop().await;

    // While nobody looks, the deployment is replaced by another one of that name; the copy, with its status, is that of the first.
    let release = json!({ "metadata": { "finalizers": null } });
    world.patch::<WorkloadDeployment>("a", NS, "web-main-dfw", release).await;
    world.delete::<WorkloadDeployment>("a", NS, "web-main-dfw").await;
    world.disappears::<WorkloadDeployment>("a", NS, "web-main-dfw").await;
    // And it does not go at once.
    let hold = json!({ "metadata": { "finalizers": ["test.example.com/hold"] } });
    let hub_namespace = copy.metadata.namespace.clone().unwrap();
    world.patch::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw", hold).await;
    let _manager = world.start().await;
    let second = world
        .becomes("a", NS, "web-main-dfw", |one: &WorkloadDeployment| one.metadata.uid != first.metadata.uid)
        .await;
    world
        .becomes("hub", &hub_namespace, "web-main-dfw", |one: &WorkloadDeployment| {
            one.metadata.deletion_timestamp.is_some()
        })
        .await;
    world.settle().await;
    let waiting = world.appears::<WorkloadDeployment>("a", NS, "web-main-dfw").await.status.unwrap();
    assert_eq!((available(&waiting.conditions).1, waiting.ready_replicas), (c::PENDING, Some(0)));

    let release = json!({ "metadata": { "finalizers": null } });
    world.patch::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw", release).await;
    world
        .becomes("hub", &hub_namespace, "web-main-dfw", |copy: &WorkloadDeployment| {
            copy.metadata.annotations.as_ref().unwrap().get(annotations::UPSTREAM_UID)
                == second.metadata.uid.as_ref()
        })
        .await;
    world.report("a", "web-main-dfw", 1).await;
    world.becomes("a", NS, "web-main-dfw", says(c::STABLE_INSTANCE_FOUND)).await;
}

#[tokio::test(start_paused = true)]
async fn a_status_from_the_future_is_not_believed_and_an_old_one_counts_for_nothing_new() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let copy = world.copy("a", "web-main-dfw").await;
    let hub_namespace = copy.metadata.namespace.clone().unwrap();
    let status = json!({
        "observedGeneration": 99, "readyReplicas": 2,
        "conditions": [condition("Available", "True", c::STABLE_INSTANCE_FOUND, "")],
    });
    world.patch_status::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw", status).await;
    world.settle().await;
    let deployment = world.appears::<WorkloadDeployment>("a", NS, "web-main-dfw").await;
    assert!(says(c::PENDING)(&deployment));

    world.report("a", "web-main-dfw", 2).await;
    world.becomes("a", NS, "web-main-dfw", says(c::STABLE_INSTANCE_FOUND)).await;
    world.patch::<Workload>("a", NS, "web", json!({ "spec": { "paused": true } })).await;
    let rolled = |workload: &Workload| {
        let status = workload.status.clone().unwrap();
        status.observed_generation == Some(2)
            && status.updated_replicas == Some(0)
            && status.ready_replicas == Some(2)
    };
    world.becomes("a", NS, "web", rolled).await;
    world
        .becomes("hub", &hub_namespace, "web-main-dfw", |copy: &WorkloadDeployment| {
            copy.spec.paused == Some(true)
        })
        .await;
    world.report("a", "web-main-dfw", 2).await;
    let current = |workload: &Workload| workload.status.as_ref().unwrap().updated_replicas == Some(2);
    world.becomes("a", NS, "web", current).await;
}
