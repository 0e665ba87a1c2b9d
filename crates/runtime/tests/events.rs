//! Events on the embedded server: what people see, and what a flood or a dead plane costs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use compute_runtime::events::{Events, Limits, Notice, Publisher, Reporter, events};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Namespace};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use support::{Fault, Faults, Widget, client, eventually, plane, plane_client, server, soon, widget};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A clock that the test moves.
#[derive(Clone)]
struct Hand(Arc<AtomicI64>);

impl Hand {
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(1_800_000_000)))
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
    }

    fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

fn publisher(limits: Limits, hand: &Hand) -> (Events, Publisher) {
    let reporter = Reporter { component: "compute-manager".into(), instance: "compute-manager-0".into() };
    let hand = hand.clone();
    events(reporter, limits, move || hand.now())
}

fn run(publisher: Publisher) -> (JoinHandle<()>, CancellationToken) {
    let stop = CancellationToken::new();
    let task = publisher.run(stop.clone());
    (tokio::spawn(async move { task.await.unwrap() }), stop)
}

async fn stored(client: &Client) -> Vec<Event> {
    Api::<Event>::all(client.clone()).list(&ListParams::default()).await.unwrap().items
}

async fn created(client: &Client, name: &str) -> Widget {
    let widgets: Api<Widget> = Api::default_namespaced(client.clone());
    widgets.create(&PostParams::default(), &widget(name, 1)).await.unwrap()
}

async fn written(events: &Events, count: u64) {
    eventually("events are written", async || match events.counts().written {
        written if written == count => Ok(()),
        written => Err(format!("{written} of {count}")),
    })
    .await;
}

#[tokio::test]
async fn what_is_told_again_is_counted_and_shown_where_people_look() {
    let (_server, _, client) = plane_client().await;
    let hand = Hand::new();
    let (events, publisher) = publisher(Limits::default(), &hand);
    let (_task, _stop) = run(publisher);
    let recorder = events.recorder("test", client.clone());
    let object = created(&client, "web").await;
    let notice = Notice::warning("ImageFailed", "the image cannot be pulled");
    recorder.tell(&object, notice.clone());
    written(&events, 1).await;
    hand.forward(60);
    recorder.tell(&object, notice);
    written(&events, 2).await;

    let about = format!("involvedObject.uid={},involvedObject.kind=Widget", object.uid().unwrap());
    let api: Api<Event> = Api::default_namespaced(client.clone());
    let found = api.list(&ListParams::default().fields(&about)).await.unwrap().items;
    let [event] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.reason.as_deref(), Some("ImageFailed"));
    assert_eq!(event.message.as_deref(), Some("the image cannot be pulled"));
    assert_eq!(event.count, Some(2));
    let (first, last) = (event.first_timestamp.clone().unwrap().0, event.last_timestamp.clone().unwrap().0);
    assert_eq!(last.duration_since(first).as_secs(), 60);
    assert_eq!(event.source.clone().unwrap().component.as_deref(), Some("compute-manager"));
    assert_eq!(event.reporting_instance.as_deref(), Some("compute-manager-0"));

    recorder.tell(&object, Notice::normal("Ready", "all is well"));
    written(&events, 3).await;
    assert_eq!(stored(&client).await.len(), 2);
}

#[tokio::test]
async fn a_restart_goes_on_counting_and_a_forgotten_event_is_made_again() {
    let (_server, _, client) = plane_client().await;
    let hand = Hand::new();
    let object = created(&client, "web").await;
    let notice = Notice::normal("Started", "up");
    for _ in 0..2 {
        let (events, publisher) = publisher(Limits::default(), &hand);
        let (task, stop) = run(publisher);
        events.recorder("test", client.clone()).tell(&object, notice.clone());
        stop.cancel();
        soon("what is queued is written before the end", task).await.unwrap();
        assert_eq!(events.counts().written, 1);
    }
    let [event] = stored(&client).await.try_into().unwrap();
    assert_eq!(event.count, Some(2));

    let (events, publisher) = publisher(Limits::default(), &hand);
    let (_task, _stop) = run(publisher);
    let recorder = events.recorder("test", client.clone());
    recorder.tell(&object, notice.clone());
    written(&events, 1).await;
    let api: Api<Event> = Api::default_namespaced(client.clone());
    api.delete(&event.name_any(), &Default::default()).await.unwrap();
    recorder.tell(&object, notice);
    written(&events, 2).await;
    assert_eq!(stored(&client).await[0].count, Some(1));
}

#[tokio::test]
async fn objects_without_a_namespace_are_told_of_in_default() {
    let (_server, _, client) = plane_client().await;
    let (events, publisher) = publisher(Limits::default(), &Hand::new());
    let (_task, _stop) = run(publisher);
    let namespace = Api::<Namespace>::all(client.clone()).get("default").await.unwrap();
    events.recorder("test", client.clone()).tell(&namespace, Notice::normal("Seen", "here"));
    written(&events, 1).await;
    let [event] = stored(&client).await.try_into().unwrap();
    assert_eq!(event.namespace().as_deref(), Some("default"));
    assert_eq!(event.involved_object.namespace, None);
}

#[tokio::test]
async fn a_flood_about_one_object_is_limited_and_others_are_not() {
    let (_server, _, client) = plane_client().await;
    let hand = Hand::new();
    let limits = Limits { burst: 3, refill: Duration::from_secs(10), ..Limits::default() };
    let (events, publisher) = publisher(limits, &hand);
    let (_task, _stop) = run(publisher);
    let recorder = events.recorder("test", client.clone());
    let (loud, quiet) = (created(&client, "loud").await, created(&client, "quiet").await);
    for at in 0..20 {
        recorder.tell(&loud, Notice::normal("Changed", format!("change {at}")));
    }
    recorder.tell(&quiet, Notice::normal("Changed", "change"));
    written(&events, 4).await;
    assert_eq!(events.counts().limited, 17);
    hand.forward(10);
    recorder.tell(&loud, Notice::normal("Changed", "change 19"));
    written(&events, 5).await;
    let late = stored(&client).await.into_iter().find(|event| event.message.as_deref() == Some("change 19"));
    assert_eq!(late.unwrap().count, Some(2), "what was limited is counted");
}

#[tokio::test]
async fn telling_never_waits() {
    let (_server, _, client) = plane_client().await;
    let (events, publisher) = publisher(Limits { queue: 5, ..Limits::default() }, &Hand::new());
    let recorder = events.recorder("test", client.clone());
    let object = created(&client, "web").await;
    for at in 0..12 {
        recorder.tell(&object, Notice::normal("Changed", format!("change {at}")));
    }
    assert_eq!(events.counts().dropped, 7);
    drop(publisher);
    recorder.tell(&object, Notice::normal("Changed", "nobody listens"));
    assert_eq!(events.counts().dropped, 8);
}

#[tokio::test]
async fn a_dead_plane_delays_no_other() {
    let server = server();
    let (dead, alive) = (plane(&server, "dead").await, plane(&server, "alive").await);
    let faults = Faults::default();
    faults.set(Some(Fault::Hang));
    let dead_client = faults.client(&server, &dead);
    let alive_client = client(&server, &alive);
    let limits =
        Limits { plane_queue: 4, burst: 100, timeout: Duration::from_secs(600), ..Limits::default() };
    let (events, publisher) = publisher(limits, &Hand::new());
    let (_task, _stop) = run(publisher);
    let object = created(&alive_client, "web").await;
    let (to_dead, to_alive) = (events.recorder("dead", dead_client), events.recorder("alive", alive_client));
    for at in 0..20 {
        to_dead.tell(&object, Notice::normal("Changed", format!("change {at}")));
    }
    eventually("what a plane cannot take is dropped", async || match events.counts().dropped {
        15 => Ok(()),
        dropped => Err(dropped),
    })
    .await;
    for at in 0..10 {
        to_alive.tell(&object, Notice::normal("Changed", format!("change {at}")));
        written(&events, at + 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_counted_and_made_up_for() {
    let (server, plane, client) = plane_client().await;
    let faults = Faults::default();
    let (events, publisher) = publisher(Limits::default(), &Hand::new());
    let (task, stop) = run(publisher);
    let recorder = events.recorder("test", faults.client(&server, &plane));
    let object = created(&client, "web").await;
    for (failed, fault) in [(1, Fault::Break), (2, Fault::Hang)] {
        faults.set(Some(fault));
        recorder.tell(&object, Notice::normal("Started", "up"));
        eventually("a failure is counted", async || match events.counts().failed {
            found if found == failed => Ok(()),
            found => Err(found),
        })
        .await;
    }
    faults.set(None);
    recorder.tell(&object, Notice::normal("Started", "up"));
    written(&events, 1).await;
    assert_eq!(stored(&client).await[0].count, Some(3));

    faults.set(Some(Fault::Hang));
    recorder.tell(&object, Notice::normal("Stopped", "down"));
    stop.cancel();
    task.await.unwrap();
}
