//! Verbs × kinds × scopes × identities: what is refused is exactly what the roles do not grant, and a review says the
//! same as the request itself.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{World, rbac, user};
use compute_apiserver::Identity;

const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// Group, version, plural, subresource, whether it is in namespaces.
const KINDS: [(&str, &str, &str, &str, bool); 20] = [
    ("", "v1", "configmaps", "", true),
    ("", "v1", "secrets", "", true),
    ("", "v1", "pods", "", true),
    ("", "v1", "pods", "status", true),
    ("", "v1", "serviceaccounts", "", true),
    ("", "v1", "serviceaccounts", "token", true),
    ("", "v1", "events", "", true),
    ("", "v1", "services", "", true),
    ("", "v1", "namespaces", "", false),
    ("", "v1", "namespaces", "finalize", false),
    ("", "v1", "nodes", "", false),
    ("coordination.k8s.io", "v1", "leases", "", true),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "", false),
    ("rbac.authorization.k8s.io", "v1", "roles", "", true),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "", true),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "", false),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "", false),
    ("test.example.com", "v1", "widgets", "", true),
    ("test.example.com", "v1", "widgets", "status", true),
    ("test.example.com", "v1", "widgets", "scale", true),
];

/// Where in the plane: namespace `a`, namespace `b`, or all of it.
const SCOPES: [Option<&str>; 3] = [Some("a"), Some("b"), None];

struct Case {
    verb: &'static str,
    kind: (&'static str, &'static str, &'static str, &'static str, bool),
    scope: Option<&'static str>,
    name: &'static str,
}

impl Case {
    fn is(&self, verbs: &[&str], resources: &[&str]) -> bool {
        let (_, _, plural, subresource, _) = self.kind;
        let resource =
            if subresource.is_empty() { plural.to_owned() } else { format!("{plural}/{subresource}") };
        verbs.contains(&self.verb) && resources.contains(&resource.as_str())
    }

    /// Requests that can be written down as a path: some need a name, some must not have one.
    fn request(&self) -> Option<(Method, String)> {
        let (group, version, plural, subresource, namespaced) = self.kind;
        let base =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let scope = self.scope.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
        if !namespaced && self.scope.is_some() {
            return None;
        }
        let collection = format!("{base}{scope}/{plural}");
        let object = format!("{collection}/{}", self.name);
        let object = if subresource.is_empty() { object } else { format!("{object}/{subresource}") };
        let whole = subresource.is_empty();
        let in_place = !namespaced || self.scope.is_some();
        // Whoever is allowed must not take away what the others are tried with.
        let dry_run = |path: String| format!("{path}?dryRun=All");
        Some(match self.verb {
            "get" if in_place && subresource != "token" => (Method::GET, object),
            "update" if in_place => (Method::PUT, dry_run(object)),
            "patch" if in_place => (Method::PATCH, dry_run(object)),
            "delete" if in_place && whole => (Method::DELETE, dry_run(object)),
            "create" if in_place && subresource == "token" => (Method::POST, object),
            "create" if in_place && whole => (Method::POST, dry_run(collection)),
            "list" if whole => (Method::GET, collection),
            "watch" if whole => (Method::GET, format!("{collection}?watch=true")),
            "deletecollection" if in_place && whole => (Method::DELETE, dry_run(collection)),
            _ => return None,
        })
    }

    /// Where the request acts, as rules see it.
    fn namespace(&self) -> &str {
        match self.kind {
            ("", _, "namespaces", ..)
                if !matches!(self.verb, "create" | "list" | "watch" | "deletecollection") =>
            {
                self.name
            }
            _ => self.scope.unwrap_or_default(),
        }
    }
}

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
const ALL: [&str; 8] = VERBS;

fn viewed(case: &Case) -> bool {
    let readable =
        ["configmaps", "pods", "pods/status", "serviceaccounts", "services", "events", "namespaces"];
    case.is(&READ, &readable)
}

fn edited(case: &Case) -> bool {
    viewed(case)
        || case.is(&WRITE, &["configmaps", "secrets", "pods", "serviceaccounts", "services", "events"])
        || case.is(&READ, &["secrets"])
        || case.is(&["create"], &["serviceaccounts/token"])
        || case.is(&ALL, &["leases"])
}

fn administered(case: &Case) -> bool {
    edited(case) || case.is(&ALL, &["roles", "rolebindings"])
}

type Allowed = fn(&Case) -> bool;

/// Identities, and what each is meant to be allowed, in other words than the roles.
fn identities() -> Vec<(Identity, Allowed)> {
    let service_account = |name: &str| Identity::user(format!("system:serviceaccount:a:{name}"));
    vec![
        (Identity::superuser("root"), |_| true),
        (Identity::user("cluster-admin"), |_| true),
        (Identity::user("admin-of-a"), |case| case.namespace() == "a" && administered(case)),
        (Identity::user("editor-of-a"), |case| case.namespace() == "a" && edited(case)),
        (Identity::user("viewer-of-a"), |case| case.namespace() == "a" && viewed(case)),
        (Identity::user("viewer-of-all"), viewed),
        (Identity::user("one-of-the-team").in_group("team"), |case| {
            case.namespace() == "b" && case.is(&["list", "create"], &["configmaps"])
        }),
        (Identity::user("keeper-of-one"), |case| {
            let named = !matches!(case.verb, "list" | "watch" | "create" | "deletecollection");
            case.namespace() == "a"
                && case.name == "one"
                && named
                && case.is(&["get", "update", "delete"], &["configmaps"])
        }),
        (service_account("scaler"), |case| {
            case.is(&["get", "patch"], &["widgets/scale"]) || case.is(&["watch"], &["widgets"])
        }),
        (service_account("other"), |_| false),
        (Identity::user("nobody"), |_| false),
    ]
}

async fn world() -> World {
    let world = World::new().await;
    world.bind("c", None, "ClusterRole/cluster-admin", user("cluster-admin")).await;
    world.bind("admin", Some("a"), "ClusterRole/admin", user("admin-of-a")).await;
    world.bind("edit", Some("a"), "ClusterRole/edit", user("editor-of-a")).await;
    world.bind("view", Some("a"), "ClusterRole/view", user("viewer-of-a")).await;
    world.bind("v", None, "ClusterRole/view", user("viewer-of-all")).await;

    let rule = |groups: &str, resources: &[&str], verbs: &[&str]| json!({ "apiGroups": [groups], "resources": resources, "verbs": verbs });
    let team =
        json!({ "metadata": { "name": "team" }, "rules": [rule("", &["configmaps"], &["list", "create"])] });
    world.admin(Method::POST, &rbac(Some("b"), "s"), &team).await;
    world.bind("team", Some("b"), "Role/team", json!({ "kind": "Group", "name": "team" })).await;

    let mut one = rule("", &["configmaps"], &["get", "update", "delete"]);
    one["resourceNames"] = json!(["one"]);
    let keeper = json!({ "metadata": { "name": "keeper" }, "rules": [one] });
    world.admin(Method::POST, &rbac(Some("a"), "s"), &keeper).await;
    world.bind("keeper", Some("a"), "Role/keeper", user("keeper-of-one")).await;

    let scaler = json!({ "metadata": { "name": "scaler" }, "rules": [
        rule("test.example.com", &["widgets/scale"], &["get", "patch"]),
        rule("test.example.com", &["widgets"], &["watch"]),
    ] });
    world.admin(Method::POST, &rbac(None, "s"), &scaler).await;
    let account = json!({ "kind": "ServiceAccount", "namespace": "a", "name": "scaler" });
    world.bind("scaler", None, "ClusterRole/scaler", account).await;
    world
}

/// Asks by a review whether a case is allowed.
async fn reviewed(world: &World, who: &Identity, case: &Case) -> bool {
    let (group, version, resource, subresource, _) = case.kind;
    let named = !matches!(case.verb, "list" | "watch" | "deletecollection")
        && (case.verb != "create" || !subresource.is_empty());
    let review = json!({ "spec": { "resourceAttributes": {
        "verb": case.verb, "group": group, "version": version, "resource": resource, "subresource": subresource,
        "namespace": case.namespace(), "name": if named { case.name } else { "" },
    } } });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (status, answer) = world.ask(who, Method::POST, path, &review).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    answer["status"]["allowed"].as_bool().unwrap()
}

#[tokio::test]
async fn what_is_refused_is_exactly_what_no_role_grants() {
    let world = world().await;
    let (mut requests, mut refused) = (0, 0);
    for (who, allowed) in identities() {
        for kind in KINDS {
            for verb in VERBS {
                for scope in SCOPES {
                    // A namespace that is not there: to do away with `a` would end the test.
                    let names: &[&'static str] =
                        if kind.2 == "namespaces" { &["gone"] } else { &["one", "two"] };
                    for &name in names {
                        let case = Case { verb, kind, scope, name };
                        let Some((method, path)) = case.request() else { continue };
                        // What the request comes to when it is allowed is no matter here: mostly there is no such object.
                        let (status, answer) = world.ask(&who, method, &path, &json!({})).await;
                        let expected = allowed(&case);
                        let what = format!("{} {verb} {path}", who.user);
                        assert_eq!(status != StatusCode::FORBIDDEN, expected, "{what}: {answer}");
                        assert_eq!(reviewed(&world, &who, &case).await, expected, "{what}: review");
                        if !expected {
                            refused += 1;
                            assert_eq!(answer["reason"], "Forbidden", "{what}");
                            let message = format!("User {:?} cannot {verb} resource", who.user);
                            assert!(answer["message"].as_str().unwrap().contains(&message), "{answer}");
                        }
                        requests += 1;
                    }
                }
            }
        }
    }
    assert!(
        requests > 3_000 && refused > 1_500 && refused < requests,
        "{requests} requests, {refused} refused"
    );
}

#[tokio::test]
async fn paths_that_are_no_resources_are_for_those_who_may_read_them() {
    let world = World::new().await;
    let nobody = Identity::user("nobody");
    for path in ["/api", "/apis", "/version", "/openapi/v3", "/healthz", "/apis/apps.example.com"] {
        let (status, answer) = world.ask(&nobody, Method::GET, path, &Value::Null).await;
        assert_ne!(status, StatusCode::FORBIDDEN, "{path}: {answer}");
    }
    for path in ["/metrics", "/", "/nothing"] {
        let (status, answer) = world.ask(&nobody, Method::GET, path, &Value::Null).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {answer}");
    }
    // Kinds that do not exist are not told from kinds that do.
    let (status, answer) =
        world.ask(&nobody, Method::GET, "/apis/no.example.com/v1/things", &Value::Null).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
}

#[tokio::test]
async fn a_list_by_name_is_allowed_to_those_who_may_list_that_object() {
    let world = World::new().await;
    let mut rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"] });
    rule["resourceNames"] = json!(["one"]);
    let role = json!({ "metadata": { "name": "r" }, "rules": [rule] });
    world.admin(Method::POST, &rbac(Some("a"), "s"), &role).await;
    world.bind("r", Some("a"), "Role/r", user("ann")).await;
    let ann = Identity::user("ann");
    for (query, expected) in [
        ("fieldSelector=metadata.name%3Done", true),
        ("fieldSelector=metadata.name%3D%3Done", true),
        ("watch=true&fieldSelector=metadata.name%3Done", true),
        ("fieldSelector=metadata.name%3Dtwo", false),
        ("fieldSelector=metadata.name!%3Done", false),
        ("", false),
    ] {
        let path = format!("/api/v1/namespaces/a/configmaps?{query}");
        let (status, answer) = world.ask(&ann, Method::GET, &path, &Value::Null).await;
        assert_eq!(status == StatusCode::OK, expected, "{query}: {answer}");
    }
}
