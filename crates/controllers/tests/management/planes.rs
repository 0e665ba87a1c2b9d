//! Projects come and go, are idle, or do not answer; and a hub need not be there at all.

use std::time::Duration;

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::conditions as c;
use compute_api::finalizers;
use compute_api::k8s::ResourceExt as _;
use compute_runtime::PlaneId;
use serde_json::json;

use crate::support::*;

const IDLE: [&str; 2] = ["workloaddeployments", "workloads"];
const ACTIVE: [&str; 6] =
    ["instances", "locationbindings", "namespaces", "networks", "workloaddeployments", "workloads"];

#[tokio::test(start_paused = true)]
async fn an_idle_project_has_two_watches() {
    let world = World::new().await;
    let manager = world.start().await;
    until("both are watched", || ["a", "b"].iter().all(|project| world.wire(project).watched() == IDLE))
        .await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    until("a is watched in full", || world.wire("a").watched() == ACTIVE).await;
    world.copy("a", "web-main-dfw").await;
    let hub = ["clusters", "instances", "namespaces", "propagationpolicies", "workloaddeployments"];
    assert_eq!(
        (world.wire("b").watched(), world.wire("hub").watched()),
        (IDLE.map(str::to_owned).to_vec(), hub.map(str::to_owned).to_vec())
    );
    world.delete::<Workload>("a", NS, "web").await;
    until("a is idle", || world.wire("a").watched() == IDLE).await;
    // And it begins again.
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    until("a is watched in full", || world.wire("a").watched() == ACTIVE).await;
    world.write_back("a", "web-main-dfw", 0, ("True", "Available")).await;
    world.has_only::<Instance>("a", &["web-main-dfw-0"]).await;

    manager.planes.disengage(&PlaneId::new("a"));
    until("nothing is watched", || world.wire("a").watched().is_empty()).await;
    let requests = world.wire("a").requests().len();
    world.write_back("a", "web-main-dfw", 1, ("True", "Available")).await;
    world.report("a", "web-main-dfw", 2).await;
    world.settle().await;
    assert_eq!(world.wire("a").requests().len(), requests);
    // Served anew, everything in it is looked at.
    manager.planes.engage(&world.plane("a"));
    world.has_only::<Instance>("a", &["web-main-dfw-0", "web-main-dfw-1"]).await;
    manager.stop().await;
    until("nothing is watched", || {
        ["a", "b", "hub"].iter().all(|plane| world.wire(plane).watched().is_empty())
    })
    .await;
}

/// One that fails, and then one that does not answer at all: the other notices nothing.
#[tokio::test(start_paused = true)]
async fn a_project_that_is_down_delays_no_other() {
    let world = World::new().await;
    let _manager = world.start().await;
    for n in 0..30 {
        world.create::<Workload>("a", &workload(&format!("w{n}"), &[("main", &["DFW"])])).await;
    }
    world.copy("a", "w29-main-dfw").await;
    world.settle().await;
    for down in [true, false] {
        let wire = world.wire("a");
        if down {
            wire.down()
        } else {
            wire.hangs()
        }
        for n in 0..30 {
            world.report("a", &format!("w{n}-main-dfw"), if down { 1 } else { 2 }).await;
        }
        let name = if down { "one" } else { "two" };
        let began = tokio::time::Instant::now();
        world.create::<Workload>("b", &workload(name, &[("main", &["DFW"])])).await;
        world.copy("b", &format!("{name}-main-dfw")).await;
        world.report("b", &format!("{name}-main-dfw"), 2).await;
        let done = |workload: &Workload| workload.status.clone().unwrap().ready_replicas == Some(2);
        world.becomes("b", NS, name, done).await;
        // By the second time it is known who does not answer.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        wire.good();
        for n in 0..30 {
            let ready = if down { 1 } else { 2 };
            world
                .becomes("a", NS, &format!("w{n}-main-dfw"), |one: &WorkloadDeployment| {
                    one.status.as_ref().unwrap().ready_replicas == Some(ready)
                })
                .await;
        }
    }
}

/// A manager that is stopped and started again loses nothing and does nothing twice.
#[tokio::test(start_paused = true)]
async fn a_manager_can_be_restarted() {
    let world = World::new().await;
    let manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let copy = world.copy("a", "web-main-dfw").await;
    manager.stop().await;
    world.report("a", "web-main-dfw", 2).await;
    world.create::<Workload>("a", &workload("new", &[("main", &["DFW"])])).await;
    let manager = world.start().await;
    world.copy("a", "new-main-dfw").await;
    let done = |workload: &Workload| workload.status.as_ref().unwrap().ready_replicas == Some(2);
    world.becomes("a", NS, "web", done).await;
    assert_eq!(world.copy("a", "web-main-dfw").await.uid(), copy.uid());
    manager.stop().await;
    world.delete::<Workload>("a", NS, "web").await;
    let _manager = world.start().await;
    world.disappears::<Workload>("a", NS, "web").await;
    world.has_only::<WorkloadDeployment>("hub", &["new-main-dfw"]).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_hub_the_deployments_are_the_cells_own() {
    let world = World::new().await;
    let _manager = world.start_with(false).await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let deployment = world.appears::<WorkloadDeployment>("a", NS, "web-main-dfw").await;
    let watched = ["locationbindings", "networks", "workloaddeployments", "workloads"];
    until("what is needed is watched", || world.wire("a").watched() == watched).await;
    let status = json!({
        "conditions": [condition("Available", "True", c::STABLE_INSTANCE_FOUND, "")],
        "observedGeneration": deployment.metadata.generation,
        "replicas": 2, "currentReplicas": 2, "updatedReplicas": 2, "desiredReplicas": 2, "readyReplicas": 2,
    });
    world.patch_status::<WorkloadDeployment>("a", NS, "web-main-dfw", status).await;
    let done = |workload: &Workload| workload.status.as_ref().unwrap().ready_replicas == Some(2);
    world.becomes("a", NS, "web", done).await;
    let deployment = world.appears::<WorkloadDeployment>("a", NS, "web-main-dfw").await;
    assert!(deployment.finalizers().is_empty() && deployment.annotations().is_empty());
    // What is in the project and on no hub is the cell's business.
    world.store::<Instance>("a", &instance_of(&deployment)).await;
    world.settle().await;
    assert_eq!(world.names::<Instance>("a").await.len(), 1);
    assert!(world.namespaces("hub").await.is_empty());
    world.delete::<Workload>("a", NS, "web").await;
    world.has_only::<Workload>("a", &[]).await;
}

/// What was sent to a hub once cannot go while there is none: its copy would be left behind.
#[tokio::test(start_paused = true)]
async fn a_missing_hub_holds_what_was_sent_to_it() {
    let world = World::new().await;
    let manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.copy("a", "web-main-dfw").await;
    world.settle().await;
    manager.stop().await;
    let manager = world.start_with(false).await;
    let elsewhere =
        json!({ "spec": { "placements": workload("web", &[("main", &["IAD"])])["spec"]["placements"] } });
    world.patch::<Workload>("a", NS, "web", elsewhere).await;
    eventually("it is told", async || match world.events("a", "web").await {
        told if told.iter().any(|(reason, _)| reason == "FederationMissing") => Ok(()),
        told => Err(format!("{told:?}")),
    })
    .await;
    assert!(world.get::<Workload>("a", NS, "web").await.unwrap().metadata.deletion_timestamp.is_none());
    world.delete::<Workload>("a", NS, "web").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let held = world.appears::<WorkloadDeployment>("a", NS, "web-main-dfw").await;
    assert_eq!(held.finalizers(), [finalizers::FEDERATOR]);
    manager.stop().await;
    let _manager = world.start().await;
    world.has_only::<Workload>("a", &[]).await;
    world.has_only::<WorkloadDeployment>("hub", &[]).await;
}

/// Everything at once, on several threads: projects are served and not, watches break, and objects come and go meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_everything_moves() {
    let world = World::new().await;
    let manager = world.start().await;
    for round in 0..8_usize {
        for (n, project) in ["a", "b"].into_iter().enumerate() {
            let name = format!("w{round}");
            world.create::<Workload>(project, &workload(&name, &[("main", &["DFW", "IAD"])])).await;
            match (round + n) % 4 {
                0 => drop(manager.planes.disengage(&PlaneId::new(project))),
                1 => drop(manager.planes.engage(&world.plane(project))),
                2 => {
                    world.wire(project).down();
                    world.wire(project).good();
                }
                _ => {
                    world.wire("hub").down();
                    world.wire("hub").good();
                }
            }
            if round % 2 == 1 {
                world.delete::<Workload>(project, NS, &format!("w{}", round - 1)).await;
            }
        }
    }
    for project in ["a", "b"] {
        manager.planes.engage(&world.plane(project));
        for round in (1..8).step_by(2) {
            for city in ["dfw", "iad"] {
                world.write_back(project, &format!("w{round}-main-{city}"), 0, ("True", "Available")).await;
                world.appears::<Instance>(project, NS, &format!("w{round}-main-{city}-0")).await;
            }
        }
        world.has_only::<Workload>(project, &["w1", "w3", "w5", "w7"]).await;
    }
    for project in ["a", "b"] {
        for round in (1..8).step_by(2) {
            world.delete::<Workload>(project, NS, &format!("w{round}")).await;
        }
        world.has_only::<Workload>(project, &[]).await;
        world.has_only::<Instance>(project, &[]).await;
        until("it is idle", || world.wire(project).watched() == IDLE).await;
    }
    world.has_only::<WorkloadDeployment>("hub", &[]).await;
    manager.stop().await;
}
