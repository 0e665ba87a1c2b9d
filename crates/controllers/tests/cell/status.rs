//! What a deployment says.

use compute_api::annotations::UPSTREAM_GENERATION;
use compute_api::conditions as c;
use serde_json::json;

use super::objects::{WEB, deployment};
use super::platform::Ledger;
use super::world::{World, eventually};

#[tokio::test(start_paused = true)]
async fn the_generation_is_that_of_the_projects_object() {
    let world = World::new().await;
    let mut sent = deployment(WEB, 1);
    sent.metadata.annotations = Some([(UPSTREAM_GENERATION.to_owned(), "41".to_owned())].into());
    world.deploy(&sent).await;
    world.ready(WEB, 1).await;
    let status = world.deployments().get(WEB).await.unwrap().status.unwrap();
    assert_eq!(status.observed_generation, Some(41));
    assert_eq!(status.selector.unwrap(), "compute.datumapis.com/workload-deployment-name=web-main-dfw");
    assert_eq!(status.location.unwrap().name, "us-south");
    assert_eq!(
        (status.replicas, status.current_replicas, status.desired_replicas),
        (Some(1), Some(1), Some(1))
    );
    let available = c::find(&status.conditions, c::AVAILABLE).unwrap();
    assert_eq!(
        (available.reason.as_str(), available.observed_generation),
        (c::STABLE_INSTANCE_FOUND, Some(41))
    );
    assert!(c::is_true(&status.conditions, c::NETWORK_READY));

    world.patch(WEB, json!({ "metadata": { "annotations": { (UPSTREAM_GENERATION): "42" } } })).await;
    let generation = async |wanted: Option<i64>| {
        eventually(&format!("generation {wanted:?}"), async || {
            let found = world.deployments().get(WEB).await.unwrap();
            let observed = found.status.unwrap().observed_generation;
            if observed == wanted { Ok(()) } else { Err(format!("{observed:?}")) }
        })
        .await;
    };
    generation(Some(42)).await;
    world.patch(WEB, json!({ "metadata": { "annotations": { (UPSTREAM_GENERATION): null } } })).await;
    let own = world.deployments().get(WEB).await.unwrap().metadata.generation;
    generation(own).await;
}

#[tokio::test(start_paused = true)]
async fn the_worst_instance_speaks_for_all() {
    let world = World::new().await;
    world.platform.set(|settings| settings.ledger = Ledger::Limit(0));
    world.deploy(&deployment(WEB, 1)).await;
    let said = eventually("quota", async || {
        let status = world.deployments().get(WEB).await.unwrap().status.unwrap_or_default();
        match c::find(&status.conditions, c::AVAILABLE) {
            Some(said) if said.message.contains("1 instance asked") => Ok(said.clone()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", c::QUOTA_NOT_GRANTED));
}
