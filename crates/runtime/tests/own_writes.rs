//! Reading through one's own writes, against an embedded server whose watches can be frozen.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use compute_runtime::OwnWrites;
use compute_runtime::cache::ObjectName;
use compute_runtime::own_writes::BELIEVED;
use compute_runtime::write::{Error, Outage, Writer};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use common::{Asked, World, config_map, create, delete, eventually, set, until, value};

fn name(name: &str) -> ObjectName {
    ObjectName { namespace: "default".to_owned(), name: name.to_owned() }
}

fn values(writes: &OwnWrites<ConfigMap>) -> Vec<String> {
    writes.in_namespace("default").iter().map(|one| value(one)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_written_counts_until_the_cache_shows_it() {
    let world = World::new().await;
    let (client, plane, faults) = world.plane("one").await;
    create(&client, "a", "1").await;
    let writes = OwnWrites::new(plane.cache::<ConfigMap>());
    writes.cache().synced().await.unwrap();
    until("connected", || writes.cache().is_connected()).await;
    faults.freeze();
    // Behind the cache's back.
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    set(&client, "a", "2").await;
    writes.wrote(api.get("a").await.unwrap());
    create(&client, "b", "3").await;
    writes.wrote(api.get("b").await.unwrap());
    assert_eq!(values(&writes), ["2", "3"]);
    assert_eq!(value(&writes.get("default", "a").unwrap()), "2");
    assert_eq!(value(&writes.cache().get("default", "a").unwrap()), "1");
    set(&client, "a", "4").await;
    delete(&client, "b").await;
    faults.cut();
    eventually("shown", async || match values(&writes) {
        found if found == ["4"] => Ok(()),
        found => Err(format!("{found:?}")),
    })
    .await;
    // An answer that comes after the cache has shown it changes nothing.
    let old = writes.cache().get("default", "a").unwrap();
    set(&client, "a", "5").await;
    until("shown", || values(&writes) == ["5"]).await;
    writes.wrote((*old).clone());
    assert_eq!(values(&writes), ["5"]);
    assert!(format!("{writes:?}").contains("0 not shown"), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn what_an_open_watch_does_not_show_is_not_believed_for_ever() {
    let world = World::new().await;
    let (client, plane, _faults) = world.plane("one").await;
    let writes = OwnWrites::new(plane.cache::<ConfigMap>());
    create(&client, "a", "1").await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let made = api.get("a").await.unwrap();
    delete(&client, "a").await;
    writes.cache().synced().await.unwrap();
    until("connected", || writes.cache().is_connected()).await;
    // It was made and ended before the watch was opened.
    writes.wrote(made);
    assert_eq!(values(&writes), ["1"]);
    tokio::time::sleep(BELIEVED + Duration::from_secs(1)).await;
    assert_eq!(values(&writes), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_found_out() {
    let world = World::new().await;
    let (client, plane, faults) = world.plane("one").await;
    let writes = OwnWrites::new(plane.cache::<ConfigMap>());
    writes.cache().synced().await.unwrap();
    until("connected", || writes.cache().is_connected()).await;
    faults.freeze();
    let writer = Writer::new("tester");
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let lost = async {
        writer.create(&api, &config_map("a", "1")).await?;
        Err(Error::Unavailable(Outage::Timeout))
    };
    assert!(writes.write(name("a"), lost).await.is_err());
    let never = writes.write(name("b"), async { Err(Error::Unavailable(Outage::Timeout)) }).await;
    assert!(never.is_err());
    // One that is cut short is in doubt too; one that is under way is its writer's business.
    let cut = writes.write(name("c"), std::future::pending());
    assert!(tokio::time::timeout(Duration::from_secs(1), cut).await.is_err());
    let mut under_way = std::pin::pin!(writes.write(name("d"), std::future::pending()));
    assert!(futures::poll!(&mut under_way).is_pending());
    assert_eq!(values(&writes), [""; 0]);

    let asked = faults.count(Asked::Other);
    writes.make_sure(&writer, plane.client()).await.unwrap();
    assert_eq!(faults.count(Asked::Other) - asked, 3);
    assert_eq!(values(&writes), ["1"]);
    writes.make_sure(&writer, plane.client()).await.unwrap();
    assert_eq!(faults.count(Asked::Other) - asked, 3, "nothing is in doubt any more");

    // What a server refuses did not happen.
    let refused = writes.write(name("a"), writer.create(&api, &config_map("x/y", "1"))).await;
    assert!(refused.is_err());
    let is_there = writes.write(name("a"), writer.create(&api, &config_map("a", "2"))).await;
    assert!(matches!(is_there, Err(Error::AlreadyExists(_))));
    writes.make_sure(&writer, plane.client()).await.unwrap();
    assert_eq!(faults.count(Asked::Other) - asked, 4, "what is there has to be looked at");
}
