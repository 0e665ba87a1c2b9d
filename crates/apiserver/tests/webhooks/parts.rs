//! Subresources: what webhooks see of a status, a scale and a namespace that lets go, and what they may change there.

use super::*;
use crate::common::{client, widget as typed};
use crate::server::patch;
use kube::api::{Api, PatchParams, PostParams};

fn for_part(server: &Server, part: &str) -> Value {
    let rules = json!({ "rules": [rule(&["*"], "*", &[part])] });
    with(webhook("a.example.com", server), rules)
}

#[tokio::test]
async fn a_status() {
    let world = World::new().await;
    let server = Server::start(|review| {
        patch(
            review,
            &json!([
                { "op": "add", "path": "/status/phase", "value": "seen" },
                { "op": "add", "path": "/spec/color", "value": "red" },
                { "op": "add", "path": "/metadata/labels", "value": { "a": "b" } },
            ]),
        )
    })
    .await;
    world.mutate_by("c", &[for_part(&server, "widgets/status")]).await;
    let made = world.made(WIDGETS, &widget("w")).await;
    let status = json!({ "status": { "replicas": 1 } });
    let after = world.merged(&format!("{}/status", one("w")), &status).await;
    assert_eq!(after["status"], json!({ "replicas": 1, "phase": "seen" }));
    assert_eq!(after["spec"], made["spec"], "a write to the status changes nothing else");
    assert!(after["metadata"].get("labels").is_none());
    let request = &server.calls()[0].review["request"];
    assert_eq!((&request["subResource"], &request["kind"]["kind"]), (&json!("status"), &json!("Widget")));
    assert_eq!(request["requestSubResource"], "status");
    assert_eq!(calls(&server).len(), 1);
}

#[tokio::test]
async fn a_scale() {
    let world = World::new().await;
    let server = Server::start(|review| {
        let wanted = review["request"]["object"]["spec"]["replicas"].as_i64().unwrap();
        let operations = json!([
            { "op": "replace", "path": "/spec/replicas", "value": wanted * 10 },
            { "op": "add", "path": "/metadata/labels", "value": { "a": "b" } },
        ]);
        patch(review, &operations)
    })
    .await;
    let judge = Server::allowing().await;
    world.mutate_by("c", &[for_part(&server, "widgets/scale")]).await;
    world.validate_by("c", &[for_part(&judge, "widgets/scale")]).await;
    let api: Api<common::Widget> = Api::default_namespaced(client(&world.server, &world.plane));
    api.create(&PostParams::default(), &typed("w", 1)).await.unwrap();
    let body = json!({ "spec": { "replicas": 3 } });
    let scale = api.patch_scale("w", &PatchParams::default(), &kube::api::Patch::Merge(&body)).await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(30));
    let stored = api.get("w").await.unwrap();
    assert_eq!(
        (stored.spec.replicas, stored.metadata.generation, stored.metadata.labels),
        (30, Some(2), None)
    );
    let request = server.calls()[0].review["request"].clone();
    assert_eq!(request["kind"], json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" }));
    assert_eq!(request["resource"]["resource"], "widgets");
    assert_eq!((&request["subResource"], &request["operation"]), (&json!("scale"), &json!("UPDATE")));
    assert_eq!(request["object"]["kind"], "Scale");
    assert_eq!(
        (&request["oldObject"]["spec"], &request["object"]["spec"]),
        (&json!({ "replicas": 1 }), &json!({ "replicas": 3 }))
    );
    assert_eq!(judge.calls()[0].review["request"]["object"]["spec"], json!({ "replicas": 30 }));
    // The widget allows no more than 100.
    let answer = world
        .send("PATCH", &format!("{}/scale", one("w")), MERGE, &json!({ "spec": { "replicas": 11 } }))
        .await;
    assert_eq!(answer.code, 422, "{}", answer.body);
    assert_eq!(api.get("w").await.unwrap().spec.replicas, 30);
}

#[tokio::test]
async fn a_scale_that_makes_no_sense() {
    let world = World::new().await;
    world.made(WIDGETS, &widget("w")).await;
    for value in [json!(-1), json!("many"), Value::Null] {
        let server = Server::start(move |review| {
            patch(review, &json!([{ "op": "add", "path": "/spec", "value": { "replicas": value } }]))
        })
        .await;
        world.mutate_by("c", &[for_part(&server, "widgets/scale")]).await;
        let scale = format!("{}/scale", one("w"));
        let answer = world.send("PATCH", &scale, MERGE, &json!({ "spec": { "replicas": 3 } })).await;
        assert_eq!((answer.code, &answer.body["details"]["kind"]), (422, &json!("Scale")), "{}", answer.body);
        world.delete(&format!("{MUTATING}/c")).await;
    }
}

#[tokio::test]
async fn a_namespace_that_lets_go() {
    let world = World::new().await;
    let server = Server::allowing().await;
    world.validate_by("c", &[for_part(&server, "namespaces/finalize")]).await;
    let namespace = world.made("/api/v1/namespaces", &json!({ "metadata": { "name": "ns" } })).await;
    let body = with(namespace, json!({ "spec": { "finalizers": ["kubernetes", "example.com/mine"] } }));
    assert_eq!(world.send("PUT", "/api/v1/namespaces/ns/finalize", JSON, &body).await.code, 200);
    assert_eq!(calls(&server), [("UPDATE".to_owned(), "finalize".to_owned(), "ns".to_owned())]);
}
