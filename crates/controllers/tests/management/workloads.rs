//! A Workload becomes deployments: one per placement and city, and no other.

use compute_api::annotations::RESTARTED_AT;
use compute_api::compute::{Workload, WorkloadDeployment};
use compute_api::k8s::ResourceExt as _;
use compute_api::{conditions as c, finalizers, names};
use serde_json::json;

use crate::support::*;

/// Waits until the Workload's status speaks of its present spec.
async fn observed(world: &World, project: &str, name: &str) -> Workload {
    world
        .becomes(project, NS, name, |workload: &Workload| {
            let status = workload.status.clone().unwrap_or_default();
            status.observed_generation == workload.metadata.generation
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn each_city_gets_a_deployment_and_the_workload_sums_them_up() {
    let world = World::new().await;
    let manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["dfw", "IAD"])])).await;
    world.has_only::<WorkloadDeployment>("a", &["web-main-dfw", "web-main-iad"]).await;
    let workload = observed(&world, "a", "web").await;
    assert_eq!(workload.finalizers(), [finalizers::WORKLOAD]);
    let status = workload.status.clone().unwrap();
    assert_eq!(
        (status.deployments, status.desired_replicas, status.ready_replicas),
        (Some(2), Some(4), Some(0))
    );
    let deployment = world.appears::<WorkloadDeployment>("a", NS, "web-main-dfw").await;
    assert_eq!(deployment.spec.city_code, "DFW", "as it is offered");
    assert_eq!(deployment.spec.workload_ref.uid, workload.uid().unwrap());
    let owner = &deployment.owner_references()[0];
    assert_eq!((owner.uid.clone(), owner.controller), (workload.uid().unwrap(), Some(true)));
    assert!(world.names::<WorkloadDeployment>("b").await.is_empty());

    // From the cells through the hub to the Workload, without anybody asking again and again.
    world.report("a", "web-main-dfw", 2).await;
    world.report("a", "web-main-iad", 1).await;
    let workload = world
        .becomes("a", NS, "web", |workload: &Workload| {
            workload.status.as_ref().unwrap().ready_replicas == Some(3)
        })
        .await;
    let status = workload.status.unwrap();
    assert_eq!(available(&status.conditions), ("True", c::STABLE_INSTANCE_FOUND));
    assert_eq!((status.updated_replicas, status.current_replicas), (Some(4), Some(3)));
    assert_eq!(status.placements.len(), 1);
    manager.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cities_are_added_and_removed() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.offer("a", "LHR").await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW", "IAD"])])).await;
    world.has_only::<WorkloadDeployment>("a", &["web-main-dfw", "web-main-iad"]).await;
    let stays = world.copy("a", "web-main-iad").await;
    let placements = workload("web", &[("main", &["IAD", "LHR"])])["spec"]["placements"].clone();
    world.patch::<Workload>("a", NS, "web", json!({ "spec": { "placements": placements } })).await;
    world.has_only::<WorkloadDeployment>("a", &["web-main-iad", "web-main-lhr"]).await;
    world.has_only::<WorkloadDeployment>("hub", &["web-main-iad", "web-main-lhr"]).await;
    assert_eq!(world.copy("a", "web-main-iad").await.uid(), stays.uid(), "what stays is not touched");
    let workload = observed(&world, "a", "web").await;
    assert_eq!(workload.status.unwrap().deployments, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_city_whose_binding_goes_keeps_what_it_has_and_gets_nothing_new() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW", "LHR"])])).await;
    world.has_only::<WorkloadDeployment>("a", &["web-main-dfw"]).await;
    let unavailable = |city: &'static str| {
        move |workload: &Workload| {
            let placements = workload.status.clone().unwrap_or_default().placements;
            let conditions =
                placements.first().map(|placement| placement.conditions.clone()).unwrap_or_default();
            c::find(&conditions, c::LOCATIONS_AVAILABLE)
                .is_some_and(|said| said.reason == c::LOCATION_UNAVAILABLE && said.message.contains(city))
        }
    };
    let found = world.becomes("a", NS, "web", unavailable("LHR")).await;
    assert_eq!(found.status.unwrap().desired_replicas, Some(4), "a city that is wanted counts");

    world.withdraw("a", "DFW").await;
    world.becomes("a", NS, "web", unavailable("DFW")).await;
    let placements = json!([
        { "name": "main", "cityCodes": ["DFW", "LHR"], "scaleSettings": { "minReplicas": 5 } }
    ]);
    world.patch::<Workload>("a", NS, "web", json!({ "spec": { "placements": placements } })).await;
    let scaled = |deployment: &WorkloadDeployment| deployment.spec.scale_settings.min_replicas == 5;
    world.becomes("a", NS, "web-main-dfw", scaled).await;
    world.create::<Workload>("a", &workload("second", &[("main", &["DFW"])])).await;
    observed(&world, "a", "second").await;
    assert_eq!(world.names::<WorkloadDeployment>("a").await, ["web-main-dfw"]);

    // Offered at last.
    world.offer("a", "DFW").await;
    world.offer("a", "LHR").await;
    world.has_only::<WorkloadDeployment>("a", &["second-main-dfw", "web-main-dfw", "web-main-lhr"]).await;
    world
        .becomes("a", NS, "web", |workload: &Workload| {
            let conditions = &workload.status.as_ref().unwrap().placements[0].conditions;
            c::find(conditions, c::LOCATIONS_AVAILABLE).is_none()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn names_that_collide_or_are_too_long_are_hashed() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("a-b", &[("c", &["DFW"])])).await;
    world.has_only::<WorkloadDeployment>("a", &["a-b-c-dfw"]).await;
    let other = world.create::<Workload>("a", &workload("a", &[("b-c", &["DFW"])])).await;
    let hashed = names::deployment_name_on_collision("a", &other.uid().unwrap(), "b-c", "DFW");
    let deployment = world.appears::<WorkloadDeployment>("a", NS, &hashed).await;
    assert_eq!(deployment.spec.workload_ref.name, "a");

    // Once chosen, a name stays, also when the better one is free.
    world.delete::<Workload>("a", NS, "a-b").await;
    world.disappears::<Workload>("a", NS, "a-b").await;
    world.patch::<Workload>("a", NS, "a", json!({ "spec": { "paused": true } })).await;
    world.becomes("a", NS, &hashed, |one: &WorkloadDeployment| one.spec.paused == Some(true)).await;
    assert_eq!(world.names::<WorkloadDeployment>("a").await, [hashed.as_str()]);

    let long = "l".repeat(63);
    world.create::<Workload>("a", &workload(&long, &[("main", &["DFW"])])).await;
    let name = names::deployment_name(&long, "main", "DFW");
    assert_eq!(name.len(), 58);
    world.copy("a", &name).await;
}

/// Two that want the same name at the same moment: neither takes it from the other.
#[tokio::test(start_paused = true)]
async fn names_that_collide_at_once() {
    let world = World::new().await;
    for (name, placement) in [("a-b", "c"), ("a", "b-c"), ("a-b-c", "x")] {
        world.create::<Workload>("a", &workload(name, &[(placement, &["DFW"])])).await;
    }
    let _manager = world.start().await;
    for name in ["a-b", "a", "a-b-c"] {
        let workload = observed(&world, "a", name).await;
        let all = world.list::<WorkloadDeployment>("a").await;
        let own = all.iter().filter(|one| one.spec.workload_ref.uid == workload.uid().unwrap());
        assert_eq!(own.count(), 1);
    }
    assert_eq!(world.list::<WorkloadDeployment>("a").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_later_restart_stays_and_replicas_are_not_touched() {
    let world = World::new().await;
    let _manager = world.start().await;
    world.create::<Workload>("a", &workload("web", &[("main", &["DFW", "IAD"])])).await;
    world.has_only::<WorkloadDeployment>("a", &["web-main-dfw", "web-main-iad"]).await;
    world.copy("a", "web-main-dfw").await;
    let restart = |at: &str| json!({ "metadata": { "annotations": { RESTARTED_AT: at } } });
    let template = |at: &str, image: &str| {
        json!({ "spec": { "template": {
            "metadata": restart(at)["metadata"],
            "spec": { "runtime": { "sandbox": { "containers": [{ "name": "app", "image": image }] } } },
        } } })
    };
    // One city is restarted, and scaled, by hand.
    let one = json!({ "spec": { "template": restart("2026-05-02T00:00:00Z"), "replicas": 7 } });
    world.patch::<WorkloadDeployment>("a", NS, "web-main-dfw", one).await;
    world.settle().await;
    world.patch::<Workload>("a", NS, "web", template("2026-05-01T00:00:00Z", "app:2")).await;
    let at = |deployment: &WorkloadDeployment| {
        deployment.spec.template.annotation(RESTARTED_AT).map(str::to_owned)
    };
    let image = |deployment: &WorkloadDeployment| {
        deployment.spec.template.spec.runtime.sandbox.as_ref().unwrap().containers[0].image.clone()
    };
    let is_new = move |deployment: &WorkloadDeployment| image(deployment) == "app:2";
    let dfw = world.becomes("a", NS, "web-main-dfw", is_new).await;
    let iad = world.becomes("a", NS, "web-main-iad", is_new).await;
    assert_eq!(
        (at(&dfw).as_deref(), at(&iad).as_deref()),
        (Some("2026-05-02T00:00:00Z"), Some("2026-05-01T00:00:00Z"))
    );
    assert_eq!((dfw.spec.replicas, iad.spec.replicas), (Some(7), None));
    let hub_namespace = world.hub_namespace("a").await;
    let scaled = |copy: &WorkloadDeployment| copy.spec.replicas == Some(7);
    world.becomes("hub", &hub_namespace, "web-main-dfw", scaled).await;
    // Taken back in the project, it goes from the hub; what somebody sets on the hub itself stays.
    world.patch::<WorkloadDeployment>("a", NS, "web-main-dfw", json!({ "spec": { "replicas": null } })).await;
    world
        .becomes("hub", &hub_namespace, "web-main-dfw", |copy: &WorkloadDeployment| {
            copy.spec.replicas.is_none()
        })
        .await;
    world
        .patch::<WorkloadDeployment>(
            "hub",
            &hub_namespace,
            "web-main-iad",
            json!({ "spec": { "replicas": 3 } }),
        )
        .await;
    world.patch::<Workload>("a", NS, "web", template("2026-05-03T00:00:00Z", "app:3")).await;
    let later = |deployment: &WorkloadDeployment| {
        deployment.spec.template.annotation(RESTARTED_AT) == Some("2026-05-03T00:00:00Z")
    };
    world.becomes("a", NS, "web-main-dfw", later).await;
    let copy = world.becomes("hub", &hub_namespace, "web-main-iad", later).await;
    assert_eq!(copy.spec.replicas, Some(3));
    let workload = observed(&world, "a", "web").await;
    assert_eq!(workload.spec.template.annotation(RESTARTED_AT), Some("2026-05-03T00:00:00Z"));
}

#[tokio::test(start_paused = true)]
async fn what_the_workload_drops_goes_from_its_deployments() {
    let world = World::new().await;
    let _manager = world.start().await;
    let mut asked = workload("web", &[("main", &["DFW"])]);
    asked["spec"]["template"]["metadata"] = json!({ "labels": { "one": "1", "two": "2" } });
    asked["spec"]["paused"] = json!(true);
    world.create::<Workload>("a", &asked).await;
    world.copy("a", "web-main-dfw").await;
    let patch =
        json!({ "spec": { "paused": null, "template": { "metadata": { "labels": { "two": null } } } } });
    world.patch::<Workload>("a", NS, "web", patch).await;
    let dropped = |deployment: &WorkloadDeployment| {
        let labels = deployment.spec.template.metadata.clone().unwrap().labels;
        labels.keys().eq(["one"]) && deployment.spec.paused == Some(false)
    };
    world.becomes("a", NS, "web-main-dfw", dropped).await;
    let hub_namespace = world.hub_namespace("a").await;
    world.becomes("hub", &hub_namespace, "web-main-dfw", dropped).await;
    // Somebody else's edits of what is ours are put back.
    let edit =
        json!({ "spec": { "paused": true, "template": { "metadata": { "labels": { "three": "3" } } } } });
    world.patch::<WorkloadDeployment>("a", NS, "web-main-dfw", edit).await;
    world.becomes("a", NS, "web-main-dfw", dropped).await;
    // Under another placement it is another deployment: it goes, and one under the wanted placement comes.
    let edit = json!({ "spec": { "placementName": "other" } });
    world.patch::<WorkloadDeployment>("a", NS, "web-main-dfw", edit).await;
    eventually("the wanted one", async || {
        let all = world.list::<WorkloadDeployment>("a").await;
        let placements: Vec<_> = all.iter().map(|one| one.spec.placement_name.as_str()).collect();
        if placements == ["main"] { Ok(()) } else { Err(format!("{placements:?}")) }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_network_is_said_until_it_is_there() {
    let world = World::new().await;
    let _manager = world.start().await;
    let mut asked = workload("web", &[("main", &["DFW"])]);
    asked["spec"]["template"]["spec"]["networkInterfaces"][0]["network"]["name"] = json!("private");
    world.create::<Workload>("a", &asked).await;
    let says = |reason: &'static str| {
        move |workload: &Workload| {
            let conditions = workload.status.clone().unwrap_or_default().conditions;
            available(&conditions).1 == reason
        }
    };
    world.becomes("a", NS, "web", says(c::NETWORK_NOT_FOUND)).await;
    world.network("a", "private").await;
    world.becomes("a", NS, "web", says(c::NO_AVAILABLE_PLACEMENTS)).await;
    world.appears::<WorkloadDeployment>("a", NS, "web-main-dfw").await;
    // A second one, now that it is known that there is no such network, waits for it.
    let mut other = workload("other", &[("main", &["DFW"])]);
    other["spec"]["template"]["spec"]["networkInterfaces"][0]["network"]["name"] = json!("later");
    world.create::<Workload>("a", &other).await;
    world.becomes("a", NS, "other", says(c::NETWORK_NOT_FOUND)).await;
    world.settle().await;
    let made = world.list::<WorkloadDeployment>("a").await;
    assert_eq!(made.iter().map(|one| one.spec.workload_ref.name.as_str()).collect::<Vec<_>>(), ["web"]);
    world.network("a", "later").await;
    world.appears::<WorkloadDeployment>("a", NS, "other-main-dfw").await;
    // What is there stays when its network goes.
    world.delete::<compute_api::networking::Network>("a", NS, "private").await;
    world.becomes("a", NS, "web", says(c::NETWORK_NOT_FOUND)).await;
}
