//! Several webhooks: order, patches on patches, reinvocation, and several refusals.

use std::sync::Arc;

use parking_lot::Mutex;

use super::server::{Reply, allow, deny, patch};
use super::*;

/// A server that appends `mark` to the list of every widget that it sees, once.
async fn marking(mark: &'static str) -> Server {
    Server::start(move |review| {
        let seen = review["request"]["object"]["spec"]["list"].as_array().unwrap().clone();
        if seen.contains(&json!(mark)) {
            return allow(review, json!({}));
        }
        patch(review, &json!([{"op": "add", "path": "/spec/list/-", "value": mark}]))
    })
    .await
}

fn again(webhook: Value) -> Value {
    with(webhook, json!({"reinvocationPolicy": "IfNeeded"}))
}

fn list(admitted: &Admitted) -> &Value {
    &admitted.object.as_ref().unwrap()["spec"]["list"]
}

#[tokio::test]
async fn configurations_run_by_name_and_each_sees_what_the_last_did() {
    let (a, b, c) = (marking("a").await, marking("b").await, marking("c").await);
    let configurations = [
        configuration("2-later", &[webhook("a.example.com", &a)]),
        configuration("1-first", &[webhook("c.example.com", &c), webhook("b.example.com", &b)]),
    ];
    let chain = Chain::compile(&configurations, &[], &[]).unwrap();
    let admitted = World::new().admit(&chain, create(widget())).await.unwrap();
    assert_eq!(list(&admitted), &json!(["c", "b", "a"]));
    let sent = |server: &Server| server.calls()[0].review["request"]["object"].clone();
    assert_eq!(sent(&c), widget());
    assert_eq!(sent(&b)["spec"], json!({"size": 1, "list": ["c"], "defaulted": true}));
    assert_eq!(sent(&a)["spec"]["list"], json!(["c", "b"]));
}

#[tokio::test]
async fn one_patch_may_have_many_operations() {
    let server = Server::start(|review| {
        patch(
            review,
            &json!([
                {"op": "test", "path": "/spec/size", "value": 1},
                {"op": "replace", "path": "/spec/size", "value": 2},
                {"op": "add", "path": "/metadata/annotations", "value": {"by": "hook"}},
                {"op": "copy", "from": "/spec/size", "path": "/spec/copy"},
                {"op": "remove", "path": "/spec/list"},
            ]),
        )
    })
    .await;
    let chain = mutating(&[webhook("a.example.com", &server)]);
    let object = World::new().admit(&chain, create(widget())).await.unwrap().object.unwrap();
    assert_eq!(object["spec"], json!({"size": 2, "copy": 2, "defaulted": true}));
    assert_eq!(object["metadata"]["annotations"], json!({"by": "hook"}));
}

#[tokio::test]
async fn earlier_hooks_run_once_more_if_they_ask_for_it() {
    let (never, first, second, last) =
        (Server::allowing().await, Server::allowing().await, marking("b").await, marking("c").await);
    let chain = mutating(&[
        webhook("never.example.com", &never),
        again(webhook("first.example.com", &first)),
        again(webhook("second.example.com", &second)),
        again(webhook("last.example.com", &last)),
    ]);
    let admitted = World::new().admit(&chain, create(widget())).await.unwrap();
    assert_eq!(list(&admitted), &json!(["b", "c"]));
    let calls = [&never, &first, &second, &last].map(|server| server.calls().len());
    assert_eq!(calls, [1, 2, 2, 1], "the last one has seen everything");
    let uids: Vec<_> = first.calls().iter().map(|call| call.review["request"]["uid"].clone()).collect();
    assert_ne!(uids[0], uids[1], "each call has a uid of its own");
    assert_eq!(first.calls()[1].review["request"]["object"]["spec"]["list"], json!(["b", "c"]));

    let quiet = Server::allowing().await;
    let chain = mutating(&[again(webhook("a.example.com", &quiet)), again(webhook("b.example.com", &quiet))]);
    World::new().admit(&chain, create(widget())).await.unwrap();
    assert_eq!(quiet.calls().len(), 2, "nothing changed, so nobody runs again");
}

/// In the second round a change is shown to those after it that have not seen it, and then it ends.
#[tokio::test]
async fn there_is_no_third_round() {
    let growing = async || {
        Server::start(|review| patch(review, &json!([{"op": "add", "path": "/spec/list/-", "value": "x"}])))
            .await
    };
    let (a, b) = (growing().await, growing().await);
    let chain = mutating(&[again(webhook("a.example.com", &a)), again(webhook("b.example.com", &b))]);
    let admitted = World::new().admit(&chain, create(widget())).await.unwrap();
    assert_eq!((a.calls().len(), b.calls().len()), (2, 2));
    assert_eq!(list(&admitted).as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_hook_that_was_not_asked_at_first_is_not_asked_later() {
    let (picky, labelling) = (Server::allowing().await, {
        Server::start(|review| {
            patch(review, &json!([{"op": "add", "path": "/metadata/labels/late", "value": "yes"}]))
        })
        .await
    });
    let selector = json!({"objectSelector": {"matchLabels": {"late": "yes"}}});
    let picky_hook = |name| again(with(webhook(name, &picky), selector.clone()));
    let chain = mutating(&[picky_hook("a.example.com"), webhook("b.example.com", &labelling)]);
    World::new().admit(&chain, create(widget())).await.unwrap();
    assert_eq!(picky.calls().len(), 0);
    let chain = mutating(&[webhook("b.example.com", &labelling), picky_hook("c.example.com")]);
    World::new().admit(&chain, create(widget())).await.unwrap();
    assert_eq!(picky.calls().len(), 1, "what earlier ones changed decides");
}

#[tokio::test]
async fn validating_hooks_run_at_once_and_the_first_refusal_in_order_counts() {
    // Each answers only when all have been asked.
    let all = Arc::new(tokio::sync::Barrier::new(3));
    let order = Arc::new(Mutex::new(Vec::new()));
    let server = |status: Value| {
        let (all, order) = (all.clone(), order.clone());
        Server::start_async(move |review| {
            let (all, order, status) = (all.clone(), order.clone(), status.clone());
            Box::pin(async move {
                all.wait().await;
                order.lock().push(status.clone());
                if status.is_null() { allow(&review, json!({})) } else { deny(&review, &status) }
            })
        })
    };
    let yes = server(Value::Null).await;
    let (no, also_no) = (server(json!({"message": "1"})).await, server(json!({"message": "2"})).await);
    let chain = validating(&[
        webhook("a.example.com", &yes),
        webhook("b.example.com", &no),
        webhook("c.example.com", &also_no),
    ]);
    for _ in 0..3 {
        let denial = World::new().refusal(&chain, create(widget())).await;
        assert_eq!(denial.message, "admission webhook \"b.example.com\" denied the request: 1");
    }
    assert_eq!(order.lock().len(), 9, "all are asked, whatever the others say");
}

#[tokio::test]
async fn a_refused_mutation_ends_the_chain() {
    let no = Server::start(|review| deny(review, &Value::Null)).await;
    let (before, after) = (Server::allowing().await, Server::allowing().await);
    let mutating = [configuration(
        "m",
        &[webhook("a.example.com", &before), webhook("b.example.com", &no), webhook("c.example.com", &after)],
    )];
    let validating = [configuration("v", &[webhook("d.example.com", &after)])];
    let chain = Chain::compile(&mutating, &validating, &[]).unwrap();
    World::new().refusal(&chain, create(widget())).await;
    assert_eq!((before.calls().len(), after.calls().len()), (1, 0));
}

#[tokio::test]
async fn a_failing_hook_that_is_ignored_leaves_the_rest_alone() {
    let broken = Server::start(|_| Reply::Raw(500, "".into())).await;
    let marking = marking("a").await;
    let chain = mutating(&[
        with(webhook("a.example.com", &broken), json!({"failurePolicy": "Ignore"})),
        webhook("b.example.com", &marking),
    ]);
    let admitted = World::new().admit(&chain, create(widget())).await.unwrap();
    assert_eq!(list(&admitted), &json!(["a"]));
}
