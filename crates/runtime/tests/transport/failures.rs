//! Connections that die, loudly or not, and servers that go away and come back.

use std::time::Duration;

use compute_runtime::transport::{Options, SharedHost};
use futures::future::join_all;
use tokio::net::TcpListener;

use super::{carries, create, maps, next, options, path, watch};
use crate::support::{Front, FrontOptions, eventually, plane, server, soon};

#[tokio::test]
async fn a_connection_that_no_longer_answers_is_replaced() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, FrontOptions { max_streams: 5, ..FrontOptions::default() }).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    let client = host.client(&path(&plane));
    let mut watches = join_all((0..8).map(|_| watch(&client))).await;
    let before = front.accepted();
    front.freeze();
    for watch in &mut watches {
        assert_eq!(next(watch).await, None, "a watch on a dead connection ends");
    }
    carries(&host, 0, 0).await;
    let mut again = watch(&client).await;
    create(&client, "one").await;
    assert_eq!(next(&mut again).await.as_deref(), Some("one"));
    assert_eq!(front.accepted(), before + 1);
}

#[tokio::test]
async fn a_connection_told_to_go_ends_with_its_last_stream() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, FrontOptions::default()).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    let client = host.client(&path(&plane));
    let mut old = watch(&client).await;
    front.go_away();
    // Requests at the very moment of the GOAWAY go through too.
    let reads = join_all((0..50).map(|_| async { maps(&client).get_opt("none").await })).await;
    for read in reads {
        assert!(read.unwrap().is_none());
    }
    eventually("new requests take another connection", async || {
        create_any(&client).await;
        if front.accepted() == 2 { Ok(()) } else { Err(front.accepted()) }
    })
    .await;
    let mut new = watch(&client).await;
    create(&client, "one").await;
    let (mut seen_by_old, mut seen_by_new) = (String::new(), String::new());
    while seen_by_old != "one" {
        seen_by_old = next(&mut old).await.expect("the old watch goes on");
    }
    while seen_by_new != "one" {
        seen_by_new = next(&mut new).await.expect("the new watch goes on");
    }
    assert_eq!(front.open(), 2);
    drop(old);
    carries(&host, 1, 1).await;
    eventually(
        "the old connection closes",
        async || if front.open() == 1 { Ok(()) } else { Err(front.open()) },
    )
    .await;
}

async fn create_any(client: &kube::Client) {
    let mut map = k8s_openapi::api::core::v1::ConfigMap::default();
    map.metadata.generate_name = Some("any-".to_owned());
    maps(client).create(&Default::default(), &map).await.unwrap();
}

#[tokio::test]
async fn a_host_that_does_not_answer_fails_all_who_wait_and_is_tried_again() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, FrontOptions::default()).await;
    let mut config = front.config();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    config.cluster_url = format!("https://{}", gone.local_addr().unwrap()).parse().unwrap();
    drop(gone);
    let host = SharedHost::new(config, &options()).unwrap();
    let client = host.client(&path(&plane));
    let reads =
        soon("all fail", join_all((0..20).map(|_| async { maps(&client).get_opt("none").await }))).await;
    for read in reads {
        let error = read.unwrap_err();
        assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
        let error = compute_runtime::write::Error::from(error);
        assert_eq!(error.kind(), "unavailable");
    }
    let stats = host.stats();
    assert_eq!((stats.connections, stats.streams, stats.waiting, stats.opening), (0, 0, 0, 0), "{stats:?}");
}

#[tokio::test]
async fn a_host_that_takes_connections_and_says_nothing_times_out() {
    let server = server();
    let front = Front::start(&server, FrontOptions::default()).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = front.config();
    config.cluster_url = format!("https://{}", silent.local_addr().unwrap()).parse().unwrap();
    let host = SharedHost::new(config, &Options { connect_timeout: Duration::from_millis(100), ..options() })
        .unwrap();
    let error = soon("it fails", maps(&host.client("")).get_opt("none")).await.unwrap_err();
    let kube::Error::Service(error) = error else { panic!("{error:?}") };
    let error = error.downcast::<compute_runtime::transport::Error>().unwrap();
    assert!(error.is_unsent());
    assert!(std::error::Error::source(&*error).unwrap().to_string().contains("in time"), "{error:?}");
}

#[tokio::test]
async fn a_host_of_another_authority_is_not_trusted() {
    let server = server();
    let (front, other) = (
        Front::start(&server, FrontOptions::default()).await,
        Front::start(&server, FrontOptions::default()).await,
    );
    let mut config = front.config();
    config.root_cert = other.config().root_cert;
    let host = SharedHost::new(config, &options()).unwrap();
    let error = maps(&host.client("")).get_opt("none").await.unwrap_err();
    let kube::Error::Service(error) = error else { panic!("{error:?}") };
    let error = error.downcast::<compute_runtime::transport::Error>().unwrap();
    assert!(std::error::Error::source(&*error).unwrap().to_string().contains("TLS"), "{error:?}");
}
