//! Properties of the policy: it answers as a plain walk over all objects does, in one layer or in several.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::random::{Asked, NAMESPACES, asked, objects};
use super::*;
use crate::authz::Rule;

type Key = (String, String, String);

/// All objects by kind, namespace and name; later ones take the place of earlier ones.
fn merged<'a>(layers: impl IntoIterator<Item = &'a Objects>) -> BTreeMap<Key, Value> {
    let mut all = BTreeMap::new();
    for Objects { roles, cluster_roles, role_bindings, cluster_role_bindings } in layers {
        for object in [roles, cluster_roles, role_bindings, cluster_role_bindings].into_iter().flatten() {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            let key = (object["kind"].as_str().unwrap().to_owned(), text("namespace"), text("name"));
            all.insert(key, object.clone());
        }
    }
    all
}

fn list<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    value[field].as_array().into_iter().flatten().map(|text| text.as_str().unwrap()).collect()
}

/// The rules of a cluster role, going round aggregation until nothing changes.
fn cluster_role_rules<'a>(all: &'a BTreeMap<Key, Value>, name: &str) -> Option<Vec<&'a Value>> {
    let roles: Vec<&Value> = all.values().filter(|object| object["kind"] == "ClusterRole").collect();
    let find = |name: &str| roles.iter().position(|role| role["metadata"]["name"] == name);
    let mut reached = vec![find(name)?];
    let mut at = 0;
    let mut rules = Vec::new();
    while at < reached.len() {
        let role = roles[reached[at]];
        at += 1;
        match role.get("aggregationRule") {
            None => rules.extend(role["rules"].as_array().into_iter().flatten()),
            Some(rule) => {
                let label = &rule["clusterRoleSelectors"][0]["matchExpressions"][0]["key"];
                for (i, other) in roles.iter().enumerate() {
                    let picked = other["metadata"]["labels"].get(label.as_str().unwrap()).is_some();
                    if picked && !reached.contains(&i) {
                        reached.push(i);
                    }
                }
            }
        }
    }
    Some(rules)
}

/// Looks at every binding, every subject and every rule.
fn naive(all: &BTreeMap<Key, Value>, asked: &Asked) -> bool {
    let (resource, sub) = asked.resource.split_once('/').unwrap_or((asked.resource, ""));
    let within = if asked.path.is_some() { "" } else { asked.namespace };
    let mut groups = asked.groups.clone();
    if let Some(rest) = asked.user.strip_prefix("system:serviceaccount:") {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{}", rest.split(':').next().unwrap()));
    }
    all.iter().filter(|((kind, ..), _)| kind.ends_with("Binding")).any(|((_, namespace, _), binding)| {
        let named = binding["subjects"].as_array().into_iter().flatten().any(|subject| {
            let name = subject["name"].as_str().unwrap();
            match subject["kind"].as_str().unwrap() {
                "User" => name == asked.user,
                "Group" => groups.iter().any(|group| group == name),
                "ServiceAccount" => {
                    let of = subject["namespace"].as_str().unwrap_or(namespace);
                    !of.is_empty() && asked.user == format!("system:serviceaccount:{of}:{name}")
                }
                _ => false,
            }
        });
        let name = binding["roleRef"]["name"].as_str().unwrap();
        let rules = match binding["roleRef"]["kind"].as_str().unwrap() {
            "ClusterRole" => cluster_role_rules(all, name),
            _ => all
                .get(&("Role".to_owned(), namespace.clone(), name.to_owned()))
                .map(|role| role["rules"].as_array().unwrap().iter().collect()),
        };
        named
            && (namespace.is_empty() || namespace == within)
            && rules.unwrap_or_default().into_iter().any(|rule| {
                let any = |field: &str, fits: &dyn Fn(&str) -> bool| list(rule, field).into_iter().any(fits);
                any("verbs", &|verb| verb == "*" || verb == asked.verb)
                    && match asked.path {
                        Some(path) => any("nonResourceURLs", &|url| match url.strip_suffix('*') {
                            Some(prefix) => path.starts_with(prefix),
                            None => url == path,
                        }),
                        None => {
                            any("apiGroups", &|group| group == "*" || group == asked.group)
                                && any("resources", &|have| match have.split_once('/') {
                                    None => have == "*" || (sub.is_empty() && have == resource),
                                    Some((of, below)) => below == sub && (of == "*" || of == resource),
                                })
                                && (list(rule, "resourceNames").is_empty()
                                    || any("resourceNames", &|name| name == asked.name))
                        }
                    }
            })
    })
}

fn sorted_rules(policy: &Policy, asked: &Asked, namespace: &str) -> (Vec<Rule>, Option<String>) {
    let (mut rules, problem) = policy.rules_for(Caller::new(asked.user, &asked.groups), namespace);
    rules.sort();
    (rules, problem)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn answers_as_a_plain_walk_does(objects in objects(), asked in prop::collection::vec(asked(), 20)) {
        let policy = objects.policy();
        let all = merged([&objects]);
        for asked in asked {
            let decision = policy.allows(&asked.attributes());
            prop_assert_eq!(decision.allowed, naive(&all, &asked), "{:?}", asked);
            if decision.allowed {
                prop_assert!(decision.reason().starts_with("RBAC: allowed by "));
            }
        }
    }

    #[test]
    fn layers_answer_as_one(
        layers in prop::collection::vec(objects(), 1..4),
        asked in prop::collection::vec(asked(), 20),
    ) {
        let all = merged(&layers);
        let together = Objects::of(all.values().cloned()).policy();
        let layered = layers.iter().fold(Arc::new(Policy::default()), |base, objects| Arc::new(objects.over(base)));
        for asked in asked {
            let (one, many) = (together.allows(&asked.attributes()), layered.allows(&asked.attributes()));
            prop_assert_eq!(one.allowed, many.allowed, "{:?}", asked);
            if !one.allowed {
                prop_assert_eq!(one.reason(), many.reason());
            }
            for namespace in NAMESPACES {
                prop_assert_eq!(sorted_rules(&together, &asked, namespace), sorted_rules(&layered, &asked, namespace));
            }
        }
        for name in ["r", "s", "t", "u", "gone"] {
            prop_assert_eq!(together.cluster_role_rules(name), layered.cluster_role_rules(name));
        }
    }

    #[test]
    fn order_does_not_matter(objects in objects(), asked in asked()) {
        let all: Vec<Value> = merged([&objects]).into_values().collect();
        let forth = Objects::of(all.iter().cloned()).policy();
        let back = Objects::of(all.into_iter().rev()).policy();
        let (forth, back) = (forth.allows(&asked.attributes()), back.allows(&asked.attributes()));
        prop_assert_eq!((forth.allowed, forth.reason()), (back.allowed, back.reason()));
    }
}
