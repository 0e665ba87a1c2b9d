//! Instances of the cells as people see them in their project.

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::k8s::ResourceExt as _;
use compute_api::{conditions as c, labels};
use serde_json::json;

use crate::support::*;

const WELL: (&str, &str) = ("True", c::INSTANCE_AVAILABLE);

fn ready(instance: &Instance) -> String {
    let conditions = instance.status.clone().unwrap_or_default().conditions;
    c::find(&conditions, c::READY).map(|said| said.reason.clone()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn an_instance_is_owned_by_the_projects_own_deployment() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let on_hub = world.write_back("a", "web-main-dfw", 0, WELL).await;
    let projected = world.becomes("a", NS, "web-main-dfw-0", |one: &Instance| ready(one) == WELL.1).await;
    let owner = world.appears::<WorkloadDeployment>("a", NS, "web-main-dfw").await;
    assert_eq!(projected.owner_references()[0].uid, owner.uid().unwrap());
    assert_eq!(projected.labels()[labels::WORKLOAD_DEPLOYMENT_UID], owner.uid().unwrap());
    assert_eq!(
        (projected.labels()["team"].as_str(), projected.labels().contains_key(labels::UPSTREAM_NAMESPACE)),
        ("blue", false)
    );
    assert_eq!((&projected.spec, &projected.status), (&on_hub.spec, &on_hub.status));

    // Without the label, the name says whose it is.
    let copy = world.copy("a", "web-main-dfw").await;
    let mut unlabelled = instance(&copy, 7);
    unlabelled["metadata"]["labels"].as_object_mut().unwrap().remove(labels::WORKLOAD_DEPLOYMENT_NAME);
    world.create::<Instance>("hub", &unlabelled).await;
    let projected = world.appears::<Instance>("a", NS, "web-main-dfw-7").await;
    assert_eq!(projected.owner_references()[0].uid, owner.uid().unwrap());

    world.delete::<Instance>("hub", &copy.namespace().unwrap(), "web-main-dfw-0").await;
    world.has_only::<Instance>("a", &["web-main-dfw-7"]).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_done_to_a_projection_by_hand_is_undone() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let on_hub = world.write_back("a", "web-main-dfw", 0, WELL).await;
    let is_right = |one: &Instance| {
        one.spec == on_hub.spec
            && one.status == on_hub.status
            && one.owner_references().len() == 1
            && one.labels().contains_key("team")
    };
    let projected = world.becomes("a", NS, "web-main-dfw-0", is_right).await;
    world.settle().await;
    let edits = [
        json!({ "metadata": { "labels": { "team": null } } }),
        json!({ "metadata": { "ownerReferences": null } }),
        json!({ "spec": { "volumes": [{ "name": "mine", "disk": { "template": { "spec": { "type": "x" } } } }] } }),
        json!({ "spec": { "controller": { "templateHash": "v1-x", "schedulingGates": [{ "name": "Mine" }] } } }),
    ];
    for edit in edits {
        world.patch::<Instance>("a", NS, "web-main-dfw-0", edit).await;
        world.becomes("a", NS, "web-main-dfw-0", is_right).await;
    }
    let status = json!({ "conditions": [condition("Mine", "True", "Mine", "")] });
    world.patch_status::<Instance>("a", NS, "web-main-dfw-0", status).await;
    world.becomes("a", NS, "web-main-dfw-0", is_right).await;

    world.delete::<Instance>("a", NS, "web-main-dfw-0").await;
    world
        .becomes("a", NS, "web-main-dfw-0", |one: &Instance| one.uid() != projected.uid() && is_right(one))
        .await;
    // What was never anybody's is not shown.
    let mut invented = instance(&world.copy("a", "web-main-dfw").await, 9);
    invented["metadata"]["namespace"] = json!(NS);
    invented["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    world.store::<Instance>("a", &invented).await;
    world.has_only::<Instance>("a", &["web-main-dfw-0"]).await;
}

#[tokio::test(start_paused = true)]
async fn people_hear_of_problems_that_come_and_go() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    let told = async |expected: &[(&str, i32)]| {
        eventually("the events", async || {
            let found = world.events("a", "web-main-dfw-0").await;
            let same =
                found.iter().map(|(reason, count)| (reason.as_str(), *count)).eq(expected.iter().copied());
            if same { Ok(()) } else { Err(format!("{found:?}, not {expected:?}")) }
        })
        .await;
    };
    let steps = [
        (("False", c::PENDING_QUOTA), vec![]),
        (("False", c::IMAGE_UNAVAILABLE), vec![(c::IMAGE_UNAVAILABLE, 1)]),
        (WELL, vec![(c::INSTANCE_AVAILABLE, 1), (c::IMAGE_UNAVAILABLE, 1)]),
        (("False", c::STARTING), vec![(c::INSTANCE_AVAILABLE, 1), (c::IMAGE_UNAVAILABLE, 1)]),
        (WELL, vec![(c::INSTANCE_AVAILABLE, 1), (c::IMAGE_UNAVAILABLE, 1)]),
        (("False", c::IMAGE_UNAVAILABLE), vec![(c::INSTANCE_AVAILABLE, 1), (c::IMAGE_UNAVAILABLE, 2)]),
    ];
    for (says, expected) in steps {
        world.write_back("a", "web-main-dfw", 0, says).await;
        world.becomes("a", NS, "web-main-dfw-0", |one: &Instance| ready(one) == says.1).await;
        told(&expected).await;
    }
    assert!(world.events("hub", "web-main-dfw-0").await.is_empty());
}

/// What happened while the manager was down is found from what is there.
#[tokio::test(start_paused = true)]
async fn deletions_that_were_missed_are_found() {
    let world = World::new().await;
    let manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW"])])).await;
    for ordinal in 0..3 {
        world.write_back("a", "web-main-dfw", ordinal, WELL).await;
    }
    world.has_only::<Instance>("a", &["web-main-dfw-0", "web-main-dfw-1", "web-main-dfw-2"]).await;
    manager.stop().await;
    let hub_namespace = world.hub_namespace("a").await;
    world.delete::<Instance>("hub", &hub_namespace, "web-main-dfw-2").await;
    world.delete::<Instance>("a", NS, "web-main-dfw-0").await;
    let _manager = world.start().await;
    world.has_only::<Instance>("a", &["web-main-dfw-0", "web-main-dfw-1"]).await;
}

/// Two projects with the same names see their own instances.
#[tokio::test(start_paused = true)]
async fn projects_do_not_see_each_others() {
    let world = World::new().await;
    let _manager = world.start().await;
    for project in ["a", "b"] {
        world.create::<Workload>(project, &workload("web", &[("main", &["DFW"])])).await;
    }
    world.write_back("a", "web-main-dfw", 0, WELL).await;
    world.write_back("b", "web-main-dfw", 0, ("False", c::INSTANCE_CRASHING)).await;
    world.becomes("a", NS, "web-main-dfw-0", |one: &Instance| ready(one) == WELL.1).await;
    world.becomes("b", NS, "web-main-dfw-0", |one: &Instance| ready(one) == c::INSTANCE_CRASHING).await;
    let hub_namespace = world.hub_namespace("a").await;
    world.delete::<Instance>("hub", &hub_namespace, "web-main-dfw-0").await;
    world.has_only::<Instance>("a", &[]).await;
    assert_eq!(world.names::<Instance>("b").await, ["web-main-dfw-0"]);
}
