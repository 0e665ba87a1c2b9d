//! Deployments on the hub: the copy, where it is, and what is left there without a project's object.

use compute_api::compute::{Workload, WorkloadDeployment};
use compute_api::k8s::{Namespace, ResourceExt as _};
use compute_api::kube::Api;
use compute_api::kube::api::{DeleteParams, PostParams};
use compute_api::{annotations, finalizers, labels};
use serde_json::json;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_copy_says_whose_it_is() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.create::<Workload>("b", &workload("web", &[("main", &["DFW"])])).await;
    let (copy, other) = (world.copy("a", "web-main-dfw").await, world.copy("b", "web-main-dfw").await);
    assert_ne!(copy.namespace(), other.namespace());
    for (project, copy) in [("a", copy), ("b", other)] {
        assert_eq!(copy.labels()[labels::UPSTREAM_CLUSTER_NAME], format!("cluster-{project}"));
        assert_eq!(copy.labels()[labels::UPSTREAM_NAMESPACE], NS);
        assert_eq!(copy.labels()[labels::TOPOLOGY_CITY_CODE], "DFW");
        let namespaces: Api<Namespace> = Api::all(world.client("hub"));
        let namespace = namespaces.get(&copy.namespace().unwrap()).await.unwrap();
        assert_eq!(namespace.labels()[labels::UPSTREAM_CLUSTER_NAME], format!("cluster-{project}"));
        assert_eq!(namespace.labels()[labels::UPSTREAM_NAMESPACE], NS);
        let deployment = world.appears::<WorkloadDeployment>(project, NS, "web-main-dfw").await;
        assert_eq!(deployment.finalizers(), [finalizers::FEDERATOR]);
        assert_eq!(
            Some(&deployment.annotations()[annotations::FEDERATION_NAMESPACE]),
            copy.namespace().as_ref()
        );
        assert_eq!(Some(&copy.annotations()[annotations::UPSTREAM_UID]), deployment.uid().as_ref());
        assert_eq!(copy.spec.template, deployment.spec.template);
    }
    world.delete::<Workload>("a", NS, "web").await;
    world.disappears::<Workload>("a", NS, "web").await;
    assert_eq!(world.names::<WorkloadDeployment>("b").await.len(), 1);
    world.copy("b", "web-main-dfw").await;
}

/// The project's object says where before anything is there: whatever fails in between, nothing is lost.
#[tokio::test(start_paused = true)]
async fn the_hub_namespace_is_recorded_first() {
    let world = World::new().await;
    world.wire("hub").fail_after_writes(0);
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let hub_namespace = world.hub_namespace("a").await;
    let recorded = |deployment: &WorkloadDeployment| {
        let held = deployment.finalizers() == [finalizers::FEDERATOR];
        held && deployment.annotations().get(annotations::FEDERATION_NAMESPACE) == Some(&hub_namespace)
    };
    world.becomes("a", NS, "web-main-dfw", recorded).await;
    assert!(world.namespaces("hub").await.is_empty());
    world.wire("hub").good();
    world.copy("a", "web-main-dfw").await;
}

#[tokio::test(start_paused = true)]
async fn what_somebody_does_to_a_copy_is_put_back() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let copy = world.copy("a", "web-main-dfw").await;
    let hub_namespace = copy.namespace().unwrap();
    world.settle().await;
    let edit = json!({
        "metadata": { "labels": { labels::UPSTREAM_NAMESPACE: null, "propagationpolicy.karmada.io/name": "x" } },
        "spec": { "placementName": "other" },
    });
    world.patch::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw", edit).await;
    let restored = |copy: &WorkloadDeployment| {
        copy.labels().get(labels::UPSTREAM_NAMESPACE).is_some() && copy.spec.placement_name == "main"
    };
    let copy = world.becomes("hub", &hub_namespace, "web-main-dfw", restored).await;
    assert_eq!(copy.labels()["propagationpolicy.karmada.io/name"], "x", "the hub's own labels stay");

    let before = copy.uid();
    world.delete::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw").await;
    world
        .becomes("hub", &hub_namespace, "web-main-dfw", |copy: &WorkloadDeployment| copy.uid() != before)
        .await;
}

/// Its copies are where the project's namespace says, whatever a person writes onto the deployment.
#[tokio::test(start_paused = true)]
async fn a_deployment_cannot_be_pointed_elsewhere() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    world.create::<Workload>("b", &workload("web", &[("main", &["DFW"])])).await;
    let other = world.copy("b", "web-main-dfw").await;
    world.copy("a", "web-main-dfw").await;
    world.settle().await;
    let point =
        json!({ "metadata": { "annotations": { annotations::FEDERATION_NAMESPACE: other.namespace() } } });
    world.patch::<WorkloadDeployment>("a", NS, "web-main-dfw", point.clone()).await;
    let hub_namespace = world.hub_namespace("a").await;
    world
        .becomes("a", NS, "web-main-dfw", |one: &WorkloadDeployment| {
            one.annotations()[annotations::FEDERATION_NAMESPACE] == hub_namespace
        })
        .await;
    // Pointed there while it goes, it takes nothing with it but its own.
    world.wire("hub").down();
    world.delete::<Workload>("a", NS, "web").await;
    world.patch::<WorkloadDeployment>("a", NS, "web-main-dfw", point).await;
    world.wire("hub").good();
    world.disappears::<Workload>("a", NS, "web").await;
    world.disappears::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw").await;
    assert_eq!(world.copy("b", "web-main-dfw").await.uid(), other.uid());
}

/// What somebody owns beside us is not removed by an apply.
#[tokio::test(start_paused = true)]
async fn what_is_added_to_a_copy_by_hand_is_taken_out() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let copy = world.copy("a", "web-main-dfw").await;
    world.settle().await;
    let added = json!({
        "metadata": { "annotations": { annotations::RESTARTED_AT: "2026-05-01T00:00:00Z", "hub": "own" } },
        "spec": { "replicas": 7, "scaleSettings": { "maxReplicas": 30 } },
    });
    let hub_namespace = copy.namespace().unwrap();
    world.patch::<WorkloadDeployment>("hub", &hub_namespace, "web-main-dfw", added).await;
    let found = world
        .becomes("hub", &hub_namespace, "web-main-dfw", |one: &WorkloadDeployment| {
            one.spec.scale_settings.max_replicas.is_none()
        })
        .await;
    assert_eq!((found.annotations().get(annotations::RESTARTED_AT), found.spec.replicas), (None, Some(7)));
    assert_eq!(found.annotations()["hub"], "own");
    // Later passes find nothing to do.
    world.settle().await;
    let before = world.wire("hub").requests().len();
    world.report("a", "web-main-dfw", 2).await;
    world.settle().await;
    assert_eq!(world.wire("hub").requests()[before..], [] as [String; 0]);
}

/// A hub restored from an old snapshot has copies that nobody wants any more.
#[tokio::test(start_paused = true)]
async fn copies_without_a_projects_object_are_deleted() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let copy = world.copy("a", "web-main-dfw").await;
    let orphan = |name: &str, project: Option<&str>| {
        let mut all_labels = json!({ labels::TOPOLOGY_CITY_CODE: "DFW" });
        if let Some(project) = project {
            all_labels[labels::UPSTREAM_CLUSTER_NAME] = json!(project);
            all_labels[labels::UPSTREAM_NAMESPACE] = json!(NS);
        }
        let mut spec = serde_json::to_value(&copy.spec).unwrap();
        spec["workloadRef"]["name"] = json!("gone");
        json!({
            "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
            "metadata": { "name": name, "namespace": copy.namespace(), "labels": all_labels },
            "spec": spec,
        })
    };
    let hub_namespace = copy.namespace().unwrap();
    // Not ours, nobody's, of a project that is not served, of an idle one, and of this one.
    for (name, project) in [("foreign", None), ("nobodys", Some("")), ("elsewhere", Some("cluster-unserved"))]
    {
        world.create::<WorkloadDeployment>("hub", &orphan(name, project)).await;
    }
    for (name, project) in [("idle", "cluster-b"), ("orphan", "cluster-a")] {
        world.store::<WorkloadDeployment>("hub", &orphan(name, Some(project))).await;
        world.disappears::<WorkloadDeployment>("hub", &hub_namespace, name).await;
    }
    world.settle().await;
    world.has_only::<WorkloadDeployment>("hub", &["elsewhere", "foreign", "nobodys", "web-main-dfw"]).await;
    assert_eq!(world.copy("a", "web-main-dfw").await.uid(), copy.uid());
}

/// The namespace of a project is deleted and made again, with the same names in it.
#[tokio::test(start_paused = true)]
async fn a_namespace_made_again_is_another_one() {
    let world = World::new().await;
    let _manager = world.start().await;
    let namespaces: Api<Namespace> = Api::all(world.client("a"));
    let team: Namespace = serde_json::from_value(json!({ "metadata": { "name": "team" } })).unwrap();
    let made = namespaces.create(&PostParams::default(), &team).await.unwrap();
    let mut asked = workload("web", &[("main", &["DFW"])]);
    asked["metadata"]["namespace"] = json!("team");
    world.network_in("a", "team", "default").await;
    world.create::<Workload>("a", &asked).await;
    let first = format!("ns-{}", made.uid().unwrap());
    world.appears::<WorkloadDeployment>("hub", &first, "web-main-dfw").await;
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    eventually("the namespace is gone", async || match namespaces.get_opt("team").await.unwrap() {
        None => Ok(()),
        Some(left) => Err(format!("{left:?}")),
    })
    .await;
    let made = namespaces.create(&PostParams::default(), &team).await.unwrap();
    world.network_in("a", "team", "default").await;
    world.create::<Workload>("a", &asked).await;
    let second = format!("ns-{}", made.uid().unwrap());
    world.appears::<WorkloadDeployment>("hub", &second, "web-main-dfw").await;
    eventually("the first hub namespace is gone", async || {
        let found = world.namespaces("hub").await;
        if found == [second.clone()] { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}
