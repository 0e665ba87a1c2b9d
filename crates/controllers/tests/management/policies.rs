//! One policy for each city of a hub namespace, for as long as it has a deployment there.

use compute_api::compute::{Workload, WorkloadDeployment};
use compute_api::k8s::ResourceExt as _;
use compute_api::karmada::PropagationPolicy;
use compute_api::labels;
use serde_json::json;

use crate::support::*;

async fn has_policies(world: &World, project: &str, names: &[&str]) {
    eventually("the policies", async || {
        let found = world.policies(project).await;
        if found == names { Ok(()) } else { Err(format!("{found:?}, not {names:?}")) }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_last_deployment_of_a_city_takes_its_policy_with_it() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("one", &[("main", &["DFW", "IAD"])])).await;
    world.create::<Workload>("a", &workload("two", &[("main", &["DFW"])])).await;
    world.create::<Workload>("b", &workload("one", &[("main", &["DFW"])])).await;
    has_policies(&world, "a", &["city-dfw", "city-iad"]).await;
    has_policies(&world, "b", &["city-dfw"]).await;
    let hub_namespace = world.hub_namespace("a").await;
    let owners = |policy: &PropagationPolicy| {
        let mut owners: Vec<_> = policy.owner_references().iter().map(|owner| owner.name.clone()).collect();
        owners.sort();
        owners
    };
    let both = |policy: &PropagationPolicy| owners(policy) == ["one-main-dfw", "two-main-dfw"];
    world.becomes("hub", &hub_namespace, "city-dfw", both).await;

    world.delete::<Workload>("a", NS, "one").await;
    has_policies(&world, "a", &["city-dfw"]).await;
    let one = |policy: &PropagationPolicy| owners(policy) == ["two-main-dfw"];
    world.becomes("hub", &hub_namespace, "city-dfw", one).await;
    world.delete::<Workload>("a", NS, "two").await;
    has_policies(&world, "a", &[]).await;
    has_policies(&world, "b", &["city-dfw"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_goes_is_made_again() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    has_policies(&world, "a", &["city-dfw"]).await;
    let hub_namespace = world.hub_namespace("a").await;
    let policy = world.appears::<PropagationPolicy>("hub", &hub_namespace, "city-dfw").await;

    // One that is on its way out is waited for.
    let hold = json!({ "metadata": { "finalizers": ["test.example.com/hold"] } });
    world.patch::<PropagationPolicy>("hub", &hub_namespace, "city-dfw", hold).await;
    world.delete::<PropagationPolicy>("hub", &hub_namespace, "city-dfw").await;
    world.settle().await;
    let release = json!({ "metadata": { "finalizers": null } });
    world.patch::<PropagationPolicy>("hub", &hub_namespace, "city-dfw", release).await;
    let another = |found: &PropagationPolicy| found.uid() != policy.uid();
    world.becomes("hub", &hub_namespace, "city-dfw", another).await;

    // One that somebody has changed is put right; what the hub adds stays.
    let edit = json!({
        "metadata": { "labels": { "hub": "own" } },
        "spec": { "propagateDeps": false, "priority": 3, "placement": { "clusterAffinity": { "clusterNames": ["x"] } } },
    });
    world.patch::<PropagationPolicy>("hub", &hub_namespace, "city-dfw", edit).await;
    let right = |found: &PropagationPolicy| {
        let affinity =
            found.spec.placement.as_ref().and_then(|placement| placement.cluster_affinity.as_ref());
        found.spec.propagate_deps == Some(true)
            && affinity.is_some_and(|affinity| affinity.cluster_names.is_empty())
    };
    let found = world.becomes("hub", &hub_namespace, "city-dfw", right).await;
    assert_eq!((found.labels()["hub"].as_str(), found.spec.priority), ("own", Some(3)));

    // It says whose it is, as the namespace does.
    let unlabel = json!({ "metadata": { "labels": { labels::UPSTREAM_NAMESPACE: null } } });
    world.patch::<PropagationPolicy>("hub", &hub_namespace, "city-dfw", unlabel).await;
    let labelled = |found: &PropagationPolicy| {
        let label = |key| found.labels().get(key).map(String::as_str);
        label(labels::UPSTREAM_CLUSTER_NAME) == Some("cluster-a")
            && label(labels::UPSTREAM_NAMESPACE) == Some(NS)
    };
    world.becomes("hub", &hub_namespace, "city-dfw", labelled).await;
}

/// The name alone does not make it ours, not even in a namespace of ours.
#[tokio::test(start_paused = true)]
async fn a_policy_that_says_nothing_is_not_deleted() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    has_policies(&world, "a", &["city-dfw"]).await;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "name": "city-iad", "namespace": world.hub_namespace("a").await },
        "spec": { "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap" }] },
    });
    world.create::<PropagationPolicy>("hub", &policy).await;
    world.settle().await;
    has_policies(&world, "a", &["city-dfw", "city-iad"]).await;
}

/// A policy of that name elsewhere is somebody else's.
#[tokio::test(start_paused = true)]
async fn policies_of_others_are_left_alone() {
    let world = World::new().await;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "name": "city-dfw", "namespace": "default" },
        "spec": { "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap" }] },
    });
    world.create::<PropagationPolicy>("hub", &policy).await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    has_policies(&world, "a", &["city-dfw"]).await;
    world.delete::<Workload>("a", NS, "web").await;
    has_policies(&world, "a", &[]).await;
    world.settle().await;
    assert_eq!(world.names::<PropagationPolicy>("hub").await, ["city-dfw"]);
    assert!(world.names::<WorkloadDeployment>("hub").await.is_empty());
}
