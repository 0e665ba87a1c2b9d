//! How many instances there are, and which.

use compute_api::compute::Instance;
use compute_api::{finalizers, labels};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{ResourceExt as _, core::DynamicObject, discovery::ApiResource};
use serde_json::json;

use super::objects::{WEB, deployment, is_ready, parallel};
use super::platform::Networks;
use super::world::{Shape, World, eventually, namespace};

#[tokio::test(start_paused = true)]
async fn instances_come_and_go_by_ordinal() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 2)).await;
    let instances = world.ready(WEB, 2).await;
    let first = &instances[0];
    assert_eq!(first.spec.location.as_ref().unwrap().name, "us-south");
    assert!(first.finalizers().contains(&finalizers::INSTANCE.to_owned()));
    for label in labels::ON_INSTANCES {
        assert!(first.labels().contains_key(label), "{label}");
    }

    world.scale(WEB, 4).await;
    let grown = world.ready(WEB, 4).await;
    assert_eq!(grown[0].uid(), first.uid());
    world.scale(WEB, 1).await;
    let shrunk = world.ready(WEB, 1).await;
    assert_eq!(shrunk[0].uid(), first.uid());

    // A gap is filled.
    world.scale(WEB, 3).await;
    world.ready(WEB, 3).await;
    world.delete_instance(&format!("{WEB}-0")).await;
    eventually("a new first instance", async || {
        let found = world.instances().get_opt(&format!("{WEB}-0")).await.unwrap();
        found.filter(|found| found.uid() != first.uid() && is_ready(found)).ok_or("not yet")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn none_are_wanted() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 2)).await;
    world.ready(WEB, 2).await;
    world.scale(WEB, 0).await;
    world.ready(WEB, 0).await;
    eventually("scaled to zero", async || {
        let status = world.deployments().get(WEB).await.unwrap().status.unwrap();
        let said = status.conditions.iter().find(|one| one.type_ == "Available").unwrap();
        let counts = (status.replicas, status.desired_replicas);
        let done = said.reason == "ScaledToZero" && counts == (Some(0), Some(0));
        if done { Ok(()) } else { Err(format!("{} {counts:?}", said.reason)) }
    })
    .await;
    // `spec.replicas` is who scales by the scale subresource.
    world.patch(WEB, json!({ "spec": { "replicas": 2 } })).await;
    world.ready(WEB, 2).await;
}

#[tokio::test(start_paused = true)]
async fn creation_waits_for_lower_ordinals_unless_parallel() {
    let world = World::new().await;
    world.platform.set(|settings| settings.provides = false);
    world.deploy(&deployment(WEB, 3)).await;
    let all_at_once = parallel(deployment("all-main-dfw", 3));
    world.deploy(&all_at_once).await;
    eventually("three at once", async || {
        let names = world.names().await;
        let count = names.iter().filter(|name| name.starts_with("all-main-dfw")).count();
        if count == 3 { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
    world.settled().await;
    let names = world.names().await;
    assert_eq!(names.iter().filter(|name| name.starts_with(WEB)).collect::<Vec<_>>(), ["web-main-dfw-0"]);
}

#[tokio::test(start_paused = true)]
async fn labels_come_back_and_nothing_rolls() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 2)).await;
    let before = world.ready(WEB, 2).await;
    let name = before[1].name_any();
    let patch = json!({ "metadata": { "labels": {
        (labels::CITY_CODE): null, (labels::WORKLOAD_NAME): "wrong", "mine": "stays",
    }}});
    world.instances().patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let after = eventually("the labels", async || {
        let found = world.instances().get(&name).await.unwrap();
        let labels = found.labels().clone();
        match labels.get(labels::CITY_CODE).map(String::as_str) {
            Some("DFW") if labels[labels::WORKLOAD_NAME] == "web" => Ok(found),
            _ => Err(format!("{labels:?}")),
        }
    })
    .await;
    assert_eq!(after.labels()["mine"], "stays");
    assert_eq!(after.uid(), before[1].uid());
    assert_eq!(after.metadata.generation, before[1].metadata.generation);
    world.settled().await;
    assert_eq!(world.ready(WEB, 2).await[1].uid(), before[1].uid());
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_others_is_left_alone() {
    let world = World::new().await;
    let mut foreign = Instance { spec: super::objects::template("other:1").spec, ..Instance::default() };
    foreign.metadata.name = Some(format!("{WEB}-0"));
    let foreign = world.instances().create(&PostParams::default(), &foreign).await.unwrap();
    world.deploy(&deployment(WEB, 2)).await;
    let message = world.warned(WEB, "InstanceNameTaken").await;
    assert!(message.contains("web-main-dfw-0"), "{message}");
    // It holds its own slot only.
    eventually("the other instance", async || {
        let found = world.instances().get_opt(&format!("{WEB}-1")).await.unwrap();
        found.filter(is_ready).ok_or("not yet")
    })
    .await;
    let held = world.instances().get(&format!("{WEB}-0")).await.unwrap();
    assert_eq!((held.uid(), held.owner_references().len()), (foreign.uid(), 0));
    // When it goes, the slot is filled.
    world.delete_instance(&format!("{WEB}-0")).await;
    world.ready(WEB, 2).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_read_holds_up_no_other() {
    let world = World::with(Shape { lax: true, ..Shape::default() }).await;
    let kind = ApiResource::erase::<Instance>(&());
    let raw: Api<DynamicObject> = Api::namespaced_with(world.cell.clone(), &namespace(), &kind);
    let mut odd = DynamicObject::new(&format!("{WEB}-0"), &kind);
    odd.data = json!({ "spec": { "networkInterfaces": "none of your business" } });
    raw.create(&PostParams::default(), &odd).await.unwrap();
    world.platform.set(|settings| settings.provides = false);
    world.deploy(&parallel(deployment(WEB, 2))).await;
    world.warned(WEB, "InstanceNameTaken").await;
    eventually("the readable one", async || {
        let name = format!("{WEB}-1");
        let found = raw.get_opt(&name).await.unwrap().ok_or("not there")?;
        let gates = found.data["spec"]["controller"]["schedulingGates"].clone();
        if gates.as_array().is_none_or(Vec::is_empty) { Ok(()) } else { Err("it is held") }
    })
    .await;
    // A deployment is not let go while nobody can say whose that is.
    world.deployments().delete(WEB, &DeleteParams::default()).await.unwrap();
    world.warned(WEB, "InstanceUnreadable").await;
    assert!(world.deployments().get_opt(WEB).await.unwrap().is_some());
    raw.delete(&format!("{WEB}-0"), &DeleteParams::default()).await.unwrap();
    eventually("the deployment goes", async || {
        world.deployments().get_opt(WEB).await.unwrap().map_or(Ok(()), |_| Err("it is there"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_location_blocks_nothing_but_networks() {
    let world = World::idle(Shape::default()).await;
    let mut world = world;
    world.platform.set(|settings| settings.networks = Networks::Ready);
    world.start();
    let mut elsewhere = deployment(WEB, 1);
    elsewhere.spec.city_code = "LHR".to_owned();
    world.deploy(&elsewhere).await;
    let ready = world.says(&format!("{WEB}-0"), "Ready", "NetworkProvisioning").await;
    assert!(ready.message.contains("location of city LHR"), "{}", ready.message);
    assert_eq!(world.instances().get(&format!("{WEB}-0")).await.unwrap().spec.location, None);

    // Several: the lowest name, and a warning.
    super::objects::create_location(&world.cell, "b", "lhr").await;
    super::objects::create_location(&world.cell, "a", "LHR").await;
    world.warned(WEB, "AmbiguousLocation").await;
    eventually("the location", async || {
        let status = world.deployments().get(WEB).await.unwrap().status.unwrap();
        match status.location {
            Some(location) if location.name == "a" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    world.ready(WEB, 1).await;
}
