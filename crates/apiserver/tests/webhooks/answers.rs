//! What the client learns: refusals as Kubernetes sends them, warnings; and what the webhook is told.

use super::*;
use crate::server::{allow, deny, respond};

#[tokio::test]
async fn a_refusal_is_passed_on() {
    let world = World::new().await;
    let server = Server::start(|review| {
        let status = json!({
            "code": 429, "reason": "TooManyRequests", "message": "come back",
            "details": { "retryAfterSeconds": 7, "causes": [{ "reason": "Quota", "field": "spec.replicas", "message": "full" }] },
        });
        let response = json!({ "allowed": false, "status": status, "warnings": ["nearly \"full\""] });
        server::Reply::Json(respond(review, response))
    })
    .await;
    world.validate_by("c", &[webhook("quota.example.com", &server)]).await;
    let answer = world.post(WIDGETS, &widget("a")).await;
    assert_eq!(
        answer.body,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "code": 429, "reason": "TooManyRequests",
            "message": "admission webhook \"quota.example.com\" denied the request: come back",
            "details": { "retryAfterSeconds": 7, "causes": [{ "reason": "Quota", "field": "spec.replicas", "message": "full" }] },
        })
    );
    assert_eq!((answer.code, answer.retry_after.as_deref()), (429, Some("7")));
    assert_eq!(answer.warnings, ["299 - \"nearly \\\"full\\\"\""]);
}

#[tokio::test]
async fn a_refusal_without_words() {
    let world = World::new().await;
    let server = Server::start(|review| deny(review, &json!({ "code": 403 }))).await;
    world.validate_by("c", &[webhook("no.example.com", &server)]).await;
    let answer = world.post(WIDGETS, &widget("a")).await;
    assert_eq!(answer.code, 403);
    assert_eq!(
        answer.message(),
        "admission webhook \"no.example.com\" denied the request without explanation"
    );
    assert_eq!(world.get(&one("a")).await.code, 404);
}

/// Whatever becomes of the request, and by whichever verb.
#[tokio::test]
async fn warnings_reach_the_client() {
    let world = World::new().await;
    let server = Server::start(|review| allow(review, json!({ "warnings": ["old"] }))).await;
    world.mutate_by("c", &[webhook("a.example.com", &server)]).await;
    world.validate_by("c", &[webhook("b.example.com", &server)]).await;
    let warned = ["299 - \"old\""];
    assert_eq!(world.post(WIDGETS, &widget("a")).await.warnings, warned, "each once");
    let invalid =
        world.post(WIDGETS, &json!({ "metadata": { "name": "b" }, "spec": { "replicas": 101 } })).await;
    assert_eq!((invalid.code, invalid.warnings), (422, warned.map(str::to_owned).to_vec()));
    let patch = world.send("PATCH", &one("a"), MERGE, &json!({ "spec": { "replicas": 2 } })).await;
    assert_eq!(patch.warnings, warned);
    assert_eq!(world.delete(WIDGETS).await.warnings, warned);
    assert!(world.get(WIDGETS).await.warnings.is_empty());
}

#[tokio::test]
async fn a_webhook_is_told_everything() {
    let world = World::new().await;
    let server = Server::allowing().await;
    world.validate_by("c", &[webhook("a.example.com", &server)]).await;
    let path = format!("{WIDGETS}?fieldManager=tool&fieldValidation=Strict");
    let made = world.made(&path, &widget("a")).await;
    let request = server.calls()[0].review["request"].clone();
    assert_eq!(server.calls()[0].review["apiVersion"], "admission.k8s.io/v1");
    let kind = json!({ "group": "test.example.com", "version": "v1", "kind": "Widget" });
    let resource = json!({ "group": "test.example.com", "version": "v1", "resource": "widgets" });
    let mut object = made.clone();
    object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    assert_eq!(
        request,
        json!({
            "uid": request["uid"], "operation": "CREATE", "name": "a", "namespace": "default", "dryRun": false,
            "kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource,
            "userInfo": { "username": "ann", "groups": ["system:masters", "devs", "system:authenticated"] },
            "object": object, "oldObject": null,
            "options": {
                "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1",
                "fieldManager": "tool", "fieldValidation": "Strict",
            },
        })
    );
    assert!(!request["uid"].as_str().unwrap().is_empty());

    let changed = world.merged(&one("a"), &json!({ "spec": { "replicas": 5 } })).await;
    let request = server.calls()[1].review["request"].clone();
    assert_eq!((&request["operation"], &request["oldObject"]), (&json!("UPDATE"), &made));
    assert_eq!(request["object"]["spec"], changed["spec"]);
    assert_eq!(request["options"], json!({ "kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1" }));
}

#[tokio::test]
async fn dry_runs_are_told_as_such() {
    let world = World::new().await;
    let server = Server::allowing().await;
    world.validate_by("c", &[webhook("a.example.com", &server)]).await;
    world.made(&format!("{WIDGETS}?dryRun=All"), &widget("a")).await;
    assert_eq!(world.get(&one("a")).await.code, 404);
    world.made(WIDGETS, &widget("a")).await;
    world.delete(&format!("{}?dryRun=All", one("a"))).await;
    assert_eq!(world.get(&one("a")).await.code, 200);
    let calls = server.calls();
    let dry: Vec<&Value> = calls.iter().map(|call| &call.review["request"]["dryRun"]).collect();
    assert_eq!(dry, [true, false, true]);
    assert_eq!(calls[0].review["request"]["options"]["dryRun"], json!(["All"]));
    assert_eq!(calls[2].review["request"]["options"]["dryRun"], json!(["All"]));
}

/// Hooks that change an object see no name that is going to be generated; those that judge it do, in the object.
#[tokio::test]
async fn generated_names() {
    let world = World::new().await;
    let server = Server::allowing().await;
    world.mutate_by("c", &[webhook("a.example.com", &server)]).await;
    world.validate_by("c", &[webhook("a.example.com", &server)]).await;
    let body = json!({ "metadata": { "generateName": "w-" }, "spec": { "replicas": 1 } });
    let made = world.made(WIDGETS, &body).await;
    let requests: Vec<Value> = server.calls().iter().map(|call| call.review["request"].clone()).collect();
    assert_eq!(requests.iter().map(|r| r["name"].clone()).collect::<Vec<_>>(), [Value::Null, Value::Null]);
    assert!(requests[0]["object"]["metadata"]["name"].is_null());
    assert_eq!(requests[1]["object"]["metadata"]["name"], made["metadata"]["name"]);
}
