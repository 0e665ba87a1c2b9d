//! Direct mode: the project's own plane is the cell.

use compute_api::labels;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use kube::api::{Api, PostParams};

use super::objects::{WEB, deployment};
use super::world::{PROJECT, Shape, World, eventually, namespace};

#[tokio::test(start_paused = true)]
async fn there_is_no_hub() {
    let world = World::with(Shape { direct: true, ..Shape::default() }).await;
    // Whatever the city.
    let mut wanted = deployment(WEB, 2);
    wanted.metadata.labels = None;
    world.deployments().create(&PostParams::default(), &wanted).await.unwrap();
    eventually("claims in the instances' own namespace", async || {
        let claims: Api<compute_api::quota::ResourceClaim> =
            Api::namespaced(world.project.clone(), &namespace());
        claims.get_opt("instance-web-main-dfw-0").await.unwrap().map_or(Err("none"), |claim| {
            assert_eq!(claim.labels()[labels::SOURCE_CLUSTER], PROJECT);
            Ok(())
        })
    })
    .await;
    world.ready(WEB, 2).await;
    assert!(world.hub_way.take_asked().is_empty());
    let cell = world.cell_way.take_asked();
    assert!(!cell.contains(&format!("GET /api/v1/namespaces/{}", namespace())), "{cell:?}");
    world.deployments().delete(WEB, &DeleteParams::default()).await.unwrap();
    eventually("all is gone", async || {
        let left = world.names().await;
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}
