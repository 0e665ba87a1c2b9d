//! Planes are isolated: over the whole route table, a token of one plane is refused on every other, and nothing that
//! is in the other plane can be learnt from the answers, not even whether the plane exists.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use compute_apiserver::{Access, ApiServer, Identity, Options, PlaneName, PlaneRoute};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const SECRET_NAMES: [&str; 4] = ["hidden-namespace", "hidden-object", "hiddenkinds", "hidden.example.com"];
const PLANES: [&str; 5] = ["core", "hub", "cell-dfw", "project-a", "project-b"];
const PUBLIC: [&str; 3] = ["/healthz", "/livez", "/readyz"];

fn plane(name: &str) -> PlaneName {
    PlaneName::new(name).unwrap()
}

/// Every way to a plane by path.
fn prefixes(plane: &str) -> Vec<String> {
    let mut found = vec![format!("/planes/{plane}")];
    if plane == "core" {
        found.push(String::new());
    }
    if let Some(project) = plane.strip_prefix("project-") {
        found.push(format!("/apis/rm.example.com/v1/projects/{project}/control-plane"));
    }
    found
}

async fn ask(
    server: &ApiServer,
    method: &Method,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> (StatusCode, Value) {
    let (status, text) = ask_text(server, method, path, token, body).await;
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

async fn ask_text(
    server: &ApiServer,
    method: &Method,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> (StatusCode, String) {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let content_type =
        if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if *method == Method::GET { String::new() } else { body.to_string() };
    let request =
        request.header("content-type", content_type).body(Full::<bytes::Bytes>::from(body)).unwrap();
    let response = server.network_service().oneshot(request).await.unwrap();
    let status = response.status();
    if path.contains("watch=true") && status == StatusCode::OK {
        return (status, "a watch that was let in".to_owned());
    }
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(text.to_vec()).unwrap())
}

/// A server whose planes all hold the same hidden things; each plane has a token of its own.
async fn server() -> ApiServer {
    let route = PlaneRoute {
        before: "/apis/rm.example.com/v1/projects/".to_owned(),
        after: "/control-plane".to_owned(),
        plane_prefix: "project-".to_owned(),
    };
    let server = ApiServer::new(Options { routes: vec![route], ..Options::default() });
    let count = json!({ "type": "object", "properties": { "replicas": { "type": "integer" } } });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "hiddenkinds.hidden.example.com" },
        "spec": {
            "group": "hidden.example.com", "scope": "Namespaced",
            "names": { "plural": "hiddenkinds", "kind": "HiddenKind" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                } },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": count, "status": count } } },
            }],
        },
    });
    let template = server.template(&[crd]).await.unwrap();
    for name in PLANES {
        server.create_plane(plane(name), &template).await.unwrap();
        let token = format!("token-{name}");
        server.tokens().add(&token, Identity::superuser(name), Access::Planes([plane(name)].into()));
        for (path, object) in [
            ("api/v1/namespaces", "hidden-namespace"),
            ("api/v1/namespaces/hidden-namespace/configmaps", "hidden-object"),
            ("apis/hidden.example.com/v1/namespaces/hidden-namespace/hiddenkinds", "hidden-object"),
        ] {
            let object = json!({ "metadata": { "name": object } });
            let path = format!("/planes/{name}/{path}");
            let (status, body) = ask(&server, &Method::POST, &path, Some(&token), &object).await;
            assert_eq!(status, StatusCode::CREATED, "{body}");
        }
    }
    server
}

/// Every path below a plane that the server knows, from its own discovery, with the methods to try.
async fn route_table(server: &ApiServer) -> Vec<(Method, String)> {
    let get = |path: String| async move {
        ask(server, &Method::GET, &format!("/planes/hub{path}"), Some("token-hub"), &Value::Null).await.1
    };
    let mut paths: Vec<String> = [
        "/",
        "/api",
        "/apis",
        "/version",
        "/openapi/v3",
        "/openapi/v2",
        "/metrics",
        "/no/such/path",
        "/apis/hidden.example.com",
        "/api/v1/nosuchkinds",
    ]
    .into_iter()
    .chain(PUBLIC)
    .map(str::to_owned)
    .collect();
    let mut versions = vec!["/api/v1".to_owned()];
    for group in get("/apis".to_owned()).await["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            versions.push(format!("/apis/{}", version["groupVersion"].as_str().unwrap()));
        }
    }
    for version in versions {
        paths.push(version.clone());
        paths.push(format!("/openapi/v3{version}"));
        for resource in get(version.clone()).await["resources"].as_array().unwrap() {
            let full = resource["name"].as_str().unwrap();
            let (name, subresource) = full.split_at(full.find('/').unwrap_or(full.len()));
            let namespace = if resource["namespaced"] == true { "/namespaces/hidden-namespace" } else { "" };
            let object = if name == "namespaces" { "hidden-namespace" } else { "hidden-object" };
            paths.push(format!("{version}{namespace}/{name}/{object}{subresource}"));
            paths.push(format!("{version}{namespace}/{name}/absent{subresource}"));
            if subresource.is_empty() {
                paths.push(format!("{version}/{name}"));
                paths.push(format!("{version}{namespace}/{name}"));
                paths.push(format!("{version}{namespace}/{name}?watch=true"));
                paths.push(format!("{version}{namespace}/{name}?labelSelector=a%3Db&limit=1"));
            }
        }
    }
    let methods = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    paths
        .into_iter()
        .flat_map(|path| methods.iter().map(move |method| (method.clone(), path.clone())))
        .collect()
}

/// The table below every prefix of a plane, without what is public.
fn routes_of<'a>(name: &str, table: &'a [(Method, String)]) -> impl Iterator<Item = (&'a Method, String)> {
    let all = prefixes(name)
        .into_iter()
        .flat_map(move |prefix| table.iter().map(move |(method, path)| (method, format!("{prefix}{path}"))));
    all.filter(|(method, path)| !(**method == Method::GET && PUBLIC.contains(&path.as_str())))
}

fn leaks(text: &str) -> Option<&'static str> {
    SECRET_NAMES.into_iter().find(|name| text.contains(name))
}

#[tokio::test]
async fn a_token_is_refused_on_every_other_plane_and_learns_nothing() {
    let server = server().await;
    let table = route_table(&server).await;
    assert!(table.len() > 300, "the route table has {} entries", table.len());
    let body = json!({ "metadata": { "name": "intruder" } });
    let mut refused = 0;
    let service_account = service_account_token(&server, "project-a").await;
    let counts_before = counts(&server);
    let tokens = ["project-a", "hub", "cell-dfw", "core"].map(|holder| (holder, format!("token-{holder}")));
    for (holder, token) in tokens.into_iter().chain([("project-a", service_account)]) {
        for other in PLANES.into_iter().filter(|other| *other != holder) {
            for (method, path) in routes_of(other, &table) {
                let (status, text) = ask_text(&server, method, &path, Some(&token), &body).await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{holder} {method} {path}: {text}");
                assert_eq!(leaks(&text), None, "{holder} {method} {path}: {text}");
                refused += 1;
            }
        }
    }
    assert!(refused > 4000, "{refused} requests");
    assert_eq!(counts(&server), counts_before, "nothing was written by any of them");
}

/// How many objects there are of each kind in each plane.
fn counts(server: &ApiServer) -> BTreeMap<(&'static str, String), usize> {
    let of = |name: &'static str| {
        let counts = server.plane(&plane(name)).unwrap().counts();
        counts.into_iter().map(move |(kind, count)| ((name, kind.resource), count))
    };
    PLANES.into_iter().flat_map(of).collect()
}

/// A token of a service account that may do everything in its plane.
async fn service_account_token(server: &ApiServer, plane: &str) -> String {
    let post = async |path: &str, body: Value| {
        let (path, token) = (format!("/planes/{plane}/{path}"), format!("token-{plane}"));
        let (status, answer) = ask(server, &Method::POST, &path, Some(&token), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        answer
    };
    let accounts = "api/v1/namespaces/default/serviceaccounts";
    post(accounts, json!({ "metadata": { "name": "s" } })).await;
    let binding = json!({
        "metadata": { "name": "s" }, "subjects": [{ "kind": "ServiceAccount", "name": "s", "namespace": "default" }],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
    });
    post("apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
    let made = post(&format!("{accounts}/s/token"), json!({})).await;
    let token = made["status"]["token"].as_str().unwrap().to_owned();
    let path = format!("/planes/{plane}/api/v1/secrets");
    let (status, _) = ask(server, &Method::GET, &path, Some(&token), &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "it works where it belongs");
    token
}

#[tokio::test]
async fn a_plane_that_exists_looks_like_one_that_does_not() {
    let server = server().await;
    let projects = "/apis/rm.example.com/v1/projects";
    for (there, not_there) in [
        (
            "/planes/project-b/api/v1/namespaces".to_owned(),
            "/planes/project-zzz/api/v1/namespaces".to_owned(),
        ),
        ("/planes/hub/version".to_owned(), "/planes/no-such/version".to_owned()),
        ("/planes/hub".to_owned(), "/planes/NOT..A..NAME".to_owned()),
        (
            format!("{projects}/b/control-plane/api/v1/pods"),
            format!("{projects}/zzz/control-plane/api/v1/pods"),
        ),
    ] {
        let token = Some("token-project-a");
        let real = ask_text(&server, &Method::GET, &there, token, &Value::Null).await;
        let imagined = ask_text(&server, &Method::GET, &not_there, token, &Value::Null).await;
        assert_eq!(real, imagined, "{there} against {not_there}");
        assert_eq!(real.0, StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn unknown_or_missing_credentials_are_refused_everywhere() {
    let server = server().await;
    let table = route_table(&server).await;
    let long_ago = jiff::Timestamp::UNIX_EPOCH;
    server.tokens().add_until("expired", Identity::superuser("root"), Access::AllPlanes, long_ago);
    for name in PLANES {
        for (method, path) in routes_of(name, &table) {
            for token in [None, Some("expired")] {
                let (status, text) = ask_text(&server, method, &path, token, &json!({})).await;
                assert_eq!(status, StatusCode::UNAUTHORIZED, "{token:?} {method} {path}");
                assert_eq!(leaks(&text), None, "{method} {path}: {text}");
            }
        }
    }
    for (header, expected) in [
        ("Bearer wrong", StatusCode::UNAUTHORIZED),
        ("Bearer ", StatusCode::UNAUTHORIZED),
        ("Basic dG9rZW4taHVi", StatusCode::UNAUTHORIZED),
        ("token-hub", StatusCode::UNAUTHORIZED),
        ("bearer token-hub", StatusCode::OK),
    ] {
        let request = Request::get("/planes/hub/api").header("authorization", header);
        let request = request.body(Full::<bytes::Bytes>::default()).unwrap();
        assert_eq!(server.network_service().oneshot(request).await.unwrap().status(), expected, "{header}");
    }
}

#[tokio::test]
async fn what_is_written_to_a_plane_stays_there_and_goes_with_it() {
    let server = server().await;
    let path = |plane: &str| format!("/planes/{plane}/api/v1/namespaces/default/configmaps");
    let object = json!({ "metadata": { "name": "mine" } });
    let (status, _) = ask(&server, &Method::POST, &path("project-a"), Some("token-project-a"), &object).await;
    assert_eq!(status, StatusCode::CREATED);
    // The hub names its namespaces after the uids of those in the projects.
    let mut uids = BTreeSet::new();
    for name in PLANES {
        let path = format!("/planes/{name}/api/v1/namespaces/default");
        let (_, namespace) =
            ask(&server, &Method::GET, &path, Some(&format!("token-{name}")), &Value::Null).await;
        assert!(uids.insert(namespace["metadata"]["uid"].to_string()), "{name}: {namespace}");
    }
    let (_, list) =
        ask(&server, &Method::GET, &path("project-b"), Some("token-project-b"), &Value::Null).await;
    assert_eq!(list["items"], json!([]));
    assert!(server.drop_plane(&plane("project-a")).await.unwrap());
    let (status, _) =
        ask(&server, &Method::GET, &path("project-a"), Some("token-project-a"), &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) =
        ask(&server, &Method::GET, &path("project-b"), Some("token-project-b"), &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
}
