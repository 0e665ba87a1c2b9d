//! Everything goes, in order.

use std::time::Duration;

use compute_api::finalizers;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, PropagationPolicy};

use super::faults::Watches;
use super::objects::{WEB, condition, deployment, parallel};
use super::platform::PROVIDER;
use super::world::{World, eventually};

async fn all_gone(world: &World) {
    eventually("all is gone", async || {
        let deployments = world.deployments().list(&ListParams::default()).await.unwrap().items.len();
        let claims = world.claims().list(&ListParams::default()).await.unwrap().items.len();
        let copies = world.copies().list(&ListParams::default()).await.unwrap().items.len();
        let instances = world.names().await;
        if deployments + claims + copies + instances.len() == 0 {
            Ok(())
        } else {
            Err(format!("{deployments} deployments, {claims} claims, {copies} copies, {instances:?}"))
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_waits_for_its_instances_and_they_for_the_provider() {
    for policy in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        let world = World::new().await;
        let made = world.deploy(&deployment(WEB, 2)).await;
        world.ready(WEB, 2).await;
        world.platform.set(|settings| settings.stops = false);
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        world.deployments().delete(WEB, &params).await.unwrap();
        eventually("both are leaving", async || {
            let all = world.all_instances().await;
            let leaving = all.iter().filter(|one| one.metadata.deletion_timestamp.is_some()).count();
            if leaving == 2 { Ok(()) } else { Err(leaving.to_string()) }
        })
        .await;
        world.settled().await;
        let held = world.deployments().get(WEB).await.unwrap();
        assert_eq!(held.uid(), made.uid());
        assert!(held.finalizers().contains(&finalizers::WORKLOAD_DEPLOYMENT.to_owned()));
        let instance = world.instances().get("web-main-dfw-0").await.unwrap();
        assert!(instance.finalizers().contains(&PROVIDER.to_owned()));
        assert_eq!(
            world.claims().list(&ListParams::default()).await.unwrap().items.len(),
            2,
            "it still runs"
        );
        assert_eq!(condition(&instance, "QuotaGranted").unwrap().reason, "QuotaAvailable");
        world.platform.set(|settings| settings.stops = true);
        all_gone(&world).await;
        world.settled().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_at_any_time_loses_and_leaks_nothing() {
    let mut world = World::new().await;
    world.deploy(&parallel(deployment(WEB, 4))).await;
    for _ in 0..12 {
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        world.stop().await;
        world.start();
    }
    world.ready(WEB, 4).await;
    world.set_image(WEB, "app:2").await;
    for _ in 0..12 {
        tokio::time::sleep(std::time::Duration::from_millis(70)).await;
        world.stop().await;
        world.start();
    }
    world.ready(WEB, 4).await;
    world.deployments().delete(WEB, &DeleteParams::default()).await.unwrap();
    for _ in 0..6 {
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        world.stop().await;
        world.start();
    }
    all_gone(&world).await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_a_broken_watch_does_not_show_is_not_forgotten() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 0)).await;
    world.settled().await;
    world.cell_way.set_watches(Watches::Broken("/instances"));
    world.scale(WEB, 1).await;
    eventually("it is made", async || {
        world.instances().get_opt("web-main-dfw-0").await.unwrap().ok_or("none")
    })
    .await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    // It is not made once more, nor anything else done about it.
    world.forget_requests();
    world.scale(WEB, 1).await;
    world.patch(WEB, serde_json::json!({ "metadata": { "annotations": { "touched": "yes" } } })).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    let made: Vec<_> = world.requests().into_iter().filter(|asked| asked.starts_with("POST")).collect();
    assert!(made.is_empty(), "{made:?}");
    world.cell_way.set_watches(Watches::Good);
    world.ready(WEB, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_not_let_go_while_the_server_has_an_instance_of_it() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 0)).await;
    world.settled().await;
    // The watch hangs, and nobody can know.
    world.cell_way.set_watches(Watches::Silent("/instances"));
    world.scale(WEB, 1).await;
    eventually("it is made", async || {
        world.instances().get_opt("web-main-dfw-0").await.unwrap().ok_or("none")
    })
    .await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    world.deployments().delete(WEB, &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let held = world.deployments().get(WEB).await.unwrap();
    assert!(held.finalizers().contains(&finalizers::WORKLOAD_DEPLOYMENT.to_owned()));
    world.cell_way.set_watches(Watches::Good);
    all_gone(&world).await;
}
