//! Addresses of instances out of the subnets of their networks, against an embedded server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::net::IpAddr;

use compute_api::compute::{Instance, LocationReference};
use compute_api::conditions::{AVAILABLE, NETWORK_FAILED_TO_CREATE, PROGRAMMED};
use compute_api::kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use compute_api::kube::{Resource, ResourceExt as _};
use compute_api::networking::{NetworkContext, Subnet, SubnetClaim};
use compute_providers::simulated::{Options, annotations};
use compute_providers::{Locations, Subnets};
use serde_json::{Value, json};

use common::{Cell, eventually, instance, said, with};

fn on(name: &str, network: &str) -> Instance {
    let mut made = instance(name, "app:1");
    made.spec.network_interfaces[0].network.name = network.to_owned();
    made.spec.location = Some(LocationReference { name: "dfw".to_owned(), namespace: None });
    made
}

fn addresses(instance: &Instance) -> Vec<IpAddr> {
    let shown = instance.status.iter().flat_map(|status| &status.network_interfaces);
    shown.filter_map(|one| one.assignments.as_ref()?.network_ip.as_deref()?.parse().ok()).collect()
}

async fn all(cell: &Cell) -> BTreeMap<String, Vec<IpAddr>> {
    let found = cell.instances.list(&ListParams::default()).await.unwrap();
    found.iter().map(|instance| (instance.name_any(), addresses(instance))).collect()
}

async fn make<K>(cell: &Cell, name: &str, spec: Value, status: Value)
where
    K: Resource<DynamicType = (), Scope = compute_api::k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(cell.client.clone(), "default");
    let object = json!({ "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": { "name": name }, "spec": spec });
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

/// A network in a location with so small a subnet.
async fn network(cell: &Cell, network: &str, location: &str, start: &str, prefix: i64) {
    let context = format!("{network}-{location}");
    let claim = format!("{context}-0");
    let spec =
        json!({ "network": { "name": network }, "location": { "name": location }, "ipFamilies": ["IPv4"] });
    make::<NetworkContext>(cell, &context, spec, json!({})).await;
    let spec = json!({ "subnetClass": "private", "networkContext": { "name": context }, "location": { "name": location },
        "ipFamily": "IPv4" });
    make::<SubnetClaim>(cell, &claim, spec.clone(), json!({ "subnetRef": { "name": claim } })).await;
    let mut subnet = spec;
    (subnet["startAddress"], subnet["prefixLength"]) = (start.into(), prefix.into());
    make::<Subnet>(cell, &claim, subnet, json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_waits_for_its_subnet_and_has_an_address_of_it() {
    let cell = Cell::new().await;
    let running = cell.provide_on(&Subnets::of(&cell.plane), Options::default(), Locations::All);
    cell.create(&on("web-0", "default")).await;
    let waits = cell.available("web-0", "Starting").await;
    assert_eq!(said(&waits, PROGRAMMED).reason, "ProgrammingInProgress");
    // In another location of the cell first: the instance's own is preferred when it is there.
    network(&cell, "other", "dfw", "10.9.0.0", 20).await;
    network(&cell, "default", "dfw", "10.128.16.0", 20).await;
    let found = cell.available("web-0", "Available").await;
    let given = addresses(&found);
    assert!(given.len() == 1 && given[0].to_string().starts_with("10.128."), "{given:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_subnet_that_is_used_up_is_said_and_the_next_one_gets_what_is_released() {
    let cell = Cell::new().await;
    network(&cell, "default", "dfw", "10.128.0.0", 29).await;
    network(&cell, "other", "dfw", "10.128.0.0", 29).await;
    let running = cell.provide_on(&Subnets::of(&cell.plane), Options::default(), Locations::All);
    for n in 0..5 {
        cell.create(&on(&format!("web-{n}"), "default")).await;
        cell.available(&format!("web-{n}"), "Available").await;
    }
    for n in 5..7 {
        cell.create(&on(&format!("web-{n}"), "default")).await;
        let without = cell.available(&format!("web-{n}"), NETWORK_FAILED_TO_CREATE).await;
        let said = said(&without, AVAILABLE);
        assert_eq!(said.status, "False");
        let wanted = "Network default has no free address here: all 5 of 10.128.0.0/29 are taken. Delete instances on it, or use another network";
        assert!(said.message.starts_with(wanted), "{said:?}");
        assert_eq!(addresses(&without), Vec::<IpAddr>::new());
    }
    // Another network has the same addresses to itself.
    cell.create(&on("other-0", "other")).await;
    cell.available("other-0", "Available").await;

    // One that takes its time to stop has its address until it is gone.
    let freed = all(&cell).await["web-2"].clone();
    cell.annotate("web-2", annotations::STOP_DELAY, Some("60s")).await;
    cell.delete("web-2").await;
    let stopping = cell.available("web-2", "Stopping").await;
    assert_eq!(addresses(&stopping), freed);
    cell.gone("web-2").await;
    let next = eventually("one of those who wait has it", async || {
        let all = all(&cell).await;
        let next = ["web-5", "web-6"].into_iter().find(|name| all[*name] == freed);
        next.ok_or_else(|| format!("{all:?}"))
    })
    .await;
    cell.available(next, "Available").await;
    let rest = if next == "web-5" { "web-6" } else { "web-5" };
    cell.available(rest, NETWORK_FAILED_TO_CREATE).await;

    // Those who wait and go leave nothing behind.
    cell.delete(rest).await;
    cell.gone(rest).await;
    cell.delete("web-0").await;
    cell.gone("web-0").await;
    cell.create(&on("web-9", "default")).await;
    cell.available("web-9", "Available").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn addresses_stay_over_restarts_whatever_state_an_instance_is_in() {
    let cell = Cell::new().await;
    network(&cell, "default", "dfw", "10.128.0.0", 29).await;
    let provide = || cell.provide_on(&Subnets::of(&cell.plane), Options::default(), Locations::All);
    let running = provide();
    for n in 0..4 {
        cell.create(&on(&format!("web-{n}"), "default")).await;
        cell.available(&format!("web-{n}"), "Available").await;
    }
    cell.annotate("web-1", annotations::CRASH, Some("true")).await;
    cell.available("web-1", "InstanceCrashing").await;
    cell.annotate("web-2", annotations::IMAGE_FAILURE, Some("true")).await;
    cell.available("web-2", "ImageUnavailable").await;
    cell.annotate("web-3", annotations::STOP_DELAY, Some("1h")).await;
    cell.delete("web-3").await;
    cell.available("web-3", "Stopping").await;
    let before = all(&cell).await;
    running.stop().await;
    cell.create(&on("a-new", "default")).await;
    cell.create(&with(on("b-new", "default"), annotations::START_DELAY, "1s")).await;
    let running = provide();
    eventually("one of the new ones has the last address", async || {
        let all = all(&cell).await;
        let new = [&all["a-new"], &all["b-new"]].into_iter().filter(|given| !given.is_empty()).count();
        if new == 1 { Ok(()) } else { Err(format!("{all:?}")) }
    })
    .await;
    let mut after = all(&cell).await;
    after.retain(|name, _| before.contains_key(name));
    assert_eq!(after, before);
    running.stop().await;
}
