//! Every request leaves its record, and no record shows what is in an object.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use common::{Recorder, TlsServer, empower, eventually, plane};
use compute_apiserver::audit::{Event, Stage};
use compute_apiserver::{Access, ApiServer, Body, Identity, Options, PlaneName};
use futures::StreamExt as _;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CANARY: &str = "canary-bird-that-must-not-sing";

fn ann() -> Identity {
    Identity::user("ann").in_group("staff")
}

async fn server() -> (ApiServer, Recorder) {
    let recorder = Recorder::default();
    let server = ApiServer::new(Options { audit: Some(Arc::new(recorder.clone())), ..Options::default() });
    let name = plane(&server, "p").await;
    empower(&server, &name, "staff").await;
    recorder.take();
    let opened = [PlaneName::new("p").unwrap()];
    server.tokens().add("ann", ann(), Access::Planes(opened.into()));
    server.tokens().add("bob", Identity::user("bob"), Access::AllPlanes);
    (server, recorder)
}

async fn send(
    server: &ApiServer,
    (method, path, media_type): (&str, &str, &str),
    token: &str,
    body: &[u8],
) -> Response<Body> {
    let request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(path)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", media_type)
        .header("user-agent", "tester/1.0")
        .body(Full::new(Bytes::copy_from_slice(body)))
        .unwrap();
    server.network_service().oneshot(request).await.unwrap()
}

/// Verb, resource with group and subresource, namespace, name, code and reason of a record.
fn summary(event: &Event) -> String {
    let object = event.object_ref.clone().unwrap_or_default();
    let status = event.response_status.clone().unwrap_or_default();
    let kind = [object.resource, object.api_group, object.subresource].join("/");
    let place = [object.namespace, object.name].join("/");
    format!("{} {kind} {place} {} {}", event.verb, status.code, status.reason).trim_end().to_owned()
}

#[tokio::test]
async fn requests_and_their_records() {
    let (server, recorder) = server().await;
    assert!(recorder.take().is_empty(), "what the server does by itself is no request");
    let json = "application/json";
    let merge = "application/merge-patch+json";
    let widgets = "/apis/test.example.com/v1/namespaces/default/widgets";
    for (method, path, media_type, body, expected) in [
        ("POST", CONFIG_MAPS, json, r#"{"metadata":{"name":"m"}}"#, "create configmaps// default/m 201"),
        (
            "POST",
            CONFIG_MAPS,
            json,
            r#"{"metadata":{"name":"m"}}"#,
            "create configmaps// default/ 409 AlreadyExists",
        ),
        ("GET", "/api/v1/namespaces/default/configmaps/m", json, "", "get configmaps// default/m 200"),
        (
            "GET",
            "/api/v1/namespaces/default/configmaps/n?x=1",
            json,
            "",
            "get configmaps// default/n 404 NotFound",
        ),
        ("GET", "/api/v1/configmaps?limit=1", json, "", "list configmaps// / 200"),
        ("GET", widgets, json, "", "list widgets/test.example.com/ default/ 200"),
        ("PATCH", "/api/v1/namespaces/default/configmaps/m", merge, "{}", "patch configmaps// default/m 200"),
        (
            "PUT",
            "/api/v1/namespaces/default/configmaps/m",
            json,
            "{",
            "update configmaps// default/m 400 BadRequest",
        ),
        (
            "PATCH",
            "/api/v1/namespaces/default/status",
            merge,
            "{}",
            "patch namespaces//status default/default 200",
        ),
        ("DELETE", "/api/v1/namespaces/default/configmaps/m", json, "", "delete configmaps// default/m 200"),
        ("DELETE", CONFIG_MAPS, json, "", "deletecollection configmaps// default/ 200"),
        ("GET", "/apis", json, "", "get // / 200"),
        ("GET", "/nowhere", json, "", "get // / 404 NotFound"),
        ("POST", "/version", json, "", "post // / 404 NotFound"),
        ("GET", "/apis/none.example.com/v1/things", json, "", "list things/none.example.com/ / 404 NotFound"),
    ] {
        let path = format!("/planes/p{path}");
        let response = send(&server, (method, &path, media_type), "ann", body.as_bytes()).await;
        let events = recorder.take();
        assert_eq!(events.len(), 1, "{method} {path}: {events:?}");
        let event = &events[0];
        assert_eq!(summary(event), expected, "{method} {path}");
        assert_eq!(response.headers()["audit-id"], event.id.as_str());
        assert_eq!((event.stage, event.plane()), (Stage::ResponseComplete, "p"));
        assert_eq!(event.uri, path);
        assert_eq!(event.user, ann().in_group("system:authenticated"));
        assert_eq!(event.annotations["authorization.k8s.io/decision"], "allow");
        assert!(event.annotations["authorization.k8s.io/reason"].contains("ClusterRoleBinding \"staff\""));
        assert_eq!(event.user_agent, "tester/1.0");
        assert!(
            event.at >= event.received && event.annotations.contains_key("apiserver.latency.k8s.io/total")
        );
    }
}

#[tokio::test]
async fn those_who_are_not_let_in_are_recorded_too() {
    let (server, recorder) = server().await;
    for (path, token, user, plane, code) in [
        ("/planes/p/api", "wrong", "", "", 401),
        ("/planes/other/api/v1/namespaces", "ann", "ann", "", 403),
        ("/api/v1/namespaces", "ann", "ann", "", 403),
        ("/planes/p/api/v1/namespaces", "bob", "bob", "p", 403),
    ] {
        send(&server, ("GET", path, ""), token, b"").await;
        let events = recorder.take();
        assert_eq!(events.len(), 1, "{path}");
        let event = &events[0];
        assert_eq!((event.user.user.as_str(), event.plane(), event.uri.as_str()), (user, plane, path));
        assert_eq!(event.response_status.as_ref().unwrap().code, code, "{path}");
        assert!(!serde_json::to_string(event).unwrap().contains("wrong"), "a token is in the log");
    }
    send(&server, ("GET", "/healthz", ""), "wrong", b"").await;
    assert!(recorder.take().is_empty(), "probes are nobody's");
}

#[tokio::test]
async fn a_watch_is_recorded_when_it_starts_and_when_it_ends() {
    let (server, recorder) = server().await;
    let path = format!("/planes/p{CONFIG_MAPS}?watch=true");
    let response = send(&server, ("GET", &path, ""), "ann", b"").await;
    let started = recorder.take();
    assert_eq!(started.len(), 1);
    assert_eq!(
        (started[0].stage, summary(&started[0]).as_str()),
        (Stage::ResponseStarted, "watch configmaps// default/ 200")
    );
    assert_eq!(response.headers()["audit-id"], started[0].id.as_str());
    let mut frames = response.into_body().into_data_stream();
    send(
        &server,
        ("POST", &format!("/planes/p{CONFIG_MAPS}"), "application/json"),
        "ann",
        br#"{"metadata":{"name":"m"}}"#,
    )
    .await;
    recorder.take();
    while frames.next().await.is_some_and(|frame| !frame.unwrap().ends_with(b"}\n")) {}
    assert!(recorder.take().is_empty());
    drop(frames);
    let ended = recorder.take();
    assert_eq!((ended.len(), ended[0].stage, &ended[0].id), (1, Stage::ResponseComplete, &started[0].id));
}

#[tokio::test]
async fn in_process_requests_and_sources() {
    let (server, recorder) = server().await;
    let name = PlaneName::new("p").unwrap();
    let service = server.service(&name, Identity::superuser("controller"));
    let request = Request::get("/api/v1/namespaces/default").body(Full::<Bytes>::default()).unwrap();
    service.oneshot(request).await.unwrap();
    let events = recorder.take();
    assert_eq!(summary(&events[0]), "get namespaces// default/default 200");
    assert_eq!(
        (events[0].user.user.as_str(), events[0].plane(), events[0].sources.len()),
        ("controller", "p", 0)
    );

    let tls = TlsServer::start(&server);
    let namespaces: Api<Namespace> = Api::all(tls.client(&name));
    namespaces.get("default").await.unwrap();
    let events = recorder.take();
    assert_eq!(events[0].sources, ["127.0.0.1"]);
}

#[tokio::test]
async fn whoever_acts_as_another_is_recorded_as_both() {
    let (server, recorder) = server().await;
    for (user, code, decision) in [("bob", 403, "forbid"), ("kim", 200, "allow")] {
        let request = Request::get("/planes/p/api/v1/namespaces/default")
            .header("authorization", "Bearer ann")
            .header("impersonate-user", user)
            .header("impersonate-group", if code == 200 { "staff" } else { "none" })
            .body(Full::<Bytes>::default())
            .unwrap();
        server.network_service().oneshot(request).await.unwrap();
        let event = recorder.take().pop().unwrap();
        assert_eq!((event.user.user.as_str(), event.response_status.unwrap().code), ("ann", code));
        assert_eq!(event.impersonated_user.unwrap().user, user);
        assert_eq!(event.annotations["authorization.k8s.io/decision"], decision);
    }
}

#[tokio::test]
async fn a_client_that_goes_is_recorded() {
    let (server, recorder) = server().await;
    let body = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let request = Request::post(format!("/planes/p{CONFIG_MAPS}"))
        .header("authorization", "Bearer ann")
        .body(body)
        .unwrap();
    let asking = tokio::spawn(server.network_service().oneshot(request));
    tokio::task::yield_now().await;
    asking.abort();
    let _ = asking.await;
    let event = eventually("a record", async || recorder.take().pop().ok_or("none")).await;
    assert_eq!(summary(&event), "create configmaps// default/ 499 ClientClosedRequest");
}

/// Everything that a client can do with an object, well or badly, with a word in it that must not be told.
fn attempts(collection: &str, kind: &str, field: &str) -> Vec<(&'static str, String, &'static str, String)> {
    let json = "application/json";
    let object = format!("{collection}/o");
    let whole = |data: Value| {
        let mut whole = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": "o" } });
        whole[field] = data;
        whole.to_string()
    };
    let good = whole(json!({ "k": CANARY }));
    let patch = |data: Value| json!({ field: data }).to_string();
    let mut all = vec![
        ("POST", collection.to_owned(), json, good.clone()),
        ("POST", collection.to_owned(), json, good.clone()),
        ("GET", object.clone(), json, String::new()),
        ("GET", collection.to_owned(), json, String::new()),
        ("PUT", object.clone(), json, good.clone()),
        ("PUT", object.clone(), json, good.replace("\"o\"", "\"other\"")),
        ("POST", collection.to_owned(), json, whole(json!([CANARY]))),
        ("POST", collection.to_owned(), json, whole(json!(CANARY))),
        ("POST", collection.to_owned(), json, whole(json!({ CANARY: [CANARY] }))),
        ("POST", collection.to_owned(), json, good.replace("\"v1\"", &format!("\"{CANARY}\""))),
        ("POST", collection.to_owned(), json, good.replace(kind, CANARY)),
        (
            "POST",
            collection.to_owned(),
            json,
            good.replace("\"metadata\"", &format!("\"{CANARY}\":1,\"metadata\"")),
        ),
        ("POST", format!("{collection}?fieldValidation=Strict"), json, good.replace(field, CANARY)),
        ("POST", collection.to_owned(), json, good.replace('}', "")),
        ("POST", collection.to_owned(), json, format!("{good}{CANARY}")),
        ("POST", collection.to_owned(), "application/yaml", format!("a: [{CANARY}")),
        ("POST", collection.to_owned(), "application/vnd.kubernetes.protobuf", format!("k8s\0{CANARY}")),
        ("POST", collection.to_owned(), CANARY, good.clone()),
        ("POST", collection.to_owned(), json, whole(json!({ "k": CANARY.repeat(110_000) }))),
        ("PATCH", object.clone(), "application/merge-patch+json", patch(json!({ "k": [CANARY] }))),
        ("PATCH", object.clone(), "application/merge-patch+json", patch(json!({ "k": CANARY }))),
        (
            "PATCH",
            object.clone(),
            "application/strategic-merge-patch+json",
            patch(json!({ "$patch": CANARY })),
        ),
        (
            "PATCH",
            object.clone(),
            "application/json-patch+json",
            format!(r#"[{{"op":"test","path":"/{field}/k","value":"{CANARY}2"}}]"#),
        ),
        ("PATCH", object.clone(), "application/json-patch+json", format!(r#"[{{"op":"{CANARY}"}}]"#)),
        (
            "PATCH",
            object.clone(),
            "application/json-patch+json",
            format!(r#"[{{"op":"add","path":"/{field}/k/x","value":"{CANARY}"}}]"#),
        ),
        (
            "PATCH",
            format!("{object}?fieldManager=m"),
            "application/apply-patch+yaml",
            good.replace(CANARY, &format!("{CANARY}3")),
        ),
        (
            "PATCH",
            format!("{object}?fieldManager=n"),
            "application/apply-patch+yaml",
            good.replace(CANARY, &format!("{CANARY}4")),
        ),
        ("DELETE", object.clone(), json, format!(r#"{{"kind":"{CANARY}"}}"#)),
        ("DELETE", object.clone(), json, format!(r#"{{"preconditions":{{"uid":"{CANARY}"}}}}"#)),
        ("DELETE", object.clone(), json, format!(r#"{{"propagationPolicy":"{CANARY}"}}"#)),
        ("DELETE", object, json, String::new()),
        ("DELETE", collection.to_owned(), json, String::new()),
    ];
    // Names in paths are told, but not those in bodies that are refused.
    all.push(("POST", collection.to_owned(), json, good.replace("\"o\"", &format!("\"{CANARY} BAD\""))));
    all
}

#[tokio::test]
async fn no_record_shows_what_is_in_an_object() {
    let (server, recorder) = server().await;
    let mut codes = std::collections::BTreeSet::new();
    for (collection, kind, field) in
        [(SECRETS, "Secret", "stringData"), (SECRETS, "Secret", "data"), (CONFIG_MAPS, "ConfigMap", "data")]
    {
        for (method, path, media_type, body) in attempts(collection, kind, field) {
            let path = format!("/planes/p{path}");
            let response = send(&server, (method, &path, media_type), "ann", body.as_bytes()).await;
            codes.insert(response.status().as_u16());
            for event in recorder.take() {
                let record = serde_json::to_string(&event).unwrap();
                assert!(!record.contains("canary"), "{method} {path} {media_type}: {record}");
                let status = event.response_status.unwrap();
                assert_eq!(status.code, response.status().as_u16());
                assert!(kind != "Secret" || status.message.is_empty(), "{method} {path}: {}", status.message);
            }
        }
    }
    // The attempts have met every kind of failure.
    for code in [200, 201, 400, 404, 409, 413, 415, 422] {
        assert!(codes.contains(&code), "no {code} among {codes:?}");
    }
}
