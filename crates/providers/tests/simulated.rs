//! A provider with the simulated engine, against an embedded server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use compute_api::compute::LocationReference;
use compute_api::conditions::{AVAILABLE, PROGRAMMED};
use compute_api::k8s::Event;
use compute_api::kube::ResourceExt as _;
use compute_api::kube::api::{Api, ListParams};
use compute_providers::engine::{Command, Id, LogQuery, Output};
use compute_providers::simulated::{Options, annotations};
use compute_providers::{Engine as _, Locations};
use compute_runtime::cache::ObjectName;
use futures::{StreamExt as _, stream};
use serde_json::json;
use tokio::time::Instant;

use common::{Cell, eventually, finalizer, gated, instance, said, with};

fn name_of(name: &str) -> ObjectName {
    ObjectName { namespace: "default".to_owned(), name: name.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn an_instance_runs_with_addresses_and_its_template_hash_and_says_that_it_is_simulated() {
    let cell = Cell::new().await;
    let running = cell.provide(Options::default(), Locations::All);
    cell.create(&instance("web-0", "app:1")).await;
    let found = cell.available("web-0", "Available").await;
    for type_ in [PROGRAMMED, AVAILABLE] {
        let said = said(&found, type_);
        assert_eq!((said.status.as_str(), said.observed_generation), ("True", Some(1)));
        assert!(said.message.contains("simulated"), "{said:?}");
    }
    let status = found.status.clone().unwrap();
    assert_eq!(status.observed_template_hash(), Some("v1-abc"));
    let address = status.network_interfaces[0].assignments.clone().unwrap().network_ip.unwrap();
    assert!(address.starts_with("198.1"), "{address}");
    assert_eq!(said(&found, "Ready").reason, "Pending", "what others write is theirs");
    assert!(found.finalizers().contains(&finalizer(&running.engine)));
    let managers: BTreeSet<_> = found.managed_fields().iter().filter_map(|one| one.manager.clone()).collect();
    assert!(managers.contains("compute-simulated"), "{managers:?}");
    assert_eq!(cell.requests().len(), 2, "a finalizer and one status: {:?}", cell.requests());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn gates_hold_an_instance_and_nothing_is_written_to_it() {
    let cell = Cell::new().await;
    let running = cell.provide(Options::default(), Locations::All);
    let held = cell.create(&gated(instance("a-held", "app:1"))).await;
    cell.create(&instance("b-free", "app:1")).await;
    cell.available("b-free", "Available").await;
    let after = cell.instances.get("a-held").await.unwrap();
    assert_eq!(after.resource_version(), held.resource_version());
    cell.patch("a-held", json!({ "spec": { "controller": { "schedulingGates": null } } })).await;
    cell.available("a-held", "Available").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_of_another_location_is_left_alone() {
    let cell = Cell::new().await;
    let running = cell.provide(Options::default(), Locations::Only(["dfw".to_owned()].into()));
    let placed = |name: &str, location: &str| {
        let mut placed = instance(name, "app:1");
        placed.spec.location = Some(LocationReference { name: location.to_owned(), namespace: None });
        placed
    };
    let elsewhere = cell.create(&placed("a", "iad")).await;
    cell.create(&placed("b", "dfw")).await;
    cell.create(&instance("c", "app:1")).await;
    cell.available("b", "Available").await;
    cell.available("c", "Available").await;
    let after = cell.instances.get("a").await.unwrap();
    assert_eq!(after.resource_version(), elsewhere.resource_version());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_start_takes_its_delay() {
    let cell = Cell::new().await;
    let running =
        cell.provide(Options { start_delay: Duration::from_secs(5), ..Options::default() }, Locations::All);
    let began = Instant::now();
    cell.create(&with(instance("slow", "app:1"), annotations::START_DELAY, "60s")).await;
    cell.create(&instance("normal", "app:1")).await;
    let starting = cell.available("slow", "Starting").await;
    assert_eq!(said(&starting, PROGRAMMED).status, "True");
    assert_eq!(said(&starting, AVAILABLE).status, "False");
    cell.available("normal", "Available").await;
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(60), "{took:?}");
    cell.available("slow", "Available").await;
    assert!(began.elapsed() >= Duration::from_secs(60), "{:?}", began.elapsed());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn annotations_that_are_put_on_later_take_effect() {
    let cell = Cell::new().await;
    let running = cell.provide(Options::default(), Locations::All);
    cell.create(&instance("web-0", "app:1")).await;
    cell.available("web-0", "Available").await;
    cell.annotate("web-0", annotations::CRASH, Some("true")).await;
    let crashing = cell.available("web-0", "InstanceCrashing").await;
    assert_eq!(said(&crashing, PROGRAMMED).status, "True", "it was set up");
    cell.annotate("web-0", annotations::CRASH, None).await;
    cell.available("web-0", "Available").await;
    cell.annotate("web-0", annotations::IMAGE_FAILURE, Some("true")).await;
    let failing = cell.available("web-0", "ImageUnavailable").await;
    assert!(said(&failing, AVAILABLE).message.contains("app:1"));
    cell.annotate("web-0", annotations::IMAGE_FAILURE, Some("certainly")).await;
    let wrong = cell.available("web-0", "ConfigurationError").await;
    assert!(said(&wrong, AVAILABLE).message.contains(annotations::IMAGE_FAILURE));
    cell.annotate("web-0", annotations::IMAGE_FAILURE, None).await;
    cell.available("web-0", "Available").await;
    let events: Api<Event> = Api::namespaced(cell.client.clone(), "default");
    eventually("events", async || {
        let found = events.list(&ListParams::default()).await.unwrap();
        let reasons: BTreeSet<_> = found.iter().filter_map(|event| event.reason.clone()).collect();
        let wanted = ["InstanceCrashing", "ImageUnavailable", "ConfigurationError"];
        if wanted.iter().all(|one| reasons.contains(*one)) { Ok(()) } else { Err(format!("{reasons:?}")) }
    })
    .await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_image_is_named_and_a_good_one_in_its_place_runs() {
    let cell = Cell::new().await;
    let running = cell.provide(Options::default(), Locations::All);
    for image in ["registry.invalid/app:1", "Not An Image"] {
        cell.create(&instance("web-0", image)).await;
        let failing = cell.available("web-0", "ImageUnavailable").await;
        assert_eq!(said(&failing, PROGRAMMED).status, "False");
        assert!(said(&failing, AVAILABLE).message.contains(image), "{failing:?}");
        assert_eq!(failing.status.unwrap().observed_template_hash(), Some("v1-abc"));
        cell.delete("web-0").await;
        cell.gone("web-0").await;
    }
    cell.create(&instance("web-0", "registry.example/app:2")).await;
    cell.available("web-0", "Available").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_the_stop() {
    let cell = Cell::new().await;
    let running = cell.provide(Options::default(), Locations::All);
    cell.create(&with(instance("web-0", "app:1"), annotations::STOP_DELAY, "30s")).await;
    cell.available("web-0", "Available").await;
    let began = Instant::now();
    cell.delete("web-0").await;
    let stopping = cell.available("web-0", "Stopping").await;
    assert_eq!(said(&stopping, PROGRAMMED).status, "True");
    assert!(stopping.finalizers().contains(&finalizer(&running.engine)));
    cell.gone("web-0").await;
    assert!(began.elapsed() >= Duration::from_secs(30), "{:?}", began.elapsed());
    eventually("nothing left", async || {
        let held = running.engine.held(&name_of("web-0"));
        if held.is_empty() { Ok(()) } else { Err(format!("{held:?}")) }
    })
    .await;
    // Nothing of the stop delay is left for a successor of that name.
    let began = Instant::now();
    cell.create(&instance("web-0", "app:1")).await;
    cell.available("web-0", "Available").await;
    cell.delete("web-0").await;
    cell.gone("web-0").await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_loses_its_finalizer_is_stopped_all_the_same() {
    let cell = Cell::new().await;
    let running = cell.provide(Options::default(), Locations::All);
    cell.create(&instance("web-0", "app:1")).await;
    let first = cell.available("web-0", "Available").await;
    cell.patch("web-0", json!({ "metadata": { "finalizers": null } })).await;
    // It comes back while the instance lives.
    eventually("the finalizer", async || {
        let found = cell.instances.get("web-0").await.unwrap();
        if found.finalizers().is_empty() { Err("none") } else { Ok(()) }
    })
    .await;
    cell.delete("web-0").await;
    // Whoever takes it off by force leaves nothing behind.
    let _ = cell
        .instances
        .patch(
            "web-0",
            &Default::default(),
            &compute_api::kube::api::Patch::Merge(json!({ "metadata": { "finalizers": null } })),
        )
        .await;
    cell.gone("web-0").await;
    eventually("nothing left", async || {
        let held = running.engine.held(&name_of("web-0"));
        if held.iter().all(|id| Some(&id.uid) != first.metadata.uid.as_ref()) { Ok(()) } else { Err("held") }
    })
    .await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_what_runs_running_and_writes_nothing() {
    let cell = Cell::new().await;
    let slow = Options { start_delay: Duration::from_secs(10), ..Options::default() };
    let running = cell.provide(slow, Locations::All);
    for n in 0..20 {
        cell.create(&instance(&format!("web-{n}"), "app:1")).await;
    }
    let mut before = Vec::new();
    for n in 0..20 {
        before.push(cell.available(&format!("web-{n}"), "Available").await);
    }
    running.stop().await;
    // One that was starting, and one that was being stopped, when it went away.
    cell.create(&instance("web-20", "app:1")).await;
    cell.delete("web-0").await;
    let asked = cell.requests().len();
    let running = cell.provide(slow, Locations::All);
    cell.available("web-20", "Available").await;
    cell.gone("web-0").await;
    for before in &before[1..] {
        let after = cell.instances.get(&before.name_any()).await.unwrap();
        assert_eq!(after.resource_version(), before.resource_version());
    }
    // The new one's finalizer and two statuses, and the finalizer of the one that went.
    assert_eq!(cell.requests().len() - asked, 4, "{:?}", &cell.requests()[asked..]);
    // Addresses of those that were there are not given to others.
    let mut addresses = BTreeSet::new();
    for instance in cell.instances.list(&ListParams::default()).await.unwrap() {
        let given = instance.status.unwrap().network_interfaces[0].assignments.clone().unwrap();
        assert!(addresses.insert(given.network_ip.unwrap()));
    }
    assert_eq!(addresses.len(), 20);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_writes_an_instance_and_then_silence() {
    const MANY: usize = 200;
    let cell = Cell::new().await;
    let running = cell.provide(Options::default(), Locations::All);
    for n in 0..MANY {
        cell.create(&instance(&format!("web-{n}"), "app:1")).await;
    }
    for n in 0..MANY {
        cell.available(&format!("web-{n}"), "Available").await;
    }
    assert_eq!(cell.requests().len(), 2 * MANY);
    // Somebody else's change of each makes a pass over each, which has nothing to do.
    for n in 0..MANY {
        cell.patch(&format!("web-{n}"), json!({ "metadata": { "labels": { "other": "x" } } })).await;
    }
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(cell.requests().len(), 2 * MANY, "{:?}", &cell.requests()[2 * MANY..]);
    // What somebody breaks is mended.
    let patch = json!({ "status": { "controller": null } });
    let params = compute_api::kube::api::PatchParams::default();
    cell.instances
        .patch_status("web-7", &params, &compute_api::kube::api::Patch::Merge(patch))
        .await
        .unwrap();
    eventually("mended", async || {
        let found = cell.instances.get("web-7").await.unwrap();
        let hash = found.status.as_ref().unwrap().observed_template_hash().map(str::to_owned);
        if hash.as_deref() == Some("v1-abc") { Ok(()) } else { Err(format!("{hash:?}")) }
    })
    .await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn people_can_look_inside_and_are_told_that_nothing_is_there() {
    let cell = Cell::new().await;
    let running = cell.provide(Options::default(), Locations::All);
    cell.create(&with(instance("web-0", "app:1"), annotations::USAGE, "cpu=250m,memory=64Mi")).await;
    let id = Id::of(&cell.available("web-0", "Available").await);
    let engine = &running.engine;
    let usage = engine.usage(&id).await.unwrap();
    assert_eq!((usage.cpu_millis, usage.memory_bytes), (250, 64 << 20));

    let command = Command { argv: vec!["echo".to_owned(), "hi".to_owned()], ..Command::default() };
    let outputs: Vec<_> = engine.exec(&id, command, stream::empty().boxed()).await.unwrap().collect().await;
    let Ok(Output::Stdout(text)) = &outputs[0] else { panic!("{outputs:?}") };
    let text = String::from_utf8_lossy(text);
    assert!(text.contains("simulated") && text.contains("echo hi"), "{text}");
    assert!(matches!(outputs[1], Ok(Output::Exit(0))));

    let query = LogQuery { tail: Some(1), ..LogQuery::default() };
    let lines: Vec<_> = engine.logs(&id, &query).await.unwrap().map(Result::unwrap).collect().await;
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].text, "simulated: running");
    let query = LogQuery { container: Some("other".to_owned()), ..LogQuery::default() };
    assert!(engine.logs(&id, &query).await.is_err());

    // Who follows hears the end.
    let query = LogQuery { follow: true, ..LogQuery::default() };
    let following = engine.logs(&id, &query).await.unwrap();
    let all = tokio::spawn(following.map(|line| line.unwrap().text).collect::<Vec<_>>());
    cell.annotate("web-0", annotations::CRASH, Some("true")).await;
    cell.available("web-0", "InstanceCrashing").await;
    cell.delete("web-0").await;
    cell.gone("web-0").await;
    let all = all.await.unwrap().join("\n");
    assert!(all.contains("running\nsimulated: ended with exit code 1\nsimulated: stopping"), "{all}");
    assert!(engine.usage(&id).await.is_err());
    running.stop().await;
}
