//! The hub is down for a while: what does not need it goes on, nothing is lost, and all of it is done when it is back.

use std::time::Duration;

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::conditions as c;
use serde_json::json;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn what_happens_meanwhile_is_done_afterwards() {
    let world = World::new().await;
    let _manager = world.start().await;
    for name in ["keeps", "goes", "changes"] {
        world.create::<Workload>("a", &workload(name, &[("main", &["DFW"])])).await;
        world.report("a", &format!("{name}-main-dfw"), 2).await;
    }
    world.write_back("a", "keeps-main-dfw", 0, ("True", "Available")).await;
    world.write_back("a", "keeps-main-dfw", 1, ("True", "Available")).await;
    world.has_only::<Instance>("a", &["keeps-main-dfw-0", "keeps-main-dfw-1"]).await;
    world.settle().await;

    world.wire("hub").down();
    world.create::<Workload>("a", &workload("new", &[("main", &["DFW"])])).await;
    world.appears::<WorkloadDeployment>("a", NS, "new-main-dfw").await;
    world.delete::<Workload>("a", NS, "goes").await;
    world.patch::<Workload>("a", NS, "changes", json!({ "spec": { "paused": true } })).await;
    let hub_namespace = world.hub_namespace("a").await;
    world.delete::<Instance>("hub", &hub_namespace, "keeps-main-dfw-1").await;
    world.report("a", "keeps-main-dfw", 1).await;
    tokio::time::sleep(Duration::from_secs(1200)).await;
    // It is held, for its copy is still there.
    let held = world.appears::<WorkloadDeployment>("a", NS, "goes-main-dfw").await;
    assert!(held.metadata.deletion_timestamp.is_some());
    assert_eq!(world.names::<Instance>("a").await.len(), 2);

    world.wire("hub").good();
    world.copy("a", "new-main-dfw").await;
    world.disappears::<Workload>("a", NS, "goes").await;
    world.disappears::<WorkloadDeployment>("hub", &hub_namespace, "goes-main-dfw").await;
    world
        .becomes("hub", &hub_namespace, "changes-main-dfw", |copy: &WorkloadDeployment| {
            copy.spec.paused == Some(true)
        })
        .await;
    world.has_only::<Instance>("a", &["keeps-main-dfw-0"]).await;
    world
        .becomes("a", NS, "keeps-main-dfw", |one: &WorkloadDeployment| {
            one.status.as_ref().unwrap().ready_replicas == Some(1)
        })
        .await;
}

/// Absence means nothing while the hub has not been heard of.
#[tokio::test(start_paused = true)]
async fn a_manager_that_starts_without_the_hub_takes_nothing_away() {
    let world = World::new().await;
    let manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.report("a", "web-main-dfw", 2).await;
    world.write_back("a", "web-main-dfw", 0, ("True", "Available")).await;
    world.has_only::<Instance>("a", &["web-main-dfw-0"]).await;
    world.settle().await;
    manager.stop().await;
    world.wire("hub").down();
    let _manager = world.start().await;
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(world.names::<Instance>("a").await, ["web-main-dfw-0"]);
    let deployment = world.appears::<WorkloadDeployment>("a", NS, "web-main-dfw").await;
    assert_eq!(available(&deployment.status.unwrap().conditions).1, c::STABLE_INSTANCE_FOUND);
    world.wire("hub").good();
    world.write_back("a", "web-main-dfw", 1, ("True", "Available")).await;
    world.has_only::<Instance>("a", &["web-main-dfw-0", "web-main-dfw-1"]).await;
}

/// A hub that gives no answer at all keeps no project from getting its deployments.
#[tokio::test(start_paused = true)]
async fn a_hub_that_hangs_delays_only_what_needs_it() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.copy("a", "web-main-dfw").await;
    world.settle().await;
    world.wire("hub").hangs();
    for n in 0..40 {
        world.create::<Workload>("a", &workload(&format!("w{n}"), &[("main", &["DFW"])])).await;
    }
    let began = tokio::time::Instant::now();
    world.create::<Workload>("b", &workload("web", &[("main", &["DFW"])])).await;
    world.appears::<WorkloadDeployment>("b", NS, "web-main-dfw").await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    world.wire("hub").good();
    world.copy("b", "web-main-dfw").await;
    world.copy("a", "w39-main-dfw").await;
}
