//! Webhooks that cannot answer: failure policies, timeouts, certificates.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;

use super::*;
use crate::common::{eventually, soon};
use crate::server::{Certificate, Reply, allow};

/// Sets how a webhook of each policy is treated, and checks what becomes of a create and of a delete.
async fn check(webhook: &Value, words: &str) {
    for path in [MUTATING, VALIDATING] {
        let world = World::new().await;
        world.made(WIDGETS, &super::widget("old")).await;
        let fail = json!({ "metadata": { "name": "c" }, "webhooks": [webhook] });
        world.made(path, &fail).await;
        for answer in [world.post(WIDGETS, &super::widget("new")).await, world.delete(&one("old")).await] {
            assert_eq!((answer.code, answer.body["reason"].as_str()), (500, Some("InternalError")));
            let start = "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: Post ";
            assert!(answer.message().starts_with(start), "{}", answer.message());
            assert!(answer.message().contains(words), "{}", answer.message());
        }
        assert_eq!((world.get(&one("old")).await.code, world.get(&one("new")).await.code), (200, 404));
        let ignore = json!({ "webhooks": [with(webhook.clone(), json!({ "failurePolicy": "Ignore" }))] });
        world.merged(&format!("{path}/c"), &ignore).await;
        world.made(WIDGETS, &super::widget("new")).await;
        assert_eq!(world.delete(&one("old")).await.code, 200);
    }
}

#[tokio::test]
async fn nobody_listens() {
    let server = Server::allowing().await;
    let client = json!({ "url": "https://127.0.0.1:1/hook", "caBundle": server.ca_bundle() });
    check(&with(webhook("a.example.com", &server), json!({ "clientConfig": client })), "dial tcp: ").await;
}

#[tokio::test]
async fn one_that_answers_nonsense() {
    let server = Server::start(|_| Reply::Raw(503, Bytes::from_static(b"busy"))).await;
    check(&webhook("a.example.com", &server), "the webhook answered with status 503").await;
}

#[tokio::test]
async fn one_that_hangs() {
    let server = Server::start(|_| Reply::Hang).await;
    let webhook = with(webhook("a.example.com", &server), json!({ "timeoutSeconds": 1 }));
    soon("calls end with their timeout", check(&webhook, "?timeout=1s\": context deadline exceeded")).await;
}

#[tokio::test]
async fn bad_certificates() {
    let allowing = || Arc::new(|review| futures::future::ready(allow(&review, json!({}))).boxed());
    let other = Server::allowing().await;
    let server = Server::allowing().await;
    let client = json!({ "url": server.url("/hook"), "caBundle": other.ca_bundle() });
    let foreign = with(webhook("a.example.com", &server), json!({ "clientConfig": client }));
    check(&foreign, "tls: invalid peer certificate").await;
    let unset = json!({ "clientConfig": { "url": server.url("/hook") } });
    check(&with(webhook("a.example.com", &server), unset), "tls: no certificate authority is trusted").await;
    let certificate = Certificate { names: &["hook.example.com"], ..Certificate::default() };
    let server = Server::start_with(certificate, allowing()).await;
    check(&webhook("a.example.com", &server), "certificate not valid for name").await;
    let certificate = Certificate { expires: 2020, ..Certificate::default() };
    let server = Server::start_with(certificate, allowing()).await;
    check(&webhook("a.example.com", &server), "certificate expired").await;
}

/// Counts those that are being asked.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn who_waits_holds_up_nobody_and_leaves_nothing() {
    let world = Arc::new(World::new().await);
    let open = Arc::new(AtomicUsize::new(0));
    let server = {
        let open = open.clone();
        Server::start_async(move |_| {
            open.fetch_add(1, Ordering::SeqCst);
            let counted = Counted(open.clone());
            async move {
                let _counted = counted;
                futures::future::pending().await
            }
            .boxed()
        })
        .await
    };
    let webhook = with(webhook("a.example.com", &server), json!({ "timeoutSeconds": 30 }));
    world.mutate_by("c", std::slice::from_ref(&webhook)).await;
    world.validate_by("c", &[webhook]).await;
    let waiting: Vec<_> = (0..20)
        .map(|i| {
            let world = world.clone();
            tokio::spawn(async move { world.post(WIDGETS, &super::widget(&format!("w{i}"))).await })
        })
        .collect();
    eventually("all wait", async || match open.load(Ordering::SeqCst) {
        20 => Ok(()),
        others => Err(others),
    })
    .await;
    // In the same plane what no webhook wants to see, and everything in another.
    soon("another kind", world.made(MAPS, &json!({ "metadata": { "name": "a" } }))).await;
    soon("a read", world.get(WIDGETS)).await;
    let plane = common::plane(&world.server, "other").await;
    let other = World { plane, server: world.server.clone() };
    soon("another plane", other.made(WIDGETS, &super::widget("a"))).await;
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    eventually("nobody waits", async || match open.load(Ordering::SeqCst) {
        0 => Ok(()),
        others => Err(others),
    })
    .await;
    assert_eq!(world.get(WIDGETS).await.body["items"], json!([]));
}
