//! Hooks of all sorts against real TLS servers on loopback. `server` is the webhook, `World` what surrounds the chain.

mod calling;
mod configuring;
mod in_process;
mod matching;
mod mutating;
mod server;

use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Uri;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::auth::Identity;
use server::Server;

/// What the caller of the chain provides.
struct World {
    transport: Transport,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    services: BTreeMap<String, Uri>,
    equivalents: Vec<Equivalent>,
    limit: Duration,
    uids: AtomicU64,
}

impl Resolver for World {
    fn resolve(&self, namespace: &str, name: &str, port: u16, path: &str) -> Result<Uri, Unresolved> {
        let base = self.services.get(&format!("{namespace}/{name}:{port}")).ok_or(Unresolved::NotFound)?;
        Ok(format!("{}{}", base.to_string().trim_end_matches('/'), path).parse().unwrap())
    }
}

impl World {
    fn new() -> Self {
        let labels = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        Self {
            transport: Transport::new(|| "2030-01-01T00:00:00Z".parse().unwrap()),
            namespaces: [("ns".to_owned(), labels(&[("team", "a")])), ("plain".to_owned(), labels(&[]))]
                .into(),
            services: BTreeMap::new(),
            equivalents: Vec::new(),
            limit: Duration::from_secs(30),
            uids: AtomicU64::new(0),
        }
    }

    async fn admit(&self, chain: &Chain, request: AdmissionRequest) -> Result<Admitted, Rejection> {
        let ctx = Context {
            namespace_labels: &|name| self.namespaces.get(name).cloned(),
            default: &|object| {
                if object["spec"]["defaulted"].is_null() {
                    object["spec"]["defaulted"] = json!(true);
                }
            },
            uid: &|| format!("uid-{}", self.uids.fetch_add(1, Ordering::Relaxed)),
            equivalents: &self.equivalents,
            resolver: self,
            transport: &self.transport,
            deadline: Instant::now() + self.limit,
        };
        fn assert_send<T: Send>(future: T) -> T {
            future
        }
        assert_send(admit(chain, request, &ctx)).await
    }

    async fn refusal(&self, chain: &Chain, request: AdmissionRequest) -> Denial {
        self.admit(chain, request).await.expect_err("the request must be refused").denial
    }
}

fn widget() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "ns", "labels": {"app": "web"}}, "spec": {"size": 1, "list": []},
    })
}

/// A create of a widget in a namespace.
fn create(object: Value) -> AdmissionRequest {
    let mut request = AdmissionRequest::new(
        Operation::Create,
        GroupVersionKind::new("example.com", "v1", "Widget"),
        GroupVersionResource::new("example.com", "v1", "widgets"),
    );
    request.uid = "request".to_owned();
    request.name = "w".to_owned();
    request.namespace = "ns".to_owned();
    request.user = Arc::new(Identity::user("ann").in_group("devs"));
    request.object = Some(object);
    request.options = json!({"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"});
    request
}

/// A webhook for creates of widgets, at `server`.
fn webhook(name: &str, server: &Server) -> Value {
    json!({
        "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": server.url("/hook"), "caBundle": server.ca_bundle()},
        "rules": [{
            "operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"],
        }],
    })
}

fn configuration(name: &str, webhooks: &[Value]) -> Value {
    json!({"metadata": {"name": name}, "webhooks": webhooks})
}

/// `value` with fields replaced.
fn with(mut value: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { panic!("fields are given as an object") };
    for (name, field) in fields {
        value[name] = field;
    }
    value
}

fn mutating(webhooks: &[Value]) -> Chain {
    Chain::compile(&[configuration("test", webhooks)], &[], &[]).unwrap()
}

fn validating(webhooks: &[Value]) -> Chain {
    Chain::compile(&[], &[configuration("test", webhooks)], &[]).unwrap()
}
