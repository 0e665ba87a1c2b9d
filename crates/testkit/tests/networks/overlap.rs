//! Two hundred deployments over fifty networks in two cities: at no time do two subnets of a network overlap, wherever they are, nor do two instances
//! of a network have the same address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use compute_api::compute::Instance;
use compute_api::networking::{NetworkContext, Subnet};
use compute_core::subnets::{IpNet, addresses_of, overlap};
use compute_testkit::{Embedded, Place, Stack as _, View, eventually};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;

use super::{make_network, on, until_released};

const NETWORKS: usize = 50;
/// Workloads on each network, each with a deployment in both cities.
const EACH: usize = 2;

/// A thing in a cell, by city and name.
type Named = (String, String);

/// What cells have given out, as their watches tell it, and everything that was wrong with it.
#[derive(Default)]
struct Given {
    /// Subnets by network, then by city and name. Those of another city count for good: no city ever has another's addresses.
    subnets: BTreeMap<String, BTreeMap<Named, (IpNet, bool)>>,
    /// Addresses of instances by network, then by city and name.
    addresses: BTreeMap<String, BTreeMap<Named, Vec<IpAddr>>>,
    wrong: Vec<String>,
    most_subnets: usize,
}

impl Given {
    fn subnet(&mut self, city: &str, subnet: &Subnet, is_there: bool) {
        let network =
            subnet.annotations().get("networking.datumapis.com/network").cloned().unwrap_or_default();
        let range = addresses_of(&subnet.spec).unwrap();
        let key = (city.to_owned(), subnet.name_any());
        let of_network = self.subnets.entry(network.clone()).or_default();
        if is_there {
            for ((other_city, name), (other, other_is_there)) in &*of_network {
                let is_other = (other_city, name) != (&key.0, &key.1);
                if is_other && (*other_is_there || *other_city != key.0) && overlap(other, &range) {
                    self.wrong.push(format!("{network}: {range} in {city} and {other} in {other_city}"));
                }
            }
        }
        of_network.insert(key, (range, is_there));
        let there = self.subnets.values().flat_map(BTreeMap::values).filter(|(_, is_there)| *is_there);
        self.most_subnets = self.most_subnets.max(there.count());
    }

    fn instance(&mut self, city: &str, instance: &Instance, is_there: bool) {
        let network = instance.spec.network_interfaces[0].network.name.clone();
        let key = (city.to_owned(), instance.name_any());
        let of_network = self.addresses.entry(network.clone()).or_default();
        let status = instance.status.as_ref().filter(|_| is_there);
        let shown = status.into_iter().flat_map(|status| &status.network_interfaces);
        let shown: Vec<IpAddr> =
            shown.filter_map(|one| one.assignments.as_ref()?.network_ip.as_deref()?.parse().ok()).collect();
        for (other, held) in &*of_network {
            if *other != key && held.iter().any(|held| shown.contains(held)) {
                self.wrong.push(format!("{network}: {shown:?} of {key:?} and of {other:?}"));
            }
        }
        if let Some(before) = of_network.get(&key).filter(|before| !before.is_empty())
            && !shown.is_empty()
            && *before != shown
        {
            self.wrong.push(format!("{network}: {key:?} had {before:?} and has {shown:?}"));
        }
        of_network.insert(key, shown);
    }
}

/// Follows a cell's subnets and instances, and notes all that comes.
fn follow(client: &Client, namespace: &str, city: &str, given: &Arc<Mutex<Given>>) {
    let subnets: Api<Subnet> = Api::namespaced(client.clone(), namespace);
    let (city_of, noted) = (city.to_owned(), given.clone());
    tokio::spawn(async move {
        let mut events = watcher::watcher(subnets, watcher::Config::default()).boxed();
        while let Ok(Some(event)) = events.try_next().await {
            match event {
                Event::Apply(subnet) | Event::InitApply(subnet) => {
                    noted.lock().subnet(&city_of, &subnet, true);
                }
                Event::Delete(subnet) => noted.lock().subnet(&city_of, &subnet, false),
                Event::Init | Event::InitDone => {}
            }
        }
    });
    let instances: Api<Instance> = Api::namespaced(client.clone(), namespace);
    let (city_of, noted) = (city.to_owned(), given.clone());
    tokio::spawn(async move {
        let mut events = watcher::watcher(instances, watcher::Config::default()).boxed();
        while let Ok(Some(event)) = events.try_next().await {
            match event {
                Event::Apply(instance) | Event::InitApply(instance) => {
                    noted.lock().instance(&city_of, &instance, true);
                }
                Event::Delete(instance) => noted.lock().instance(&city_of, &instance, false),
                Event::Init | Event::InitDone => {}
            }
        }
    });
}

#[tokio::test]
async fn two_hundred_deployments_over_fifty_networks_in_two_cities_never_overlap() {
    let stack = Embedded::start().await;
    let view = View::new(&stack, "many").await;
    let given = Arc::new(Mutex::new(Given::default()));
    let cities = stack.cities();
    for city in &cities {
        follow(&stack.client(&Place::Cell(city.clone())), &view.hub_namespace, city, &given);
    }
    let names: Vec<_> = (0..NETWORKS)
        .flat_map(|n| (0..EACH).map(move |m| (format!("net-{n}"), format!("w{m}-{n}"))))
        .collect();
    for n in 0..NETWORKS {
        make_network(&view, &format!("net-{n}")).await;
    }
    stream::iter(&names)
        .for_each_concurrent(16, async |(network, name)| {
            view.create(&on(network, name, &["DFW", "ORD"], 1)).await;
        })
        .await;
    for (_, name) in &names {
        let wanted = ["dfw", "ord"].map(|city| format!("{name}-main-{city}"));
        view.until_ready(name, &[(&wanted[0], 1), (&wanted[1], 1)]).await;
    }
    eventually("the watches have told everything", async || {
        let given = given.lock();
        let subnets = given.subnets.values().map(BTreeMap::len).sum::<usize>();
        let addresses = given.addresses.values().flat_map(BTreeMap::values).flatten().count();
        let wanted = (2 * NETWORKS, 2 * NETWORKS * EACH);
        if (subnets, addresses) == wanted { Ok(()) } else { Err(format!("{subnets} {addresses}")) }
    })
    .await;
    {
        let given = given.lock();
        assert_eq!(given.wrong, Vec::<String>::new());
        for (network, instances) in &given.addresses {
            for ((city, name), addresses) in instances {
                let mut here = given.subnets[network].iter().filter(|((other, _), _)| other == city);
                assert!(here.all(|(_, (range, _))| range.contains(&addresses[0])), "{network} {name}");
            }
        }
    }

    // Half of the workloads of each network go: its subnets stay. Then all.
    let (first, rest): (Vec<_>, Vec<_>) = names.iter().partition(|(_, name)| name.starts_with("w0-"));
    for (_, name) in &first {
        view.delete(name).await;
    }
    for (_, name) in &first {
        view.until_gone(name).await;
    }
    for city in &cities {
        let left: Api<NetworkContext> = view.in_cell(city);
        assert_eq!(left.list(&Default::default()).await.unwrap().items.len(), NETWORKS);
    }
    for (_, name) in &rest {
        view.delete(name).await;
    }
    for (_, name) in &rest {
        view.until_gone(name).await;
    }
    until_released(&view).await;
    let given = given.lock();
    assert_eq!(given.wrong, Vec::<String>::new());
    assert_eq!(given.most_subnets, 2 * NETWORKS, "one for each network and city, however many share it");
}
