//! Hub instances that cannot be shown in their project.

use std::time::Duration;

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::labels;
use serde_json::{Value, json};

use crate::support::*;

const TOLD: &str = "ProjectionFailed";

fn quarantined(world: &World) -> u32 {
    let metrics = world.runtime.metrics().encode();
    let name = "compute_federation_quarantined_objects ";
    let values = metrics.lines().filter_map(|line| line.strip_prefix(name));
    values.map(|value| value.parse::<u32>().unwrap()).sum()
}

/// A deployment on the hub, and an instance of it that belongs to a deployment which the project does not have.
async fn stray(world: &World) -> (WorkloadDeployment, Value) {
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let copy = world.copy("a", "web-main-dfw").await;
    let mut stray = instance(&copy, 0);
    stray["metadata"]["name"] = json!("late-main-dfw-0");
    stray["metadata"]["labels"][labels::WORKLOAD_DEPLOYMENT_NAME] = json!("late-main-dfw");
    stray["metadata"]["labels"].as_object_mut().unwrap().remove(labels::WORKLOAD_UID);
    (copy, stray)
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_comes_late_is_waited_for() {
    let world = World::new().await;
    let _manager = world.start().await;
    let (_, stray) = stray(&world).await;
    world.create::<Instance>("hub", &stray).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!((world.names::<Instance>("a").await.len(), quarantined(&world)), (0, 0));
    world.create::<Workload>("a", &workload("late", &[("main", &["DFW"])])).await;
    world.has_only::<Instance>("a", &["late-main-dfw-0"]).await;
    assert_eq!(world.events("hub", "late-main-dfw-0").await, []);
}

#[tokio::test(start_paused = true)]
async fn what_has_no_owner_for_long_is_told_once_and_left_alone() {
    let world = World::new().await;
    let _manager = world.start().await;
    let (copy, stray) = stray(&world).await;
    world.create::<Instance>("hub", &stray).await;
    tokio::time::sleep(Duration::from_secs(580)).await;
    assert_eq!(quarantined(&world), 0);
    until("it is in quarantine", || quarantined(&world) == 1).await;
    world.settle().await;
    let once = [(TOLD.to_owned(), 1)];
    assert_eq!(world.events("hub", "late-main-dfw-0").await, once);
    let passes = || world.runtime.metrics().reconciles("projector", "success");
    let before = passes();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(passes(), before);
    // It changes, and is not told again; its owner comes, and it is shown.
    let hub_namespace = copy.metadata.namespace.clone().unwrap();
    let edit = json!({ "metadata": { "annotations": { "x": "y" } } });
    world.patch::<Instance>("hub", &hub_namespace, "late-main-dfw-0", edit).await;
    world.settle().await;
    assert!(passes() > before);
    assert_eq!((world.events("hub", "late-main-dfw-0").await, quarantined(&world)), (once.to_vec(), 1));
    world.create::<Workload>("a", &workload("late", &[("main", &["DFW"])])).await;
    world.has_only::<Instance>("a", &["late-main-dfw-0"]).await;
    assert_eq!(quarantined(&world), 0);
}

/// Each waits for itself, though the first one went and the second one came while nobody looked.
#[tokio::test(start_paused = true)]
async fn another_one_of_that_name_waits_anew() {
    let world = World::new().await;
    let _manager = world.start().await;
    let (copy, stray) = stray(&world).await;
    world.create::<Instance>("hub", &stray).await;
    tokio::time::sleep(Duration::from_secs(500)).await;
    world.wire("hub").down();
    let hub_namespace = copy.metadata.namespace.clone().unwrap();
    world.delete::<Instance>("hub", &hub_namespace, "late-main-dfw-0").await;
    world.create::<Instance>("hub", &stray).await;
    world.wire("hub").good();
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(quarantined(&world), 0);
    until("it is in quarantine", || quarantined(&world) == 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_does_not_say_whose_it_is_is_told_once() {
    let world = World::new().await;
    let manager = world.start().await;
    let (copy, stray) = stray(&world).await;
    let hub_namespace = copy.metadata.namespace.clone().unwrap();
    for (name, label) in [("none", Value::Null), ("garbled", json!("nonsense")), ("empty", json!(""))] {
        let mut lost = stray.clone();
        lost["metadata"]["name"] = json!(name);
        match label {
            Value::Null => drop(
                lost["metadata"]["labels"].as_object_mut().unwrap().remove(labels::UPSTREAM_CLUSTER_NAME),
            ),
            label => lost["metadata"]["labels"][labels::UPSTREAM_CLUSTER_NAME] = label,
        }
        world.create::<Instance>("hub", &lost).await;
        eventually("it is told", async || match world.events("hub", name).await {
            told if told == [(TOLD.to_owned(), 1)] => Ok(()),
            told => Err(format!("{told:?}")),
        })
        .await;
    }
    assert_eq!(quarantined(&world), 3);
    // It says so now, or goes.
    let right = json!({ "metadata": { "labels": { labels::UPSTREAM_CLUSTER_NAME: "cluster-a", labels::WORKLOAD_DEPLOYMENT_NAME: "web-main-dfw" } } });
    world.patch::<Instance>("hub", &hub_namespace, "none", right).await;
    world.has_only::<Instance>("a", &["none"]).await;
    world.delete::<Instance>("hub", &hub_namespace, "garbled").await;
    until("one is left", || quarantined(&world) == 1).await;

    // That of a project that is not served any more is not counted.
    let mut lost = stray;
    lost["metadata"]["name"] = json!("odd");
    lost["metadata"]["labels"].as_object_mut().unwrap().remove(labels::WORKLOAD_DEPLOYMENT_NAME);
    world.create::<Instance>("hub", &lost).await;
    until("two", || quarantined(&world) == 2).await;
    manager.planes.disengage(&"a".into());
    until("one", || quarantined(&world) == 1).await;
}
