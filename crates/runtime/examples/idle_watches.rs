//! What idle watches cost their client: memory of this process for each, over TLS, with a server of its own process that
//! allows 100 streams a connection.
//!
//! `cargo run --release -p compute-runtime --example idle_watches [watches]`

#![allow(clippy::unwrap_used, reason = "an example may end by panicking")]

#[path = "../tests/support/front.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod front;

use std::io::{BufRead as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use compute_apiserver::{ApiServer, Options as ServerOptions, PlaneName};
use compute_runtime::transport::{Options, SharedHost};
use futures::StreamExt as _;
use futures::future::join_all;
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::WatchParams;
use kube::client::Body;
use kube::{Api, Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tower::ServiceExt as _;

use front::{Front, FrontOptions, TOKEN};

#[tokio::main]
async fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => serve().await,
        Some(count) => measure(count.parse().unwrap()).await,
        None => measure(10_000).await,
    }
}

/// The server's process: tells where it is, and ends with its standard input.
async fn serve() {
    let server = ApiServer::new(ServerOptions::default());
    let template = server.template(&[]).await.unwrap();
    server.create_plane(PlaneName::new("test").unwrap(), &template).await.unwrap();
    let front = Front::start(&server, FrontOptions::default()).await;
    println!("{}", serde_json::json!([front.address.to_string(), front.authority]));
    std::io::stdout().flush().unwrap();
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await.unwrap().unwrap();
}

async fn measure(count: usize) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (address, authority): (String, String) = serde_json::from_str(&line).unwrap();
    let mut config = Config::new(format!("https://{address}").parse().unwrap());
    config.root_cert = Some(vec![CertificateDer::from_pem_slice(authority.as_bytes()).unwrap().to_vec()]);
    config.auth_info.token = Some(TOKEN.to_owned().into());

    println!("{count} idle watches, 100 streams a connection:");
    let host = SharedHost::new(config.clone(), &Options::default()).unwrap();
    // Everything that is made once is there before the first measurement.
    drop(open(&host, 100).await);
    let before = memory();
    let started = Instant::now();
    let mut streams = Vec::with_capacity(count);
    while streams.len() < count {
        streams.extend(open(&host, 500.min(count - streams.len())).await);
    }
    let took = started.elapsed();
    show("stream alone", before, count);
    println!("  {:?}, opened in {} ms", host.stats(), took.as_millis());

    let host = SharedHost::new(config, &Options::default()).unwrap();
    let before = memory();
    let clients: Vec<_> = (0..count).map(|_| host.client("/planes/test")).collect();
    show("kube client alone, unused", before, count);
    let before = memory();
    let mut watches = Vec::with_capacity(count);
    for some in clients.chunks(500) {
        watches.extend(join_all(some.iter().map(watch)).await);
    }
    show("kube watch, with the use of its client", before, count);
    // Nothing is freed before the end: what is measured later would take its place.
    drop((streams, watches));
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// Watches as bytes.
async fn open(host: &SharedHost, count: usize) -> Vec<impl Send + use<>> {
    let service = host.service("/planes/test");
    join_all((0..count).map(|_| {
        let request =
            Request::get("/api/v1/configmaps?watch=1&timeoutSeconds=3600").body(Body::empty()).unwrap();
        let service = service.clone();
        async move { service.oneshot(request).await.unwrap().into_body() }
    }))
    .await
}

/// A watch as kube decodes it, polled once.
async fn watch(client: &Client) -> impl Send + use<> {
    let api: Api<ConfigMap> = Api::all(client.clone());
    let mut stream = Box::pin(api.watch(&WatchParams::default().timeout(290), "0").await.unwrap());
    let _ = tokio::time::timeout(Duration::ZERO, stream.next()).await;
    stream
}

/// What the process has in memory, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

fn show(what: &str, before: usize, count: usize) {
    println!("  {what}: {} bytes each", memory().saturating_sub(before) / count);
}
