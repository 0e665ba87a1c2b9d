//! Webhooks and in-process hooks, through the whole server: each test has a server of its own, and webhooks that listen on
//! loopback behind TLS.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../src/hooks/tests/server.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod server;

mod answers;
mod configurations;
mod deleting;
mod failing;
mod in_process;
mod matching;
mod mutating;
mod parts;
mod races;
mod restarts;

use bytes::Bytes;
use compute_apiserver::{ApiServer, Identity, PlaneName};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use common::Fixture;
use server::Server;

const WIDGETS: &str = "/apis/test.example.com/v1/namespaces/default/widgets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// A server with a plane that serves widgets.
struct World {
    server: ApiServer,
    plane: PlaneName,
}

/// What the server answered.
#[derive(Debug)]
struct Answer {
    code: u16,
    body: Value,
    warnings: Vec<String>,
    retry_after: Option<String>,
}

impl Answer {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl World {
    async fn new() -> Self {
        let Fixture { server, plane, .. } = Fixture::new(common::Transport::InProcess).await;
        Self { server, plane }
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(Full::new(body))
            .unwrap();
        let service = self.server.service(&self.plane, Identity::superuser("ann").in_group("devs"));
        let response = service.oneshot(request).await.unwrap();
        let header = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let warnings = response.headers().get_all("warning").iter().map(header).collect();
        let retry_after = response.headers().get("retry-after").map(header);
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Answer { code, body: serde_json::from_slice(&body).unwrap_or(Value::Null), warnings, retry_after }
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, JSON, body).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, JSON, &Value::Null).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, JSON, &Value::Null).await
    }

    /// Creates, and gives what was made.
    async fn made(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
        answer.body
    }

    /// A merge patch, and what became of the object.
    async fn merged(&self, path: &str, patch: &Value) -> Value {
        let answer = self.send("PATCH", path, MERGE, patch).await;
        assert_eq!(answer.code, 200, "{}", answer.body);
        answer.body
    }

    async fn mutate_by(&self, name: &str, webhooks: &[Value]) -> Value {
        self.made(MUTATING, &json!({ "metadata": { "name": name }, "webhooks": webhooks })).await
    }

    async fn validate_by(&self, name: &str, webhooks: &[Value]) -> Value {
        self.made(VALIDATING, &json!({ "metadata": { "name": name }, "webhooks": webhooks })).await
    }
}

/// A webhook for all writes of widgets, at `server`.
fn webhook(name: &str, server: &Server) -> Value {
    json!({
        "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": { "url": server.url("/hook"), "caBundle": server.ca_bundle() },
        "rules": [rule(&["CREATE", "UPDATE", "DELETE"], "test.example.com", &["widgets"])],
    })
}

fn rule(operations: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({ "operations": operations, "apiGroups": [group], "apiVersions": ["v1"], "resources": resources })
}

/// `value` with fields replaced.
fn with(mut value: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { panic!("fields are given as an object") };
    for (name, field) in fields {
        value[name] = field;
    }
    value
}

fn widget(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "replicas": 1 } })
}

fn one(name: &str) -> String {
    format!("{WIDGETS}/{name}")
}

/// `(operation, subresource, name)` of each call.
fn calls(server: &Server) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let calls = server.calls();
    let requests = calls.iter().map(|call| &call.review["request"]);
    requests.map(|r| (text(&r["operation"]), text(&r["subResource"]), text(&r["name"]))).collect()
}
