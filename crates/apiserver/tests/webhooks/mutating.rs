//! Webhooks that change objects: order, reinvocation, and what the server makes of their changes.

use super::*;
use crate::server::{allow, patch};

/// A server that adds a part called `mark` to every widget that lacks it.
async fn marking(mark: &'static str) -> Server {
    Server::start(move |review| {
        let parts = review["request"]["object"]["spec"]["parts"].as_array().cloned().unwrap_or_default();
        if parts.iter().any(|part| part["name"] == mark) {
            return allow(review, json!({}));
        }
        let parts: Vec<Value> = parts.into_iter().chain([json!({ "name": mark })]).collect();
        patch(review, &json!([{ "op": "add", "path": "/spec/parts", "value": parts }]))
    })
    .await
}

/// A server that patches everything alike.
async fn patching(operations: Value) -> Server {
    Server::start(move |review| patch(review, &operations)).await
}

fn marks(object: &Value) -> Vec<&str> {
    object["spec"]["parts"].as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn one_after_another_by_name_of_the_configuration() {
    let world = World::new().await;
    let (a, b, c) = (marking("a").await, marking("b").await, marking("c").await);
    world.mutate_by("2", &[webhook("a.example.com", &a)]).await;
    world.mutate_by("1", &[webhook("c.example.com", &c), webhook("b.example.com", &b)]).await;
    assert_eq!(marks(&world.made(WIDGETS, &widget("w")).await), ["c", "b", "a"]);
    assert_eq!(marks(&a.calls()[0].review["request"]["object"]), ["c", "b"]);
}

#[tokio::test]
async fn earlier_ones_run_again_if_they_ask_for_it() {
    let world = World::new().await;
    let (never, first, last) = (Server::allowing().await, Server::allowing().await, marking("x").await);
    let again = json!({ "reinvocationPolicy": "IfNeeded" });
    world
        .mutate_by(
            "c",
            &[
                webhook("never.example.com", &never),
                with(webhook("first.example.com", &first), again),
                webhook("last.example.com", &last),
            ],
        )
        .await;
    world.made(WIDGETS, &widget("w")).await;
    assert_eq!([&never, &first, &last].map(|server| server.calls().len()), [1, 2, 1]);
    assert_eq!(marks(&first.calls()[1].review["request"]["object"]), ["x"]);
    world.merged(&one("w"), &json!({ "spec": { "replicas": 2 } })).await;
    assert_eq!([&never, &first, &last].map(|server| server.calls().len()), [2, 3, 2], "nothing changed");
}

#[tokio::test]
async fn what_is_the_servers_stays() {
    let world = World::new().await;
    let server = patching(json!([
        { "op": "add", "path": "/metadata/name", "value": "other" },
        { "op": "add", "path": "/metadata/namespace", "value": "kube-system" },
        { "op": "add", "path": "/metadata/uid", "value": "mine" },
        { "op": "add", "path": "/metadata/creationTimestamp", "value": "2000-01-01T00:00:00Z" },
        { "op": "add", "path": "/metadata/deletionTimestamp", "value": "2000-01-01T00:00:00Z" },
        { "op": "add", "path": "/metadata/resourceVersion", "value": "1" },
        { "op": "add", "path": "/metadata/generation", "value": 77 },
        { "op": "add", "path": "/metadata/managedFields", "value": [{ "manager": 1 }] },
        { "op": "add", "path": "/metadata/annotations", "value": { "by": "hook" } },
        { "op": "add", "path": "/metadata/labels", "value": null },
        { "op": "add", "path": "/status", "value": { "phase": "mine" } },
        { "op": "add", "path": "/spec/unknown", "value": true },
        { "op": "remove", "path": "/spec/size" },
        { "op": "add", "path": "/spec/color", "value": "red" },
    ]))
    .await;
    world.mutate_by("c", &[webhook("a.example.com", &server)]).await;
    let made = world.made(WIDGETS, &widget("w")).await;
    let metadata = &made["metadata"];
    assert_eq!((&metadata["name"], &metadata["namespace"]), (&json!("w"), &json!("default")));
    assert_ne!(metadata["uid"], "mine");
    assert_ne!(metadata["creationTimestamp"], "2000-01-01T00:00:00Z");
    assert!(metadata["deletionTimestamp"].is_null() && metadata.get("labels").is_none());
    assert_eq!((&metadata["generation"], &metadata["annotations"]), (&json!(1), &json!({ "by": "hook" })));
    assert!(made.get("status").is_none());
    assert_eq!(made["spec"], json!({ "replicas": 1, "size": "medium", "color": "red" }));
    // The client owns what it wrote and what was filled in for it, and nothing that the webhook added.
    let owned = json!({ "f:spec": { ".": {}, "f:replicas": {}, "f:size": {} } });
    assert_eq!(metadata["managedFields"][0]["fieldsV1"], owned);

    let server = patching(json!([{ "op": "add", "path": "/spec/color", "value": "blue" }])).await;
    world.merged(&format!("{MUTATING}/c"), &json!({ "webhooks": [webhook("a.example.com", &server)] })).await;
    let labelled = world.merged(&one("w"), &json!({ "metadata": { "labels": { "a": "b" } } })).await;
    assert_eq!(
        (&labelled["spec"]["color"], &labelled["metadata"]["generation"]),
        (&json!("blue"), &json!(2))
    );
    for field in ["uid", "creationTimestamp", "name"] {
        assert_eq!(labelled["metadata"][field], made["metadata"][field], "{field}");
    }
}

#[tokio::test]
async fn what_a_webhook_takes_away_has_no_owner() {
    let world = World::new().await;
    let server = patching(json!([{ "op": "remove", "path": "/spec/color" }])).await;
    world.mutate_by("c", &[webhook("a.example.com", &server)]).await;
    let config = json!({
        "apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": { "name": "w" },
        "spec": { "replicas": 1, "color": "red" },
    });
    for path in
        [format!("{}?fieldManager=tool", one("w")), format!("{}?fieldManager=tool&force=true", one("w"))]
    {
        let answer = world.send("PATCH", &path, "application/apply-patch+yaml", &config).await;
        assert!(matches!(answer.code, 200 | 201), "{}", answer.body);
        assert!(answer.body["spec"].get("color").is_none());
        let [entry] = &answer.body["metadata"]["managedFields"].as_array().unwrap()[..] else { panic!() };
        assert_eq!(entry["fieldsV1"], json!({ "f:spec": { "f:replicas": {} } }));
    }
}

#[tokio::test]
async fn what_is_wrong_after_it_is_refused() {
    let world = World::new().await;
    world.made(WIDGETS, &widget("old")).await;
    let server = patching(json!([{ "op": "add", "path": "/spec/replicas", "value": 101 }])).await;
    world.mutate_by("c", &[webhook("a.example.com", &server)]).await;
    let patched = world.send("PATCH", &one("old"), MERGE, &json!({ "spec": { "color": "red" } })).await;
    for answer in [world.post(WIDGETS, &widget("new")).await, patched] {
        assert_eq!((answer.code, answer.body["reason"].as_str()), (422, Some("Invalid")));
        assert_eq!(answer.body["details"]["causes"][0]["field"], "spec.replicas");
    }
    assert_eq!(world.get(&one("new")).await.code, 404);
    assert_eq!(world.get(&one("old")).await.body["spec"]["replicas"], 1);
    let scaled = world
        .send("PATCH", &format!("{}/scale", one("old")), MERGE, &json!({ "spec": { "replicas": 3 } }))
        .await;
    assert_eq!(scaled.code, 200, "the rule does not name the subresource: {}", scaled.body);
    for (operations, words) in [
        (json!([{ "op": "replace", "path": "/kind", "value": "Other" }]), "attempted to change the kind"),
        (json!([{ "op": "remove", "path": "/metadata" }]), "attempted to remove the metadata"),
        (
            json!([{ "op": "replace", "path": "/metadata", "value": "text" }]),
            "attempted to remove the metadata",
        ),
        (json!([{ "op": "remove", "path": "/absent" }]), "returned a patch that does not apply"),
    ] {
        let server = patching(operations).await;
        let webhooks = json!({ "webhooks": [webhook("a.example.com", &server)] });
        world.merged(&format!("{MUTATING}/c"), &webhooks).await;
        let answer = world.post(WIDGETS, &widget("new")).await;
        assert_eq!(answer.code, 500, "{}", answer.body);
        assert!(answer.message().contains(words), "{}", answer.message());
    }
}

/// Kinds with code of their own get it for what a webhook adds, too.
#[tokio::test]
async fn built_in_kinds_are_completed_again() {
    let world = World::new().await;
    let server = Server::start(|review| {
        let operations = match review["request"]["kind"]["kind"].as_str().unwrap() {
            "Secret" => json!([{ "op": "add", "path": "/stringData", "value": { "a": "b" } }]),
            "Pod" => json!([{ "op": "add", "path": "/spec/containers/-", "value": { "name": "side", "image": "x" } }]),
            _ => json!([{ "op": "add", "path": "/metadata/labels", "value": { "team": "a" } }]),
        };
        patch(review, &operations)
    })
    .await;
    let rules = json!({ "rules": [rule(&["CREATE", "UPDATE"], "", &["secrets", "pods", "namespaces"])] });
    world.mutate_by("c", &[with(webhook("a.example.com", &server), rules)]).await;
    let secret =
        world.made("/api/v1/namespaces/default/secrets", &json!({ "metadata": { "name": "s" } })).await;
    assert_eq!((&secret["data"], secret.get("stringData")), (&json!({ "a": "Yg==" }), None));
    let pod =
        json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "main", "image": "x" }] } });
    let pod = world.made("/api/v1/namespaces/default/pods", &pod).await;
    let [main, side] = &pod["spec"]["containers"].as_array().unwrap()[..] else { panic!("{pod}") };
    let fields = |container: &Value| container.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(main), fields(side));
    let namespace = world.made("/api/v1/namespaces", &json!({ "metadata": { "name": "ns" } })).await;
    assert_eq!(namespace["metadata"]["labels"], json!({ "kubernetes.io/metadata.name": "ns", "team": "a" }));
    let request = &server.calls()[2].review["request"];
    assert_eq!((&request["name"], &request["namespace"]), (&json!("ns"), &json!("ns")));
}

#[tokio::test]
async fn every_form_of_writing_is_seen() {
    let world = World::new().await;
    let server = marking("x").await;
    world.mutate_by("c", &[webhook("a.example.com", &server)]).await;
    world.made(WIDGETS, &widget("w")).await;
    let cleared = json!({ "parts": [], "replicas": 2, "size": "medium" });
    let put = json!({
        "metadata": { "name": "w", "resourceVersion": world.get(&one("w")).await.body["metadata"]["resourceVersion"] },
        "spec": cleared,
    });
    let answer = world.send("PUT", &one("w"), JSON, &put).await;
    assert_eq!((answer.code, marks(&answer.body)), (200, vec!["x"]), "{}", answer.body);
    let merged = world.merged(&one("w"), &json!({ "spec": { "parts": [] } })).await;
    assert_eq!(marks(&merged), ["x"]);
    let operations = json!([{ "op": "replace", "path": "/spec/parts", "value": [] }]);
    let answer = world.send("PATCH", &one("w"), "application/json-patch+json", &operations).await;
    assert_eq!((answer.code, marks(&answer.body)), (200, vec!["x"]));
    let config = |name: &str| {
        json!({
            "apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": { "name": name },
            "spec": { "replicas": 4 },
        })
    };
    for name in ["w", "new"] {
        let path = format!("{}?fieldManager=tool&force=true", one(name));
        let answer = world.send("PATCH", &path, "application/apply-patch+yaml", &config(name)).await;
        assert_eq!(marks(&answer.body), ["x"], "{}", answer.body);
    }
    let seen: Vec<_> = calls(&server).into_iter().map(|(operation, _, name)| (operation, name)).collect();
    let expected = [
        ("CREATE", "w"),
        ("UPDATE", "w"),
        ("UPDATE", "w"),
        ("UPDATE", "w"),
        ("UPDATE", "w"),
        ("CREATE", "new"),
    ];
    assert_eq!(seen, expected.map(|(operation, name)| (operation.to_owned(), name.to_owned())));

    let server = Server::start(|review| {
        patch(review, &json!([{ "op": "add", "path": "/data", "value": { "by": "hook" } }]))
    })
    .await;
    let rules = json!({ "rules": [rule(&["UPDATE"], "", &["configmaps"])] });
    world.mutate_by("maps", &[with(webhook("b.example.com", &server), rules)]).await;
    world.made(MAPS, &json!({ "metadata": { "name": "m" } })).await;
    let strategic = "application/strategic-merge-patch+json";
    let answer = world.send("PATCH", &format!("{MAPS}/m"), strategic, &json!({ "data": { "a": "b" } })).await;
    assert_eq!((answer.code, &answer.body["data"]), (200, &json!({ "by": "hook" })));
}
