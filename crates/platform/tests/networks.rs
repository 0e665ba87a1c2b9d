//! The network service of a cell, against an embedded server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod planes;

use std::collections::BTreeSet;
use std::time::Duration;

use compute_api::compute::{NetworkInterface, NetworkReference, WorkloadDeployment};
use compute_api::conditions;
use compute_api::kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use compute_api::kube::{Resource, ResourceExt as _};
use compute_api::networking::{
    IPV4, NetworkBinding, NetworkBindingSpec, NetworkContext, Subnet, SubnetClaim, SubnetClaimSpec,
};
use compute_core::subnets::{IpNet, addresses_of, overlap};
use compute_platform::networks::{self, Addresses, FAILURE, Setup};
use compute_runtime::tasks::Tasks;
use serde_json::json;

use planes::{Running, TestPlane, World, eventually};

fn serve(cell: &TestPlane) -> Running {
    serve_out_of(cell, Addresses::Whole)
}

fn serve_out_of(cell: &TestPlane, addresses: Addresses) -> Running {
    let mut tasks = Tasks::new();
    networks::spawn(&mut tasks, Setup { cell: cell.plane.clone(), addresses });
    Running::start(tasks)
}

fn api<K>(cell: &TestPlane) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = compute_api::k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(cell.client.clone(), "default")
}

fn binding(name: &str, network: &str, location: &str) -> NetworkBinding {
    let mut binding = NetworkBinding {
        spec: NetworkBindingSpec {
            network: NetworkReference { name: network.to_owned(), namespace: None },
            location: location.into(),
            consumer: None,
        },
        ..NetworkBinding::default()
    };
    binding.metadata.name = Some(name.to_owned());
    binding
}

fn claim(name: &str, context: &NetworkContext) -> SubnetClaim {
    let mut claim = SubnetClaim {
        spec: SubnetClaimSpec {
            subnet_class: "private".to_owned(),
            network_context: context.name_any().as_str().into(),
            location: "dfw".into(),
            ip_family: IPV4.to_owned(),
            start_address: None,
            prefix_length: None,
        },
        ..SubnetClaim::default()
    };
    claim.metadata.name = Some(name.to_owned());
    claim
}

async fn bound(cell: &TestPlane, name: &str) -> NetworkContext {
    let context = eventually(name, async || {
        let found = api::<NetworkBinding>(cell).get(name).await.map_err(|error| error.to_string())?;
        let status = found.status.unwrap_or_default();
        let is_ready = conditions::is_true(&status.conditions, "Ready");
        status.network_context_ref.filter(|_| is_ready).ok_or_else(|| "not ready".to_owned())
    })
    .await;
    let found = api::<NetworkContext>(cell).get(&context.name).await.unwrap();
    assert!(conditions::is_true(&found.status.as_ref().unwrap().conditions, "Ready"));
    found
}

async fn answered(cell: &TestPlane, name: &str, is_ready: bool) -> SubnetClaim {
    eventually(name, async || {
        let found = api::<SubnetClaim>(cell).get(name).await.map_err(|error| error.to_string())?;
        let conditions = &found.status.as_ref().unwrap().conditions;
        let said = conditions::find(conditions, "Ready").unwrap();
        if said.status == if is_ready { "True" } else { "False" } {
            Ok(found)
        } else {
            Err(format!("{said:?}"))
        }
    })
    .await
}

async fn count<K>(cell: &TestPlane) -> usize
where
    K: Resource<DynamicType = (), Scope = compute_api::k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    api::<K>(cell).list(&ListParams::default()).await.unwrap().items.len()
}

#[tokio::test(start_paused = true)]
async fn bindings_of_one_network_share_its_context_which_goes_with_the_last() {
    let world = World::new().await;
    let cell = world.plane("cell-dfw", "cell-dfw").await;
    let running = serve(&cell);
    let bindings = api::<NetworkBinding>(&cell);
    for new in [binding("one", "default", "dfw"), binding("two", "default", "dfw")] {
        bindings.create(&PostParams::default(), &new).await.unwrap();
    }
    let context = bound(&cell, "one").await;
    assert_eq!(bound(&cell, "two").await.uid(), context.uid());
    // `a-b` in `c`, and `a` in `b-c`.
    for new in [binding("x", "a-b", "c"), binding("y", "a", "b-c")] {
        bindings.create(&PostParams::default(), &new).await.unwrap();
    }
    assert_ne!(bound(&cell, "x").await.name_any(), bound(&cell, "y").await.name_any());
    for name in ["x", "y"] {
        bindings.delete(name, &DeleteParams::default()).await.unwrap();
    }

    api::<SubnetClaim>(&cell)
        .create(&PostParams::default(), &{
            let mut claim = claim("default-dfw-0", &context);
            claim.metadata.owner_references = Some(vec![compute_core::meta::controlled_by(&context)]);
            claim
        })
        .await
        .unwrap();
    answered(&cell, "default-dfw-0", true).await;

    bindings.delete("one", &DeleteParams::default()).await.unwrap();
    eventually("one owner", async || {
        let found = api::<NetworkContext>(&cell).get(&context.name_any()).await.unwrap();
        let owners: Vec<_> = found.owner_references().iter().map(|owner| owner.name.clone()).collect();
        if owners == ["two"] { Ok(()) } else { Err(format!("{owners:?}")) }
    })
    .await;
    bindings.delete("two", &DeleteParams::default()).await.unwrap();
    eventually("nothing left", async || {
        let left = (
            count::<NetworkContext>(&cell).await,
            count::<SubnetClaim>(&cell).await,
            count::<Subnet>(&cell).await,
        );
        if left == (0, 0, 0) { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    // And the network can be asked for again.
    bindings.create(&PostParams::default(), &binding("one", "default", "dfw")).await.unwrap();
    assert_ne!(bound(&cell, "one").await.uid(), context.uid());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_hundred_claims_never_overlap_and_what_is_released_is_given_again() {
    const MANY: usize = 200;
    let world = World::new().await;
    let cell = world.plane("cell-dfw", "cell-dfw").await;
    let running = serve(&cell);
    let (bindings, claims) = (api::<NetworkBinding>(&cell), api::<SubnetClaim>(&cell));
    for location in ["dfw", "dal"] {
        bindings.create(&PostParams::default(), &binding(location, "default", location)).await.unwrap();
    }
    let contexts = [bound(&cell, "dfw").await, bound(&cell, "dal").await];
    let create = async |n: usize| {
        claims.create(&PostParams::default(), &claim(&format!("c{n}"), &contexts[n % 2])).await.unwrap();
    };
    for n in 0..MANY {
        create(n).await;
    }
    let all = async |cell: &TestPlane| -> BTreeSet<IpNet> {
        let found = api::<Subnet>(cell).list(&ListParams::default()).await.unwrap().items;
        found.iter().map(|subnet| addresses_of(&subnet.spec).unwrap()).collect()
    };
    for n in 0..MANY {
        let answered = answered(&cell, &format!("c{n}"), true).await;
        let status = answered.status.unwrap();
        let subnet = api::<Subnet>(&cell).get(&status.subnet_ref.unwrap().name).await.unwrap();
        assert_eq!(Some(&subnet.spec.start_address), status.start_address.as_ref());
        assert!(conditions::is_true(&subnet.status.unwrap().conditions, "Ready"));
    }
    let given: Vec<_> = all(&cell).await.into_iter().collect();
    assert_eq!(given.len(), MANY);
    for (n, one) in given.iter().enumerate() {
        assert!(given[n + 1..].iter().all(|other| !overlap(one, other)), "{one:?}");
    }

    // Release some, restart, and ask again: the gaps are filled, and nothing that is held moves.
    for n in 0..20 {
        claims.delete(&format!("c{n}"), &DeleteParams::default()).await.unwrap();
    }
    eventually("released", async || match count::<Subnet>(&cell).await {
        180 => Ok(()),
        left => Err(left),
    })
    .await;
    let kept = all(&cell).await;
    running.stop().await;
    let asked = cell.requests().len();
    let running = serve(&cell);
    for n in MANY..MANY + 20 {
        create(n).await;
    }
    for n in MANY..MANY + 20 {
        answered(&cell, &format!("c{n}"), true).await;
    }
    let after = all(&cell).await;
    assert!(after.is_superset(&kept) && after.len() == MANY);
    assert_eq!(after.last(), kept.last().max(given.last()), "the lowest free ones are given");
    assert_eq!(cell.requests().len() - asked, 60, "a subnet and two statuses for each");

    // Nothing changes: nothing is asked.
    let asked = cell.requests().len();
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(cell.requests().len(), asked);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lost_answers_never_make_two_subnets_of_the_same_addresses() {
    let world = World::new().await;
    let cell = world.plane("cell-dfw", "cell-dfw").await;
    let running = serve(&cell);
    let bindings = api::<NetworkBinding>(&cell);
    cell.lose_answers(2);
    bindings.create(&PostParams::default(), &binding("dfw", "default", "dfw")).await.unwrap();
    let context = bound(&cell, "dfw").await;
    let claims = api::<SubnetClaim>(&cell);
    for round in 0..10 {
        cell.lose_answers(3);
        // Later ones come first in the order of names.
        for n in 0..4 {
            let name = format!("c{:02}", 99 - (round * 4 + n));
            claims.create(&PostParams::default(), &claim(&name, &context)).await.unwrap();
        }
        for n in 0..4 {
            answered(&cell, &format!("c{:02}", 99 - (round * 4 + n)), true).await;
        }
    }
    let found = api::<Subnet>(&cell).list(&ListParams::default()).await.unwrap().items;
    let given: BTreeSet<_> = found.iter().map(|subnet| addresses_of(&subnet.spec).unwrap()).collect();
    assert_eq!(given.len(), 40);
    assert_eq!(count::<NetworkContext>(&cell).await, 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_cannot_be_met_says_so_and_is_met_when_it_can_be() {
    let world = World::new().await;
    let cell = world.plane("cell-dfw", "cell-dfw").await;
    let running = serve(&cell);
    api::<NetworkBinding>(&cell)
        .create(&PostParams::default(), &binding("one", "default", "dfw"))
        .await
        .unwrap();
    let context = bound(&cell, "one").await;
    let claims = api::<SubnetClaim>(&cell);
    let wants = |name: &str, prefix: i64| {
        let mut wants = claim(name, &context);
        wants.spec.prefix_length = Some(prefix);
        wants
    };
    claims.create(&PostParams::default(), &wants("all", 9)).await.unwrap();
    answered(&cell, "all", true).await;
    claims.create(&PostParams::default(), &wants("more", 20)).await.unwrap();
    let refused = answered(&cell, "more", false).await;
    let said = refused.status.unwrap().conditions;
    assert_eq!(conditions::find(&said, "Ready").unwrap().reason, "AddressesExhausted");
    claims.create(&PostParams::default(), &wants("odd", 3)).await.unwrap();
    answered(&cell, "odd", false).await;
    claims.delete("all", &DeleteParams::default()).await.unwrap();
    answered(&cell, "more", true).await;
    running.stop().await;
}

/// What the cell's controller waits for comes true with nothing but this service: its decisions, executed by hand.
#[tokio::test(start_paused = true)]
async fn a_deployment_gets_its_networks() {
    use compute_core::networks::{Create, Observed, decide};

    let world = World::new().await;
    let cell = world.plane("cell-dfw", "cell-dfw").await;
    let running = serve(&cell);
    let mut deployment = WorkloadDeployment::default();
    deployment.metadata.name = Some("web-main-dfw".to_owned());
    deployment.spec.city_code = "DFW".to_owned();
    let interface = |name: &str| NetworkInterface {
        network: NetworkReference { name: name.to_owned(), namespace: None },
        network_policy: None,
    };
    deployment.spec.template.spec.network_interfaces = vec![interface("default"), interface("other")];
    deployment.spec.template.spec.runtime = serde_json::from_value(json!({
        "sandbox": { "containers": [{ "name": "app", "image": "app:1" }] }
    }))
    .unwrap();
    let deployment =
        api::<WorkloadDeployment>(&cell).create(&PostParams::default(), &deployment).await.unwrap();
    let location = compute_api::compute::LocationReference { name: "dfw".to_owned(), namespace: None };
    eventually("networks", async || {
        let bindings = api::<NetworkBinding>(&cell).list(&ListParams::default()).await.unwrap().items;
        let contexts = api::<NetworkContext>(&cell).list(&ListParams::default()).await.unwrap().items;
        let claims = api::<SubnetClaim>(&cell).list(&ListParams::default()).await.unwrap().items;
        let subnets = api::<Subnet>(&cell).list(&ListParams::default()).await.unwrap().items;
        let observed = Observed {
            bindings: bindings.iter().collect(),
            contexts: contexts.iter().collect(),
            claims: claims.iter().collect(),
            subnets: subnets.iter().collect(),
        };
        let plan = decide(&deployment, Some(&location), &observed);
        for create in &plan.create {
            match create {
                Create::Binding(binding) => {
                    api(&cell).create(&PostParams::default(), &**binding).await.map(drop).unwrap();
                }
                Create::SubnetClaim(claim) => {
                    api(&cell).create(&PostParams::default(), &**claim).await.map(drop).unwrap();
                }
            }
        }
        if plan.is_ready() { Ok(()) } else { Err(plan.condition.message) }
    })
    .await;
    let deployments = api::<WorkloadDeployment>(&cell);
    deployments.delete("web-main-dfw", &DeleteParams::default()).await.unwrap();
    eventually("nothing left", async || match count::<Subnet>(&cell).await {
        0 => Ok(()),
        left => Err(left),
    })
    .await;
    running.stop().await;
}

/// Annotates an object, or takes the annotation off.
async fn annotate<K>(api: &Api<K>, name: &str, key: &str, text: Option<&str>)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let patch = json!({ "metadata": { "annotations": { key: text } } });
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Has one object fail and heal, whatever its kind.
async fn fails_and_heals<K>(cell: &TestPlane, name: &str)
where
    K: Resource<DynamicType = (), Scope = compute_api::k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let all = api::<K>(cell);
    let said = async |status: &str, message: &str| {
        eventually(&format!("{} {status}", K::kind(&())), async || {
            let found = serde_json::to_value(all.get(name).await.unwrap()).unwrap();
            let conditions: Vec<compute_api::k8s::Condition> =
                serde_json::from_value(found["status"]["conditions"].clone()).unwrap_or_default();
            let ready = conditions::find(&conditions, "Ready").cloned();
            match ready {
                Some(said) if said.status == status && said.message.contains(message) => Ok(said),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    };
    said("True", "").await;
    annotate(&all, name, FAILURE, Some("the switch is on fire")).await;
    let failed = said("False", "the switch is on fire").await;
    assert_eq!(failed.message, "the switch is on fire", "in its own words");
    annotate(&all, name, FAILURE, None).await;
    said("True", "").await;
}

#[tokio::test(start_paused = true)]
async fn each_kind_fails_when_it_is_told_to_and_heals() {
    let world = World::new().await;
    let cell = world.plane("cell-dfw", "cell-dfw").await;
    let running = serve(&cell);
    let new = binding("one", "default", "dfw");
    api::<NetworkBinding>(&cell).create(&PostParams::default(), &new).await.unwrap();
    let context = bound(&cell, "one").await;
    api::<SubnetClaim>(&cell).create(&PostParams::default(), &claim("c", &context)).await.unwrap();
    let before = answered(&cell, "c", true).await.status.unwrap();
    fails_and_heals::<NetworkBinding>(&cell, "one").await;
    fails_and_heals::<NetworkContext>(&cell, &context.name_any()).await;
    fails_and_heals::<SubnetClaim>(&cell, "c").await;
    fails_and_heals::<Subnet>(&cell, "c").await;
    let after = answered(&cell, "c", true).await.status.unwrap();
    assert_eq!((before.subnet_ref, before.start_address), (after.subnet_ref, after.start_address));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_location_gives_out_of_its_own_addresses_and_waits_until_it_has_some() {
    use compute_api::networking::Location;
    use compute_core::subnets::blocks::ADDRESSES;

    let world = World::new().await;
    let cell = world.plane("cell-dfw", "cell-dfw").await;
    let running = serve_out_of(&cell, Addresses::OfLocations);
    let locations: Api<Location> = Api::all(cell.client.clone());
    let location = |name: &str| -> Location {
        let spec = json!({ "locationClassName": "x", "topology": {}, "provider": {} });
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    };
    locations.create(&PostParams::default(), &location("dfw")).await.unwrap();
    let (bindings, claims) = (api::<NetworkBinding>(&cell), api::<SubnetClaim>(&cell));
    for place in ["dfw", "dal"] {
        bindings.create(&PostParams::default(), &binding(place, "default", place)).await.unwrap();
        let context = bound(&cell, place).await;
        claims.create(&PostParams::default(), &claim(&format!("in-{place}"), &context)).await.unwrap();
        let waits = answered(&cell, &format!("in-{place}"), false).await.status.unwrap().conditions;
        assert_eq!(conditions::find(&waits, "Ready").unwrap().reason, "AddressesPending");
    }
    annotate(&locations, "dfw", ADDRESSES, Some("whatever")).await;
    annotate(&locations, "dfw", ADDRESSES, Some("10.130.0.0/16,fd64:6174:756d:200::/56")).await;
    locations.create(&PostParams::default(), &location("dal")).await.unwrap();
    annotate(&locations, "dal", ADDRESSES, Some("10.131.0.0/16,fd64:6174:756d:300::/56")).await;
    for (name, first) in [("in-dfw", "10.130.0.0"), ("in-dal", "10.131.0.0")] {
        let given = answered(&cell, name, true).await.status.unwrap();
        assert_eq!((given.start_address.as_deref(), given.prefix_length), (Some(first), Some(20)));
    }
    // What is given stays given, whatever becomes of the location.
    locations.delete("dfw", &DeleteParams::default()).await.unwrap();
    let asked = cell.requests().len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(cell.requests().len(), asked);
    running.stop().await;
}
