//! All planes of a host share its connections, and there are as many as the server's stream limit asks for.

use std::sync::Arc;
use std::time::Duration;

use compute_runtime::transport::{Options, SharedHost};
use futures::future::join_all;
use http::Request;
use kube::client::Body;
use tower::Service as _;

use super::{carries, create, maps, next, options, path, watch};
use crate::support::{Front, FrontOptions, client, eventually, plane, server, soon};

#[tokio::test]
async fn planes_share_one_connection_and_stay_apart() {
    let server = server();
    let front = Front::start(&server, FrontOptions::default()).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    let mut watches = Vec::new();
    for at in 0..10 {
        let plane = plane(&server, &format!("plane-{at}")).await;
        let client = host.client(&path(&plane));
        watches.push((watch(&client).await, client));
    }
    for (at, (watch, client)) in watches.iter_mut().enumerate() {
        create(client, &format!("map-{at}")).await;
        assert_eq!(next(watch).await.unwrap(), format!("map-{at}"));
        assert!(maps(client).get_opt("map-99").await.unwrap().is_none());
    }
    assert_eq!((front.accepted(), host.stats().streams), (1, 10));
    drop(watches);
    carries(&host, 1, 0).await;
}

#[tokio::test]
async fn a_further_connection_is_opened_at_the_limit_and_not_before() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, FrontOptions { max_streams: 5, ..FrontOptions::default() }).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    let client = host.client(&path(&plane));
    let mut watches = Vec::new();
    for at in 1..=12 {
        watches.push(watch(&client).await);
        assert_eq!(front.accepted(), usize::div_ceil(at, 5), "watch {at}");
    }
    // Short requests find room beside the watches, and open a connection when there is none.
    create(&client, "one").await;
    assert_eq!(front.accepted(), 3);
    for _ in 0..3 {
        watches.push(watch(&client).await);
    }
    create(&client, "two").await;
    assert_eq!(front.accepted(), 4);
    for watch in &mut watches {
        assert_eq!(next(watch).await.as_deref(), Some("one"));
        assert_eq!(next(watch).await.as_deref(), Some("two"));
    }
    // A place that becomes free is used again.
    watches.truncate(1);
    carries(&host, 4, 1).await;
    for _ in 0..19 {
        watches.push(watch(&client).await);
    }
    assert_eq!(front.accepted(), 4);
}

#[tokio::test]
async fn a_burst_before_any_connection_opens_as_many_as_it_takes() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, FrontOptions { max_streams: 10, ..FrontOptions::default() }).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    let client = host.client(&path(&plane));
    let watches = soon("all watches start", join_all((0..100).map(|_| watch(&client)))).await;
    let stats = host.stats();
    assert_eq!((stats.streams, stats.waiting, stats.opening), (100, 0, 0), "{stats:?}");
    assert!(stats.connections >= 10 && stats.connections <= 13, "{stats:?}");
    drop(watches);
}

#[tokio::test]
async fn callers_that_go_away_while_they_wait_leave_nothing_behind() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, FrontOptions { max_streams: 3, ..FrontOptions::default() }).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    for _ in 0..20 {
        let mut service = host.service(&path(&plane));
        let waiting = (0..50).map(|_| service.call(Request::get("/version").body(Body::empty()).unwrap()));
        let waiting: Vec<_> = waiting.collect();
        let _ = tokio::time::timeout(Duration::from_millis(1), join_all(waiting)).await;
    }
    eventually("every place is free", async || match host.stats() {
        stats if stats.streams == 0 && stats.waiting == 0 && stats.opening == 0 => Ok(()),
        stats => Err(format!("{stats:?}")),
    })
    .await;
    create(&host.client(&path(&plane)), "one").await;
}

#[tokio::test]
async fn a_reader_that_stops_does_not_stop_the_others() {
    let server = server();
    let (busy, quiet) = (plane(&server, "busy").await, plane(&server, "quiet").await);
    let front = Front::start(&server, FrontOptions::default()).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    let (busy_client, quiet_client) = (host.client(&path(&busy)), host.client(&path(&quiet)));
    // Streams that nobody reads, each with more to say than its window holds.
    let stuck: Vec<_> = join_all((0..8).map(|_| watch(&busy_client))).await;
    let backdoor = client(&server, &busy);
    for at in 0..8 {
        let mut map = k8s_openapi::api::core::v1::ConfigMap::default();
        map.metadata.name = Some(format!("big-{at}"));
        map.data = Some([("text".to_owned(), "x".repeat(500_000))].into());
        maps(&backdoor).create(&Default::default(), &map).await.unwrap();
    }
    let mut reading = watch(&quiet_client).await;
    create(&quiet_client, "one").await;
    assert_eq!(next(&mut reading).await.as_deref(), Some("one"));
    // And a list larger than a window comes through beside them.
    let list = soon("the list comes", maps(&busy_client).list(&Default::default())).await.unwrap();
    assert!(list.items.len() >= 8);
    assert_eq!(front.accepted(), 1);
    drop(stuck);
}

#[tokio::test]
async fn what_nobody_uses_is_closed() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, FrontOptions { max_streams: 2, ..FrontOptions::default() }).await;
    let idle = Options {
        ping_interval: Duration::from_millis(20),
        idle_timeout: Duration::from_millis(50),
        ..options()
    };
    let host = SharedHost::new(front.config(), &idle).unwrap();
    let client = host.client(&path(&plane));
    let mut watches = join_all((0..6).map(|_| watch(&client))).await;
    watches.truncate(1);
    carries(&host, 1, 1).await;
    create(&client, "one").await;
    assert_eq!(next(&mut watches[0]).await.as_deref(), Some("one"), "the one in use stays");
    drop(watches);
    eventually(
        "the server sees all of them go",
        async || if front.open() == 0 { Ok(()) } else { Err(front.open()) },
    )
    .await;
    create(&client, "two").await;
}

#[tokio::test]
async fn a_host_that_nobody_holds_closes_its_connections() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, FrontOptions::default()).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    let client = host.client(&path(&plane));
    let mut watching = watch(&client).await;
    drop((host, client));
    create(&crate::support::client(&server, &plane), "one").await;
    assert_eq!(next(&mut watching).await.as_deref(), Some("one"), "a stream outlives its client");
    drop(watching);
    eventually("the connection goes", async || if front.open() == 0 { Ok(()) } else { Err(front.open()) })
        .await;
}

/// Ten thousand watches over connections of a hundred streams.
#[tokio::test]
async fn ten_thousand_watches_take_a_hundred_connections() {
    const WATCHES: usize = 10_000;
    let server = server();
    let plane = Arc::new(plane(&server, "test").await);
    let front = Front::start(&server, FrontOptions::default()).await;
    let host = SharedHost::new(front.config(), &Options::default()).unwrap();
    let client = host.client(&path(&plane));
    let mut watches = Vec::with_capacity(WATCHES);
    while watches.len() < WATCHES {
        let more = join_all((0..500).map(|_| watch(&client)));
        watches.extend(tokio::time::timeout(Duration::from_secs(120), more).await.unwrap());
    }
    let stats = host.stats();
    assert_eq!((stats.connections, stats.streams), (WATCHES / 100, WATCHES), "{stats:?}");
    create(&client, "one").await;
    for watch in &mut watches {
        assert_eq!(next(watch).await.as_deref(), Some("one"));
    }
    drop(watches);
    carries(&host, WATCHES / 100 + 1, 0).await;
}
