//! Who may do what, through the server: a table over verbs, kinds and identities, roles and bindings and what may be granted
//! with them, and every kind of credentials.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod credentials;
mod grants;
mod reviews;
mod table;

use compute_apiserver::{ApiServer, Identity, PlaneName};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// A plane with namespaces `a` and `b`, and requests to it as anyone.
struct World {
    server: ApiServer,
    plane: PlaneName,
}

impl World {
    async fn new() -> Self {
        let server = common::server();
        let plane = common::plane(&server, "test").await;
        let world = Self { server, plane };
        for namespace in ["a", "b"] {
            let namespace = json!({ "metadata": { "name": namespace } });
            world.admin(Method::POST, "/api/v1/namespaces", &namespace).await;
        }
        world
    }

    /// What the plane answers to an identity.
    async fn ask(&self, who: &Identity, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        self.ask_with(who, method, path, body, &[]).await
    }

    async fn ask_with(
        &self,
        who: &Identity,
        method: Method,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> (StatusCode, Value) {
        let service = self.server.service(&self.plane, who.clone());
        let response = service.oneshot(request(method, path, body, headers)).await.unwrap();
        let status = response.status();
        if path.contains("watch=true") && status == StatusCode::OK {
            return (status, Value::Null);
        }
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Does something as one who may do everything; it must succeed.
    async fn admin(&self, method: Method, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(&Identity::superuser("root"), method, path, body).await;
        assert!(status.is_success(), "{path}: {answer}");
        answer
    }

    /// Gives a role (`Role/x` or `ClusterRole/x`) to a user in a namespace, or everywhere.
    async fn bind(&self, name: &str, namespace: Option<&str>, role: &str, subject: Value) {
        let (kind, role) = role.split_once('/').unwrap();
        let binding = json!({
            "metadata": { "name": name }, "subjects": [subject],
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
        });
        self.admin(Method::POST, &rbac(namespace, "bindings"), &binding).await;
    }
}

fn request(
    method: Method,
    path: &str,
    body: &Value,
    headers: &[(&str, &str)],
) -> Request<Full<bytes::Bytes>> {
    let content_type =
        if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        request = request.header("content-type", content_type);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::from(body)).unwrap()
}

/// The path of roles or bindings of a namespace, or of the whole plane.
fn rbac(namespace: Option<&str>, what: &str) -> String {
    let base = "/apis/rbac.authorization.k8s.io/v1";
    match namespace {
        Some(namespace) => format!("{base}/namespaces/{namespace}/role{what}"),
        None => format!("{base}/clusterrole{what}"),
    }
}

fn user(name: &str) -> Value {
    json!({ "kind": "User", "name": name })
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}
