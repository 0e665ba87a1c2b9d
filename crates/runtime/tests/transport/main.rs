//! The transport against real sockets: sharing connections, losing them, and who is calling.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod credentials;
mod failures;
mod protocols;
mod refusals;
mod sharing;

use std::pin::Pin;
use std::time::Duration;

use compute_runtime::transport::{Options, SharedHost};
use futures::{Stream, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};

use support::soon;

/// Fast enough that a test need not wait long for a dead connection, slow enough for a busy machine.
fn options() -> Options {
    Options {
        ping_interval: Duration::from_millis(200),
        ping_timeout: Duration::from_secs(2),
        ..Options::default()
    }
}

/// The plane's path.
fn path(plane: &impl std::fmt::Display) -> String {
    format!("/planes/{plane}")
}

type Watch = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Send>>;

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

/// A watch whose head has arrived.
async fn watch(client: &Client) -> Watch {
    let params = WatchParams::default().timeout(290);
    Box::pin(maps(client).watch(&params, "0").await.unwrap())
}

/// The name of the next object that the watch tells of.
async fn next(watch: &mut Watch) -> Option<String> {
    match soon("the watch goes on", watch.try_next()).await {
        Ok(Some(WatchEvent::Added(map))) => Some(map.name_any()),
        Ok(Some(other)) => panic!("{other:?}"),
        Ok(None) | Err(_) => None,
    }
}

async fn create(client: &Client, name: &str) {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    maps(client).create(&PostParams::default(), &map).await.unwrap();
}

/// Waits until the host carries as many connections and streams.
async fn carries(host: &SharedHost, connections: usize, streams: usize) {
    support::eventually("the host's connections", async || {
        let stats = host.stats();
        if (stats.connections, stats.streams) == (connections, streams) {
            Ok(())
        } else {
            Err(format!("{stats:?}"))
        }
    })
    .await;
}
