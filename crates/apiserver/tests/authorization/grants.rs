//! Roles and bindings: they take effect at once, nobody grants what they do not hold, defaults are objects like others,
//! and aggregated roles show what they aggregate.

use compute_apiserver::Identity;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::common::eventually;
use super::{World, message, rbac, user};

fn role(name: &str, verbs: &[&str], resources: &[&str]) -> Value {
    let rule = json!({ "apiGroups": [""], "resources": resources, "verbs": verbs });
    json!({ "metadata": { "name": name }, "rules": [rule] })
}

/// A user who administers namespace `a`.
async fn admin_of_a(world: &World) -> Identity {
    world.bind("admin", Some("a"), "ClusterRole/admin", user("ann")).await;
    Identity::user("ann")
}

#[tokio::test]
async fn a_change_counts_for_the_next_request() {
    let world = World::new().await;
    let (ann, path) = (Identity::user("ann"), "/api/v1/namespaces/a/configmaps");
    let get = async || world.ask(&ann, Method::GET, path, &Value::Null).await.0;
    assert_eq!(get().await, StatusCode::FORBIDDEN);
    // A binding may come before its role; it grants nothing until then.
    world.bind("b", Some("a"), "Role/r", user("ann")).await;
    let (status, answer) = world.ask(&ann, Method::GET, path, &Value::Null).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(message(&answer).ends_with(r#"RBAC: role.rbac.authorization.k8s.io "r" not found"#), "{answer}");
    world.admin(Method::POST, &rbac(Some("a"), "s"), &role("r", &["list"], &["configmaps"])).await;
    assert_eq!(get().await, StatusCode::OK);
    world.admin(Method::DELETE, &format!("{}/r", rbac(Some("a"), "s")), &Value::Null).await;
    assert_eq!(get().await, StatusCode::FORBIDDEN);
    // With its namespace go its roles.
    world.admin(Method::POST, &rbac(Some("a"), "s"), &role("r", &["list"], &["configmaps"])).await;
    assert_eq!(get().await, StatusCode::OK);
    world.admin(Method::DELETE, "/api/v1/namespaces/a", &Value::Null).await;
    eventually("the namespace goes", async || match get().await {
        StatusCode::FORBIDDEN => Ok(()),
        other => Err(other),
    })
    .await;
}

#[tokio::test]
async fn nobody_grants_what_they_do_not_hold() {
    let world = World::new().await;
    let ann = admin_of_a(&world).await;
    let roles = rbac(Some("a"), "s");
    let ask = async |method: Method, path: &str, body: &Value| world.ask(&ann, method, path, body).await;

    let (status, answer) = ask(Method::POST, &roles, &role("own", &["get", "delete"], &["configmaps"])).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    for (what, body) in [
        ("another kind", role("more", &["get"], &["nodes"])),
        ("another verb", role("more", &["get", "approve"], &["configmaps"])),
        ("all verbs", role("more", &["*"], &["configmaps"])),
        ("all kinds", role("more", &["get"], &["*"])),
    ] {
        let (status, answer) = ask(Method::POST, &roles, &body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{what}: {answer}");
        let text = message(&answer);
        assert!(
            text.starts_with(r#"roles.rbac.authorization.k8s.io "more" is forbidden: user "ann""#),
            "{text}"
        );
        assert!(text.contains("is attempting to grant RBAC permissions not currently held"), "{text}");
    }
    let own = format!("{roles}/own");
    let more = json!({ "rules": role("own", &["get"], &["nodes"])["rules"] });
    for (method, body, content_type) in [
        (Method::PATCH, more.clone(), "application/merge-patch+json"),
        (Method::PATCH, more, "application/strategic-merge-patch+json"),
        (
            Method::PATCH,
            json!([{ "op": "add", "path": "/rules/0/verbs/-", "value": "*" }]),
            "application/json-patch+json",
        ),
        (Method::PUT, role("own", &["get"], &["nodes"]), "application/json"),
    ] {
        let headers = [("content-type", content_type)];
        let (status, answer) = world.ask_with(&ann, method, &own, &body, &headers).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{content_type}: {answer}");
    }
    let mut applied = role("applied", &["get"], &["nodes"]);
    applied["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
    applied["kind"] = json!("Role");
    let apply = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{roles}/applied?fieldManager=t");
    let (status, answer) = world.ask_with(&ann, Method::PATCH, &path, &applied, &apply).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
    let (status, answer) =
        ask(Method::POST, &format!("{roles}?dryRun=All"), &role("dry", &["*"], &["*"])).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");

    let binding = |role: &str| {
        json!({
            "metadata": { "name": format!("b-{role}") }, "subjects": [user("bob")],
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        })
    };
    let bindings = rbac(Some("a"), "bindings");
    for (role, expected) in [
        ("view", StatusCode::CREATED),
        ("admin", StatusCode::CREATED),
        ("cluster-admin", StatusCode::FORBIDDEN),
        ("missing", StatusCode::NOT_FOUND),
    ] {
        let (status, answer) = ask(Method::POST, &bindings, &binding(role)).await;
        assert_eq!(status, expected, "{role}: {answer}");
    }
    let (status, answer) = ask(Method::POST, &rbac(None, "bindings"), &binding("view")).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
    // Nothing of all that was written.
    let list = world.admin(Method::GET, &roles, &Value::Null).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["items"][0]["rules"][0]["verbs"], json!(["get", "delete"]));

    // Whoever may escalate and bind is not held to it.
    let verbs = json!({ "metadata": { "name": "trusted" }, "rules": [
        { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "clusterroles"], "verbs": ["escalate", "bind"] },
    ] });
    world.admin(Method::POST, &roles, &verbs).await;
    world.bind("trusted", Some("a"), "Role/trusted", user("ann")).await;
    let (status, answer) = ask(Method::POST, &roles, &role("more", &["get"], &["nodes"])).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    let (status, answer) = ask(Method::POST, &bindings, &binding("cluster-admin")).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
}

#[tokio::test]
async fn bad_roles_and_bindings_are_refused_with_their_fields() {
    let world = World::new().await;
    let root = Identity::superuser("root");
    let binding = |reference: Value, subject: Value| json!({ "metadata": { "name": "b" }, "subjects": [subject], "roleRef": reference });
    let view = json!({ "kind": "ClusterRole", "name": "view" });
    for (path, body, field) in [
        (
            rbac(Some("a"), "s"),
            json!({ "metadata": { "name": "r" }, "rules": [{ "apiGroups": [""], "resources": ["pods"] }] }),
            "rules[0].verbs",
        ),
        (
            rbac(Some("a"), "s"),
            json!({ "metadata": { "name": "r" }, "rules": [{ "nonResourceURLs": ["/x"], "verbs": ["get"] }] }),
            "rules[0].nonResourceURLs",
        ),
        (
            rbac(Some("a"), "bindings"),
            binding(json!({ "kind": "Nothing", "name": "x" }), user("ann")),
            "roleRef.kind",
        ),
        (
            rbac(None, "bindings"),
            binding(json!({ "kind": "Role", "name": "x" }), user("ann")),
            "roleRef.kind",
        ),
        (
            rbac(None, "bindings"),
            binding(view, json!({ "kind": "ServiceAccount", "name": "x" })),
            "subjects[0].namespace",
        ),
    ] {
        let (status, answer) = world.ask(&root, Method::POST, &path, &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{field}: {answer}");
        let causes = answer["details"]["causes"].as_array().unwrap();
        assert!(causes.iter().any(|cause| cause["field"] == field), "{field}: {answer}");
    }
    world.bind("fixed", Some("a"), "ClusterRole/view", user("ann")).await;
    let path = format!("{}/fixed", rbac(Some("a"), "bindings"));
    let other = json!({ "roleRef": { "name": "edit" } });
    let (status, answer) = world.ask(&root, Method::PATCH, &path, &other).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(message(&answer).contains("cannot change roleRef"), "{answer}");
}

#[tokio::test]
async fn an_apply_that_creates_needs_both_verbs() {
    let world = World::new().await;
    world.admin(Method::POST, &rbac(Some("a"), "s"), &role("patcher", &["patch"], &["configmaps"])).await;
    world.bind("patcher", Some("a"), "Role/patcher", user("ann")).await;
    let ann = Identity::user("ann");
    let path = "/api/v1/namespaces/a/configmaps/c?fieldManager=t";
    let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } });
    let headers = [("content-type", "application/apply-patch+yaml")];
    let (status, answer) = world.ask_with(&ann, Method::PATCH, path, &config, &headers).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(message(&answer).contains("cannot create resource"), "{answer}");
    world.admin(Method::POST, "/api/v1/namespaces/a/configmaps", &config).await;
    let (status, answer) = world.ask_with(&ann, Method::PATCH, path, &config, &headers).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

#[tokio::test]
async fn default_roles_are_objects_that_can_be_changed_and_removed() {
    let world = World::new().await;
    let nobody = Identity::user("nobody");
    let discovery = async || world.ask(&nobody, Method::GET, "/apis", &Value::Null).await.0;
    let roles = world.admin(Method::GET, &rbac(None, "s"), &Value::Null).await;
    let names: Vec<&str> = roles["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|role| role["metadata"]["name"].as_str().unwrap())
        .collect();
    for name in ["admin", "cluster-admin", "edit", "view", "system:discovery"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let root = Identity::superuser("root");
    let (status, _) =
        world.ask(&root, Method::POST, &rbac(None, "s"), &role("view", &["get"], &["pods"])).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(discovery().await, StatusCode::OK);
    let path = format!("{}/system:discovery", rbac(None, "bindings"));
    world.admin(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(discovery().await, StatusCode::FORBIDDEN);
    // Other planes keep theirs.
    let other = super::common::plane(&world.server, "other").await;
    let other = World { server: world.server.clone(), plane: other };
    assert_eq!(other.ask(&nobody, Method::GET, "/apis", &Value::Null).await.0, StatusCode::OK);
}

#[tokio::test]
async fn aggregated_roles_grant_and_show_what_they_pick() {
    let world = World::new().await;
    world.bind("v", Some("a"), "ClusterRole/view", user("ann")).await;
    let ann = Identity::user("ann");
    let list = async || {
        world.ask(&ann, Method::GET, "/apis/test.example.com/v1/namespaces/a/widgets", &Value::Null).await.0
    };
    assert_eq!(list().await, StatusCode::FORBIDDEN);
    let widgets = json!({
        "metadata": { "name": "see-widgets", "labels": { "rbac.authorization.k8s.io/aggregate-to-view": "true" } },
        "rules": [{ "apiGroups": ["test.example.com"], "resources": ["widgets"], "verbs": ["list"] }],
    });
    world.admin(Method::POST, &rbac(None, "s"), &widgets).await;
    assert_eq!(list().await, StatusCode::OK, "at once");
    // `edit` picks `view`, and `admin` picks `edit`.
    for role in ["view", "edit", "admin"] {
        eventually("the role shows it", async || {
            let role = world.admin(Method::GET, &format!("{}/{role}", rbac(None, "s")), &Value::Null).await;
            let shown =
                role["rules"].as_array().unwrap().iter().any(|rule| rule["resources"] == json!(["widgets"]));
            if shown { Ok(()) } else { Err(role.to_string()) }
        })
        .await;
    }
    world.admin(Method::DELETE, &format!("{}/see-widgets", rbac(None, "s")), &Value::Null).await;
    assert_eq!(list().await, StatusCode::FORBIDDEN);
    eventually("the role no longer shows it", async || {
        let role = world.admin(Method::GET, &format!("{}/view", rbac(None, "s")), &Value::Null).await;
        if role.to_string().contains("widgets") { Err(role.to_string()) } else { Ok(()) }
    })
    .await;
}
