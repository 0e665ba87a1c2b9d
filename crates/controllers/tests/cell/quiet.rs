//! Nothing is asked when nothing changes, and little when little does.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::objects::{WEB, deployment, parallel};
use super::world::World;

#[tokio::test(start_paused = true)]
async fn an_unchanged_cell_is_silent() {
    let mut world = World::new().await;
    world.deploy(&parallel(deployment(WEB, 10))).await;
    world.ready(WEB, 10).await;
    world.settled().await;
    for controller in ["workload-deployment", "instance", "writeback"] {
        for result in ["error", "panic", "timeout"] {
            assert_eq!(world.runtime.metrics().reconciles(controller, result), 0, "{controller}: {result}");
        }
    }
    world.platform.rest();
    world.forget_requests();
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(world.requests(), Vec::<String>::new());

    // A new process lists, and finds nothing to do.
    world.stop().await;
    world.forget_requests();
    world.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let asked = world.requests();
    let names = |asked: &&String| asked.contains(WEB) || asked.starts_with("P") || asked.starts_with("D");
    assert_eq!(asked.iter().filter(names).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[tokio::test(start_paused = true)]
async fn one_change_costs_the_same_among_many() {
    let world = World::new().await;
    let mut costs = Vec::new();
    for (name, replicas) in [("one-main-dfw", 1), ("many-main-dfw", 60)] {
        world.deploy(&parallel(deployment(name, replicas))).await;
        super::world::eventually("all ready", async || {
            let status = world.deployments().get(name).await.unwrap().status.unwrap_or_default();
            if status.updated_replicas == Some(replicas) && status.ready_replicas == Some(replicas) {
                Ok(())
            } else {
                Err(format!("{status:?}"))
            }
        })
        .await;
        world.settled().await;
        world.forget_requests();
        let crash = json!({
            "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance",
            "status": { "conditions": [{
                "type": "Available", "status": "False", "reason": "InstanceCrashing", "message": "exit 1",
                "lastTransitionTime": "2027-01-15T08:00:00Z",
            }]},
        });
        let params = PatchParams::apply("another-provider").force();
        world.instances().patch_status(&format!("{name}-0"), &params, &Patch::Apply(crash)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        costs.push(world.requests());
    }
    // Conditions, the event, the deployment's status, the hub's copy (twice).
    assert!(costs[0].len() <= 5, "{:?}", costs[0]);
    assert_eq!(costs[0].len(), costs[1].len(), "{:?}", costs[1]);
}
