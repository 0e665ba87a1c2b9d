//! The generated CRDs keep every field of our kinds: an object that has them all comes back as it was sent.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use http::{Method, Request};
use kube::Client;
use serde_json::Value;

#[path = "../../api/src/compute/tests/full.rs"]
mod full;

async fn send(client: &Client, method: Method, path: &str, object: &Value) -> Value {
    let request = Request::builder()
        .method(method)
        .uri(format!("/apis/compute.datumapis.com/v1alpha/namespaces/default/{path}?fieldValidation=Strict"))
        .header("content-type", "application/json")
        .body(serde_json::to_vec(object).unwrap())
        .unwrap();
    client.request(request).await.unwrap()
}

/// Whatever was sent is there; defaults may have joined it.
fn assert_kept(path: &str, sent: &Value, found: &Value) {
    match (sent, found) {
        (Value::Object(sent), Value::Object(found)) => {
            for (field, sent) in sent {
                let found = found.get(field).unwrap_or_else(|| panic!("{path}.{field} was dropped"));
                assert_kept(&format!("{path}.{field}"), sent, found);
            }
        }
        (Value::Array(sent), Value::Array(found)) => {
            assert_eq!(sent.len(), found.len(), "{path}");
            sent.iter()
                .zip(found)
                .enumerate()
                .for_each(|(i, (sent, found))| assert_kept(&format!("{path}[{i}]"), sent, found));
        }
        _ => assert_eq!(sent, found, "{path}"),
    }
}

#[tokio::test]
async fn an_object_with_every_field_is_accepted_and_kept() {
    let server = ApiServer::new(Options::default());
    let crds: Vec<Value> =
        compute_api::crds::ours().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    let template = server.template(&crds).await.unwrap();
    let plane = PlaneName::new("p").unwrap();
    server.create_plane(plane.clone(), &template).await.unwrap();
    let client = Client::new(server.service(&plane, Identity::superuser("tester")), "default");

    for (plural, mut object) in [
        ("workloads", full::workload()),
        ("workloaddeployments", full::deployment()),
        ("instances", full::instance()),
    ] {
        object["metadata"] = serde_json::json!({ "name": "full" });
        let mut made = send(&client, Method::POST, plural, &object).await;
        assert_kept(&format!("{plural}.spec"), &object["spec"], &made["spec"]);
        made["status"] = object["status"].clone();
        let reported = send(&client, Method::PUT, &format!("{plural}/full/status"), &made).await;
        assert_kept(&format!("{plural}.status"), &object["status"], &reported["status"]);
        assert_eq!(reported["metadata"]["generation"], 1, "{plural}");
    }
}
