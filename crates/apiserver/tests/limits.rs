//! Limits over the wire and without it: floods get 429 and slow no other plane, and what was taken comes back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use common::{Recorder, TlsServer, empower, eventually, plane, soon};
use compute_apiserver::hooks::{AdmissionRequest, Hook, HookError, Operation, Outcome, Rule, Rules};
use compute_apiserver::{Access, ApiServer, Body, Identity, Limits, Options, PlaneName};
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, Client};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

type RequestBody = UnsyncBoxBody<Bytes, Infallible>;

fn limits() -> Limits {
    Limits {
        requests: 4,
        requests_per_plane: 3,
        requests_per_caller: 2,
        kept_per_caller: 0,
        queue_per_caller: 0,
        queue_per_plane: 0,
        watchers: 4,
        watchers_per_plane: 3,
        watchers_per_caller: 2,
        ..Limits::default()
    }
}

async fn server(limits: Limits) -> ApiServer {
    server_with(Options { limits, ..Options::default() }).await
}

async fn server_with(options: Options) -> ApiServer {
    let server = ApiServer::new(options);
    for name in ["a", "b", "c"] {
        let name = plane(&server, name).await;
        empower(&server, &name, "staff").await;
    }
    for user in ["ann", "bob", "eve"] {
        server.tokens().add(user, Identity::user(user).in_group("staff"), Access::AllPlanes);
    }
    server.tokens().add("root", Identity::superuser("root"), Access::AllPlanes);
    server
}

fn request(method: &Method, user: &str, path: &str, body: RequestBody) -> Request<RequestBody> {
    let request = Request::builder().method(method).uri(path);
    request.header("authorization", format!("Bearer {user}")).body(body).unwrap()
}

async fn send(
    server: &ApiServer,
    method: &Method,
    user: &str,
    path: &str,
    body: RequestBody,
) -> Response<Body> {
    server.network_service().oneshot(request(method, user, path, body)).await.unwrap()
}

fn whole(bytes: impl Into<Bytes>) -> RequestBody {
    Full::new(bytes.into()).boxed_unsync()
}

/// A body that never ends.
fn endless() -> RequestBody {
    StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>()).boxed_unsync()
}

async fn get(server: &ApiServer, user: &str, plane: &str) -> Response<Body> {
    send(server, &Method::GET, user, &format!("/planes/{plane}{CONFIG_MAPS}"), whole("")).await
}

/// A request that is in flight until it is hung up.
fn hold(server: &ApiServer, user: &str, plane: &str) -> JoinHandle<()> {
    let request = request(&Method::POST, user, &format!("/planes/{plane}{CONFIG_MAPS}"), endless());
    let service = server.network_service();
    tokio::spawn(async move {
        let _ = service.oneshot(request).await;
    })
}

async fn hang_up(held: Vec<JoinHandle<()>>) {
    for task in held {
        task.abort();
        let _ = task.await;
    }
}

/// Waits until a request is answered with `code`.
async fn until(server: &ApiServer, user: &str, plane: &str, code: u16) {
    eventually("the answer", async || match get(server, user, plane).await.status().as_u16() {
        found if found == code => Ok(()),
        found => Err(format!("{user} in {plane}: {found}")),
    })
    .await;
}

async fn is_a_refusal(response: Response<Body>) {
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let status: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["reason"], "TooManyRequests");
    assert_eq!(status["code"], 429);
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
}

#[tokio::test]
async fn a_caller_and_a_plane_have_their_limits_and_others_are_served() {
    let server = server(limits()).await;
    let mut held: Vec<_> = (0..2).map(|_| hold(&server, "ann", "a")).collect();
    until(&server, "ann", "a", 429).await;
    is_a_refusal(get(&server, "ann", "a").await).await;
    until(&server, "bob", "a", 200).await;
    until(&server, "ann", "b", 200).await;

    held.push(hold(&server, "bob", "a"));
    until(&server, "eve", "a", 429).await;
    until(&server, "eve", "b", 200).await;

    held.push(hold(&server, "eve", "b"));
    until(&server, "bob", "c", 429).await;
    // Those who keep the server running, and its probes, are not held back.
    until(&server, "root", "a", 200).await;
    let health = send(&server, &Method::GET, "nobody", "/healthz", whole("")).await;
    assert_eq!(health.status(), 200);

    hang_up(held).await;
    for (user, plane) in [("ann", "a"), ("bob", "a"), ("eve", "b"), ("bob", "c")] {
        until(&server, user, plane, 200).await;
    }
}

#[tokio::test]
async fn in_process_callers_have_the_same_limits() {
    let server = server(limits()).await;
    let name = PlaneName::new("a").unwrap();
    let service = || server.service(&name, Identity::user("controller").in_group("staff"));
    let held: Vec<_> = (0..2)
        .map(|_| {
            let request = Request::post(CONFIG_MAPS).body(endless()).unwrap();
            let service = service();
            tokio::spawn(async move {
                let _ = service.oneshot(request).await;
            })
        })
        .collect();
    let ask = async || service().oneshot(Request::get(CONFIG_MAPS).body(whole("")).unwrap()).await.unwrap();
    eventually("a refusal", async || match ask().await.status().as_u16() {
        429 => Ok(()),
        code => Err(code),
    })
    .await;
    until(&server, "ann", "a", 200).await;
    hang_up(held).await;
    eventually("an answer", async || match ask().await.status().as_u16() {
        200 => Ok(()),
        code => Err(code),
    })
    .await;
}

#[tokio::test]
async fn a_burst_waits_for_its_turn() {
    let limits = Limits { queue_per_caller: 1, queue_per_plane: 1, queue_time: common::DEADLINE, ..limits() };
    let server = server(limits).await;
    let held: Vec<_> = (0..2).map(|_| hold(&server, "ann", "a")).collect();
    // One waits, so that the next is refused.
    let asking = server.clone();
    let first = tokio::spawn(async move {
        loop {
            let answer = get(&asking, "ann", "a").await.status();
            if answer != 429 {
                return answer;
            }
        }
    });
    until(&server, "ann", "a", 429).await;
    hang_up(held).await;
    assert_eq!(soon("the one that waited", first).await.unwrap(), 200);
}

#[tokio::test]
async fn whoever_has_few_requests_does_not_wait_for_the_others() {
    let server = server(Limits { kept_per_caller: 1, ..limits() }).await;
    let held: Vec<_> = [("ann", "a"), ("ann", "a"), ("bob", "a"), ("ann", "b")]
        .map(|(user, plane)| hold(&server, user, plane))
        .into();
    until(&server, "ann", "a", 429).await;
    until(&server, "ann", "b", 429).await;
    for plane in ["a", "b", "c"] {
        assert_eq!(get(&server, "eve", plane).await.status(), 200, "{plane}");
    }
    hang_up(held).await;
}

#[tokio::test]
async fn watches_are_counted_and_take_no_request() {
    let server = server(limits()).await;
    let watch = async |user: &str, plane: &str| {
        let path = format!("/planes/{plane}{CONFIG_MAPS}?watch=true");
        send(&server, &Method::GET, user, &path, whole("")).await
    };
    let mut open = Vec::new();
    for (user, plane) in [("ann", "a"), ("ann", "a"), ("bob", "a"), ("ann", "b")] {
        let response = watch(user, plane).await;
        assert_eq!(response.status(), 200, "{user} {plane}");
        open.push(response);
    }
    for (user, plane) in [("ann", "a"), ("eve", "a"), ("eve", "c")] {
        is_a_refusal(watch(user, plane).await).await;
    }
    // They hold no place of a request.
    for _ in 0..3 {
        assert_eq!(get(&server, "ann", "a").await.status(), 200);
    }
    open.clear();
    assert_eq!(watch("ann", "a").await.status(), 200);
}

#[tokio::test]
async fn many_at_once_all_get_through_one_turn() {
    let server = server(Limits { running: 1, ..Limits::default() }).await;
    let server = Arc::new(server);
    let path = format!("/planes/a{CONFIG_MAPS}");
    let writes = (0..100).map(|number| {
        let body = json!({ "metadata": { "name": format!("m{number}") }, "data": { "x": "y".repeat(4096) } });
        let (server, path) = (server.clone(), path.clone());
        async move {
            let users = ["ann", "bob", "eve"];
            send(&server, &Method::POST, users[number % 3], &path, whole(body.to_string())).await.status()
        }
    });
    for code in soon("all writes", join_all(writes)).await {
        assert_eq!(code, 201);
    }
    // Lists that are longer than one turn, in every shape, whole and compressed.
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let metadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let lists = ["application/json", table, metadata].into_iter().cycle().take(30).map(|accept| {
        let (server, path) = (server.clone(), path.clone());
        async move {
            let mut request = request(&Method::GET, "ann", &path, whole(""));
            request.headers_mut().insert("accept", accept.parse().unwrap());
            let response = server.network_service().oneshot(request).await.unwrap();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let list: Value = serde_json::from_slice(&body).unwrap();
            let member = if accept == table { "rows" } else { "items" };
            list[member].as_array().unwrap().len()
        }
    });
    assert!(soon("all lists", join_all(lists)).await.iter().all(|length| *length == 100));
}

/// Asks the server, as somebody else, before it lets a write pass, and notes what it was told.
struct CallsBack {
    server: ApiServer,
    rules: Rules,
    answers: Mutex<Vec<u16>>,
}

impl Hook for CallsBack {
    fn name(&self) -> &str {
        "calls-back.example.com"
    }

    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn validate<'a>(&'a self, request: &'a AdmissionRequest) -> BoxFuture<'a, Result<Outcome, HookError>> {
        async move {
            let code = get(&self.server, "eve", &request.plane).await.status().as_u16();
            self.answers.lock().unwrap().push(code);
            Ok(Outcome::allow())
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_hook_that_calls_back_is_served_while_its_plane_is_full() {
    let limits = Limits {
        kept_per_caller: 1,
        queue_per_caller: 100,
        queue_per_plane: 100,
        queue_time: common::DEADLINE,
        running: 1,
        ..limits()
    };
    let server = server(limits).await;
    let rules = Rules(vec![Rule::new(&[Operation::Create], "", &["configmaps"])]);
    let hook = Arc::new(CallsBack { server: server.clone(), rules, answers: Mutex::default() });
    server.add_hook(hook.clone());
    // Two of each caller are in flight at once: the plane is full of writes that wait for the hook.
    let writes = (0..20).map(|number| {
        let body = json!({ "metadata": { "name": format!("m{number}") } });
        let (server, user) = (server.clone(), ["ann", "bob"][number % 2]);
        async move {
            let path = format!("/planes/a{CONFIG_MAPS}");
            send(&server, &Method::POST, user, &path, whole(body.to_string())).await.status()
        }
    });
    for code in soon("all writes", join_all(writes)).await {
        assert_eq!(code, 201);
    }
    assert_eq!(*hook.answers.lock().unwrap(), [200; 20]);
}

#[tokio::test]
async fn kube_waits_as_it_is_told_and_tries_again() {
    let recorder = Recorder::default();
    let audit = Some(Arc::new(recorder.clone()) as Arc<_>);
    let server = server_with(Options { limits: limits(), audit, ..Options::default() }).await;
    let tls = TlsServer::start(&server);
    let name = PlaneName::new("a").unwrap();
    let held: Vec<_> = (0..2).map(|_| hold(&server, "ann", "a")).collect();
    until(&server, "ann", "a", 429).await;
    let namespaces: Api<Namespace> = Api::all(tls.client_with(&name, Some("ann")));
    let asking = tokio::spawn(async move { namespaces.get("default").await });
    eventually("a refusal of the client", async || {
        let events = recorder.events();
        let refused = events.iter().find(|event| {
            !event.sources.is_empty()
                && event.response_status.as_ref().is_some_and(|status| status.code == 429)
        });
        refused.map(|_| ()).ok_or("not yet")
    })
    .await;
    hang_up(held).await;
    soon("the client", asking).await.unwrap().unwrap();
}

#[tokio::test]
async fn another_plane_is_served_during_a_flood_over_tls() {
    let server = server(Limits { queue_time: Duration::from_millis(100), ..limits() }).await;
    let tls = TlsServer::start(&server);
    let name = |name: &str| PlaneName::new(name).unwrap();
    let flooding: Client = tls.client_with(&name("a"), Some("ann"));
    let flood: Vec<_> = (0..100)
        .map(|number| {
            let maps: Api<ConfigMap> = Api::default_namespaced(flooding.clone());
            tokio::spawn(async move { maps.get_opt(&format!("m{number}")).await })
        })
        .collect();
    let quiet: Api<Namespace> = Api::all(tls.client_with(&name("b"), Some("bob")));
    for _ in 0..20 {
        soon("the other plane", quiet.get("default")).await.unwrap();
    }
    for task in flood {
        task.abort();
        let _ = task.await;
    }
}

/// A TLS connection to a server, with nothing sent over it yet.
async fn connect(tls: &TlsServer) -> tokio_rustls::client::TlsStream<TcpStream> {
    connect_for(tls, "http/1.1").await
}

async fn connect_for(tls: &TlsServer, protocol: &str) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(tls.authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(tls.address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// Reads until the server hangs up.
async fn rest(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    String::from_utf8(rest_of(stream).await).unwrap()
}

async fn rest_of(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A connection may end without a word.
    let _ = stream.read_to_end(&mut bytes).await;
    bytes
}

#[tokio::test]
async fn those_who_send_slowly_are_cut() {
    let short = Duration::from_millis(100);
    let server = server(Limits { head_time: short, body_time: short, ..limits() }).await;
    let tls = TlsServer::start(&server);

    let mut silent = TcpStream::connect(tls.address).await.unwrap();
    assert_eq!(soon("no handshake", rest(&mut silent)).await, "");

    for protocol in ["http/1.1", "h2"] {
        let mut idle = connect_for(&tls, protocol).await;
        soon("no request", rest_of(&mut idle)).await;
    }
    let mut greeted = connect_for(&tls, "h2").await;
    greeted.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    soon("a preface and no request", rest_of(&mut greeted)).await;

    let mut headless = connect(&tls).await;
    headless.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.unwrap();
    let answer = soon("half a head", rest(&mut headless)).await;
    assert!(!answer.contains("200 OK"), "{answer}");

    let mut bodiless = connect(&tls).await;
    let head = format!(
        "POST /planes/a{CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    );
    bodiless.write_all(head.as_bytes()).await.unwrap();
    let answer = soon("half a body", rest(&mut bodiless)).await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("\"reason\":\"Timeout\""), "{answer}");

    until(&server, "ann", "a", 200).await;
}

#[tokio::test]
async fn silent_connections_keep_nobody_out() {
    let server = server(Limits { handshakes: 4, ..limits() }).await;
    let tls = TlsServer::start(&server);
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(tls.address).await.unwrap());
    }
    let namespaces: Api<Namespace> = Api::all(tls.client_with(&PlaneName::new("a").unwrap(), Some("ann")));
    soon("one that speaks", namespaces.get("default")).await.unwrap();
    assert_eq!(soon("the oldest", rest(&mut silent[0])).await, "");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let server = server(Limits { connections: 2, ..limits() }).await;
    let tls = TlsServer::start(&server);
    let (first, second) = (connect(&tls).await, connect(&tls).await);
    let third = connect(&tls);
    tokio::pin!(third);
    let early = tokio::time::timeout(Duration::from_millis(50), &mut third).await;
    assert!(early.is_err(), "a third connection is taken");
    drop(first);
    soon("the third", third).await;
    drop(second);
}

#[tokio::test]
async fn selectors_are_bounded() {
    let server = server(Limits::default()).await;
    let ask = async |selector: &str| {
        let path = format!("/planes/a{CONFIG_MAPS}?labelSelector={selector}");
        send(&server, &Method::GET, "ann", &path, whole("")).await.status().as_u16()
    };
    let terms = |count: usize| (0..count).map(|at| format!("a{at}")).collect::<Vec<_>>().join(",");
    assert_eq!(ask(&terms(256)).await, 200);
    assert_eq!(ask(&terms(257)).await, 400);
    assert_eq!(ask(&format!("a%20in%20({})", terms(2000))).await, 200);
    assert_eq!(ask(&"a".repeat(17 << 10)).await, 400);
}

#[tokio::test]
async fn bodies_are_bounded_as_set() {
    let server = server(Limits { body_bytes: 1000, ..Limits::default() }).await;
    let post = async |length: usize| {
        let body =
            json!({ "metadata": { "generateName": "m-" }, "data": { "x": "y".repeat(length) } }).to_string();
        send(&server, &Method::POST, "ann", &format!("/planes/a{CONFIG_MAPS}"), whole(body))
            .await
            .status()
            .as_u16()
    };
    assert_eq!(post(900).await, 201);
    assert_eq!(post(1000).await, 413);
}
