//! The defaults of every plane, and aggregation.

use serde_json::{Value, json};

use super::*;
use crate::authz::RbacKind;
use crate::authz::{Rule, aggregate, default_policy, defaults, validate};

#[test]
fn defaults_are_sound_objects() {
    let objects = Objects::of(defaults());
    for (kind, list) in [
        (RbacKind::ClusterRole, &objects.cluster_roles),
        (RbacKind::ClusterRoleBinding, &objects.cluster_role_bindings),
    ] {
        for object in list {
            assert_eq!(validate(kind, object, None), [], "{object}");
        }
    }
    let names: Vec<&str> =
        objects.cluster_roles.iter().map(|role| role["metadata"]["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"cluster-admin") && names.contains(&"view"), "{names:?}");
    objects.policy();
}

#[test]
fn what_the_defaults_give() {
    let plane = Objects::of([
        binding("n/admin", "admin", &["User:adam"]),
        binding("n/edit", "edit", &["User:edith"]),
        binding("n/view", "view", &["User:viola"]),
        binding("roots", "cluster-admin", &["User:rita"]),
    ]);
    let policy = plane.over(default_policy());
    // Verb, group, resource; then who may, of the four, in namespace n.
    for (verb, group, what, who) in [
        ("get", "", "pods", "adam edith viola rita"),
        ("get", "", "pods/log", "adam edith viola rita"),
        ("list", "", "namespaces", "adam edith viola rita"),
        ("watch", "events.k8s.io", "events", "adam edith viola rita"),
        ("delete", "", "configmaps", "adam edith rita"),
        ("get", "", "secrets", "adam edith rita"),
        ("create", "", "pods/exec", "adam edith rita"),
        ("update", "coordination.k8s.io", "leases", "adam edith rita"),
        ("create", RBAC, "rolebindings", "adam rita"),
        ("create", "authorization.k8s.io", "localsubjectaccessreviews", "adam rita"),
        ("delete", "", "namespaces", "rita"),
        ("get", "", "nodes", "rita"),
        ("get", "apiextensions.k8s.io", "customresourcedefinitions", "rita"),
        ("escalate", RBAC, "roles", "rita"),
    ] {
        for user in ["adam", "edith", "viola", "rita"] {
            for (namespace, expected) in [("n", who.contains(user)), ("m", user == "rita")] {
                let request =
                    Attributes::resource(Caller::new(user, &[]), verb, resource(group, what, namespace, "x"));
                assert_eq!(policy.allows(&request).allowed, expected, "{request}");
            }
        }
    }
    let known = texts(&["system:authenticated"]);
    let unknown = texts(&["system:unauthenticated"]);
    for (path, authenticated, anonymous) in [
        ("/version", true, true),
        ("/healthz", true, true),
        ("/api", true, false),
        ("/apis/apps/v1", true, false),
        ("/openapi/v3", true, false),
        ("/metrics", false, false),
    ] {
        let may = |groups| policy.allows(&Attributes::path(Caller::new("u", groups), "get", path)).allowed;
        assert_eq!((may(&known), may(&unknown)), (authenticated, anonymous), "{path}");
    }
    for (group, what) in [
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    ] {
        let may = |groups| {
            let request =
                Attributes::resource(Caller::new("u", groups), "create", resource(group, what, "", ""));
            policy.allows(&request).allowed
        };
        assert!(may(&known) && !may(&unknown), "{what}");
    }
}

#[test]
fn a_plane_extends_and_replaces_defaults() {
    let mut widgets = role("widgets-view", json!([on("get", "x.io", "widgets")]));
    widgets["metadata"]["labels"] = json!({ "rbac.authorization.k8s.io/aggregate-to-view": "true" });
    let plane = Objects::of([
        widgets,
        role("system:discovery", json!([])),
        binding("n/view", "view", &["User:viola"]),
        binding("n/admin", "admin", &["User:adam"]),
        binding("system:basic-user", "system:basic-user", &["Group:chosen"]),
    ]);
    let policy = plane.over(default_policy());
    for user in ["viola", "adam"] {
        let request =
            Attributes::resource(Caller::new(user, &[]), "get", resource("x.io", "widgets", "n", "a"));
        assert!(policy.allows(&request).allowed, "{request}");
    }
    let groups = texts(&["system:authenticated"]);
    let caller = Caller::new("u", &groups);
    assert!(!policy.allows(&Attributes::path(caller, "get", "/api")).allowed);
    assert!(policy.allows(&Attributes::path(caller, "get", "/version")).allowed);
    let whoami = resource("authentication.k8s.io", "selfsubjectreviews", "", "");
    assert!(!policy.allows(&Attributes::resource(caller, "create", whoami)).allowed);
    // Other planes see nothing of it.
    assert!(default_policy().allows(&Attributes::path(caller, "get", "/api")).allowed);
    let has_widgets = |rules: Option<&[Rule]>| rules.unwrap().iter().any(|rule| rule.api_groups == ["x.io"]);
    assert!(has_widgets(policy.cluster_role_rules("edit")));
    assert!(!has_widgets(default_policy().cluster_role_rules("edit")));
}

fn labelled(name: &str, labels: Value, resource: &str) -> Value {
    let mut object = role(name, json!([on("get", "", resource)]));
    object["metadata"]["labels"] = labels;
    object
}

fn aggregated(name: &str, labels: Value, selectors: &Value) -> Value {
    let mut object = labelled(name, labels, "ignored");
    object["aggregationRule"] = json!({ "clusterRoleSelectors": selectors });
    object
}

#[test]
fn aggregation_picks_by_label() {
    let all = [
        labelled("b", json!({ "tier": "web" }), "b"),
        labelled("a", json!({ "tier": "db" }), "a"),
        labelled("c", json!({ "tier": "web", "old": "" }), "c"),
        labelled("d", json!({ "tier": "web" }), "b"),
        labelled("e", Value::Null, "e"),
        json!({ "kind": "ClusterRole", "rules": 3 }),
    ];
    for (selectors, expected) in [
        (json!([{ "matchLabels": { "tier": "web" } }]), "b c"),
        (json!([{ "matchLabels": { "tier": "web", "old": "" } }]), "c"),
        (json!([{ "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["db", "x"] }] }]), "a"),
        (json!([{ "matchExpressions": [{ "key": "tier", "operator": "NotIn", "values": ["web"] }] }]), "a e"),
        (json!([{ "matchExpressions": [{ "key": "old", "operator": "Exists" }] }]), "c"),
        (json!([{ "matchExpressions": [{ "key": "tier", "operator": "DoesNotExist" }] }]), "e"),
        (
            json!([{ "matchLabels": { "tier": "web" },
                "matchExpressions": [{ "key": "old", "operator": "DoesNotExist", "values": null }] }]),
            "b",
        ),
        (json!([{ "matchLabels": { "old": "" } }, { "matchLabels": { "tier": "db" } }]), "c a"),
        (json!([{}]), "a b c e"),
        (json!([]), ""),
        (Value::Null, ""),
    ] {
        let rules = aggregate(&aggregated("x", Value::Null, &selectors), &all);
        let found: Vec<&str> = rules.iter().map(|rule| rule.resources[0].as_str()).collect();
        assert_eq!(found.join(" "), expected, "{selectors}");
    }
    assert_eq!(aggregate(&all[0], &all), [Rule::resources(&["get"], "", &["b"])]);
    assert_eq!(aggregate(&json!(1), &all), []);
}

#[test]
fn aggregation_goes_through_aggregated_roles_and_round_in_circles() {
    let mut all = vec![
        labelled("leaf", json!({ "to": "z" }), "leaf"),
        aggregated("a", json!({ "to": "b" }), &json!([{ "matchLabels": { "to": "a" } }])),
        aggregated(
            "b",
            json!({ "to": "a" }),
            &json!([{ "matchLabels": { "to": "b" } }, { "matchLabels": { "to": "z" } }]),
        ),
    ];
    // A long chain: each picks the next, the last picks the leaf.
    for i in 0..300 {
        let next = json!([{ "matchLabels": { "chain": format!("{}", i + 1) } }]);
        all.push(aggregated(&format!("chain-{i}"), json!({ "chain": format!("{i}") }), &next));
    }
    all.push(labelled("end", json!({ "chain": "300" }), "end"));
    let leaf = [Rule::resources(&["get"], "", &["leaf"])];
    assert_eq!(aggregate(&all[1], &all), leaf);
    assert_eq!(aggregate(&all[2], &all), leaf);
    assert_eq!(aggregate(&all[3], &all), [Rule::resources(&["get"], "", &["end"])]);
}
