//! What keeps an instance from starting, and what lets it.

use compute_api::annotations::{EXPECTED_REFERENCED_DATA, REFERENCED_DATA_ERROR};
use compute_api::compute::{EnvFromSource, LocalSource};
use compute_api::conditions::{RUNNING_RETIRED, Status};
use compute_api::labels;
use compute_api::networking::{NetworkBinding, SubnetClaim};
use compute_core::referenced_data::{Expected, Problem, Unresolved};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::objects::{WEB, condition, deployment, gates};
use super::platform::{Ledger, Networks};
use super::world::{Shape, World, eventually, namespace};

const FIRST: &str = "web-main-dfw-0";

async fn has_gates(world: &World, wanted: &[&str]) {
    eventually(&format!("gates {wanted:?}"), async || {
        let Some(found) = world.instances().get_opt(FIRST).await.unwrap() else {
            return Err("none".to_owned());
        };
        if gates(&found) == wanted { Ok(()) } else { Err(super::objects::summary(&found)) }
    })
    .await;
}

fn with_data(replicas: i64) -> compute_api::compute::WorkloadDeployment {
    let mut wanted = deployment(WEB, replicas);
    let containers = &mut wanted.spec.template.spec.runtime.sandbox.as_mut().unwrap().containers;
    containers[0].env_from.push(EnvFromSource {
        config_map_ref: Some(LocalSource { name: "settings".to_owned(), optional: None }),
        ..EnvFromSource::default()
    });
    wanted
}

async fn companion(world: &World, name: &str) {
    let api: Api<ConfigMap> = Api::namespaced(world.cell.clone(), &namespace());
    let companion = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { (labels::REFERENCED_DATA): "true" } },
    }))
    .unwrap();
    api.create(&PostParams::default(), &companion).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn gates_go_one_by_one() {
    let world = World::new().await;
    world.platform.set(|settings| (settings.networks, settings.ledger) = (Networks::Off, Ledger::Off));
    world.deploy(&with_data(1)).await;
    has_gates(&world, &["Network", "Quota", "ReferencedData"]).await;
    // The most telling reason of all is data in transit.
    world.says(FIRST, "Ready", "Resolving").await;
    world.says(FIRST, "ReferencedDataReady", "Resolving").await;

    let wrong = Unresolved {
        generation: 1,
        reason: Problem::NotFound,
        message: "ConfigMap settings is missing".into(),
    };
    let note = json!({ "metadata": { "annotations": { (REFERENCED_DATA_ERROR): wrong.to_annotation() } } });
    world.patch(WEB, note).await;
    let ready = world.says(FIRST, "Ready", "SourceNotFound").await;
    assert_eq!(ready.message, "ConfigMap settings is missing");

    let expected =
        Expected { generation: 1, companions: ["configmap.settings".into(), "configmap.more".into()].into() };
    let note = json!({ "metadata": { "annotations": {
        (REFERENCED_DATA_ERROR): null, (EXPECTED_REFERENCED_DATA): expected.to_annotation(),
    }}});
    world.patch(WEB, note).await;
    world.says(FIRST, "ReferencedDataReady", "AwaitingPropagation").await;
    companion(&world, "configmap.settings").await;
    let waits = eventually("one is missing", async || {
        let said = world.says(FIRST, "ReferencedDataReady", "AwaitingPropagation").await;
        if said.message.contains("settings") { Err(said.message) } else { Ok(said.message) }
    })
    .await;
    assert!(waits.contains("configmap.more"), "{waits}");
    // One that only the deployment expects counts too.
    companion(&world, "configmap.more").await;
    has_gates(&world, &["Network", "Quota"]).await;

    world.platform.set(|settings| settings.networks = Networks::Ready);
    has_gates(&world, &["Quota"]).await;
    world.says(FIRST, "Ready", "PendingQuota").await;
    world.platform.set(|settings| settings.ledger = Ledger::Limit(10));
    has_gates(&world, &[]).await;
    world.ready(WEB, 1).await;
    let found = world.instances().get(FIRST).await.unwrap();
    let ready = condition(&found, "Ready").unwrap();
    assert_eq!((ready.reason.as_str(), ready.observed_generation), ("Available", found.metadata.generation));
}

#[tokio::test(start_paused = true)]
async fn networks_are_asked_for_step_by_step() {
    let world = World::new().await;
    world.platform.set(|settings| settings.networks = Networks::Off);
    world.deploy(&deployment(WEB, 1)).await;
    let bindings: Api<NetworkBinding> = Api::namespaced(world.cell.clone(), &namespace());
    let binding =
        eventually("a binding", async || bindings.get_opt("web-main-dfw-net-0").await.unwrap().ok_or("none"))
            .await;
    assert_eq!(binding.spec.location.name, "us-south");
    assert_eq!(binding.owner_references()[0].name, WEB);
    world.says(FIRST, "Ready", "NetworkProvisioning").await;

    world.platform.set(|settings| settings.networks = Networks::Failed("no addresses left"));
    let ready = world.says(FIRST, "Ready", "NetworkFailedToCreate").await;
    assert_eq!(ready.message, "no addresses left");
    assert_eq!(world.warned(FIRST, "NetworkFailedToCreate").await, "no addresses left");
    let status = world.deployments().get(WEB).await.unwrap().status.unwrap();
    let said = status.conditions.iter().find(|one| one.type_ == "NetworkReady").unwrap();
    assert_eq!((said.reason.as_str(), said.message.as_str()), ("NetworkFailedToCreate", "no addresses left"));

    world.platform.set(|settings| settings.networks = Networks::Ready);
    world.ready(WEB, 1).await;
    let claims: Api<SubnetClaim> = Api::namespaced(world.cell.clone(), &namespace());
    let claims = claims.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(claims.iter().map(|claim| claim.name_any()).collect::<Vec<_>>(), ["default-context-0"]);
    // Another deployment of the same network shares the subnet.
    let mut other = deployment("api-main-dfw", 1);
    other.spec.workload_ref.name = "api".to_owned();
    world.deploy(&other).await;
    eventually("the other one's gate", async || {
        let found = world.instances().get_opt("api-main-dfw-0").await.unwrap();
        found.filter(|found| found.spec.gates().is_empty()).ok_or("held")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_network_takes_effect_and_an_interface_that_goes_gives_up_its_binding() {
    let world = World::new().await;
    let mut wanted = deployment(WEB, 1);
    let twice = wanted.spec.template.spec.network_interfaces[0].clone();
    wanted.spec.template.spec.network_interfaces.push(twice);
    world.deploy(&wanted).await;
    world.ready(WEB, 1).await;
    let bindings: Api<NetworkBinding> = Api::namespaced(world.cell.clone(), &namespace());
    assert_eq!(bindings.list(&ListParams::default()).await.unwrap().items.len(), 2);

    let interfaces = json!([{ "network": { "name": "other" } }]);
    world
        .patch(WEB, json!({ "spec": { "template": { "spec": { "networkInterfaces": interfaces } } } }))
        .await;
    eventually("one binding, of the other network", async || {
        let found = bindings.list(&ListParams::default()).await.unwrap().items;
        let networks: Vec<_> =
            found.iter().map(|one| (one.name_any(), one.spec.network.name.clone())).collect();
        let wanted = [("web-main-dfw-net-0".to_owned(), "other".to_owned())];
        if networks == wanted { Ok(()) } else { Err(format!("{networks:?}")) }
    })
    .await;
    let ready = world.ready(WEB, 1).await;
    assert_eq!(ready[0].spec.network_interfaces[0].network.name, "other");
}

#[tokio::test(start_paused = true)]
async fn without_networking_there_is_nothing_of_it() {
    let mut world = World::with(Shape { networking: false, bare: true, ..Shape::default() }).await;
    world.deploy(&deployment(WEB, 1)).await;
    let ready = world.ready(WEB, 1).await;
    assert_eq!(ready[0].spec.location, None);
    // An instance that was made with networking loses its gate.
    world.stop().await;
    world.scale(WEB, 2).await;
    let gated = json!({ "spec": { "controller": { "schedulingGates": [{ "name": "Network" }] } } });
    world.instances().patch(FIRST, &PatchParams::default(), &Patch::Merge(gated)).await.unwrap();
    world.start();
    has_gates(&world, &[]).await;
    world.ready(WEB, 2).await;
    let status = world.deployments().get(WEB).await.unwrap().status.unwrap();
    assert!(status.location.is_none() && status.conditions.iter().all(|one| one.type_ != "NetworkReady"));
}

#[tokio::test(start_paused = true)]
async fn a_retired_condition_is_taken_out() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 1)).await;
    world.ready(WEB, 1).await;
    let patch = json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance",
        "status": { "conditions": [{
            "type": RUNNING_RETIRED, "status": Status::True.as_str(), "reason": "Running", "message": "",
            "lastTransitionTime": "2027-01-15T08:00:00Z",
        }]},
    });
    let params = PatchParams::apply("somebody-old").force();
    world.instances().patch_status(FIRST, &params, &Patch::Apply(patch)).await.unwrap();
    eventually("it is gone", async || {
        let found = world.instances().get(FIRST).await.unwrap();
        condition(&found, RUNNING_RETIRED).map_or(Ok(()), |_| Err("it is there"))
    })
    .await;
    world.ready(WEB, 1).await;
}
