//! One watch that does not work, or comes back, among those that do: only what needs it waits for it, and only that is looked at again.

use std::time::Duration;

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::conditions as c;
use serde_json::json;

use crate::support::*;

fn says(reason: &'static str) -> impl Fn(&WorkloadDeployment) -> bool {
    move |deployment| available(&deployment.status.clone().unwrap_or_default().conditions).1 == reason
}

#[tokio::test(start_paused = true)]
async fn without_clusters_only_what_is_known_of_cells_waits() {
    let world = World::new().await;
    let manager = world.start().await;
    world.create::<Workload>("a", &workload("lost", &[("main", &["IAD"])])).await;
    world.report("a", "lost-main-iad", 2).await;
    world.cluster("IAD", "Unknown").await;
    world.becomes("a", NS, "lost-main-iad", says(c::CELL_NOT_READY)).await;
    world.settle().await;
    manager.stop().await;

    world.wire("hub").break_kind("clusters");
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.report("a", "web-main-dfw", 2).await;
    world.becomes("a", NS, "web-main-dfw", says(c::STABLE_INSTANCE_FOUND)).await;
    // What was said of a cell stays, over what it reports.
    world.report("a", "lost-main-iad", 1).await;
    let one = |deployment: &WorkloadDeployment| deployment.status.as_ref().unwrap().ready_replicas == Some(1);
    let lost = world.becomes("a", NS, "lost-main-iad", one).await;
    assert!(says(c::CELL_NOT_READY)(&lost));
    world.delete::<Workload>("a", NS, "web").await;
    world.disappears::<Workload>("a", NS, "web").await;
    world.has_only::<WorkloadDeployment>("hub", &["lost-main-iad"]).await;

    world.cluster("IAD", "True").await;
    world.wire("hub").good();
    world.becomes("a", NS, "lost-main-iad", says(c::STABLE_INSTANCE_FOUND)).await;
}

#[tokio::test(start_paused = true)]
async fn without_networks_only_what_is_known_of_them_waits() {
    let world = World::new().await;
    let mut lacking = workload("lacking", &[("main", &["DFW"])]);
    lacking["spec"]["template"]["spec"]["networkInterfaces"] = json!([{ "network": { "name": "none" } }]);
    world.create::<Workload>("a", &lacking).await;
    let manager = world.start().await;
    let not_found = |workload: &Workload| {
        available(&workload.status.clone().unwrap_or_default().conditions).1 == c::NETWORK_NOT_FOUND
    };
    world.becomes("a", NS, "lacking", not_found).await;
    world.settle().await;
    manager.stop().await;

    world.wire("a").break_kind("networks");
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.report("a", "web-main-dfw", 2).await;
    let ready =
        |workload: &Workload| workload.status.as_ref().is_some_and(|status| status.ready_replicas == Some(2));
    world.becomes("a", NS, "web", ready).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.becomes("a", NS, "lacking", not_found).await;
    world.network("a", "none").await;
    world.wire("a").good();
    world.becomes("a", NS, "lacking", |workload: &Workload| !not_found(workload)).await;
}

/// How many passes each controller has made.
fn passes(world: &World) -> [u64; 5] {
    ["workload", "federator", "federator-policies", "federator-namespaces", "projector"]
        .map(|name| world.runtime.metrics().reconciles(name, "success"))
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_comes_back_is_looked_at_by_those_who_read_it() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW", "IAD"])])).await;
    world.report("a", "web-main-dfw", 2).await;
    world.write_back("a", "web-main-dfw", 0, ("True", "Available")).await;
    world.has_only::<Instance>("a", &["web-main-dfw-0"]).await;
    world.copy("a", "web-main-iad").await;
    world.settle().await;
    for (plane, kind, wanted) in [
        ("hub", "clusters", [false, true, false, false, false]),
        ("hub", "propagationpolicies", [false, false, true, false, false]),
        ("hub", "instances", [false, false, false, false, true]),
        ("a", "networks", [true, false, false, false, false]),
        ("a", "instances", [false, false, false, false, true]),
    ] {
        let before = passes(&world);
        world.wire(plane).break_kind(kind);
        let is_open = || world.wire(plane).watched().iter().any(|watched| watched == kind);
        until("the watch breaks", || !is_open()).await;
        world.wire(plane).good();
        tokio::time::sleep(Duration::from_secs(100)).await;
        let after = passes(&world);
        let looked: Vec<_> = before.iter().zip(&after).map(|(before, after)| after > before).collect();
        assert_eq!(looked, wanted, "{kind} of {plane}: {before:?} {after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_cell_reports_is_no_reason_to_look_at_policies() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.copy("a", "web-main-dfw").await;
    world.settle().await;
    let before = passes(&world);
    world.report("a", "web-main-dfw", 1).await;
    world.report("a", "web-main-dfw", 2).await;
    world.settle().await;
    let after = passes(&world);
    assert!(after[1] > before[1]);
    assert_eq!(after[2], before[2]);
}
