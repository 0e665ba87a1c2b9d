//! Which requests a webhook is called for.

use super::*;
use crate::server::deny;

async fn refusing() -> Server {
    Server::start(|review| deny(review, &json!({ "code": 403, "message": "no" }))).await
}

#[tokio::test]
async fn namespaces_by_label() {
    let world = World::new().await;
    let server = refusing().await;
    let selector = json!({ "namespaceSelector": { "matchLabels": { "team": "a" } } });
    let webhook = with(webhook("a.example.com", &server), selector);
    let rules = json!({ "rules": [rule(&["*"], "*", &["widgets", "namespaces", "nodes"])] });
    world.validate_by("c", &[with(webhook, with(rules, json!({ "matchPolicy": "Exact" })))]).await;
    let namespace = |labels: Value| json!({ "metadata": { "name": "ns", "labels": labels } });
    assert_eq!(world.post("/api/v1/namespaces", &namespace(json!({ "team": "a" }))).await.code, 403);
    world.made("/api/v1/namespaces", &namespace(json!({ "team": "b" }))).await;
    let widgets = "/apis/test.example.com/v1/namespaces/ns/widgets";
    world.made(widgets, &widget("w")).await;
    assert_eq!(
        world.post("/api/v1/nodes", &json!({ "metadata": { "name": "n" } })).await.code,
        403,
        "in none"
    );
    assert_eq!(
        world.post("/apis/test.example.com/v1/namespaces/absent/widgets", &widget("w")).await.code,
        404,
        "the namespace is looked for before anybody is asked"
    );
    assert_eq!(server.calls().len(), 2);
    // Who writes the namespace is judged by what it is going to be.
    let labels = json!({ "metadata": { "labels": { "team": "a" } } });
    assert_eq!(world.send("PATCH", "/api/v1/namespaces/ns", MERGE, &labels).await.code, 403);
    assert_eq!(world.delete("/apis/test.example.com/v1/namespaces/ns/widgets/w").await.code, 200);
}

#[tokio::test]
async fn objects_by_label() {
    let world = World::new().await;
    let server = refusing().await;
    let selector =
        json!({ "objectSelector": { "matchExpressions": [{ "key": "guarded", "operator": "Exists" }] } });
    world
        .made(
            WIDGETS,
            &json!({ "metadata": { "name": "g", "labels": { "guarded": "" } }, "spec": { "replicas": 1 } }),
        )
        .await;
    world.validate_by("c", &[with(webhook("a.example.com", &server), selector)]).await;
    world.made(WIDGETS, &widget("plain")).await;
    assert_eq!(world.delete(&one("plain")).await.code, 200);
    assert_eq!(world.delete(&one("g")).await.code, 403);
    let unguard = json!({ "metadata": { "labels": null } });
    assert_eq!(world.send("PATCH", &one("g"), MERGE, &unguard).await.code, 403, "the label was there before");
}

#[tokio::test]
async fn conditions() {
    let world = World::new().await;
    let server = refusing().await;
    let conditions = |expressions: &[&str], policy: &str| {
        let conditions: Vec<Value> = expressions
            .iter()
            .enumerate()
            .map(|(i, expression)| json!({ "name": format!("c{i}"), "expression": expression }))
            .collect();
        let fields = json!({ "matchConditions": conditions, "failurePolicy": policy });
        json!({ "webhooks": [with(webhook("a.example.com", &server), fields)] })
    };
    world.validate_by("c", &[]).await;
    for (i, (expressions, policy, code)) in [
        (&["object.spec.replicas > 5"][..], "Fail", 201),
        (&["object.spec.replicas == 1", "request.userInfo.username == 'ann'"], "Fail", 403),
        (&["request.userInfo.username != 'ann'", "object.spec.absent == 1"], "Fail", 201),
        (&["oldObject == null && request.operation == 'CREATE'"], "Fail", 403),
        (&["object.spec.absent == 1"], "Ignore", 201),
        (&["object.spec.absent == 1"], "Fail", 403),
    ]
    .into_iter()
    .enumerate()
    {
        world.merged(&format!("{VALIDATING}/c"), &conditions(expressions, policy)).await;
        let answer = world.post(WIDGETS, &widget(&format!("w{i}"))).await;
        assert_eq!(answer.code, code, "{expressions:?} {policy}: {}", answer.body);
    }
    assert_eq!(server.calls().len(), 2, "the last was refused without a call");
}

#[tokio::test]
async fn operations_resources_and_scopes() {
    let world = World::new().await;
    world.made(WIDGETS, &widget("w")).await;
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    for (operations, group, resources, scope, expected) in [
        (&["CREATE"][..], "test.example.com", &["widgets"][..], "*", "c...."),
        (&["UPDATE"], "test.example.com", &["widgets"], "*", ".u..."),
        (&["*"], "test.example.com", &["widgets/*"], "*", "cus.."),
        (&["*"], "test.example.com", &["widgets/status"], "*", "..s.."),
        (&["*"], "*", &["*"], "Namespaced", "cu.m."),
        (&["*"], "*", &["*/*"], "Cluster", "....n"),
        (&["*"], "", &["*"], "*", "...mn"),
        (&["DELETE", "CONNECT"], "*", &["*/*"], "*", "....."),
    ] {
        let server = refusing().await;
        let rule = with(rule(operations, group, resources), json!({ "scope": scope, "apiVersions": ["*"] }));
        world.validate_by("c", &[with(webhook("a.example.com", &server), json!({ "rules": [rule] }))]).await;
        let dry = |path: &str| format!("{path}?dryRun=All");
        let status = dry(&format!("{}/status", one("w")));
        let answers = [
            ('c', world.post(&dry(WIDGETS), &widget("new")).await),
            ('u', world.send("PATCH", &dry(&one("w")), MERGE, &patch).await),
            ('s', world.send("PATCH", &status, MERGE, &json!({ "status": { "phase": "on" } })).await),
            ('m', world.post(&dry(MAPS), &json!({ "metadata": { "name": "m" } })).await),
            ('n', world.post(&dry("/api/v1/namespaces"), &json!({ "metadata": { "name": "n" } })).await),
        ];
        let refused = answers.map(|(letter, answer)| if answer.code == 403 { letter } else { '.' });
        assert_eq!(refused.iter().collect::<String>(), expected, "{operations:?} {resources:?} {scope}");
        assert_eq!(world.delete(&format!("{VALIDATING}/c")).await.code, 200);
    }
}

/// A CRD with two versions: a webhook for one sees what is written by the other.
#[tokio::test]
async fn other_versions_count() {
    let world = World::new().await;
    let version = |name: &str, storage: bool| {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        json!({ "name": name, "served": true, "storage": storage, "schema": { "openAPIV3Schema": schema } })
    };
    world
        .made(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &json!({
                "metadata": { "name": "gears.test.example.com" },
                "spec": {
                    "group": "test.example.com", "scope": "Namespaced",
                    "names": { "plural": "gears", "kind": "Gear" },
                    "versions": [version("v1", true), version("v2", false)],
                },
            }),
        )
        .await;
    let server = Server::start(|review| {
        assert_eq!(review["request"]["object"]["apiVersion"], "test.example.com/v1");
        server::patch(review, &json!([{ "op": "add", "path": "/spec", "value": { "seen": true } }]))
    })
    .await;
    let rules = json!({ "rules": [rule(&["CREATE", "UPDATE"], "test.example.com", &["gears"])] });
    world.mutate_by("c", &[with(webhook("a.example.com", &server), rules)]).await;
    let gears = "/apis/test.example.com/v2/namespaces/default/gears";
    let made = world.made(gears, &json!({ "metadata": { "name": "a" } })).await;
    assert_eq!(
        (&made["apiVersion"], &made["spec"]),
        (&json!("test.example.com/v2"), &json!({ "seen": true }))
    );
    let request = server.calls()[0].review["request"].clone();
    assert_eq!((&request["kind"]["version"], &request["resource"]["version"]), (&json!("v1"), &json!("v1")));
    assert_eq!(request["requestKind"]["version"], "v2");
    assert_eq!(request["requestResource"]["version"], "v2");

    let exact = json!({ "webhooks": [with(server_webhook(&server), json!({ "matchPolicy": "Exact" }))] });
    world.merged(&format!("{MUTATING}/c"), &exact).await;
    let made = world.made(gears, &json!({ "metadata": { "name": "b" } })).await;
    assert!(made.get("spec").is_none());
}

fn server_webhook(server: &Server) -> Value {
    let rules = json!({ "rules": [rule(&["CREATE", "UPDATE"], "test.example.com", &["gears"])] });
    with(webhook("a.example.com", server), rules)
}
