//! Deleting: everything goes, in order, whatever fails in between; and names can be used again at once.

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::finalizers;
use compute_api::k8s::ResourceExt as _;
use compute_api::karmada::PropagationPolicy;
use serde_json::json;

use crate::support::*;

async fn nothing_left(world: &World, project: &str) {
    world.has_only::<Workload>(project, &[]).await;
    world.has_only::<WorkloadDeployment>(project, &[]).await;
    world.has_only::<Instance>(project, &[]).await;
    world.has_only::<WorkloadDeployment>("hub", &[]).await;
    world.has_only::<Instance>("hub", &[]).await;
    world.has_only::<PropagationPolicy>("hub", &[]).await;
}

#[tokio::test(start_paused = true)]
async fn everything_goes_with_the_workload() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW", "IAD"])])).await;
    for deployment in ["web-main-dfw", "web-main-iad"] {
        world.write_back("a", deployment, 0, ("True", "Available")).await;
    }
    world.has_only::<Instance>("a", &["web-main-dfw-0", "web-main-iad-0"]).await;
    world.delete::<Workload>("a", NS, "web").await;
    nothing_left(&world, "a").await;
}

/// The first one's deployments are still on their way out when the second one asks for the same names.
#[tokio::test(start_paused = true)]
async fn a_workload_made_again_during_the_cascade() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.write_back("a", "web-main-dfw", 0, ("True", "Available")).await;
    world.has_only::<Instance>("a", &["web-main-dfw-0"]).await;
    let copy = world.copy("a", "web-main-dfw").await;
    let hub_namespace = copy.namespace().unwrap();
    // Somebody holds the first deployment, and the hub its copy.
    let hold = |finalizers: &[&str]| json!({ "metadata": { "finalizers": finalizers } });
    let both = hold(&[finalizers::FEDERATOR, "test.example.com/hold"]);
    world.patch::<WorkloadDeployment>("a", NS, "web-main-dfw", both).await;
    world
        .patch::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw", hold(&["test.example.com/hold"]))
        .await;

    world.delete::<Workload>("a", NS, "web").await;
    // The Workload itself is forced out of the way.
    world.patch::<Workload>("a", NS, "web", hold(&[])).await;
    world.disappears::<Workload>("a", NS, "web").await;
    let second = world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world
        .becomes("a", NS, "web-main-dfw", |one: &WorkloadDeployment| {
            one.finalizers() == ["test.example.com/hold"] && one.metadata.deletion_timestamp.is_some()
        })
        .await;
    world.settle().await;
    assert_eq!(world.names::<WorkloadDeployment>("a").await, ["web-main-dfw"], "it waits for the name");
    world.patch::<WorkloadDeployment>("a", NS, "web-main-dfw", hold(&[])).await;
    let of_second = |one: &WorkloadDeployment| one.spec.workload_ref.uid == second.uid().unwrap();
    world.becomes("a", NS, "web-main-dfw", of_second).await;
    world.settle().await;
    let held = world.appears::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw").await;
    assert_eq!(held.uid(), copy.uid(), "it waits for the copy");
    // What is left of the first one's instances is not shown as the second one's.
    assert!(world.names::<Instance>("a").await.is_empty());
    world.patch::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw", hold(&[])).await;
    world.becomes("hub", &hub_namespace, "web-main-dfw", of_second).await;
    world.write_back("a", "web-main-dfw", 0, ("True", "Available")).await;
    world.has_only::<Instance>("a", &["web-main-dfw-0"]).await;
}

/// Every write may be the last before a crash, and its answer may be lost: from wherever it stops, it arrives.
#[tokio::test(start_paused = true)]
async fn a_manager_that_stops_after_any_write_goes_on_from_there() {
    for (plane, most) in [("a", 14), ("hub", 6)] {
        for writes in 0..most {
            let world = World::new().await;
            let manager = world.start().await;
            world.wire(plane).fail_after_writes(writes);
            world.create::<Workload>("a", &workload("web", &[("main", &["DFW", "IAD"])])).await;
            world.settle_within(30).await;
            manager.stop().await;
            world.wire(plane).good();
            let manager = world.start().await;
            world.write_back("a", "web-main-dfw", 0, ("True", "Available")).await;
            world.report("a", "web-main-iad", 2).await;
            world.has_only::<Instance>("a", &["web-main-dfw-0"]).await;
            let all = |workload: &Workload| workload.status.as_ref().unwrap().ready_replicas == Some(2);
            world.becomes("a", NS, "web", all).await;
            world.settle().await;

            world.wire(plane).fail_after_writes(writes);
            world.delete::<Workload>("a", NS, "web").await;
            world.settle_within(30).await;
            manager.stop().await;
            world.wire(plane).good();
            let _manager = world.start().await;
            nothing_left(&world, "a").await;
        }
    }
}

/// Deleted in a moment in which the watch is behind: the project itself is asked before the finalizer goes.
#[tokio::test(start_paused = true)]
async fn nothing_is_left_when_a_workload_is_deleted_at_once() {
    let world = World::new().await;
    let _manager = world.start().await;
    for n in 0..20 {
        let name = format!("w{n}");
        world.create::<Workload>("a", &workload(&name, &[("main", &["DFW", "IAD"])])).await;
        for _ in 0..n {
            tokio::task::yield_now().await;
        }
        world.delete::<Workload>("a", NS, &name).await;
    }
    nothing_left(&world, "a").await;
}
