//! Which requests a webhook is called for.

use super::*;

/// Whether a webhook with these fields is called for a request.
async fn called(fields: Value, request: AdmissionRequest) -> bool {
    called_in(&World::new(), fields, request).await.unwrap()
}

async fn called_in(world: &World, fields: Value, request: AdmissionRequest) -> Result<bool, Denial> {
    let server = Server::allowing().await;
    let chain = validating(&[with(webhook("a.example.com", &server), fields)]);
    world.admit(&chain, request).await.map_err(|rejection| rejection.denial)?;
    Ok(!server.calls().is_empty())
}

fn rule(fields: Value) -> Rule {
    let rule = with(
        json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}),
        fields,
    );
    let list = |name: &str| -> Vec<String> { serde_json::from_value(rule[name].clone()).unwrap() };
    let operations = list("operations");
    let known =
        Operation::ALL.into_iter().filter(|known| operations.iter().any(|o| o == "*" || o == known.name()));
    Rule {
        operations: known.collect(),
        api_groups: list("apiGroups"),
        api_versions: list("apiVersions"),
        resources: list("resources"),
        scope: match rule["scope"].as_str() {
            Some("Cluster") => Scope::Cluster,
            Some("Namespaced") => Scope::Namespaced,
            _ => Scope::All,
        },
    }
}

#[test]
fn rules() {
    let main = create(widget());
    let status = AdmissionRequest { subresource: "status".to_owned(), ..main.clone() };
    let cluster = AdmissionRequest { namespace: String::new(), ..main.clone() };
    let namespace = AdmissionRequest {
        resource: GroupVersionResource::new("", "v1", "namespaces"),
        namespace: "w".to_owned(),
        ..main.clone()
    };
    for (fields, expected) in [
        (json!({}), [true, true, true, true]),
        (json!({"operations": ["UPDATE", "DELETE"]}), [false; 4]),
        (json!({"operations": ["UPDATE", "CREATE"]}), [true; 4]),
        (json!({"apiGroups": [""]}), [false, false, false, true]),
        (json!({"apiGroups": ["other", "example.com"]}), [true, true, true, false]),
        (json!({"apiVersions": ["v2"]}), [false; 4]),
        (json!({"resources": ["*"]}), [true, false, true, true]),
        (json!({"resources": ["widgets"]}), [true, false, true, false]),
        (json!({"resources": ["widgets/*"]}), [true, true, true, false]),
        (json!({"resources": ["widgets/status"]}), [false, true, false, false]),
        (json!({"resources": ["*/status"]}), [false, true, false, false]),
        (json!({"resources": ["*/scale", "namespaces"]}), [false, false, false, true]),
        (json!({"scope": "Namespaced"}), [true, true, false, false]),
        (json!({"scope": "Cluster"}), [false, false, true, true]),
    ] {
        let rules = Rules(vec![rule(json!({"resources": ["none"]})), rule(fields.clone())]);
        let found = [&main, &status, &cluster, &namespace].map(|request| rules.matches(request));
        assert_eq!(found, expected, "{fields}");
    }
    assert!(!Rules::default().matches(&main));
}

#[tokio::test]
async fn object_selectors_look_at_both_states() {
    let expressions = |list: Value| json!({"objectSelector": {"matchExpressions": list}});
    for (fields, expected) in [
        (json!({"objectSelector": {}}), true),
        (json!({"objectSelector": {"matchLabels": {"app": "web"}}}), true),
        (json!({"objectSelector": {"matchLabels": {"app": "web", "tier": "x"}}}), false),
        (expressions(json!([{"key": "app", "operator": "In", "values": ["a", "web"]}])), true),
        (expressions(json!([{"key": "app", "operator": "NotIn", "values": ["web"]}])), false),
        (expressions(json!([{"key": "gone", "operator": "NotIn", "values": ["web"]}])), true),
        (expressions(json!([{"key": "app", "operator": "Exists"}])), true),
        (expressions(json!([{"key": "app", "operator": "DoesNotExist"}])), false),
    ] {
        assert_eq!(called(fields.clone(), create(widget())).await, expected, "{fields}");
    }
    let mut request = create(widget());
    request.old_object = Some(json!({"metadata": {"labels": {"old": "yes"}}}));
    let old = json!({"objectSelector": {"matchLabels": {"old": "yes"}}});
    assert!(called(old.clone(), request.clone()).await, "the old state counts, too");
    let new = json!({"objectSelector": {"matchLabels": {"app": "web"}}});
    assert!(called(new, request).await);
    let mut request = create(json!({"no": "metadata"}));
    request.old_object = None;
    assert!(!called(expressions(json!([{"key": "a", "operator": "DoesNotExist"}])), request).await);
}

#[tokio::test]
async fn namespace_selectors() {
    let team_a = json!({"namespaceSelector": {"matchLabels": {"team": "a"}}});
    let in_namespace =
        |namespace: &str| AdmissionRequest { namespace: namespace.to_owned(), ..create(widget()) };
    assert!(called(team_a.clone(), in_namespace("ns")).await);
    assert!(!called(team_a.clone(), in_namespace("plain")).await);
    assert!(called(team_a.clone(), in_namespace("")).await, "cluster-scoped objects are in no namespace");
    let denial = called_in(&World::new(), team_a.clone(), in_namespace("gone")).await.unwrap_err();
    assert_eq!((denial.code, denial.message.as_str()), (404, "namespaces \"gone\" not found"));
    assert!(called(json!({"namespaceSelector": {}}), in_namespace("gone")).await);

    // A namespace is judged by what it is going to be, and by what it is when it goes.
    let rules = json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*"]}]);
    let team_a = with(team_a, json!({"rules": rules}));
    let of = |operation, labels: Value| {
        let mut request = AdmissionRequest::new(
            operation,
            GroupVersionKind::new("", "v1", "Namespace"),
            GroupVersionResource::new("", "v1", "namespaces"),
        );
        request.name = "plain".to_owned();
        request.object = (operation != Operation::Delete).then(|| json!({"metadata": {"labels": labels}}));
        request
    };
    assert!(called(team_a.clone(), of(Operation::Create, json!({"team": "a"}))).await);
    assert!(called(team_a.clone(), of(Operation::Update, json!({"team": "a"}))).await);
    assert!(!called(team_a.clone(), of(Operation::Update, json!({}))).await);
    assert!(!called(team_a, of(Operation::Delete, json!({}))).await);
}

#[tokio::test]
async fn match_conditions() {
    let conditions = |expressions: &[&str]| {
        let listed = expressions.iter().enumerate();
        let listed: Vec<_> =
            listed.map(|(i, text)| json!({"name": format!("c{i}"), "expression": text})).collect();
        json!({"matchConditions": listed})
    };
    for (expressions, expected) in [
        (&["object.spec.size == 1"][..], true),
        (&["object.spec.size == 2"], false),
        (&["true", "object.metadata.labels.app != 'web'"], false),
        (&["oldObject == null", "request.operation == 'CREATE'"], true),
        (&["request.userInfo.username == 'ann' && 'devs' in request.userInfo.groups"], true),
        (&["request.kind.kind == 'Widget' && request.resource.resource == 'widgets'"], true),
        (&["!has(request.subResource) && !request.dryRun && request.namespace == 'ns'"], true),
        (&["!has(request.object)"], true),
        // One that is false decides even if another has no value.
        (&["object.spec.missing == 1", "false"], false),
    ] {
        assert_eq!(called(conditions(expressions), create(widget())).await, expected, "{expressions:?}");
    }
    let undecided = conditions(&["object.spec.missing == 1", "true"]);
    let denial = called_in(&World::new(), undecided.clone(), create(widget())).await.unwrap_err();
    assert_eq!((denial.code, denial.reason.as_str()), (403, "Forbidden"));
    assert_eq!(
        denial.message,
        "widgets.example.com \"w\" is forbidden: match condition \"c0\": no such key: missing"
    );
    assert_eq!(
        denial.to_status()["details"],
        json!({"name": "w", "group": "example.com", "kind": "widgets"})
    );
    let open = with(undecided, json!({"failurePolicy": "Ignore"}));
    assert!(!called(open, create(widget())).await);

    // All conditions of a webhook share one budget.
    let mut large = widget();
    large["spec"]["list"] = (0..2000).map(Value::from).collect();
    let slow = conditions(&["object.spec.list.all(a, object.spec.list.all(b, a + b >= 0))"]);
    let denial = called_in(&World::new(), slow, create(large)).await.unwrap_err();
    assert!(denial.message.contains("cost limit exceeded"), "{}", denial.message);
}

#[tokio::test]
async fn configurations_are_not_sent_to_webhooks() {
    let rules =
        json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    for (kind, expected) in [
        ("MutatingWebhookConfiguration", false),
        ("ValidatingWebhookConfiguration", false),
        ("ValidatingAdmissionPolicyBinding", false),
        ("Other", true),
    ] {
        let mut request = create(widget());
        request.kind = GroupVersionKind::new("admissionregistration.k8s.io", "v1", kind);
        assert_eq!(called(json!({"rules": rules}), request).await, expected, "{kind}");
    }
}

#[tokio::test]
async fn other_versions_count_unless_the_rule_is_exact() {
    let mut world = World::new();
    world.equivalents = vec![Equivalent {
        kind: GroupVersionKind::new("example.com", "v2", "Widget"),
        resource: GroupVersionResource::new("example.com", "v2", "widgets"),
    }];
    let rules = json!([{
        "operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["widgets"],
    }]);
    let exact = json!({"rules": rules, "matchPolicy": "Exact"});
    assert!(!called_in(&world, exact, create(widget())).await.unwrap());

    let server = Server::start(|review| {
        server::patch(
            review,
            &json!([
                {"op": "test", "path": "/apiVersion", "value": "example.com/v2"},
                {"op": "add", "path": "/spec/list/-", "value": 1},
            ]),
        )
    })
    .await;
    let chain = mutating(&[with(webhook("a.example.com", &server), json!({"rules": rules}))]);
    let admitted = world.admit(&chain, create(widget())).await.unwrap();
    let mut expected = widget();
    expected["spec"] = json!({"size": 1, "list": [1], "defaulted": true});
    assert_eq!(admitted.object, Some(expected), "the object stays in its own version");
    let sent = &server.calls()[0].review["request"];
    assert_eq!((&sent["kind"]["version"], &sent["resource"]["version"]), (&json!("v2"), &json!("v2")));
    assert_eq!(sent["requestKind"]["version"], json!("v1"));
    assert_eq!(sent["requestResource"]["version"], json!("v1"));
}
