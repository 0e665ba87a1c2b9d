//! Networks of the whole system: what fails is said where people look, nothing overlaps anywhere, and everything is released.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod failures;
mod overlap;
mod references;

use compute_api::compute::Workload;
use compute_api::networking::{
    Network, NetworkBinding, NetworkContext, NetworkIpam, NetworkSpec, Subnet, SubnetClaim,
};
use compute_testkit::objects::workload;
use compute_testkit::{Embedded, View, eventually};
use kube::api::{ListParams, ObjectMeta, PostParams};

/// Makes a network in a project.
async fn make_network(view: &View<'_, Embedded>, name: &str) {
    let network = Network {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: NetworkSpec {
            ipam: NetworkIpam { mode: "Auto".to_owned(), ..NetworkIpam::default() },
            ip_families: vec!["IPv4".to_owned()],
            mtu: None,
        },
        status: None,
    };
    view.mine::<Network>().create(&PostParams::default(), &network).await.unwrap();
}

/// A workload on a network.
fn on(network: &str, name: &str, cities: &[&str], replicas: i64) -> Workload {
    let mut made = workload(name, cities, replicas);
    made.spec.template.spec.network_interfaces[0].network.name = network.to_owned();
    made
}

/// Waits until no networking object of the project is left in any cell.
async fn until_released(view: &View<'_, Embedded>) {
    for city in view.stack.platform.cities() {
        eventually(&format!("everything is released in {city}"), async || {
            let all = ListParams::default();
            let left = [
                view.in_cell::<NetworkBinding>(city).list(&all).await.unwrap().items.len(),
                view.in_cell::<NetworkContext>(city).list(&all).await.unwrap().items.len(),
                view.in_cell::<SubnetClaim>(city).list(&all).await.unwrap().items.len(),
                view.in_cell::<Subnet>(city).list(&all).await.unwrap().items.len(),
            ];
            if left == [0; 4] {
                Ok(())
            } else {
                Err(format!("bindings, contexts, claims, subnets: {left:?}"))
            }
        })
        .await;
    }
}
