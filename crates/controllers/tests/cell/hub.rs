//! Copies on the hub.

use std::time::Duration;

use compute_api::compute::Instance;
use compute_api::labels;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::faults::Mode;
use super::objects::{WEB, create_cluster, deployment, gates, is_ready};
use super::platform::{Ledger, Networks};
use super::world::{CLUSTER, Shape, World, eventually};

const FIRST: &str = "web-main-dfw-0";

async fn copy_gone(world: &World, name: &str) {
    eventually(&format!("no copy of {name}"), async || {
        world.copies().get_opt(name).await.unwrap().map_or(Ok(()), |_| Err("it is there"))
    })
    .await;
}

async fn copy_equals(world: &World, name: &str) -> Instance {
    eventually(&format!("a copy of {name}"), async || {
        let instance = world.instances().get(name).await.unwrap();
        let Some(copy) = world.copies().get_opt(name).await.unwrap() else { return Err("none".to_owned()) };
        if (&copy.spec, &copy.status) == (&instance.spec, &instance.status) {
            Ok(copy)
        } else {
            Err(format!("{copy:?}"))
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn held_instances_are_written_back_too() {
    let world = World::new().await;
    world.platform.set(|settings| (settings.networks, settings.ledger) = (Networks::Off, Ledger::Off));
    world.deploy(&deployment(WEB, 1)).await;
    world.says(FIRST, "QuotaGranted", "PendingEvaluation").await;
    let copy = copy_equals(&world, FIRST).await;
    assert_eq!(gates(&copy), ["Network", "Quota"]);
    let owner = world.hub_deployments().get(WEB).await.unwrap();
    assert_eq!(copy.owner_references()[0].uid, owner.uid().unwrap());
    assert_eq!(copy.labels()[labels::WORKLOAD_DEPLOYMENT_UID], owner.uid().unwrap());
    assert_eq!(copy.labels()[labels::SOURCE_CLUSTER], CLUSTER);
    assert_eq!(copy.labels()[labels::UPSTREAM_NAMESPACE], "default");

    // What others put there stays.
    let patch = json!({ "metadata": { "labels": { "karmada.io/claimed": "yes" } } });
    world.copies().patch(FIRST, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    world.platform.set(|settings| (settings.networks, settings.ledger) = (Networks::Ready, Ledger::Limit(9)));
    world.ready(WEB, 1).await;
    let copy = copy_equals(&world, FIRST).await;
    assert!(is_ready(&copy) && copy.labels().contains_key("karmada.io/claimed"));
    // And what is ours comes back.
    let patch = json!({ "metadata": { "labels": { (labels::PLACEMENT_NAME): null } } });
    world.copies().patch(FIRST, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    eventually("the label", async || {
        let copy = world.copies().get(FIRST).await.unwrap();
        copy.labels().get(labels::PLACEMENT_NAME).cloned().ok_or("none")
    })
    .await;
    world.scale(WEB, 0).await;
    copy_gone(&world, FIRST).await;
}

#[tokio::test(start_paused = true)]
async fn no_copy_without_the_hubs_deployment() {
    let world = World::new().await;
    world.deployments().create(&PostParams::default(), &deployment(WEB, 1)).await.unwrap();
    world.ready(WEB, 1).await;
    world.settled().await;
    assert!(world.copies().get_opt(FIRST).await.unwrap().is_none());
    world.hub_deployments().create(&PostParams::default(), &deployment(WEB, 1)).await.unwrap();
    copy_equals(&world, FIRST).await;

    // A deployment that goes takes the copy along, and none comes back.
    world.hub_deployments().delete(WEB, &DeleteParams::default()).await.unwrap();
    copy_gone(&world, FIRST).await;
    world.set_image(WEB, "app:2").await;
    world.ready(WEB, 1).await;
    world.settled().await;
    assert!(world.copies().list(&ListParams::default()).await.unwrap().items.is_empty());

    // A successor of another Workload gets none either.
    let mut successor = deployment(WEB, 1);
    successor.spec.workload_ref.uid = "another".to_owned();
    world.hub_deployments().create(&PostParams::default(), &successor).await.unwrap();
    world.settled().await;
    assert!(world.copies().list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_cell_goes_on_while_the_hub_is_down() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 3)).await;
    world.ready(WEB, 3).await;
    copy_equals(&world, "web-main-dfw-2").await;
    for mode in [Mode::Failing, Mode::Hanging] {
        world.hub_way.set(mode);
        world.scale(WEB, 1).await;
        world.ready(WEB, 1).await;
        world.set_image(WEB, if mode == Mode::Failing { "app:2" } else { "app:3" }).await;
        world.ready(WEB, 1).await;
        assert!(world.copies().get_opt("web-main-dfw-2").await.unwrap().is_some(), "nobody could remove it");
        // Nobody knocks at a closed door for each change.
        assert!(world.hub_way.take_asked().len() < 30);
        world.hub_way.set(Mode::Good);
        copy_gone(&world, "web-main-dfw-2").await;
        copy_gone(&world, "web-main-dfw-1").await;
        copy_equals(&world, FIRST).await;
        world.scale(WEB, 3).await;
        world.ready(WEB, 3).await;
        copy_equals(&world, "web-main-dfw-2").await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_went_while_nobody_looked_is_swept() {
    let mut world = World::new().await;
    world.deploy(&deployment(WEB, 2)).await;
    world.ready(WEB, 2).await;
    copy_equals(&world, "web-main-dfw-1").await;
    // Of another cell: none of our business.
    let mut other = world.copies().get("web-main-dfw-1").await.unwrap();
    other.metadata = kube::api::ObjectMeta {
        name: Some("web-main-lhr-0".to_owned()),
        labels: Some([(labels::SOURCE_CLUSTER.to_owned(), "cell-lhr".to_owned())].into()),
        ..Default::default()
    };
    world.copies().create(&PostParams::default(), &other).await.unwrap();
    world.stop().await;
    world.scale(WEB, 1).await;
    world.delete_instance("web-main-dfw-1").await;
    let free = json!({ "metadata": { "finalizers": null } });
    world.instances().patch("web-main-dfw-1", &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    world.gone("web-main-dfw-1").await;
    world.start();
    copy_gone(&world, "web-main-dfw-1").await;
    copy_equals(&world, FIRST).await;
    assert!(world.copies().get_opt("web-main-lhr-0").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_the_hub_does_not_know_writes_nothing() {
    let world = World::with(Shape { joined: false, ..Shape::default() }).await;
    world.deploy(&deployment(WEB, 1)).await;
    let mut stale = Instance { spec: super::objects::template("app:0").spec, ..Instance::default() };
    stale.metadata.name = Some("old-main-dfw-0".to_owned());
    stale.metadata.labels = Some([(labels::SOURCE_CLUSTER.to_owned(), CLUSTER.to_owned())].into());
    world.copies().create(&PostParams::default(), &stale).await.unwrap();
    world.ready(WEB, 1).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(world.copies().get_opt(FIRST).await.unwrap().is_none());
    assert!(world.copies().get_opt("old-main-dfw-0").await.unwrap().is_some());
    assert_eq!(world.metric(&format!("compute_writeback_enabled{{cluster=\"{CLUSTER}\"}}")), Some(0));
    create_cluster(&world.hub, CLUSTER).await;
    copy_equals(&world, FIRST).await;
    copy_gone(&world, "old-main-dfw-0").await;
    assert_eq!(world.metric(&format!("compute_writeback_enabled{{cluster=\"{CLUSTER}\"}}")), Some(1));
}
