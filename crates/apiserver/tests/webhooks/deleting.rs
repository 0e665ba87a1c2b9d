//! Deletes: those of clients, one or many, and those that the server makes of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::common::eventually;
use crate::server::{Reply, allow, deny};

const NAMESPACES: &str = "/api/v1/namespaces";

async fn gone(world: &World, path: &str) {
    eventually(&format!("{path} is gone"), async || match world.get(path).await {
        Answer { code: 404, .. } => Ok(()),
        found => Err(found.body),
    })
    .await;
}

fn deletes(server: &Server, resources: &[&str]) -> Value {
    with(webhook("a.example.com", server), json!({ "rules": [rule(&["DELETE"], "*", resources)] }))
}

/// Refuses until it is told otherwise.
async fn stubborn() -> (Server, Arc<AtomicBool>) {
    let yields = Arc::new(AtomicBool::new(false));
    let told = yields.clone();
    let server = Server::start(move |review| match told.load(Ordering::SeqCst) {
        true => allow(review, json!({})),
        false => deny(review, &json!({ "code": 403, "message": "not yet" })),
    })
    .await;
    (server, yields)
}

#[tokio::test]
async fn one_object() {
    let world = World::new().await;
    let (server, yields) = stubborn().await;
    let made = world.made(WIDGETS, &widget("w")).await;
    world.validate_by("c", &[deletes(&server, &["widgets"])]).await;
    let answer = world.delete(&one("w")).await;
    assert_eq!(
        (answer.code, answer.message()),
        (403, "admission webhook \"a.example.com\" denied the request: not yet")
    );
    assert_eq!(world.get(&one("w")).await.body, made);
    yields.store(true, Ordering::SeqCst);
    let body =
        json!({ "propagationPolicy": "Foreground", "preconditions": { "uid": made["metadata"]["uid"] } });
    assert_eq!(world.send("DELETE", &one("w"), JSON, &body).await.code, 202);
    let request = server.calls()[1].review["request"].clone();
    assert_eq!((&request["object"], &request["oldObject"]), (&Value::Null, &made));
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Foreground",
        "preconditions": { "uid": made["metadata"]["uid"] },
    });
    assert_eq!(request["options"], options);
    gone(&world, &one("w")).await;
}

#[tokio::test]
async fn mutating_webhooks_see_deletes_and_change_nothing() {
    let world = World::new().await;
    world.made(WIDGETS, &widget("w")).await;
    let server =
        Server::start(|review| server::patch(review, &json!([{ "op": "add", "path": "/a", "value": 1 }])))
            .await;
    world.mutate_by("c", &[deletes(&server, &["widgets"])]).await;
    let answer = world.delete(&one("w")).await;
    assert_eq!(answer.code, 500);
    assert!(answer.message().contains("attempted to modify the object"), "{}", answer.message());
}

#[tokio::test]
async fn each_of_a_collection() {
    let world = World::new().await;
    let server = Server::start(|review| match review["request"]["oldObject"]["metadata"]["name"] == "b" {
        true => deny(review, &json!({ "code": 403, "message": "b stays" })),
        false => allow(review, json!({})),
    })
    .await;
    for name in ["a", "b", "c"] {
        world.made(WIDGETS, &widget(name)).await;
    }
    world.validate_by("c", &[deletes(&server, &["widgets"])]).await;
    assert_eq!(world.delete(WIDGETS).await.code, 403);
    let codes =
        [world.get(&one("a")).await.code, world.get(&one("b")).await.code, world.get(&one("c")).await.code];
    assert_eq!(codes, [404, 200, 200]);
    assert_eq!(server.calls().len(), 2);
}

/// Who is refused is asked again, by the server as by anybody.
#[tokio::test]
async fn what_its_owner_takes_along() {
    let world = World::new().await;
    let (server, yields) = stubborn().await;
    let owner = world.made(WIDGETS, &widget("w")).await;
    let reference = json!({
        "apiVersion": "test.example.com/v1", "kind": "Widget", "name": "w", "uid": owner["metadata"]["uid"],
    });
    world.made(MAPS, &json!({ "metadata": { "name": "m", "ownerReferences": [reference] } })).await;
    world.validate_by("c", &[deletes(&server, &["configmaps"])]).await;
    assert_eq!(world.delete(&one("w")).await.code, 200);
    eventually("the server asks", async || if server.calls().is_empty() { Err("not yet") } else { Ok(()) })
        .await;
    assert_eq!(world.get(&format!("{MAPS}/m")).await.code, 200);
    yields.store(true, Ordering::SeqCst);
    gone(&world, &format!("{MAPS}/m")).await;
    assert_eq!(server.calls()[0].review["request"]["userInfo"]["username"], "system:apiserver");
}

/// What a webhook keeps stays with its namespace; everything else goes. Without the webhook all of it goes.
#[tokio::test]
async fn a_namespace_with_a_broken_webhook() {
    let world = World::new().await;
    let server = Server::start(|_| Reply::Raw(500, Bytes::new())).await;
    world.made(NAMESPACES, &json!({ "metadata": { "name": "ns" } })).await;
    world.made("/apis/test.example.com/v1/namespaces/ns/widgets", &widget("w")).await;
    for kind in ["configmaps", "secrets"] {
        world.made(&format!("{NAMESPACES}/ns/{kind}"), &json!({ "metadata": { "name": "x" } })).await;
    }
    world.validate_by("c", &[deletes(&server, &["configmaps", "widgets"])]).await;
    assert_eq!(world.delete(&format!("{NAMESPACES}/ns")).await.code, 202);
    gone(&world, &format!("{NAMESPACES}/ns/secrets/x")).await;
    for kept in [format!("{NAMESPACES}/ns"), format!("{NAMESPACES}/ns/configmaps/x")] {
        assert_eq!(world.get(&kept).await.code, 200, "{kept}");
    }
    assert_eq!(world.delete(&format!("{VALIDATING}/c")).await.code, 200);
    gone(&world, &format!("{NAMESPACES}/ns")).await;
}

/// One that hangs, in the background: its plane's garbage waits, and nobody else's.
#[tokio::test]
async fn a_hanging_webhook_holds_up_its_own_plane_alone() {
    let world = World::new().await;
    let server = Server::start(|_| Reply::Hang).await;
    let hanging = with(deletes(&server, &["configmaps"]), json!({ "timeoutSeconds": 30 }));
    world.made(NAMESPACES, &json!({ "metadata": { "name": "ns" } })).await;
    world.made(&format!("{NAMESPACES}/ns/configmaps"), &json!({ "metadata": { "name": "m" } })).await;
    world.validate_by("c", &[hanging]).await;
    world.delete(&format!("{NAMESPACES}/ns")).await;
    eventually("the server asks", async || if server.calls().is_empty() { Err("not yet") } else { Ok(()) })
        .await;
    let other = World { plane: common::plane(&world.server, "other").await, server: world.server.clone() };
    other.made(NAMESPACES, &json!({ "metadata": { "name": "ns" } })).await;
    other.made(&format!("{NAMESPACES}/ns/configmaps"), &json!({ "metadata": { "name": "m" } })).await;
    other.delete(&format!("{NAMESPACES}/ns")).await;
    gone(&other, &format!("{NAMESPACES}/ns")).await;
    assert_eq!(world.get(&format!("{NAMESPACES}/ns")).await.code, 200);
}

/// The server's own books are kept whatever webhooks think of them.
#[tokio::test]
async fn bookkeeping_asks_nobody() {
    let world = World::new().await;
    let owner = world.made(WIDGETS, &widget("w")).await;
    let reference = json!({
        "apiVersion": "test.example.com/v1", "kind": "Widget", "name": "w", "uid": owner["metadata"]["uid"],
    });
    world.made(MAPS, &json!({ "metadata": { "name": "m", "ownerReferences": [reference] } })).await;
    world.made(WIDGETS, &widget("other")).await;
    let server = Server::start(|_| Reply::Raw(500, Bytes::new())).await;
    let updates = json!({ "rules": [rule(&["UPDATE"], "*", &["*/*"])] });
    world.validate_by("c", &[with(webhook("a.example.com", &server), updates)]).await;
    let answer = world.send("DELETE", &one("w"), JSON, &json!({ "propagationPolicy": "Orphan" })).await;
    assert_eq!(answer.code, 202, "{}", answer.body);
    gone(&world, &one("w")).await;
    assert!(world.get(&format!("{MAPS}/m")).await.body["metadata"].get("ownerReferences").is_none());
    world.validate_by("d", &[deletes(&server, &["widgets"])]).await;
    assert_eq!(world.delete(&one("other")).await.code, 500);
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.test.example.com";
    assert_eq!(world.delete(crd).await.code, 202);
    gone(&world, crd).await;
}
