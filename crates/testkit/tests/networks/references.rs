//! Networks that are missing, that come later, and that a workload changes to.

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::conditions as c;
use compute_api::networking::{NetworkBinding, NetworkContext, Subnet};
use compute_apiserver::Options;
use compute_core::subnets::addresses_of;
use compute_local::Settings;
use compute_runtime::Runtime;
use compute_testkit::objects::{template, workload};
use compute_testkit::{Embedded, View, eventually};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::{make_network, on, until_released};

#[tokio::test]
async fn a_network_that_is_missing_is_said_and_heals_when_it_comes() {
    // Admission refuses a workload whose network is missing; a network may still go when nobody looks.
    let cities = ["DFW", "ORD"].map(str::to_owned).to_vec();
    let settings = Settings { cities, admission: false, ..Settings::default() };
    let stack = Embedded::with(Options::default(), Runtime::system(), settings).await;
    let view = View::new(&stack, "missing").await;
    view.create(&workload("first", &["DFW"], 1)).await;
    view.until_ready("first", &[("first-main-dfw", 1)]).await;
    view.create(&on("private", "web", &["DFW", "ORD"], 1)).await;
    let said = view.until_says("web", c::AVAILABLE, c::NETWORK_NOT_FOUND).await;
    assert_eq!(said.message, "Network private does not exist in this project; create it, or name another");
    let deployments: Api<WorkloadDeployment> = view.mine();
    assert!(deployments.get_opt("web-main-dfw").await.unwrap().is_none(), "it waits for the network");
    make_network(&view, "private").await;
    view.until_ready("web", &[("web-main-dfw", 1), ("web-main-ord", 1)]).await;
}

async fn address(view: &View<'_, Embedded>, instance: &str) -> std::net::IpAddr {
    let found: Instance = view.mine().get(instance).await.unwrap();
    let interfaces = found.status.unwrap().network_interfaces;
    interfaces[0].assignments.clone().unwrap().network_ip.unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_workload_moves_to_another_network() {
    let stack = Embedded::start().await;
    let view = View::new(&stack, "moves").await;
    make_network(&view, "other").await;
    // The subnet of another network is the first in its block, too: which network it is shows in the binding.
    view.create(&workload("web", &["DFW"], 2)).await;
    view.until_ready("web", &[("web-main-dfw", 2)]).await;
    let bindings: Api<NetworkBinding> = view.in_cell("DFW");
    let before = bindings.get("web-main-dfw-net-0").await.unwrap();
    let mut moved = template(compute_testkit::objects::IMAGE);
    moved.spec.network_interfaces[0].network.name = "other".to_owned();
    view.change("web", &json!({ "spec": { "template": moved } })).await;
    view.until_ready("web", &[("web-main-dfw", 2)]).await;
    let after = bindings.get("web-main-dfw-net-0").await.unwrap();
    assert_ne!(before.uid(), after.uid());
    assert_eq!(after.spec.network.name, "other");
    eventually("only the new network is left", async || {
        let contexts: Api<NetworkContext> = view.in_cell("DFW");
        let left: Vec<_> =
            contexts.list(&ListParams::default()).await.unwrap().iter().map(|one| one.name_any()).collect();
        if left == ["other-dfw"] { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    let subnet: Subnet = view.in_cell("DFW").get("other-dfw-0").await.unwrap();
    let range = addresses_of(&subnet.spec).unwrap();
    for ordinal in 0..2 {
        let address = address(&view, &format!("web-main-dfw-{ordinal}")).await;
        assert!(range.contains(&address), "{address} is not of {range}");
    }

    // A second interface, and then only that one.
    let mut both = moved.clone();
    both.spec.network_interfaces.insert(0, template("").spec.network_interfaces[0].clone());
    view.change("web", &json!({ "spec": { "template": both } })).await;
    view.until_ready("web", &[("web-main-dfw", 2)]).await;
    let found: Instance = view.mine().get("web-main-dfw-0").await.unwrap();
    assert_eq!(found.status.unwrap().network_interfaces.len(), 2);
    view.change("web", &json!({ "spec": { "template": moved } })).await;
    view.until_ready("web", &[("web-main-dfw", 2)]).await;
    eventually("the second binding is gone", async || {
        match bindings.get_opt("web-main-dfw-net-1").await.unwrap() {
            None => Ok(()),
            Some(left) => Err(left.spec.network.name),
        }
    })
    .await;
    view.delete("web").await;
    view.until_gone("web").await;
    until_released(&view).await;
}
