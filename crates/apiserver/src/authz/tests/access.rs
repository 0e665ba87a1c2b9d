//! Who may do what: matching of rules, subjects and bindings.

use serde_json::{Value, json};

use super::*;
use crate::authz::{Rule, Skipped};

#[test]
fn rules_match_as_in_kubernetes() {
    // Rule, then verb, group, resource, name, and whether it is allowed.
    let names = |mut rule: Value, names: &[&str]| {
        rule["resourceNames"] = json!(names);
        rule
    };
    let cases = [
        (on("get", "", "pods"), "get", "", "pods", "a", true),
        (on("get", "", "pods"), "list", "", "pods", "", false),
        (on("*", "", "pods"), "anything", "", "pods", "", true),
        (on("get", "apps", "pods"), "get", "", "pods", "a", false),
        (on("get", "*", "pods"), "get", "x.io", "pods", "a", true),
        (on("get", "", "*"), "get", "", "pods", "a", true),
        (on("get", "", "*"), "get", "", "pods/log", "a", true),
        (on("get", "", "pods"), "get", "", "pods/log", "a", false),
        (on("get", "", "pods/log"), "get", "", "pods/log", "a", true),
        (on("get", "", "pods/log"), "get", "", "pods", "a", false),
        (on("get", "", "pods/*"), "get", "", "pods/log", "a", false),
        (on("get", "", "*/log"), "get", "", "pods/log", "a", true),
        (on("get", "", "*/log"), "get", "", "pods/catalog", "a", false),
        (on("get", "", "*/log"), "get", "", "pods", "a", false),
        (on("get", "", "po"), "get", "", "pods", "a", false),
        (names(on("*", "", "pods"), &["a", "b"]), "get", "", "pods", "b", true),
        (names(on("*", "", "pods"), &["a"]), "get", "", "pods", "c", false),
        (names(on("*", "", "pods"), &["a"]), "list", "", "pods", "", false),
        (names(on("*", "", "pods"), &["a"]), "create", "", "pods", "", false),
        (names(on("*", "", "pods"), &["a"]), "deletecollection", "", "pods", "", false),
        // A watch of one object by field selector carries its name.
        (names(on("watch", "", "pods"), &["a"]), "watch", "", "pods", "a", true),
        (
            json!({ "verbs": ["get"], "apiGroups": null, "resources": ["pods"] }),
            "get",
            "",
            "pods",
            "a",
            false,
        ),
        (json!({ "verbs": null }), "get", "", "pods", "a", false),
        // Resource rules say nothing of paths, and the other way round.
        (json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }), "get", "", "pods", "a", false),
    ];
    for (rule, verb, group, what, name, expected) in cases {
        let policy = policy([role("r", json!([rule])), binding("b", "r", &["User:ann"])]);
        let request = Attributes::resource(Caller::new("ann", &[]), verb, resource(group, what, "n", name));
        assert_eq!(policy.allows(&request).allowed, expected, "{rule} for {request}");
    }
}

#[test]
fn paths_match_by_prefix() {
    for (urls, path, expected) in [
        (vec!["/version"], "/version", true),
        (vec!["/version"], "/version/", false),
        (vec!["/api/*"], "/api/v1", true),
        (vec!["/api/*"], "/api", false),
        (vec!["/api*"], "/apis", true),
        (vec!["*"], "/anything", true),
        (vec!["/a", "/b"], "/b", true),
        (vec!["/a/*/c"], "/a/b/c", false),
    ] {
        let rules = json!([{ "verbs": ["get"], "nonResourceURLs": urls }]);
        let policy = policy([
            role("r", rules.clone()),
            role("n/r", rules),
            binding("b", "r", &["User:ann"]),
            // Within a namespace there are no paths.
            binding("n/b", "r", &["User:bob"]),
            binding("n/c", "Role!r", &["User:bob"]),
        ]);
        for (user, expected) in [("ann", expected), ("bob", false)] {
            let request = Attributes::path(Caller::new(user, &[]), "get", path);
            assert_eq!(policy.allows(&request).allowed, expected, "{urls:?} {request}");
            let request = Attributes::path(Caller::new(user, &[]), "post", path);
            assert!(!policy.allows(&request).allowed, "{urls:?} {request}");
        }
    }
}

/// Every verb on every resource, for each identity: exactly what is granted is allowed.
#[test]
fn verbs_by_kinds_by_identities() {
    let policy = policy([
        role("reader", json!([on("get,list,watch", "", "pods,configmaps")])),
        role("n/writer", json!([on("create,update,patch,delete", "", "pods")])),
        role("leases", json!([on("*", "coordination.k8s.io", "leases")])),
        binding("readers", "reader", &["Group:readers", "ServiceAccount:n:robot"]),
        binding("n/writers", "Role!writer", &["User:wendy", "ServiceAccount:robot"]),
        binding("n/leases", "leases", &["Group:system:serviceaccounts:n"]),
        binding("m/leases", "leases", &["Group:system:serviceaccounts"]),
        binding("nobody", "reader", &["ServiceAccount:robot", "Robot:robot"]),
    ]);
    const VERBS: [&str; 8] =
        ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    const KINDS: [(&str, &str); 4] =
        [("", "pods"), ("", "configmaps"), ("", "secrets"), ("coordination.k8s.io", "leases")];
    let robot = "system:serviceaccount:n:robot";
    let other = "system:serviceaccount:o:robot";
    let identities: [(&str, &[&str]); 7] = [
        ("ann", &[]),
        ("ann", &["readers"]),
        ("wendy", &[]),
        (robot, &[]),
        // Whether groups are implied or told makes no difference.
        (robot, &["system:serviceaccounts", "system:serviceaccounts:n"]),
        (other, &[]),
        ("root", &["system:masters"]),
    ];
    for (user, groups) in identities {
        let groups = texts(groups);
        for namespace in ["", "n", "m"] {
            for (group, what) in KINDS {
                for verb in VERBS {
                    let reads =
                        matches!(verb, "get" | "list" | "watch") && matches!(what, "pods" | "configmaps");
                    let writes = matches!(verb, "create" | "update" | "patch" | "delete") && what == "pods";
                    let leases = what == "leases";
                    let expected = match user {
                        "root" => true,
                        "ann" => !groups.is_empty() && reads,
                        "wendy" => writes && namespace == "n",
                        user if user == robot => {
                            reads
                                || (writes && namespace == "n")
                                || (leases && matches!(namespace, "n" | "m"))
                        }
                        _ => leases && namespace == "m",
                    };
                    let what = resource(group, what, namespace, "x");
                    let request = Attributes::resource(Caller::new(user, &groups), verb, what);
                    assert_eq!(policy.allows(&request).allowed, expected, "{groups:?} {request}");
                }
            }
        }
    }
}

#[test]
fn reasons_name_the_binding() {
    let policy = policy([
        role("r", json!([on("get", "", "pods")])),
        role("n/r", json!([on("list", "", "pods")])),
        binding("b", "r", &["User:zoe", "User:ann", "Group:g", "ServiceAccount:n:robot"]),
        binding("n/b", "Role!r", &["User:ann", "ServiceAccount:robot"]),
        binding("broken", "gone", &["User:bob"]),
        binding("n/broken", "Role!gone", &["User:bob"]),
        binding("broken-too", "gone", &["User:bob"]),
    ]);
    let robot = "system:serviceaccount:n:robot";
    for (user, groups, verb, namespace, allowed, reason) in [
        (
            "ann",
            vec![],
            "get",
            "",
            true,
            r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "ann""#,
        ),
        (
            "eve",
            vec!["g"],
            "get",
            "",
            true,
            r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "g""#,
        ),
        (
            robot,
            vec![],
            "get",
            "",
            true,
            r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to ServiceAccount "robot/n""#,
        ),
        ("ann", vec![], "list", "n", true, r#"RBAC: allowed by RoleBinding "b/n" of Role "r" to User "ann""#),
        (
            robot,
            vec![],
            "list",
            "n",
            true,
            r#"RBAC: allowed by RoleBinding "b/n" of Role "r" to ServiceAccount "robot/n""#,
        ),
        ("ann", vec![], "list", "m", false, ""),
        ("bob", vec![], "list", "", false, r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#),
        (
            "bob",
            vec![],
            "list",
            "n",
            false,
            r#"RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "gone" not found]"#,
        ),
        ("root", vec!["system:masters"], "list", "n", true, ""),
    ] {
        let groups = texts(&groups);
        let request =
            Attributes::resource(Caller::new(user, &groups), verb, resource("", "pods", namespace, ""));
        let decision = policy.allows(&request);
        assert_eq!((decision.allowed, decision.reason().as_str()), (allowed, reason), "{request}");
    }
}

#[test]
fn unreadable_objects_grant_nothing_and_are_reported() {
    let good = [role("r", json!([on("get", "", "pods")])), binding("b", "r", &["User:ann"])];
    let bad = [
        role("bad", json!("everything")),
        role("worse", json!([{ "verbs": "get" }])),
        json!({ "kind": "ClusterRole" }),
        json!({ "kind": "Role", "metadata": { "name": "no-namespace" } }),
        json!({ "kind": "ClusterRole", "metadata": { "name": "x" }, "aggregationRule": { "clusterRoleSelectors":
            [{ "matchExpressions": [{ "key": "a", "operator": "Near" }] }] } }),
        json!({ "kind": "ClusterRoleBinding", "metadata": { "name": "x", "namespace": "n" } }),
        json!({ "kind": "ClusterRoleBinding", "metadata": { "name": "y" }, "roleRef": { "kind": "Rolle", "name": "r" } }),
        json!({ "kind": "RoleBinding", "metadata": 7 }),
        binding("n/odd", "r", &[]),
    ];
    let Compiled { policy, skipped } = Objects::of(good.into_iter().chain(bad)).compiled();
    assert!(may(&policy, "ann", "get", "pods", "", ""));
    let mut names: Vec<(&str, &str)> = skipped.iter().map(|s| (s.kind, s.name.as_str())).collect();
    names.sort_unstable();
    let expected = [
        ("ClusterRole", ""),
        ("ClusterRole", "bad"),
        ("ClusterRole", "worse"),
        ("ClusterRole", "x"),
        ("ClusterRoleBinding", "x"),
        ("ClusterRoleBinding", "y"),
        ("Role", "no-namespace"),
        ("RoleBinding", ""),
    ];
    assert_eq!(names, expected);
    let skipped: Vec<String> = skipped.iter().map(Skipped::to_string).collect();
    assert!(skipped.contains(&"Role no-namespace: has no namespace".to_owned()), "{skipped:?}");
}

#[test]
fn rules_are_listed_once() {
    let rules = json!([on("get", "", "pods"), on("list", "", "pods")]);
    let policy = policy([
        role("r", rules.clone()),
        role("n/r", rules),
        binding("b", "r", &["User:ann", "Group:g"]),
        binding("n/b", "Role!r", &["User:ann"]),
    ]);
    let groups = texts(&["g"]);
    let (rules, problem) = policy.rules_for(Caller::new("ann", &groups), "n");
    let expected = [Rule::resources(&["get"], "", &["pods"]), Rule::resources(&["list"], "", &["pods"])];
    assert_eq!((rules.as_slice(), problem), (&expected[..], None));
    assert_eq!(policy.rules_for(Caller::new("bob", &[]), "n").0, []);
    let masters = texts(&["system:masters"]);
    assert_eq!(policy.rules_for(Caller::new("root", &masters), "").0, Rule::full_authority());
}
