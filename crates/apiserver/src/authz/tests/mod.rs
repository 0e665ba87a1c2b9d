//! Tests of authorization as a whole; this file holds what they share: short ways to write objects and requests.

mod access;
mod defaults;
mod escalation;
mod layers;
mod random;
mod requests;
mod reviews;
mod validation;

use serde_json::{Value, json};

use super::{Attributes, Caller, Compiled, Policy, RBAC, ResourceAttributes};

/// The RBAC objects of a plane, by kind.
#[derive(Clone, Debug, Default)]
struct Objects {
    roles: Vec<Value>,
    cluster_roles: Vec<Value>,
    role_bindings: Vec<Value>,
    cluster_role_bindings: Vec<Value>,
}

impl Objects {
    fn of(all: impl IntoIterator<Item = Value>) -> Self {
        let mut objects = Self::default();
        for object in all {
            let list = match object["kind"].as_str().unwrap() {
                "Role" => &mut objects.roles,
                "ClusterRole" => &mut objects.cluster_roles,
                "RoleBinding" => &mut objects.role_bindings,
                "ClusterRoleBinding" => &mut objects.cluster_role_bindings,
                other => panic!("no RBAC kind: {other}"),
            };
            list.push(object);
        }
        objects
    }

    fn compiled(&self) -> Compiled {
        Policy::compile(&self.roles, &self.cluster_roles, &self.role_bindings, &self.cluster_role_bindings)
    }

    fn policy(&self) -> Policy {
        let Compiled { policy, skipped } = self.compiled();
        assert_eq!(skipped, []);
        policy
    }

    fn over(&self, base: std::sync::Arc<Policy>) -> Policy {
        let Self { roles, cluster_roles, role_bindings, cluster_role_bindings } = self;
        let compiled = Policy::compile_over(base, roles, cluster_roles, role_bindings, cluster_role_bindings);
        assert_eq!(compiled.skipped, []);
        compiled.policy
    }
}

fn policy(all: impl IntoIterator<Item = Value>) -> Policy {
    Objects::of(all).policy()
}

/// `role("ns/name", rules)`, or a cluster role without the slash.
fn role(name: &str, rules: Value) -> Value {
    let mut object = named(name, "Role", "ClusterRole");
    object["rules"] = rules;
    object
}

/// A binding of `role` (a cluster role unless it starts with `Role!`) to subjects like `User:ann`, `Group:g` or
/// `ServiceAccount:ns:name`.
fn binding(name: &str, role: &str, subjects: &[&str]) -> Value {
    let mut object = named(name, "RoleBinding", "ClusterRoleBinding");
    let (kind, role) = role.split_once('!').unwrap_or(("ClusterRole", role));
    object["roleRef"] = json!({ "apiGroup": RBAC, "kind": kind, "name": role });
    object["subjects"] = subjects.iter().map(|text| subject(text)).collect();
    object
}

fn subject(text: &str) -> Value {
    let (kind, name) = text.split_once(':').unwrap();
    match (kind, name.split_once(':')) {
        ("ServiceAccount", Some((namespace, name))) => {
            json!({ "kind": kind, "name": name, "namespace": namespace })
        }
        ("ServiceAccount", None) => json!({ "kind": kind, "name": name }),
        _ => json!({ "apiGroup": RBAC, "kind": kind, "name": name }),
    }
}

fn named(name: &str, namespaced: &str, cluster: &str) -> Value {
    let (kind, metadata) = match name.split_once('/') {
        Some((namespace, name)) => (namespaced, json!({ "namespace": namespace, "name": name })),
        None => (cluster, json!({ "name": name })),
    };
    json!({ "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata })
}

/// A rule from words: `on("get,list", "apps", "deployments,*/scale")`.
fn on(verbs: &str, groups: &str, resources: &str) -> Value {
    let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    json!({ "verbs": words(verbs), "apiGroups": words(groups), "resources": words(resources) })
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A resource, with its subresource after a slash.
fn resource<'a>(
    group: &'a str,
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
) -> ResourceAttributes<'a> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    ResourceAttributes { group, version: "v1", resource, subresource, namespace, name }
}

/// Whether a user without groups may do something to a core resource.
fn may(policy: &Policy, user: &str, verb: &str, core: &str, namespace: &str, name: &str) -> bool {
    let request = Attributes::resource(Caller::new(user, &[]), verb, resource("", core, namespace, name));
    policy.allows(&request).allowed
}
