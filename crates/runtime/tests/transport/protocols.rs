//! Hosts that do not speak HTTP/2, or no TLS.

use std::time::Duration;

use compute_runtime::transport::{Options, SharedHost};
use futures::future::join_all;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use kube::Config;
use tokio::net::TcpListener;

use super::{carries, create, maps, next, options, path, watch};
use crate::support::{Front, FrontOptions, TOKEN, eventually, plane, server};

fn http1() -> FrontOptions {
    FrontOptions { protocols: vec!["http/1.1"], ..FrontOptions::default() }
}

#[tokio::test]
async fn http1_takes_a_connection_for_each_request_under_way_and_keeps_it_for_the_next() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, http1()).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    let client = host.client(&path(&plane));
    for at in 0..5 {
        create(&client, &format!("map-{at}")).await;
        carries(&host, 1, 0).await;
    }
    assert_eq!(front.accepted(), 1);
    let mut watches = join_all((0..3).map(|_| watch(&client))).await;
    create(&client, "one").await;
    for watch in &mut watches {
        while next(watch).await.expect("the watch goes on") != "one" {}
    }
    carries(&host, 4, 3).await;
    assert_eq!(front.accepted(), 4);
    // A watch that is dropped takes its connection with it.
    drop(watches);
    carries(&host, 1, 0).await;
    assert!(maps(&client).get_opt("one").await.unwrap().is_some());
    assert_eq!(front.accepted(), 4);
}

#[tokio::test]
async fn http1_connections_close_when_nobody_uses_them() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, http1()).await;
    let idle = Options { idle_timeout: Duration::from_millis(50), ..options() };
    let host = SharedHost::new(front.config(), &idle).unwrap();
    let client = host.client(&path(&plane));
    create(&client, "one").await;
    carries(&host, 0, 0).await;
    eventually("the server sees it go", async || if front.open() == 0 { Ok(()) } else { Err(front.open()) })
        .await;
    create(&client, "two").await;
    assert_eq!(front.accepted(), 2);
}

#[tokio::test]
async fn http1_connections_that_the_server_closes_are_replaced() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, http1()).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    let client = host.client(&path(&plane));
    create(&client, "one").await;
    carries(&host, 1, 0).await;
    front.go_away();
    carries(&host, 0, 0).await;
    create(&client, "two").await;
    assert_eq!(front.accepted(), 2);
}

#[tokio::test]
async fn without_tls_it_is_http1() {
    let server = server();
    let plane = plane(&server, "test").await;
    server.tokens().add(
        TOKEN,
        compute_apiserver::Identity::superuser("test"),
        compute_apiserver::Access::AllPlanes,
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // A path of the address itself comes before the plane's.
    let mut config =
        Config::new(format!("http://{}/planes/", listener.local_addr().unwrap()).parse().unwrap());
    config.auth_info.token = Some(TOKEN.to_owned().into());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = TowerToHyperService::new(server.network_service());
            tokio::spawn(async move {
                let builder = auto::Builder::new(TokioExecutor::new()).http1_only();
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    let host = SharedHost::new(config, &options()).unwrap();
    let client = host.client(plane.as_str());
    let mut watching = watch(&client).await;
    create(&client, "one").await;
    assert_eq!(next(&mut watching).await.as_deref(), Some("one"));
}
