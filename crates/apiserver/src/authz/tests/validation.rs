//! What RBAC objects must satisfy beyond their schema.

use serde_json::{Value, json};

use super::*;
use crate::authz::{RbacKind, set_defaults, validate};

fn errors(kind: RbacKind, object: &Value) -> Vec<String> {
    validate(kind, object, None).iter().map(ToString::to_string).collect()
}

#[test]
fn rules() {
    let kinds = [RbacKind::Role, RbacKind::ClusterRole];
    for (rule, role_errors, cluster_role_errors) in [
        (on("get", "", "pods"), vec![], vec![]),
        (
            json!({}),
            vec![
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ],
            vec![
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ],
        ),
        (
            json!({ "verbs": ["get"], "nonResourceURLs": ["/x"] }),
            vec![
                "rules[0].nonResourceURLs: Invalid value: \"array\": namespaced rules cannot apply to non-resource URLs",
            ],
            vec![],
        ),
        (
            json!({ "verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"] }),
            vec![
                "rules[0].nonResourceURLs: Invalid value: \"array\": namespaced rules cannot apply to non-resource URLs",
                "rules[0].nonResourceURLs: Invalid value: \"array\": rules cannot apply to both regular resources and non-resource URLs",
            ],
            vec![
                "rules[0].nonResourceURLs: Invalid value: \"array\": rules cannot apply to both regular resources and non-resource URLs",
            ],
        ),
    ] {
        let object = json!({ "rules": [rule] });
        assert_eq!(kinds.map(|kind| errors(kind, &object)), [role_errors, cluster_role_errors], "{rule}");
    }
    assert_eq!(errors(RbacKind::ClusterRole, &json!({ "rules": null })), [""; 0]);
}

#[test]
fn aggregation() {
    for (rule, expected) in [
        (Value::Null, vec![]),
        (json!({ "clusterRoleSelectors": [{}] }), vec![]),
        (
            json!({}),
            vec![
                "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil",
            ],
        ),
        (
            json!({ "clusterRoleSelectors": [{}, { "matchExpressions": [
                { "key": "a", "operator": "In" },
                { "key": "a", "operator": "Exists", "values": ["x"] },
                { "key": "a", "operator": "Near" },
            ] }] }),
            vec![
                "aggregationRule.clusterRoleSelectors[1].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                "aggregationRule.clusterRoleSelectors[1].matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                "aggregationRule.clusterRoleSelectors[1].matchExpressions[2].operator: Invalid value: \"Near\": not a valid selector operator",
            ],
        ),
    ] {
        assert_eq!(errors(RbacKind::ClusterRole, &json!({ "aggregationRule": rule })), expected, "{rule}");
    }
    let odd = json!({ "aggregationRule": { "clusterRoleSelectors": [
        { "matchLabels": { "-a": "?" }, "matchExpressions": [{ "key": "", "operator": "In", "values": ["?"] }] }] } });
    let found = validate(RbacKind::ClusterRole, &odd, None);
    let paths: Vec<&str> = found.iter().map(|error| error.path.as_str()).collect();
    let selector = "aggregationRule.clusterRoleSelectors[0]";
    let expected = ["matchLabels", "matchLabels", "matchExpressions[0].key", "matchExpressions[0].values[0]"]
        .map(|field| format!("{selector}.{field}"));
    assert_eq!(paths, expected);
}

#[test]
fn references() {
    let kinds = [RbacKind::RoleBinding, RbacKind::ClusterRoleBinding];
    let group = r#"roleRef.apiGroup: Unsupported value: "": supported values: "rbac.authorization.k8s.io""#;
    for (reference, in_namespace, in_plane) in [
        (json!({ "apiGroup": RBAC, "kind": "ClusterRole", "name": "a" }), vec![], vec![]),
        (
            json!({ "apiGroup": RBAC, "kind": "Role", "name": "a" }),
            vec![],
            vec![r#"roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole""#],
        ),
        (
            json!({ "kind": "Rolle", "name": "" }),
            vec![
                group,
                r#"roleRef.kind: Unsupported value: "Rolle": supported values: "Role", "ClusterRole""#,
                "roleRef.name: Required value",
            ],
            vec![
                group,
                r#"roleRef.kind: Unsupported value: "Rolle": supported values: "ClusterRole""#,
                "roleRef.name: Required value",
            ],
        ),
        (
            json!({ "apiGroup": RBAC, "kind": "ClusterRole", "name": "a/b" }),
            vec![r#"roleRef.name: Invalid value: "a/b": may not contain '/'"#],
            vec![r#"roleRef.name: Invalid value: "a/b": may not contain '/'"#],
        ),
    ] {
        let object = json!({ "roleRef": reference });
        assert_eq!(kinds.map(|kind| errors(kind, &object)), [in_namespace, in_plane], "{reference}");
    }
    for kind in kinds {
        let old = binding("b", "r", &["User:ann"]);
        assert_eq!(validate(kind, &binding("b", "r", &["User:bob"]), Some(&old)), []);
        let found = validate(kind, &binding("b", "s", &["User:ann"]), Some(&old));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, [r#"roleRef: Invalid value: "object": cannot change roleRef"#]);
    }
}

#[test]
fn subjects() {
    let kinds = [RbacKind::RoleBinding, RbacKind::ClusterRoleBinding];
    let no_group =
        r#"subjects[0].apiGroup: Unsupported value: "": supported values: "rbac.authorization.k8s.io""#;
    let no_kind = r#"subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group""#;
    for (subject, in_namespace, in_plane) in [
        (subject("User:ann@example.com"), vec![], vec![]),
        (subject("Group:g"), vec![], vec![]),
        (subject("ServiceAccount:n:a"), vec![], vec![]),
        (subject("ServiceAccount:a"), vec![], vec!["subjects[0].namespace: Required value"]),
        (json!({ "kind": "User", "name": "a" }), vec![no_group], vec![no_group]),
        (json!({ "kind": "Robot", "name": "a" }), vec![no_kind], vec![no_kind]),
        (
            json!({ "kind": "ServiceAccount", "apiGroup": RBAC, "namespace": "n" }),
            vec![
                "subjects[0].name: Required value",
                r#"subjects[0].apiGroup: Unsupported value: "rbac.authorization.k8s.io": supported values: """#,
            ],
            vec![
                "subjects[0].name: Required value",
                r#"subjects[0].apiGroup: Unsupported value: "rbac.authorization.k8s.io": supported values: """#,
            ],
        ),
    ] {
        let object = json!({ "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": "r" }, "subjects": [subject] });
        assert_eq!(kinds.map(|kind| errors(kind, &object)), [in_namespace, in_plane], "{subject}");
    }
    let capital = binding("b", "r", &["ServiceAccount:n:A"]);
    assert_eq!(validate(RbacKind::ClusterRoleBinding, &capital, None)[0].path, "subjects[0].name");
}

#[test]
fn left_out_groups_are_filled_in() {
    let mut object = json!({
        "roleRef": { "kind": "ClusterRole", "name": "r" },
        "subjects": [{ "kind": "User", "name": "a" }, { "kind": "Group", "name": "g", "apiGroup": "" },
            { "kind": "ServiceAccount", "name": "s", "namespace": "n" }],
    });
    set_defaults(RbacKind::ClusterRoleBinding, &mut object);
    assert_eq!(errors(RbacKind::ClusterRoleBinding, &object), [""; 0]);
    assert_eq!(object["subjects"][2]["apiGroup"], Value::Null);
    let mut role = json!({ "rules": [] });
    set_defaults(RbacKind::ClusterRole, &mut role);
    assert_eq!(role, json!({ "rules": [] }));
}
