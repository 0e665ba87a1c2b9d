//! Random policies and requests over few names, so that they often meet.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::{Objects, binding, role};

pub(super) const USERS: [&str; 4] =
    ["ann", "bob", "system:serviceaccount:n:robot", "system:serviceaccount:m:robot"];
pub(super) const GROUPS: [&str; 4] = ["g", "h", "system:serviceaccounts", "system:serviceaccounts:n"];
pub(super) const NAMESPACES: [&str; 3] = ["", "n", "m"];
const VERBS: [&str; 4] = ["get", "list", "create", "*"];
const API_GROUPS: [&str; 3] = ["", "apps", "*"];
const RESOURCES: [&str; 5] = ["pods", "pods/log", "*/log", "nodes/log", "*"];
const URLS: [&str; 5] = ["/a", "/a/*", "/a/b", "/a/b/*", "*"];
const SUBJECTS: [&str; 9] = [
    "User:ann",
    "User:bob",
    "User:system:serviceaccount:n:robot",
    "Group:g",
    "Group:system:serviceaccounts",
    "Group:system:serviceaccounts:n",
    "ServiceAccount:n:robot",
    "ServiceAccount:robot",
    "Robot:ann",
];

fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(of, 1..=2)
}

/// A rule as validation lets it through.
pub(super) fn rule() -> impl Strategy<Value = Value> {
    let names = subsequence(&["x", "y"][..], 0..=2);
    let resources = (some(&VERBS), some(&API_GROUPS), some(&RESOURCES), names).prop_map(
        |(verbs, groups, resources, names)| {
            json!({ "verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names })
        },
    );
    let paths = (some(&VERBS), some(&URLS))
        .prop_map(|(verbs, urls)| json!({ "verbs": verbs, "nonResourceURLs": urls }));
    prop_oneof![3 => resources, 1 => paths]
}

fn some_role() -> impl Strategy<Value = Value> {
    let name = select(&["n/r", "n/s", "m/r"][..]);
    (name, prop::collection::vec(rule(), 0..3)).prop_map(|(name, rules)| role(name, json!(rules)))
}

fn some_cluster_role() -> impl Strategy<Value = Value> {
    let labels = subsequence(&["to-r", "to-s"][..], 0..=2);
    let picks = prop::option::weighted(0.3, select(&["to-r", "to-s"][..]));
    let name = select(&["r", "s", "t", "u"][..]);
    (name, prop::collection::vec(rule(), 0..3), labels, picks).prop_map(|(name, rules, labels, picks)| {
        let mut object = role(name, json!(rules));
        for label in labels {
            object["metadata"]["labels"][label] = json!("yes");
        }
        if let Some(label) = picks {
            let selector = json!({ "matchExpressions": [{ "key": label, "operator": "Exists" }] });
            object["aggregationRule"] = json!({ "clusterRoleSelectors": [selector] });
        }
        object
    })
}

fn some_binding() -> impl Strategy<Value = Value> {
    let role = select(&["r", "s", "t", "u", "gone", "Role!r", "Role!s"][..]);
    let name = select(&["a", "b", "c", "n/a", "n/b", "m/a"][..]);
    (name, role, subsequence(&SUBJECTS[..], 0..=3))
        .prop_map(|(name, role, subjects)| binding(name, role, &subjects))
}

/// Objects; of those with the same kind and name, the last one holds.
pub(super) fn objects() -> impl Strategy<Value = Objects> {
    let object = prop_oneof![some_role(), some_cluster_role(), some_binding(), some_binding()];
    prop::collection::vec(object, 0..12).prop_map(Objects::of)
}

/// A request in owned form: user, groups, verb, and either group, resource, namespace and name, or a path.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) user: &'static str,
    pub(super) groups: Vec<String>,
    pub(super) verb: &'static str,
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    pub(super) path: Option<&'static str>,
}

pub(super) fn asked() -> impl Strategy<Value = Asked> {
    let who = (select(&USERS[..]), subsequence(&GROUPS[..], 0..=2));
    let what = (
        select(&["get", "list", "create", "delete"][..]),
        select(&["", "apps", "x.io"][..]),
        select(&["pods", "pods/log", "nodes", "nodes/log"][..]),
        select(&NAMESPACES[..]),
        select(&["", "x", "z"][..]),
    );
    let path = prop::option::weighted(0.25, select(&["/a", "/a/", "/a/b", "/a/b/c", "/c"][..]));
    (who, what, path).prop_map(|((user, groups), (verb, group, resource, namespace, name), path)| Asked {
        user,
        groups: super::texts(&groups),
        verb,
        group,
        resource,
        namespace,
        name,
        path,
    })
}

impl Asked {
    pub(super) fn attributes(&self) -> super::Attributes<'_> {
        let caller = super::Caller::new(self.user, &self.groups);
        match self.path {
            Some(path) => super::Attributes::path(caller, self.verb, path),
            None => {
                let what = super::resource(self.group, self.resource, self.namespace, self.name);
                super::Attributes::resource(caller, self.verb, what)
            }
        }
    }
}
