//! The roles and bindings that every plane has: those of Kubernetes, for the kinds that planes serve.
//!
//! They are made once per process and shared by all planes; what a plane stores itself stands beside them, or in
//! their place ([`Policy::compile_over`]).

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::aggregate::aggregate;
use super::attributes::names;
use super::policy::Policy;
use super::rule::Rule;
use super::{RBAC, RbacKind};

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const READ_WRITE: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

const CREATE: &[&str] = &["create"];
const GET: &[&str] = &["get"];

/// ClusterRoles and ClusterRoleBindings that every plane has. Aggregated roles carry their rules.
pub fn defaults() -> Vec<Value> {
    let mut roles = cluster_roles();
    let aggregated: Vec<Vec<Rule>> = roles.iter().map(|role| aggregate(role, &roles)).collect();
    for (role, rules) in roles.iter_mut().zip(aggregated) {
        role["rules"] = json!(rules);
    }
    roles.extend(cluster_role_bindings());
    roles
}

/// [`defaults`] as a policy, shared by all planes of the process.
pub fn default_policy() -> Arc<Policy> {
    static POLICY: LazyLock<Arc<Policy>> = LazyLock::new(|| {
        let none = std::iter::empty::<Value>;
        Arc::new(Policy::compile(none(), cluster_roles(), none(), cluster_role_bindings()).policy)
    });
    Arc::clone(&POLICY)
}

fn cluster_roles() -> Vec<Value> {
    let [all_resources, all_paths] = Rule::full_authority();
    vec![
        aggregated("admin", &[]),
        cluster_role("cluster-admin", &[], &[all_resources, all_paths]),
        aggregated("edit", &["admin"]),
        cluster_role(
            "system:aggregate-to-admin",
            &["admin"],
            &[
                Rule::resources(CREATE, "authorization.k8s.io", &["localsubjectaccessreviews"]),
                Rule::resources(READ_WRITE, RBAC, &["rolebindings", "roles"]),
            ],
        ),
        cluster_role("system:aggregate-to-edit", &["edit"], &edit()),
        cluster_role("system:aggregate-to-view", &["view"], &view()),
        cluster_role(
            "system:basic-user",
            &[],
            &[
                Rule::resources(
                    CREATE,
                    "authorization.k8s.io",
                    &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                ),
                Rule::resources(CREATE, "authentication.k8s.io", &["selfsubjectreviews"]),
            ],
        ),
        cluster_role(
            "system:discovery",
            &[],
            &[Rule::paths(
                GET,
                &[
                    "/api",
                    "/api/*",
                    "/apis",
                    "/apis/*",
                    "/healthz",
                    "/livez",
                    "/openapi",
                    "/openapi/*",
                    "/readyz",
                    "/version",
                    "/version/",
                ],
            )],
        ),
        cluster_role(
            "system:public-info-viewer",
            &[],
            &[Rule::paths(GET, &["/healthz", "/livez", "/readyz", "/version", "/version/"])],
        ),
        aggregated("view", &["edit"]),
    ]
}

fn edit() -> Vec<Rule> {
    let streams = ["pods/attach", "pods/exec", "pods/portforward"];
    vec![
        Rule::resources(READ, "", &[&streams[..], &["secrets"]].concat()),
        Rule::resources(&["impersonate"], "", &["serviceaccounts"]),
        Rule::resources(WRITE, "", &[&["pods"], &streams[..]].concat()),
        Rule::resources(CREATE, "", &["pods/eviction"]),
        Rule::resources(WRITE, "", &["configmaps", "events", "secrets", "serviceaccounts", "services"]),
        Rule::resources(CREATE, "", &["serviceaccounts/token"]),
        // The same objects as core events.
        Rule::resources(WRITE, "events.k8s.io", &["events"]),
        Rule::resources(READ_WRITE, "coordination.k8s.io", &["leases"]),
    ]
}

/// Secrets are left out: they hold tokens, and with one its reader could do more than read.
fn view() -> Vec<Rule> {
    vec![
        Rule::resources(READ, "", &["configmaps", "pods", "serviceaccounts", "services", "services/status"]),
        Rule::resources(READ, "", &["events", "namespaces/status", "pods/log", "pods/status"]),
        // Bound in a namespace, this reads that namespace.
        Rule::resources(READ, "", &["namespaces"]),
        Rule::resources(READ, "events.k8s.io", &["events"]),
    ]
}

fn cluster_role_bindings() -> Vec<Value> {
    vec![
        cluster_role_binding("cluster-admin", &[names::MASTERS]),
        cluster_role_binding("system:basic-user", &[names::AUTHENTICATED]),
        cluster_role_binding("system:discovery", &[names::AUTHENTICATED]),
        cluster_role_binding("system:public-info-viewer", &[names::AUTHENTICATED, names::UNAUTHENTICATED]),
    ]
}

/// A default object; `feeds` names the aggregated roles that pick it.
fn object(kind: RbacKind, name: &str, feeds: &[&str]) -> Value {
    let mut labels = json!({ "kubernetes.io/bootstrapping": "rbac-defaults" });
    for role in feeds {
        labels[aggregation_label(role)] = json!("true");
    }
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": kind.name(),
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
        },
    })
}

/// The label by which an aggregated role picks others.
fn aggregation_label(role: &str) -> String {
    format!("{RBAC}/aggregate-to-{role}")
}

fn cluster_role(name: &str, feeds: &[&str], rules: &[Rule]) -> Value {
    let mut role = object(RbacKind::ClusterRole, name, feeds);
    role["rules"] = json!(rules);
    role
}

fn aggregated(name: &str, feeds: &[&str]) -> Value {
    let mut role = object(RbacKind::ClusterRole, name, feeds);
    let selector = json!({ "matchLabels": { aggregation_label(name): "true" } });
    role["aggregationRule"] = json!({ "clusterRoleSelectors": [selector] });
    role
}

fn cluster_role_binding(name: &str, groups: &[&str]) -> Value {
    let mut binding = object(RbacKind::ClusterRoleBinding, name, &[]);
    binding["roleRef"] = json!({ "apiGroup": RBAC, "kind": "ClusterRole", "name": name });
    let subjects = groups.iter().map(|name| json!({ "apiGroup": RBAC, "kind": "Group", "name": name }));
    binding["subjects"] = subjects.collect();
    binding
}
