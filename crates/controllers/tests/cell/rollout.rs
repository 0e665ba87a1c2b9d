//! How a changed template reaches instances.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use compute_api::annotations::RESTARTED_AT;
use kube::ResourceExt as _;
use kube::api::ListParams;
use parking_lot::Mutex;
use serde_json::json;

use super::objects::{WEB, deployment, image, is_ready, parallel};
use super::world::{World, eventually};

/// Keeps count of how few instances were ready, and in which order they were replaced.
struct Lookout {
    fewest: Arc<Mutex<usize>>,
    order: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Lookout {
    fn new(world: &World, image_after: &'static str) -> Self {
        let (fewest, order) = (Arc::new(Mutex::new(usize::MAX)), Arc::new(Mutex::new(Vec::new())));
        let (few, replaced, instances) = (fewest.clone(), order.clone(), world.instances());
        let task = tokio::spawn(async move {
            loop {
                let found = instances.list(&ListParams::default()).await.unwrap().items;
                let ready = found.iter().filter(|instance| is_ready(instance)).count();
                {
                    let mut few = few.lock();
                    *few = ready.min(*few);
                }
                for instance in found.iter().filter(|instance| image(instance) == image_after) {
                    let mut replaced = replaced.lock();
                    if !replaced.contains(&instance.name_any()) {
                        replaced.push(instance.name_any());
                    }
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        Self { fewest, order, task }
    }

    fn end(self) -> (usize, Vec<String>) {
        self.task.abort();
        (*self.fewest.lock(), self.order.lock().clone())
    }
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_from_the_top() {
    let world = World::new().await;
    world.deploy(&parallel(deployment(WEB, 3))).await;
    let before: BTreeSet<_> = world.ready(WEB, 3).await.iter().map(|instance| instance.uid()).collect();
    let lookout = Lookout::new(&world, "app:2");
    world.set_image(WEB, "app:2").await;
    eventually("all replaced", async || {
        let all = world.all_instances().await;
        let done = all.len() == 3 && all.iter().all(|one| image(one) == "app:2" && is_ready(one));
        if done { Ok(()) } else { Err("not all") }
    })
    .await;
    let after: BTreeSet<_> = world.ready(WEB, 3).await.iter().map(|instance| instance.uid()).collect();
    let (fewest, order) = lookout.end();
    assert!(before.is_disjoint(&after));
    assert_eq!(fewest, 2);
    assert_eq!(order, ["web-main-dfw-2", "web-main-dfw-1", "web-main-dfw-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_bad_image_stops_the_roll_and_a_good_one_heals_it() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 3)).await;
    let before = world.ready(WEB, 3).await;
    world.set_image(WEB, "bad:1").await;
    world.says("web-main-dfw-2", "Ready", "ImageUnavailable").await;
    assert_eq!(world.warned("web-main-dfw-2", "ImageUnavailable").await, "no such image");
    world.settled().await;
    let stuck = world.all_instances().await;
    assert_eq!((stuck[0].uid(), stuck[1].uid()), (before[0].uid(), before[1].uid()));
    let status = world.deployments().get(WEB).await.unwrap().status.unwrap();
    assert_eq!((status.ready_replicas, status.updated_replicas), (Some(2), Some(1)));

    world.set_image(WEB, "app:3").await;
    let healed = world.ready(WEB, 3).await;
    assert!(healed.iter().all(|instance| image(instance) == "app:3"));
}

#[tokio::test(start_paused = true)]
async fn nothing_rolls_while_paused() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 2)).await;
    let before = world.ready(WEB, 2).await;
    world.patch(WEB, json!({ "spec": { "paused": true } })).await;
    world.set_image(WEB, "app:2").await;
    world.scale(WEB, 3).await;
    eventually("the new one", async || {
        let found = world.instances().get_opt("web-main-dfw-2").await.unwrap();
        found.filter(|found| is_ready(found) && image(found) == "app:2").ok_or("not yet")
    })
    .await;
    world.settled().await;
    let paused = world.all_instances().await;
    assert_eq!((paused[0].uid(), paused[1].uid()), (before[0].uid(), before[1].uid()));
    world.patch(WEB, json!({ "spec": { "paused": null } })).await;
    let after = world.ready(WEB, 3).await;
    assert!(after.iter().all(|instance| image(instance) == "app:2"));
}

#[tokio::test(start_paused = true)]
async fn a_restart_replaces_everything() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 2)).await;
    let before: BTreeSet<_> = world.ready(WEB, 2).await.iter().map(|instance| instance.uid()).collect();
    world
        .patch(WEB, json!({ "metadata": { "annotations": { (RESTARTED_AT): "2027-01-15T08:00:00Z" } } }))
        .await;
    eventually("all are new", async || {
        let all = world.ready(WEB, 2).await;
        let fresh = all.iter().all(|instance| !before.contains(&instance.uid()));
        if fresh { Ok(()) } else { Err("not all") }
    })
    .await;
    world.settled().await;
}
