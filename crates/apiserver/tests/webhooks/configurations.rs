//! The two kinds themselves: defaults, rules, columns; and what follows from their coming and going.

use super::*;
use crate::common::client;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, Patch, PatchParams};

fn plain() -> Value {
    json!({
        "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": { "service": { "namespace": "ns", "name": "hook" } },
        "rules": [rule(&["CREATE"], "test.example.com", &["widgets"])],
    })
}

fn configuration(webhooks: &Value) -> Value {
    json!({ "metadata": { "name": "c" }, "webhooks": webhooks })
}

#[tokio::test]
async fn defaults_are_filled_in() {
    let world = World::new().await;
    for path in [MUTATING, VALIDATING] {
        let made = world.made(path, &configuration(&json!([plain()]))).await;
        assert_eq!(made["metadata"]["generation"], 1);
        let mut expected = with(
            plain(),
            json!({
                "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
                "namespaceSelector": {}, "objectSelector": {},
                "clientConfig": { "service": { "namespace": "ns", "name": "hook", "port": 443 } },
            }),
        );
        expected["rules"][0]["scope"] = json!("*");
        if path == MUTATING {
            expected["reinvocationPolicy"] = json!("Never");
        }
        assert_eq!(made["webhooks"], json!([expected]), "{path}");
        let same = world.merged(&format!("{path}/c"), &json!({ "webhooks": [plain()] })).await;
        assert_eq!(same, made, "what is left out is what was filled in");
        let next = json!({ "webhooks": [with(plain(), json!({ "timeoutSeconds": 3 }))] });
        assert_eq!(world.merged(&format!("{path}/c"), &next).await["metadata"]["generation"], 2);
        let answer = world.send("PUT", &format!("{path}/c"), JSON, &configuration(&json!([]))).await;
        assert_eq!(answer.code, 422, "an update names the version that it is made from: {}", answer.body);
    }
}

#[tokio::test]
async fn applied_twice_is_applied_once() {
    let world = World::new().await;
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client(&world.server, &world.plane));
    let config = with(
        configuration(&json!([plain()])),
        json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": { "name": "c" } }),
    );
    let params = PatchParams::apply("tool");
    let first = api.patch("c", &params, &Patch::Apply(&config)).await.unwrap();
    let second = api.patch("c", &params, &Patch::Apply(&config)).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(first.webhooks.unwrap()[0].timeout_seconds, Some(10));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_field() {
    let world = World::new().await;
    let at = |fields: Value| json!([with(plain(), fields)]);
    let url = |url: &str| at(json!({ "clientConfig": { "url": url } }));
    let in_rule = |fields: Value| at(json!({ "rules": [with(plain()["rules"][0].clone(), fields)] }));
    let rows = [
        (at(json!({ "name": "short" })), "webhooks[0].name"),
        (json!([plain(), plain()]), "webhooks[1].name"),
        (at(json!({ "sideEffects": "Some" })), "webhooks[0].sideEffects"),
        (at(json!({ "failurePolicy": "Perhaps" })), "webhooks[0].failurePolicy"),
        (at(json!({ "matchPolicy": "Perhaps" })), "webhooks[0].matchPolicy"),
        (at(json!({ "timeoutSeconds": 31 })), "webhooks[0].timeoutSeconds"),
        (at(json!({ "admissionReviewVersions": ["v2"] })), "webhooks[0].admissionReviewVersions"),
        (url("http://example.com"), "webhooks[0].clientConfig.url"),
        (url("https://me@example.com"), "webhooks[0].clientConfig.url"),
        (at(json!({ "clientConfig": {} })), "webhooks[0].clientConfig"),
        (
            at(json!({ "clientConfig": { "url": "https://example.com", "caBundle": "aGVsbG8=" } })),
            "webhooks[0].clientConfig.caBundle",
        ),
        (
            at(json!({ "clientConfig": { "service": { "namespace": "ns", "name": "a", "port": 0 } } })),
            "webhooks[0].clientConfig.service.port",
        ),
        (in_rule(json!({ "operations": ["READ"] })), "webhooks[0].rules[0].operations[0]"),
        (in_rule(json!({ "resources": ["*", "pods"] })), "webhooks[0].rules[0].resources"),
        (in_rule(json!({ "scope": "World" })), "webhooks[0].rules[0].scope"),
        (
            at(json!({ "objectSelector": { "matchExpressions": [{ "key": "a", "operator": "Like" }] } })),
            "webhooks[0].objectSelector.matchExpressions[0].operator",
        ),
        (
            at(json!({ "matchConditions": [{ "name": "a", "expression": "object." }] })),
            "webhooks[0].matchConditions[0].expression",
        ),
    ];
    for path in [MUTATING, VALIDATING] {
        for (webhooks, field) in &rows {
            let answer = world.post(path, &configuration(webhooks)).await;
            assert_eq!(answer.code, 422, "{field}: {}", answer.body);
            let causes = answer.body["details"]["causes"].as_array().unwrap();
            let fields: Vec<&str> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
            assert_eq!(fields, [*field], "{}", answer.message());
        }
        assert_eq!(world.get(path).await.body["items"], json!([]));
    }
    let again = at(json!({ "reinvocationPolicy": "Always" }));
    assert_eq!(world.post(MUTATING, &configuration(&again)).await.code, 422);
}

#[tokio::test]
async fn columns() {
    let world = World::new().await;
    world.made(VALIDATING, &configuration(&json!([plain()]))).await;
    let request = Request::get(VALIDATING)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let service = world.server.service(&world.plane, Identity::superuser("ann"));
    let body = service.oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let table: Value = serde_json::from_slice(&body).unwrap();
    let columns = table["columnDefinitions"].as_array().unwrap();
    let names: Vec<&Value> = columns.iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["Name", "Webhooks", "Age"]);
    assert_eq!(table["rows"][0]["cells"][0], "c");
    assert_eq!(table["rows"][0]["cells"][1], 1);
}

#[tokio::test]
async fn a_configuration_counts_until_it_is_gone() {
    let world = World::new().await;
    let server = Server::start(|review| server::deny(review, &json!({ "message": "no" }))).await;
    world.made(WIDGETS, &widget("before")).await;
    world.validate_by("c", &[webhook("no.example.com", &server)]).await;
    assert_eq!(world.post(WIDGETS, &widget("during")).await.code, 400);
    let none = json!({ "webhooks": [with(webhook("no.example.com", &server), json!({ "rules": [] }))] });
    world.merged(&format!("{VALIDATING}/c"), &none).await;
    world.made(WIDGETS, &widget("during")).await;
    let rules = json!({ "webhooks": [webhook("no.example.com", &server)] });
    world.merged(&format!("{VALIDATING}/c"), &rules).await;
    assert_eq!(world.post(WIDGETS, &widget("after")).await.code, 400);
    assert_eq!(world.delete(&format!("{VALIDATING}/c")).await.code, 200);
    world.made(WIDGETS, &widget("after")).await;
    assert_eq!(server.calls().len(), 2);
}

/// Two planes share the server, its hooks and its connections, and nothing that they configure.
#[tokio::test]
async fn a_configuration_is_its_planes_own() {
    let world = World::new().await;
    let server = Server::start(|review| server::deny(review, &json!({ "message": "no" }))).await;
    world.validate_by("c", &[webhook("no.example.com", &server)]).await;
    let other = World { plane: common::plane(&world.server, "other").await, server: world.server.clone() };
    other.made(WIDGETS, &widget("a")).await;
    assert_eq!(world.post(WIDGETS, &widget("a")).await.code, 400);
}

#[tokio::test]
async fn a_broken_webhook_for_everything_can_be_removed() {
    let world = World::new().await;
    let everything = json!({
        "rules": [{ "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"] }],
        "clientConfig": { "url": "https://127.0.0.1:1" },
    });
    for path in [MUTATING, VALIDATING] {
        world.made(path, &configuration(&json!([with(plain(), everything.clone())]))).await;
    }
    assert_eq!(world.post(MAPS, &json!({ "metadata": { "name": "a" } })).await.code, 500);
    assert_eq!(world.post("/api/v1/namespaces", &json!({ "metadata": { "name": "a" } })).await.code, 500);
    for path in [MUTATING, VALIDATING] {
        world.merged(&format!("{path}/c"), &json!({ "metadata": { "labels": { "a": "b" } } })).await;
        assert_eq!(world.delete(&format!("{path}/c")).await.code, 200);
    }
    world.made(MAPS, &json!({ "metadata": { "name": "a" } })).await;
}

#[tokio::test]
async fn services_lead_to_the_hosts_that_they_name() {
    let world = World::new().await;
    let server = Server::allowing().await;
    let port: u16 = server.url("").rsplit(':').next().unwrap().parse().unwrap();
    let service = json!({ "namespace": "ns", "name": "hook", "port": port, "path": "/check" });
    let client = json!({ "clientConfig": { "service": service, "caBundle": server.ca_bundle() } });
    world.validate_by("c", &[with(webhook("a.example.com", &server), client)]).await;
    let url = format!("Post \"https://hook.ns.svc:{port}/check?timeout=10s\": ");
    let answer = world.post(WIDGETS, &widget("a")).await;
    assert_eq!(answer.code, 500);
    assert!(answer.message().ends_with(&format!("{url}service \"hook\" not found")), "{}", answer.message());

    world.made("/api/v1/namespaces", &json!({ "metadata": { "name": "ns" } })).await;
    let services = "/api/v1/namespaces/ns/services";
    let ports = json!([{ "port": 443 }]);
    world.made(services, &json!({ "metadata": { "name": "hook" }, "spec": { "ports": ports } })).await;
    let answer = world.post(WIDGETS, &widget("a")).await;
    assert!(answer.message().contains("service \"hook\" cannot be reached"), "{}", answer.message());

    assert_eq!(world.delete(&format!("{services}/hook")).await.code, 200);
    // The name stands for loopback wherever this runs; the certificate is still for the service.
    let external = json!({ "type": "ExternalName", "externalName": "localhost" });
    world.made(services, &json!({ "metadata": { "name": "hook" }, "spec": external })).await;
    world.made(WIDGETS, &widget("a")).await;
    assert_eq!(server.calls()[0].target, "/check?timeout=10s");
}
