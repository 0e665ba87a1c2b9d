//! A cache over TLS, whose connections break without a word.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "../../apiserver/tests/common/tls.rs"]
mod tls;

use compute_apiserver::PlaneName;
use compute_runtime::{Cache, Plane};
use k8s_openapi::api::core::v1::ConfigMap;

use common::{World, create, set, until, value};
use tls::TlsServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_over_tls_survives_cut_connections() {
    let world = World::new().await;
    let (client, _, _) = world.plane("p").await;
    let mut server = TlsServer::start(&world.server);
    let plane = Plane::new(&world.runtime, "p".into(), server.client(&PlaneName::new("p").unwrap()));
    create(&client, "a", "0").await;
    let cache: Cache<ConfigMap> = plane.cache();
    until("the first watch", || cache.is_connected()).await;
    for round in 1..=5 {
        let epoch = cache.epoch();
        server.cut();
        let wanted = round.to_string();
        set(&client, "a", &wanted).await;
        until("the change", || value(&cache.get("default", "a").unwrap()) == wanted).await;
        until("the next watch", || cache.epoch() > epoch).await;
    }
}
