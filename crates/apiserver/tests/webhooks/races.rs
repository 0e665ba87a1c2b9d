//! Webhooks that call back while they are asked, and writes that lose a race meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures::FutureExt as _;

use super::*;
use crate::common::soon;
use crate::server::allow;

/// A server that does something with the world before it allows a request.
async fn calling_back<F>(
    world: Arc<World>,
    act: impl Fn(Arc<World>, Value) -> F + Send + Sync + 'static,
) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    Server::start_async(move |review| {
        let done = act(world.clone(), review["request"].clone());
        async move {
            done.await;
            allow(&review, json!({}))
        }
        .boxed()
    })
    .await
}

#[tokio::test]
async fn a_webhook_that_reads_and_writes_the_same_plane() {
    let world = Arc::new(World::new().await);
    let server = calling_back(world.clone(), |world, request| async move {
        let name = request["name"].as_str().unwrap().to_owned();
        assert_eq!(world.get(&one(&name)).await.code, 404, "nothing is written before all have answered");
        // The webhook is asked about its own write, too.
        if !name.contains("-of-") {
            world.made(WIDGETS, &widget(&format!("child-of-{name}"))).await;
            world.delete(&one(&format!("child-of-{name}"))).await;
            world.made(MAPS, &json!({ "metadata": { "generateName": "log-" } })).await;
            let namespace = json!({ "metadata": { "labels": { "last": name } } });
            world.merged("/api/v1/namespaces/default", &namespace).await;
        }
    })
    .await;
    let rules = json!({ "rules": [rule(&["CREATE"], "test.example.com", &["widgets"])] });
    let webhook = with(webhook("a.example.com", &server), rules);
    world.mutate_by("c", std::slice::from_ref(&webhook)).await;
    world.validate_by("c", &[webhook]).await;
    soon("no deadlock", world.made(WIDGETS, &widget("w"))).await;
    assert_eq!(world.get(MAPS).await.body["items"].as_array().unwrap().len(), 2);
    assert_eq!(server.calls().len(), 6);
}

/// A write without a precondition is decided anew when another comes first, and the webhook is asked about that, too.
#[tokio::test]
async fn a_lost_race_is_decided_anew() {
    let world = Arc::new(World::new().await);
    world.made(WIDGETS, &widget("w")).await;
    let (meddled, again) = (AtomicBool::new(false), Arc::new(OnceLock::new()));
    let seen = again.clone();
    let server = calling_back(world.clone(), move |world, request| {
        let first = !meddled.swap(true, Ordering::SeqCst);
        let meddles = request["object"]["metadata"]["labels"]["by"] == "webhook";
        if !first && !meddles {
            seen.set(request["oldObject"]["metadata"]["labels"].clone()).unwrap();
        }
        async move {
            if first {
                world.merged(&one("w"), &json!({ "metadata": { "labels": { "by": "webhook" } } })).await;
            }
        }
    })
    .await;
    world.validate_by("c", &[webhook("a.example.com", &server)]).await;
    let after = world.merged(&one("w"), &json!({ "metadata": { "labels": { "by": "client" } } })).await;
    assert_eq!(after["metadata"]["labels"]["by"], "client");
    assert_eq!(again.get(), Some(&json!({ "by": "webhook" })));
    assert_eq!(server.calls().len(), 3);
}

#[tokio::test]
async fn a_precondition_that_fails_meanwhile_is_a_conflict() {
    let world = Arc::new(World::new().await);
    let made = world.made(WIDGETS, &widget("w")).await;
    let meddled = AtomicBool::new(false);
    let server = calling_back(world.clone(), move |world, _| {
        let first = !meddled.swap(true, Ordering::SeqCst);
        async move {
            if first {
                world.merged(&one("w"), &json!({ "metadata": { "labels": { "by": "webhook" } } })).await;
            }
        }
    })
    .await;
    world.validate_by("c", &[webhook("a.example.com", &server)]).await;
    let body = with(made, json!({ "spec": { "replicas": 9 } }));
    assert_eq!(world.send("PUT", &one("w"), JSON, &body).await.code, 409);
    assert_eq!(world.get(&one("w")).await.body["spec"]["replicas"], 1);
}

/// A namespace that begins to go while a webhook thinks takes nothing new.
#[tokio::test]
async fn a_namespace_that_goes_meanwhile() {
    let world = Arc::new(World::new().await);
    world.made("/api/v1/namespaces", &json!({ "metadata": { "name": "ns" } })).await;
    let server = calling_back(world.clone(), |world, _| async move {
        world.delete("/api/v1/namespaces/ns").await;
    })
    .await;
    let rules = json!({ "rules": [rule(&["CREATE"], "test.example.com", &["widgets"])] });
    world.validate_by("c", &[with(webhook("a.example.com", &server), rules)]).await;
    let answer = world.post("/apis/test.example.com/v1/namespaces/ns/widgets", &widget("w")).await;
    assert!(matches!(answer.code, 403 | 404), "{}", answer.body);
}

/// Many writers, a webhook that answers each: nothing is lost, and connections are used again by those who come later.
#[tokio::test]
async fn many_at_once() {
    let world = Arc::new(World::new().await);
    let server = Server::start(|review| {
        server::patch(review, &json!([{ "op": "add", "path": "/spec/color", "value": "red" }]))
    })
    .await;
    world.mutate_by("c", &[webhook("a.example.com", &server)]).await;
    let writers = (0..50).map(|i| {
        let world = world.clone();
        tokio::spawn(
            async move { world.made(WIDGETS, &widget(&format!("w{i}"))).await["spec"]["color"].clone() },
        )
    });
    for color in soon("all are made", futures::future::join_all(writers)).await {
        assert_eq!(color.unwrap(), "red");
    }
    assert_eq!(world.get(WIDGETS).await.body["items"].as_array().unwrap().len(), 50);
    let connections = server.connections();
    for i in 0..10 {
        world.merged(&one(&format!("w{i}")), &json!({ "spec": { "replicas": 2 } })).await;
    }
    assert_eq!((server.calls().len(), server.connections()), (60, connections));
}
