//! From HTTP to attributes, and from a refusal to its message.

use super::*;
use crate::authz::{Impersonation, ResourcePath, Target, path_request, resource_request, service_account};

#[test]
fn verbs_of_methods() {
    let caller = Caller::new("ann", &[]);
    for (method, name, watch, verb) in [
        ("GET", Some("a"), false, "get"),
        ("HEAD", Some("a"), false, "get"),
        ("GET", None, false, "list"),
        ("GET", None, true, "watch"),
        ("GET", Some("a"), true, "watch"),
        ("POST", None, false, "create"),
        ("POST", Some("a"), false, "create"),
        ("PUT", Some("a"), false, "update"),
        ("PATCH", Some("a"), false, "patch"),
        ("DELETE", Some("a"), false, "delete"),
        ("DELETE", None, false, "deletecollection"),
        ("TRACE", None, false, ""),
    ] {
        let path = ResourcePath { resource: "pods", name, watch, ..ResourcePath::default() };
        assert_eq!(resource_request(caller, method, &path).verb, verb, "{method} {name:?} {watch}");
    }
    for (method, verb) in [("GET", "get"), ("HEAD", "head"), ("POST", "post"), ("TRACE", "TRACE")] {
        let request = path_request(caller, method, "/version");
        assert_eq!((request.verb, request.target), (verb, Target::Path("/version")));
    }
}

#[test]
fn names_and_namespaces_of_requests() {
    let caller = Caller::new("ann", &[]);
    let attributes =
        |method: &str, path: ResourcePath<'static>| match resource_request(caller, method, &path).target {
            Target::Resource(resource) => resource,
            Target::Path(_) => unreachable!("a resource was asked"),
        };
    let pods =
        ResourcePath { version: "v1", resource: "pods", namespace: Some("n"), ..ResourcePath::default() };
    let by_name = ResourcePath { selected_name: Some("a"), ..pods };
    assert_eq!(attributes("GET", pods), resource("", "pods", "n", ""));
    assert_eq!(attributes("GET", by_name), resource("", "pods", "n", "a"));
    assert_eq!(attributes("GET", ResourcePath { watch: true, ..by_name }), resource("", "pods", "n", "a"));
    assert_eq!(attributes("DELETE", by_name), resource("", "pods", "n", ""));
    assert_eq!(
        attributes("GET", ResourcePath { name: Some("b"), ..by_name }),
        resource("", "pods", "n", "b")
    );
    assert_eq!(
        attributes("GET", ResourcePath { selected_name: Some("a/b"), ..pods }),
        resource("", "pods", "n", "")
    );
    let log = ResourcePath { name: Some("b"), subresource: Some("log"), ..pods };
    assert_eq!(attributes("GET", log), resource("", "pods/log", "n", "b"));
    // A namespace is within itself, whatever is done to it by name.
    let namespaces = ResourcePath { version: "v1", resource: "namespaces", ..ResourcePath::default() };
    assert_eq!(attributes("GET", namespaces), resource("", "namespaces", "", ""));
    let by_selector = ResourcePath { selected_name: Some("n"), ..namespaces };
    assert_eq!(attributes("GET", by_selector), resource("", "namespaces", "", "n"));
    let one = ResourcePath { name: Some("n"), subresource: Some("finalize"), ..namespaces };
    assert_eq!(attributes("PUT", one), resource("", "namespaces/finalize", "n", "n"));
    assert_eq!(attributes("GET", ResourcePath { group: "x.io", ..one }).namespace, "");
}

#[test]
fn refusals_in_kubernetes_words() {
    let caller = Caller::new("u", &[]);
    let on = |verb: &'static str, what| Attributes::resource(caller, verb, what);
    for (request, reason, message) in [
        (
            on("get", resource("", "pods", "ns", "a")),
            "",
            r#"pods "a" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "ns""#,
        ),
        (
            on("list", resource("apps", "deployments", "", "")),
            "",
            r#"deployments.apps is forbidden: User "u" cannot list resource "deployments" in API group "apps" at the cluster scope"#,
        ),
        (
            on("update", resource("apps", "deployments/scale", "ns", "a")),
            "RBAC: x",
            r#"deployments.apps "a" is forbidden: User "u" cannot update resource "deployments/scale" in API group "apps" in the namespace "ns": RBAC: x"#,
        ),
        (Attributes::path(caller, "get", "/x"), "", r#"forbidden: User "u" cannot get path "/x""#),
        (
            Attributes::path(caller, "get", "/<script>&"),
            "",
            r#"forbidden: User "u" cannot get path "/&lt;script&gt;&amp;""#,
        ),
    ] {
        assert_eq!(request.forbidden_message(reason), message);
    }
}

#[test]
fn service_accounts_by_name() {
    assert_eq!(service_account("system:serviceaccount:n:a.b"), Some(("n", "a.b")));
    for user in [
        "ann",
        "system:serviceaccount:n",
        "system:serviceaccount::a",
        "system:serviceaccount:n:",
        "system:serviceaccount:n:a:b",
        "system:serviceaccount:N:a",
        "system:serviceaccounts:n:a",
    ] {
        assert_eq!(service_account(user), None, "{user}");
    }
}

fn read(headers: &[(&'static str, &'static str)]) -> Option<Impersonation> {
    Impersonation::from_headers(headers.iter().copied()).unwrap()
}

#[test]
fn what_impersonation_requires() {
    let impersonation = read(&[
        ("Impersonate-User", "ann"),
        ("impersonate-group", "g1"),
        ("Impersonate-Group", "g2"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-Scopes", "view"),
        ("Impersonate-Extra-acme.com%2Fproject", "p"),
        ("Impersonate-Extra-Scopes", "edit"),
        ("Accept", "application/json"),
    ])
    .unwrap();
    let caller = Caller::new("rita", &[]);
    let required = impersonation.required(caller);
    let shown: Vec<String> = required
        .iter()
        .map(|request| match request.target {
            Target::Resource(r) => {
                assert_eq!((request.verb, request.caller.user), ("impersonate", "rita"));
                format!("{}|{}|{}|{}", r.group, r.resource, r.subresource, r.name)
            }
            Target::Path(path) => panic!("{path}"),
        })
        .collect();
    let expected = [
        "|users||ann",
        "|groups||g1",
        "|groups||g2",
        "authentication.k8s.io|userextras|acme.com/project|p",
        "authentication.k8s.io|userextras|scopes|view",
        "authentication.k8s.io|userextras|scopes|edit",
        "authentication.k8s.io|uids||7",
    ];
    assert_eq!(shown, expected);
    // Rules name the key of an extra as a subresource.
    let mut scopes = on("impersonate", "authentication.k8s.io", "userextras/scopes");
    scopes["resourceNames"] = serde_json::json!(["view"]);
    let policy = policy([
        role("r", serde_json::json!([on("impersonate", "", "users"), scopes])),
        binding("b", "r", &["User:rita"]),
    ]);
    let allowed: Vec<bool> = required.iter().map(|request| policy.allows(request).allowed).collect();
    assert_eq!(allowed, [true, false, false, false, true, false, false]);
    let user = impersonation.into_user();
    let extra = [("acme.com/project", &["p"][..]), ("scopes", &["view", "edit"])];
    let expected = crate::auth::Identity {
        user: "ann".to_owned(),
        uid: "7".to_owned(),
        groups: texts(&["g1", "g2", "system:authenticated"]),
        extra: extra.into_iter().map(|(key, values)| (key.to_owned(), texts(values))).collect(),
    };
    assert_eq!(user, expected);
}

#[test]
fn groups_of_the_impersonated() {
    for (headers, groups) in [
        (vec![("impersonate-user", "ann")], vec!["system:authenticated"]),
        (vec![("impersonate-user", "system:anonymous")], vec!["system:unauthenticated"]),
        (
            vec![("impersonate-user", "ann"), ("impersonate-group", "system:unauthenticated")],
            vec!["system:unauthenticated"],
        ),
        (
            vec![("impersonate-user", "system:serviceaccount:n:a")],
            vec!["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"],
        ),
        (
            vec![("impersonate-user", "system:serviceaccount:n:a"), ("impersonate-group", "g")],
            vec!["g", "system:authenticated"],
        ),
    ] {
        assert_eq!(read(&headers).unwrap().into_user().groups, texts(&groups), "{headers:?}");
    }
    let robot = read(&[("impersonate-user", "system:serviceaccount:n:a")]).unwrap();
    let required = robot.required(Caller::new("rita", &[]));
    let expected = ResourceAttributes { version: "", ..resource("", "serviceaccounts", "n", "a") };
    assert_eq!((required.len(), required[0].target), (1, Target::Resource(expected)));
}

#[test]
fn impersonation_needs_a_user() {
    assert_eq!(read(&[("accept", "*/*"), ("x", "y")]), None);
    for header in ["impersonate-group", "impersonate-uid", "impersonate-extra-a"] {
        assert!(Impersonation::from_headers([(header, "x")]).is_err(), "{header}");
    }
}
