//! Caches against an embedded server, with faults on the way.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use compute_runtime::cache::Selector;
use compute_runtime::{Cache, Change, Index, Plane, Subscription};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, Patch, PostParams};
use kube::core::PartialObjectMeta;
use kube::discovery::ApiResource;
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::json;

use common::{Asked, DEADLINE, Widget, World, create, delete, set, until, value, widget_json};

/// What a subscriber heard: name, value before, value after.
type Heard = Arc<Mutex<Vec<(String, Option<String>, Option<String>)>>>;

fn listen(cache: &Cache<ConfigMap>) -> (Heard, Subscription) {
    let heard = Heard::default();
    let sink = heard.clone();
    let subscription = cache.subscribe(move |change: &Change<ConfigMap>| {
        let text = |object: &Option<Arc<ConfigMap>>| object.as_ref().map(|object| value(object));
        sink.lock().push((change.name.name.clone(), text(&change.before), text(&change.after)));
    });
    (heard, subscription)
}

fn entry(name: &str, before: Option<&str>, after: Option<&str>) -> (String, Option<String>, Option<String>) {
    (name.to_owned(), before.map(str::to_owned), after.map(str::to_owned))
}

/// A cache of the config maps that tests make, and not of those that a namespace has anyway.
fn cache(plane: &Plane) -> Cache<ConfigMap> {
    plane.cache_of(Selector { labels: None, fields: Some("metadata.name!=kube-root-ca.crt".to_owned()) })
}

#[tokio::test(start_paused = true)]
async fn a_cache_holds_what_is_there_and_follows_changes() {
    let world = World::new().await;
    let (client, plane, faults) = world.plane("p").await;
    create(&client, "b", "1").await;
    create(&client, "a", "1").await;
    let cache = cache(&plane);
    let (heard, _subscription) = listen(&cache);
    assert!(!cache.is_synced());
    cache.synced().await.unwrap();
    set(&client, "a", "2").await;
    delete(&client, "b").await;
    until("the deletion", || cache.len() == 1).await;
    assert_eq!(value(&cache.get("default", "a").unwrap()), "2");
    assert!(cache.get("default", "b").is_none() && cache.get("other", "a").is_none());
    assert_eq!(cache.in_namespace("default").len(), 1);
    assert!(!cache.is_namespace_empty("default") && cache.is_namespace_empty("other"));
    delete(&client, "a").await;
    until("the namespace is empty", || cache.is_namespace_empty("default")).await;
    create(&client, "a", "2").await;
    until("it is there again", || cache.len() == 1).await;
    assert!(cache.get("default", "a").unwrap().managed_fields().is_empty());
    assert_eq!(
        *heard.lock(),
        [
            entry("a", None, Some("1")),
            entry("b", None, Some("1")),
            entry("a", Some("1"), Some("2")),
            entry("b", Some("1"), None),
            entry("a", Some("2"), None),
            entry("a", None, Some("2")),
        ]
    );
    assert_eq!((faults.count(Asked::List), faults.count(Asked::Watch)), (1, 1));
    let (late, _subscription) = listen(&cache);
    assert_eq!(*late.lock(), [entry("a", None, Some("2"))]);
}

/// Every change of every object is heard exactly once and in order, while many write and streams break.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_is_heard_in_order_though_watches_break() {
    const WRITERS: usize = 8;
    const WRITES: usize = 40;
    let world = World::new().await;
    let (client, plane, faults) = world.plane("p").await;
    let cache = cache(&plane);
    let (heard, _subscription) = listen(&cache);
    cache.synced().await.unwrap();
    until("the watch", || cache.is_connected()).await;
    let writers = (0..WRITERS).map(|writer| {
        let (client, faults) = (client.clone(), faults.clone());
        tokio::spawn(async move {
            let name = format!("w{writer}");
            create(&client, &name, "0").await;
            for write in 1..WRITES {
                set(&client, &name, &write.to_string()).await;
                if write % 10 == writer {
                    faults.cut();
                    tokio::task::yield_now().await;
                }
            }
            delete(&client, &name).await;
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    until("all deletions", || heard.lock().iter().filter(|(_, _, after)| after.is_none()).count() == WRITERS)
        .await;
    assert!(cache.is_empty());
    assert!(cache.epoch() > 1);
    let mut by_name: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (name, before, after) in heard.lock().drain(..) {
        by_name.entry(name).or_default().push((before, after));
    }
    for (name, changes) in by_name {
        let values: Vec<_> = changes.iter().map(|(_, after)| after.clone()).collect();
        let wanted: Vec<_> = (0..WRITES).map(|write| Some(write.to_string())).chain([None]).collect();
        assert_eq!(values, wanted, "{name}");
        assert!(changes.windows(2).all(|pair| pair[0].1 == pair[1].0), "{name}: {changes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_list_finds_what_was_missed() {
    let world = World::new().await;
    let (client, plane, faults) = world.plane("p").await;
    for name in ["changed", "gone", "made-again", "same"] {
        create(&client, name, "1").await;
    }
    let cache = cache(&plane);
    let (heard, _subscription) = listen(&cache);
    until("the watch", || cache.is_connected()).await;
    heard.lock().clear();
    faults.failing();
    faults.cut();
    until("the interruption", || !cache.is_connected()).await;
    delete(&client, "gone").await;
    delete(&client, "made-again").await;
    create(&client, "made-again", "2").await;
    set(&client, "changed", "2").await;
    create(&client, "new", "1").await;
    faults.expire(1);
    faults.good();
    until("the next watch", || cache.is_connected()).await;
    let mut heard = heard.lock().clone();
    heard.sort();
    assert_eq!(
        heard,
        [
            entry("changed", Some("1"), Some("2")),
            entry("gone", Some("1"), None),
            entry("made-again", None, Some("2")),
            entry("made-again", Some("1"), None),
            entry("new", None, Some("1")),
        ]
    );
    assert_eq!(cache.epoch(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_many_pages_is_whole() {
    let world = World::new().await;
    let (client, plane, faults) = world.plane("p").await;
    for n in 0..1203 {
        create(&client, &format!("m{n:04}"), "1").await;
    }
    let cache = cache(&plane);
    cache.synced().await.unwrap();
    assert_eq!(cache.len(), 1203);
    assert!(cache.list().is_sorted_by_key(|object| object.name_any()));
    assert_eq!(faults.count(Asked::List), 3);
}

fn widgets(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &ApiResource::erase::<Widget>(&()))
}

async fn apply(client: &Client, name: &str, size: impl Into<serde_json::Value>) {
    let params = kube::api::PatchParams::apply("test").force();
    widgets(client).patch(name, &params, &Patch::Apply(widget_json(name, size))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_skipped_and_told_from_an_absent_one() {
    let world = World::new().await;
    let (client, plane, faults) = world.plane("p").await;
    apply(&client, "bad", "large").await;
    apply(&client, "good", 1).await;
    let cache: Cache<Widget> = plane.cache();
    let changes: Arc<Mutex<Vec<(String, bool, bool)>>> = Arc::default();
    let sink = changes.clone();
    let _subscription = cache.subscribe(move |change| {
        sink.lock().push((change.name.name.clone(), change.after.is_some(), change.unreadable));
    });
    until("the watch", || cache.is_connected()).await;
    assert_eq!(cache.list().len(), 1);
    assert!(cache.is_unreadable("default", "bad") && cache.get("default", "bad").is_none());
    assert!(!cache.is_unreadable("default", "good") && !cache.is_unreadable("default", "absent"));
    let other = ["", "a", "defaul", "default0"].iter().any(|namespace| cache.has_unreadable(namespace));
    assert!(cache.has_unreadable("default") && !other);

    // One goes bad, the other becomes good, and both do so where the watch can see it.
    apply(&client, "good", json!({ "of": "another form" })).await;
    until("bad", || cache.is_unreadable("default", "good")).await;
    assert!(cache.get("default", "good").is_none());
    apply(&client, "bad", 5).await;
    until("good", || cache.get("default", "bad").is_some_and(|widget| widget.spec.size == 5)).await;
    assert!(!cache.is_unreadable("default", "bad"));
    let reported = || world.runtime.metrics().encode().contains("objects_total{kind=\"Widget\"} 2\n");
    assert!(reported(), "{}", world.runtime.metrics().encode());

    // The same version is reported once, however often it is listed.
    faults.expire(1);
    faults.cut();
    until("the next list", || cache.epoch() == 2).await;
    assert!(reported(), "{}", world.runtime.metrics().encode());
    widgets(&client).delete("good", &Default::default()).await.unwrap();
    until("the deletion", || !cache.is_unreadable("default", "good")).await;
    let wanted = [
        ("bad", false, true),
        ("good", true, false),
        ("good", false, true),
        ("bad", true, false),
        ("good", false, false),
    ];
    assert_eq!(*changes.lock(), wanted.map(|(name, there, unreadable)| (name.to_owned(), there, unreadable)));
}

#[tokio::test(start_paused = true)]
async fn handles_share_one_watch_and_the_last_ends_it() {
    let world = World::new().await;
    let (client, plane, faults) = world.plane("p").await;
    let (one, two) = (plane.cache::<ConfigMap>(), plane.clone().cache::<ConfigMap>());
    let other: Cache<ConfigMap> = plane.cache_of(Selector::labels("a=b"));
    let metadata: Cache<PartialObjectMeta<ConfigMap>> = plane.cache();
    for synced in [one.synced().await, two.synced().await, other.synced().await, metadata.synced().await] {
        synced.unwrap();
    }
    until("three watches", || faults.count(Asked::Watch) == 3).await;
    drop((one, other, metadata));
    let subscription = two.subscribe(|_| {});
    drop(two);
    let again = plane.cache::<ConfigMap>();
    assert!(again.is_synced(), "the subscription kept it going");
    drop((again, subscription));
    let streams = || faults.streams();
    until("no stream", || streams() == 0).await;
    assert_eq!(faults.count(Asked::List), 3);
    create(&client, "late", "1").await;
    let fresh = plane.cache::<ConfigMap>();
    assert!(!fresh.is_synced());
    fresh.synced().await.unwrap();
    assert!(fresh.get("default", "late").is_some());
    assert_eq!(faults.count(Asked::List), 4);
}

#[tokio::test(start_paused = true)]
async fn selectors_metadata_and_indexes() {
    static BY_VALUE: Index<ConfigMap> = Index::new("value", |object| vec![value(object)]);
    let world = World::new().await;
    let (client, plane, _) = world.plane("p").await;
    create(&client, "a", "red").await;
    create(&client, "b", "red").await;
    create(&client, "c", "blue").await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let labelled = json!({ "metadata": { "labels": { "kind": "x" } } });
    api.patch("c", &Default::default(), &Patch::Merge(labelled)).await.unwrap();
    let all = cache(&plane);
    let some: Cache<ConfigMap> = plane.cache_of(Selector::labels("kind=x"));
    let metadata: Cache<PartialObjectMeta<ConfigMap>> = plane.cache_of(Selector::labels("kind=x"));
    all.synced().await.unwrap();
    some.synced().await.unwrap();
    metadata.synced().await.unwrap();
    let names = |value: &str| {
        all.by_index(&BY_VALUE, value).iter().map(|object| object.name_any()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names("red"), names("blue"), names("green")),
        (vec!["a".into(), "b".into()], vec!["c".into()], vec![])
    );
    assert_eq!((some.len(), metadata.len()), (1, 1));
    set(&client, "b", "blue").await;
    delete(&client, "a").await;
    until("the index follows", || names("red").is_empty() && names("blue") == ["b", "c"]).await;
    let patch = json!({ "metadata": { "labels": { "kind": "y" } } });
    api.patch("c", &Default::default(), &Patch::Merge(patch)).await.unwrap();
    until("it leaves the selectors", || some.is_empty() && metadata.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_cache_asks_for_nothing_but_watches() {
    let world = World::new().await;
    let (client, plane, faults) = world.plane("p").await;
    create(&client, "a", "1").await;
    let cache = plane.cache::<ConfigMap>();
    until("the watch", || cache.is_connected()).await;
    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    assert_eq!((faults.count(Asked::List), faults.count(Asked::Other)), (1, 0));
    let watches = faults.count(Asked::Watch);
    assert!((3..=7).contains(&watches), "{watches}");
    assert!(cache.is_connected());
    assert_eq!(cache.epoch(), 1, "a watch that ends when its time is up is no interruption");
    set(&client, "a", "2").await;
    until("the change", || value(&cache.get("default", "a").unwrap()) == "2").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_or_fails_is_left_and_found_again() {
    let world = World::new().await;
    let (client, plane, faults) = world.plane("p").await;
    faults.hanging();
    let cache = cache(&plane);
    let epochs: Arc<Mutex<Vec<u64>>> = Arc::default();
    let sink = epochs.clone();
    let _subscription = cache.on_connect(move |epoch| sink.lock().push(epoch));
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!cache.is_synced() && !cache.is_connected());
    let asked = faults.count(Asked::List);
    assert!((4..20).contains(&asked), "{asked}");
    faults.slow(Duration::from_secs(5));
    until("a slow server is good enough", || cache.is_connected()).await;
    faults.failing();
    faults.cut();
    until("the interruption", || !cache.is_connected()).await;
    faults.hanging();
    let (watches, lists) = (faults.count(Asked::Watch), faults.count(Asked::List));
    tokio::time::sleep(Duration::from_secs(600)).await;
    let watches = faults.count(Asked::Watch) - watches;
    assert!((10..25).contains(&watches), "{watches}");
    assert_eq!(faults.count(Asked::List), lists);
    create(&client, "a", "1").await;
    faults.good();
    until("the change", || cache.len() == 1).await;
    assert_eq!(*epochs.lock(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_dies_without_a_word_is_noticed() {
    let world = World::new().await;
    let (client, plane, faults) = world.plane("p").await;
    let cache = cache(&plane);
    until("the watch", || cache.is_connected()).await;
    faults.freeze();
    create(&client, "a", "1").await;
    until("the change", || cache.len() == 1).await;
    assert_eq!(faults.count(Asked::List), 2, "one list, and one look at where the server stands");
}

/// Some servers open a watch from a version that they have not reached, and say nothing.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_put_back_is_noticed() {
    let world = World::new().await;
    let (before, _, _) = world.plane("before").await;
    create(&before, "kept", "old").await;
    create(&before, "only-before", "1").await;
    let (client, plane, faults) = world.plane("p").await;
    create(&client, "kept", "new").await;
    create(&client, "only-after", "1").await;
    let cache = cache(&plane);
    until("the watch", || cache.is_connected()).await;
    let (heard, _subscription) = listen(&cache);
    heard.lock().clear();
    faults.restore(world.service("before"));
    until("the older state", || cache.get("default", "only-before").is_some() && cache.is_connected()).await;
    assert_eq!(value(&cache.get("default", "kept").unwrap()), "old");
    assert!(cache.get("default", "only-after").is_none());
    assert!(heard.lock().contains(&entry("only-after", Some("1"), None)));
    // It is followed from there.
    set(&before, "kept", "newer").await;
    until("the change", || value(&cache.get("default", "kept").unwrap()) == "newer").await;
    assert_eq!(cache.epoch(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_plane_that_is_closed_ends_its_watches() {
    let world = World::new().await;
    let (_, plane, faults) = world.plane("p").await;
    let planes = compute_runtime::Planes::single(&plane);
    let cache = plane.cache::<ConfigMap>();
    until("the watch", || cache.is_connected()).await;
    planes.disengage(plane.id());
    until("no stream", || faults.streams() == 0).await;
    assert!(cache.is_synced() && !cache.is_connected());
    let late: Cache<Widget> = plane.cache();
    assert!(late.synced().await.is_err());
}

/// Many planes at once: no more lists than allowed, and those that hang do not keep the others.
#[tokio::test(start_paused = true)]
async fn lists_are_limited_and_planes_that_hang_do_not_keep_the_others() {
    let world = World::new().await;
    let in_flight = Arc::default();
    let mut planes = Vec::new();
    for n in 0..300 {
        planes.push(world.plane_counting(&format!("p{n}"), &in_flight).await);
    }
    let caches: Vec<_> = planes
        .iter()
        .enumerate()
        .map(|(n, (plane, faults))| {
            match n {
                0..100 => faults.hanging(),
                _ => faults.slow(Duration::from_millis(100)),
            }
            plane.cache::<ConfigMap>()
        })
        .collect();
    let began = tokio::time::Instant::now();
    for cache in &caches[100..] {
        tokio::time::timeout(DEADLINE, cache.synced()).await.unwrap().unwrap();
    }
    // Two rounds of the hanging ones, and then the good ones in between.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(in_flight.most() <= 64, "{}", in_flight.most());
    assert!(caches[..100].iter().all(|cache| !cache.is_synced()));
    planes[..100].iter().for_each(|(_, faults)| faults.good());
    for cache in &caches[..100] {
        tokio::time::timeout(DEADLINE, cache.synced()).await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_harms_nobody() {
    let world = World::new().await;
    let (client, plane, _) = world.plane("p").await;
    let cache = cache(&plane);
    let _bad = cache.subscribe(|_| panic!("on purpose"));
    let (heard, _good) = listen(&cache);
    create(&client, "a", "1").await;
    create(&client, "b", "1").await;
    until("both", || heard.lock().len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_dropped_inside_a_call_ends() {
    let world = World::new().await;
    let (client, plane, _) = world.plane("p").await;
    let cache = cache(&plane);
    let slot: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let (calls, inner) = (Arc::new(Mutex::new(0)), slot.clone());
    let count = calls.clone();
    *slot.lock() = Some(cache.subscribe(move |_| {
        *count.lock() += 1;
        drop(inner.lock().take());
    }));
    create(&client, "a", "1").await;
    until("a", || cache.len() == 1).await;
    create(&client, "b", "1").await;
    until("b", || cache.len() == 2).await;
    assert_eq!(*calls.lock(), 1);
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    api.create(&PostParams::default(), &common::config_map("c", "1")).await.unwrap();
    until("c", || cache.len() == 3).await;
}
