//! Reviews, and acting as somebody else.

use compute_apiserver::Identity;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{World, message, rbac, user};

const AUTHORIZATION: &str = "/apis/authorization.k8s.io/v1";
const AUTHENTICATION: &str = "/apis/authentication.k8s.io/v1";

fn list_pods(namespace: &str) -> Value {
    json!({ "verb": "list", "resource": "pods", "namespace": namespace })
}

#[tokio::test]
async fn somebody_elses_access_is_answered_to_those_who_may_ask() {
    let world = World::new().await;
    world.bind("v", Some("a"), "ClusterRole/view", json!({ "kind": "Group", "name": "team" })).await;
    let root = Identity::superuser("root");
    let sar = format!("{AUTHORIZATION}/subjectaccessreviews");
    for (namespace, groups, expected) in
        [("a", json!(["team"]), true), ("b", json!(["team"]), false), ("a", json!(["x"]), false)]
    {
        let review = json!({ "spec": {
            "user": "ann", "groups": groups, "uid": "1", "extra": { "k": ["v"] }, "resourceAttributes": list_pods(namespace),
        } });
        let (status, answer) = world.ask(&root, Method::POST, &sar, &review).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        assert_eq!(answer["status"]["allowed"], expected, "{answer}");
        assert_eq!(
            (&answer["kind"], &answer["spec"]["extra"]["k"]),
            (&json!("SubjectAccessReview"), &json!(["v"]))
        );
    }
    let review = json!({ "spec": { "user": "ann", "resourceAttributes": list_pods("a") } });
    let (status, _) = world.ask(&Identity::user("nobody"), Method::POST, &sar, &review).await;
    assert_eq!(status, StatusCode::FORBIDDEN);

    // An administrator of a namespace may ask there.
    world.bind("admin", Some("a"), "ClusterRole/admin", user("ann")).await;
    let local = |namespace: &str| format!("{AUTHORIZATION}/namespaces/{namespace}/localsubjectaccessreviews");
    let ann = Identity::user("ann");
    let (status, answer) = world.ask(&ann, Method::POST, &local("a"), &review).await;
    assert_eq!((status, &answer["status"]["allowed"]), (StatusCode::CREATED, &json!(true)), "{answer}");
    assert_eq!(world.ask(&ann, Method::POST, &local("b"), &review).await.0, StatusCode::FORBIDDEN);
    let (status, answer) = world.ask(&root, Method::POST, &local("b"), &review).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    assert_eq!(answer["details"]["causes"][0]["field"], "spec.resourceAttributes.namespace", "{answer}");
}

#[tokio::test]
async fn one_learns_who_one_is_and_what_one_may() {
    let world = World::new().await;
    world.bind("v", Some("a"), "ClusterRole/view", user("ann")).await;
    let ann = Identity { uid: "7".to_owned(), ..Identity::user("ann").in_group("team") };
    let path = format!("{AUTHENTICATION}/selfsubjectreviews");
    let (status, answer) = world.ask(&ann, Method::POST, &path, &json!({})).await;
    assert_eq!(status, StatusCode::CREATED);
    let expected = json!({ "username": "ann", "uid": "7", "groups": ["team", "system:authenticated"] });
    assert_eq!(answer["status"]["userInfo"], expected);

    let rules = format!("{AUTHORIZATION}/selfsubjectrulesreviews");
    let in_namespace = async |namespace: &str| {
        let review = json!({ "spec": { "namespace": namespace } });
        world.ask(&ann, Method::POST, &rules, &review).await.1["status"].to_string()
    };
    assert!(in_namespace("a").await.contains("configmaps"));
    assert!(!in_namespace("b").await.contains("configmaps"));
    assert!(in_namespace("b").await.contains("/openapi/*"));
    // A review is asked, not kept.
    let root = Identity::superuser("root");
    for method in [Method::GET, Method::DELETE] {
        let (status, _) = world.ask(&root, method, &rules, &Value::Null).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    }
    for bad in [json!([]), json!(1), json!({ "spec": 1 }), json!({ "spec": {} })] {
        let (status, answer) =
            world.ask(&root, Method::POST, &format!("{AUTHORIZATION}/selfsubjectaccessreviews"), &bad).await;
        assert!(status.is_client_error(), "{bad}: {answer}");
    }
}

#[tokio::test]
async fn one_acts_as_another_only_if_one_may() {
    let world = World::new().await;
    world.bind("v", Some("a"), "ClusterRole/view", user("bob")).await;
    let as_bob = [("impersonate-user", "bob")];
    let path = "/api/v1/namespaces/a/configmaps";
    let get = async |who: &Identity, headers: &[(&str, &str)]| {
        world.ask_with(who, Method::GET, path, &Value::Null, headers).await
    };
    let root = Identity::superuser("root");
    assert_eq!(get(&root, &as_bob).await.0, StatusCode::OK);
    // Whoever acts as another leaves their own rights behind.
    assert_eq!(get(&root, &[("impersonate-user", "eve")]).await.0, StatusCode::FORBIDDEN);
    let ann = Identity::user("ann");
    let (status, answer) = get(&ann, &as_bob).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(message(&answer).contains(r#"User "ann" cannot impersonate resource "users""#), "{answer}");

    let rule = json!({ "apiGroups": [""], "resources": ["users", "groups"], "resourceNames": ["bob", "team"], "verbs": ["impersonate"] });
    let role = json!({ "metadata": { "name": "as-bob" }, "rules": [rule] });
    world.admin(Method::POST, &rbac(None, "s"), &role).await;
    world.bind("as-bob", None, "ClusterRole/as-bob", user("ann")).await;
    assert_eq!(get(&ann, &as_bob).await.0, StatusCode::OK);
    let with = |name, value| [as_bob[0], (name, value)];
    assert_eq!(get(&ann, &with("impersonate-group", "team")).await.0, StatusCode::OK);
    for (name, value) in [
        ("impersonate-group", "system:masters"),
        ("impersonate-uid", "1"),
        ("impersonate-extra-scope", "all"),
    ] {
        assert_eq!(get(&ann, &with(name, value)).await.0, StatusCode::FORBIDDEN, "{name}");
    }
    assert_eq!(get(&root, &[("impersonate-group", "team")]).await.0, StatusCode::BAD_REQUEST);

    let path = format!("{AUTHENTICATION}/selfsubjectreviews");
    let headers = [
        ("impersonate-user", "system:serviceaccount:a:s"),
        ("impersonate-uid", "9"),
        ("impersonate-extra-scopes", "x"),
        ("impersonate-extra-scopes", "y"),
    ];
    let (_, answer) = world.ask_with(&root, Method::POST, &path, &json!({}), &headers).await;
    assert_eq!(
        answer["status"]["userInfo"],
        json!({
            "username": "system:serviceaccount:a:s", "uid": "9", "extra": { "scopes": ["x", "y"] },
            "groups": ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"],
        })
    );
}
