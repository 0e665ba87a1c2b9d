//! Reviews and their answers.

use serde_json::{Value, json};

use super::*;
use crate::authz::{
    ReviewError, default_policy, local_subject_access_review, self_subject_access_review,
    self_subject_review, self_subject_rules_review, subject_access_review,
};

fn plane() -> Policy {
    Objects::of([
        role("r", json!([on("get", "", "pods")])),
        role("n/w", json!([on("create,delete", "", "pods")])),
        binding("b", "r", &["User:ann", "Group:g"]),
        binding("n/b", "Role!w", &["User:ann"]),
        binding("n/broken", "gone", &["User:bob"]),
    ])
    .over(default_policy())
}

fn ask(spec: &Value) -> Value {
    json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "metadata": { "creationTimestamp": null }, "spec": spec })
}

fn problems(answer: Result<Value, ReviewError>) -> Vec<String> {
    match answer {
        Ok(answer) => panic!("{answer}"),
        Err(ReviewError::Invalid(errors)) => errors.iter().map(ToString::to_string).collect(),
        Err(ReviewError::BadRequest(message)) => vec![message],
    }
}

#[test]
fn subject_access() {
    let pods = |verb: &str| json!({ "verb": verb, "resource": "pods", "namespace": "n" });
    for (spec, status) in [
        (
            json!({ "user": "ann", "resourceAttributes": pods("get") }),
            json!({ "allowed": true, "reason": r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "ann""# }),
        ),
        (
            json!({ "user": "eve", "groups": ["g"], "uid": "7", "extra": { "scopes": ["a"] }, "resourceAttributes": pods("get") }),
            json!({ "allowed": true, "reason": r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "g""# }),
        ),
        (json!({ "groups": ["x"], "resourceAttributes": pods("get") }), json!({ "allowed": false })),
        (
            json!({ "user": "bob", "resourceAttributes": pods("get") }),
            json!({ "allowed": false, "reason": r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"# }),
        ),
        (
            json!({ "groups": ["system:authenticated"], "nonResourceAttributes": { "path": "/api", "verb": "get" } }),
            json!({ "allowed": true, "reason": r#"RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated""# }),
        ),
        (json!({ "groups": ["system:masters"], "resourceAttributes": {} }), json!({ "allowed": true })),
    ] {
        let mut expected = ask(&spec);
        expected["status"] = status;
        assert_eq!(subject_access_review(ask(&spec), &plane()).unwrap(), expected);
    }
}

#[test]
fn subject_access_problems() {
    let none = "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let nobody = "spec.user: Invalid value: \"\": at least one of user or group must be specified";
    for (spec, expected) in [
        (json!({}), vec![none, nobody]),
        (Value::Null, vec![none, nobody]),
        (
            json!({ "user": "a", "resourceAttributes": {}, "nonResourceAttributes": {} }),
            vec![
                "spec.nonResourceAttributes: Invalid value: \"object\": cannot be specified in combination with resourceAttributes",
            ],
        ),
        (
            json!({ "user": "a", "resourceAttributes": { "fieldSelector": {},
                "labelSelector": { "rawSelector": "a", "requirements": [{}] } } }),
            vec![
                "spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
                "spec.resourceAttributes.labelSelector.rawSelector: Invalid value: \"a\": may not specified at the same time as requirements",
            ],
        ),
    ] {
        assert_eq!(problems(subject_access_review(ask(&spec), &plane())), expected, "{spec}");
    }
    let mut named = ask(&json!({ "user": "a", "resourceAttributes": {} }));
    named["metadata"] = json!({ "name": "x" });
    let expected = ["metadata: Invalid value: \"object\": must be empty"];
    assert_eq!(problems(subject_access_review(named.clone(), &plane())), expected);
    assert_eq!(problems(self_subject_access_review(named, Caller::new("a", &[]), &plane())), expected);
    for bad in [json!([]), json!({ "spec": 1 }), json!({ "metadata": "x" }), json!({ "spec": { "user": 1 } })]
    {
        let answer = subject_access_review(bad.clone(), &plane());
        assert!(matches!(answer, Err(ReviewError::BadRequest(_))), "{bad}");
    }
}

#[test]
fn local_subject_access() {
    let ask_in = |namespace: &str| {
        ask(
            &json!({ "user": "ann", "resourceAttributes": { "verb": "create", "resource": "pods", "namespace": namespace } }),
        )
    };
    let answer = local_subject_access_review(ask_in("n"), "n", &plane()).unwrap();
    assert_eq!((&answer["status"]["allowed"], &answer["metadata"]["namespace"]), (&json!(true), &json!("n")));
    let mut without_metadata = ask_in("n");
    without_metadata.as_object_mut().unwrap().remove("metadata");
    let answer = local_subject_access_review(without_metadata, "n", &plane()).unwrap();
    assert_eq!(answer["status"]["allowed"], json!(true));
    assert_eq!(
        problems(local_subject_access_review(ask_in("m"), "n", &plane())),
        ["spec.resourceAttributes.namespace: Invalid value: \"m\": must match metadata.namespace"]
    );
    let mut elsewhere = ask_in("n");
    elsewhere["metadata"]["namespace"] = json!("m");
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(problems(local_subject_access_review(elsewhere, "n", &plane())), [message]);
    let mut named = ask(&json!({ "user": "ann", "nonResourceAttributes": { "path": "/" } }));
    named["metadata"] = json!({ "namespace": "n", "labels": { "a": "b" } });
    assert_eq!(
        problems(local_subject_access_review(named, "n", &plane())),
        [
            "metadata: Invalid value: \"object\": must be empty except for namespace",
            "spec.nonResourceAttributes: Invalid value: \"object\": disallowed on this kind of request",
        ]
    );
}

#[test]
fn self_subject_access() {
    let policy = plane();
    let may = |user: &str, verb: &str, namespace: &str| {
        // A user in the spec is not who asks.
        let spec = json!({ "user": "ann", "resourceAttributes": { "verb": verb, "resource": "pods", "namespace": namespace } });
        let answer = self_subject_access_review(ask(&spec), Caller::new(user, &[]), &policy).unwrap();
        answer["status"]["allowed"].as_bool().unwrap()
    };
    assert!(may("ann", "get", "") && may("ann", "create", "n") && !may("ann", "create", "m"));
    assert!(!may("eve", "get", "n"));
}

/// What `kubectl auth can-i --list` shows.
#[test]
fn self_subject_rules() {
    let groups = texts(&["system:authenticated"]);
    let caller = Caller::new("ann", &groups);
    let answer = self_subject_rules_review(ask(&json!({ "namespace": "n" })), caller, &plane()).unwrap();
    let status = &answer["status"];
    let expected = json!([
        { "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] },
        { "verbs": ["create", "delete"], "apiGroups": [""], "resources": ["pods"] },
        { "verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"] },
        { "verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"] },
    ]);
    assert_eq!((&status["resourceRules"], &status["incomplete"]), (&expected, &json!(false)));
    let paths = status["nonResourceRules"].as_array().unwrap();
    assert!(paths.iter().any(|rule| rule["nonResourceURLs"]
        == json!(["/healthz", "/livez", "/readyz", "/version", "/version/"])
        && rule["verbs"] == json!(["get"])));
    assert_eq!(status.get("evaluationError"), None);
    let nobody =
        self_subject_rules_review(ask(&json!({ "namespace": "n" })), Caller::new("bob", &[]), &plane());
    let status = &nobody.unwrap()["status"];
    assert_eq!(
        *status,
        json!({ "resourceRules": [], "nonResourceRules": [], "incomplete": false,
            "evaluationError": r#"clusterrole.rbac.authorization.k8s.io "gone" not found"# })
    );
    assert_eq!(
        problems(self_subject_rules_review(ask(&json!({})), caller, &plane())),
        ["no namespace on request"]
    );
}

#[test]
fn self_subject() {
    let user = crate::auth::Identity {
        user: "ann".to_owned(),
        uid: "7".to_owned(),
        groups: texts(&["g"]),
        extra: [("scopes".to_owned(), texts(&["a"]))].into(),
    };
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let answer = self_subject_review(review.clone(), user.as_caller()).unwrap();
    let info = json!({ "username": "ann", "uid": "7", "groups": ["g"], "extra": { "scopes": ["a"] } });
    assert_eq!(answer["status"], json!({ "userInfo": info }));
    let answer = self_subject_review(review, Caller::new("bob", &[])).unwrap();
    assert_eq!(answer["status"], json!({ "userInfo": { "username": "bob" } }));
    assert!(self_subject_review(json!(1), Caller::new("bob", &[])).is_err());
}
