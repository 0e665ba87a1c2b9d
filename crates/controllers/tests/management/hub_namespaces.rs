//! Hub namespaces go when what they stand for is known to be gone, and not before.

use std::time::Duration;

use compute_api::compute::{Workload, WorkloadDeployment};
use compute_api::k8s::{Namespace, ResourceExt as _};
use compute_api::kube::Api;
use compute_api::kube::api::{DeleteParams, PostParams};
use compute_api::milo::Project;
use compute_runtime::PlaneId;
use serde_json::json;

use crate::support::*;

async fn has_namespaces(world: &World, names: &[&str]) {
    eventually("the hub namespaces", async || {
        let found = world.namespaces("hub").await;
        if found == names { Ok(()) } else { Err(format!("{found:?}, not {names:?}")) }
    })
    .await;
}

/// A namespace `team` in project `a`, with a Workload in it that is on the hub; the hub namespace.
async fn team(world: &World) -> String {
    let namespaces: Api<Namespace> = Api::all(world.client("a"));
    let team: Namespace = serde_json::from_value(json!({ "metadata": { "name": "team" } })).unwrap();
    let made = namespaces.create(&PostParams::default(), &team).await.unwrap();
    let mut asked = workload("web", &[("main", &["DFW"])]);
    asked["metadata"]["namespace"] = json!("team");
    world.network_in("a", "team", "default").await;
    world.create::<Workload>("a", &asked).await;
    let hub_namespace = format!("ns-{}", made.uid().unwrap());
    world.appears::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw").await;
    hub_namespace
}

#[tokio::test(start_paused = true)]
async fn one_goes_after_its_projects_namespace() {
    let world = World::new().await;
    let _manager = world.start().await;
    let hub_namespace = team(&world).await;
    world.delete::<Workload>("a", "team", "web").await;
    world.disappears::<Workload>("a", "team", "web").await;
    // Empty, but what it stands for is there.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.namespaces("hub").await, [hub_namespace.as_str()]);
    let namespaces: Api<Namespace> = Api::all(world.client("a"));
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    has_namespaces(&world, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn one_whose_namespace_went_while_nobody_looked_is_found() {
    let world = World::new().await;
    let manager = world.start().await;
    let hub_namespace = team(&world).await;
    world.delete::<Workload>("a", "team", "web").await;
    world.disappears::<Workload>("a", "team", "web").await;
    has_namespaces(&world, &[&hub_namespace]).await;
    manager.stop().await;
    let namespaces: Api<Namespace> = Api::all(world.client("a"));
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    let _manager = world.start().await;
    has_namespaces(&world, &[]).await;
}

/// A project that does not answer, or is not served, has not said anything.
#[tokio::test(start_paused = true)]
async fn silence_is_no_answer() {
    let world = World::new().await;
    let manager = world.start().await;
    let hub_namespace = team(&world).await;
    world.delete::<Workload>("a", "team", "web").await;
    world.disappears::<Workload>("a", "team", "web").await;
    let namespaces: Api<Namespace> = Api::all(world.client("a"));
    world.wire("a").down();
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(world.namespaces("hub").await, [hub_namespace.as_str()]);
    // Not served any more: core is asked, and says that there is such a project; then it is down.
    manager.planes.disengage(&PlaneId::new("a"));
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert!(world.wire("core").requests().iter().all(|asked| asked.ends_with("/projects/a")));
    assert!(!world.wire("core").requests().is_empty());
    world.wire("core").down();
    let projects: Api<Project> = Api::all(world.client("core"));
    projects.delete("a", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(world.namespaces("hub").await, [hub_namespace.as_str()]);
    // It answers that there is none.
    world.wire("core").good();
    has_namespaces(&world, &[]).await;
}

/// A project that is deleted leaves nothing behind, not even what it had there.
#[tokio::test(start_paused = true)]
async fn those_of_a_project_that_is_gone_go_with_what_is_in_them() {
    let world = World::new().await;
    let manager = world.start().await;
    team(&world).await;
    world.create::<Workload>("b", &workload("web", &[("main", &["DFW"])])).await;
    let other = world.copy("b", "web-main-dfw").await.namespace().unwrap();
    let projects: Api<Project> = Api::all(world.client("core"));
    projects.delete("a", &DeleteParams::default()).await.unwrap();
    manager.planes.disengage(&PlaneId::new("a"));
    has_namespaces(&world, &[&other]).await;
    world.copy("b", "web-main-dfw").await;
}
