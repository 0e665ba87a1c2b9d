//! Nobody grants what they do not hold.
//!
//! Whoever writes a role must hold each of its rules, or be allowed to `escalate` that role; whoever writes a binding
//! must hold each rule of the role it names, or be allowed to `bind` that role. Rules are compared as Kubernetes
//! does: broken down into single verbs on single resources, each of which one held rule must cover.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::attributes::{Attributes, Caller, ResourceAttributes};
use super::binding::{Binding, RoleKind, RoleRef};
use super::policy::Policy;
use super::role::RoleObject;
use super::rule::{ALL, Quoted, Rule, has, has_or_all, path_covers};
use super::{RBAC, RbacKind};

/// The most single permissions that a check looks at. A role of ordinary size has some hundreds; the product of
/// long lists in one rule could keep a processor busy for hours. What lies beyond counts as not held, unless one
/// held rule covers the whole rule.
const MAX_SINGLE_PERMISSIONS: usize = 100_000;

/// The most lines of a refusal.
const MAX_LINES: usize = 100;

/// A permission that the caller does not hold: one group, one resource and one name (or one path), with the verbs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing(pub Rule);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a role or binding may not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The caller does not hold what would be granted. The answer is 403.
    #[error("{0}")]
    NotHeld(String),
    /// Aggregation grants whatever anyone labels later on, so only those who hold everything may set it up. The
    /// answer is 403.
    #[error("must have cluster-admin privileges to use the aggregationRule")]
    Aggregation,
    /// The role that the binding names does not exist, so nobody can say whether the caller holds it. The answer is
    /// 404.
    #[error("{resource}.{RBAC} {name:?} not found")]
    NoSuchRole {
        /// `role` or `clusterrole`.
        resource: &'static str,
        /// The role's name.
        name: String,
    },
    /// The object cannot be read, though its schema holds. The answer is 403.
    #[error("the object cannot be read: {0}")]
    Unreadable(String),
}

/// Which of `rules` the caller does not hold in a namespace (`None`: in the whole plane), none twice.
pub fn escalation(
    policy: &Policy,
    caller: Caller<'_>,
    namespace: Option<&str>,
    rules: &[Rule],
) -> Vec<Missing> {
    if caller.is_superuser() {
        return Vec::new();
    }
    let (held, _) = policy.rules_for(caller, namespace.unwrap_or_default());
    let held: Vec<&Rule> = held.iter().collect();
    let mut search = Search { missing: Vec::new(), left: MAX_SINGLE_PERMISSIONS };
    for rule in rules {
        if !held.iter().any(|held| covers_whole(held, rule)) && search.rule(&held, rule).is_none() {
            search.missing.push(rule.clone());
        }
    }
    compact(search.missing)
}

/// What the client is told.
pub fn escalation_message(caller: Caller<'_>, missing: &[Missing]) -> String {
    let mut lines: Vec<String> = missing.iter().map(ToString::to_string).collect();
    lines.sort();
    if lines.len() > MAX_LINES {
        let more = lines.len() - MAX_LINES;
        lines.truncate(MAX_LINES);
        lines.push(format!("and {more} more"));
    }
    format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        caller.user,
        Quoted(caller.groups),
        lines.join("\n")
    )
}

/// Whether the caller may store `new` in the place of `old`. Writes that only change what garbage collection needs
/// are let through: they grant nothing, and whoever cleans up need not hold what is cleaned up.
pub fn check_write(
    policy: &Policy,
    caller: Caller<'_>,
    kind: RbacKind,
    old: Option<&Value>,
    new: &Value,
) -> Result<(), Refusal> {
    if caller.is_superuser() || old.is_some_and(|old| same_but_for_ownership(old, new)) {
        return Ok(());
    }
    match kind {
        RbacKind::Role | RbacKind::ClusterRole => check_role(policy, caller, kind, old, new),
        RbacKind::RoleBinding | RbacKind::ClusterRoleBinding => check_binding(policy, caller, new),
    }
}

fn check_role(
    policy: &Policy,
    caller: Caller<'_>,
    kind: RbacKind,
    old: Option<&Value>,
    new: &Value,
) -> Result<(), Refusal> {
    let role = RoleObject::read(new).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let namespace = role.metadata.namespace.as_str();
    let escalate = ResourceAttributes {
        group: RBAC,
        version: ALL,
        resource: if kind == RbacKind::Role { "roles" } else { "clusterroles" },
        namespace,
        // A create has no name to be allowed for.
        name: if old.is_some() { &role.metadata.name } else { "" },
        ..ResourceAttributes::default()
    };
    if policy.allows(&Attributes::resource(caller, "escalate", escalate)).allowed {
        return Ok(());
    }
    confirm(policy, caller, namespace, &role.rules)?;
    let aggregation = &new["aggregationRule"];
    let unchanged = old.is_some_and(|old| old["aggregationRule"] == *aggregation);
    if kind == RbacKind::ClusterRole
        && !aggregation.is_null()
        && !unchanged
        && !escalation(policy, caller, None, &Rule::full_authority()).is_empty()
    {
        return Err(Refusal::Aggregation);
    }
    Ok(())
}

fn check_binding(policy: &Policy, caller: Caller<'_>, new: &Value) -> Result<(), Refusal> {
    let binding = Binding::read(new).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let RoleRef { kind, name } = &binding.role;
    let namespace = &*binding.key.namespace;
    let bind = ResourceAttributes {
        group: RBAC,
        version: ALL,
        resource: match kind {
            RoleKind::Role => "roles",
            RoleKind::ClusterRole => "clusterroles",
        },
        namespace,
        name,
        ..ResourceAttributes::default()
    };
    if policy.allows(&Attributes::resource(caller, "bind", bind)).allowed {
        return Ok(());
    }
    let rules = policy.role_rules(&binding.role, namespace).ok_or_else(|| Refusal::NoSuchRole {
        resource: match kind {
            RoleKind::Role => "role",
            RoleKind::ClusterRole => "clusterrole",
        },
        name: name.to_string(),
    })?;
    confirm(policy, caller, namespace, rules)
}

fn confirm(policy: &Policy, caller: Caller<'_>, namespace: &str, rules: &[Rule]) -> Result<(), Refusal> {
    let missing = escalation(policy, caller, Some(namespace), rules);
    if missing.is_empty() { Ok(()) } else { Err(Refusal::NotHeld(escalation_message(caller, &missing))) }
}

/// Whether two objects differ in nothing but owners, finalizers and what the server keeps itself.
fn same_but_for_ownership(old: &Value, new: &Value) -> bool {
    const ASIDE: [&str; 4] = ["ownerReferences", "finalizers", "managedFields", "resourceVersion"];
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let rest = |object: &serde_json::Map<String, Value>| {
        let mut metadata = object.get("metadata").cloned().unwrap_or_default();
        if let Some(fields) = metadata.as_object_mut() {
            fields.retain(|field, _| !ASIDE.contains(&field.as_str()));
        }
        metadata
    };
    let others =
        |object: &serde_json::Map<String, Value>| object.keys().filter(|key| *key != "metadata").count();
    rest(old) == rest(new)
        && others(old) == others(new)
        && old.iter().all(|(key, value)| key == "metadata" || new.get(key) == Some(value))
}

/// Whether one held rule covers all of `rule`.
fn covers_whole(held: &Rule, rule: &Rule) -> bool {
    rule.verbs.iter().all(|verb| has_or_all(&held.verbs, verb))
        && rule.api_groups.iter().all(|group| has_or_all(&held.api_groups, group))
        && rule.resources.iter().all(|resource| covers_resource(held, resource))
        && rule.non_resource_urls.iter().all(|path| covers_path(held, path))
        && match rule.resource_names.as_slice() {
            [] => held.resource_names.is_empty(),
            names => names.iter().all(|name| covers_name(held, Some(name))),
        }
}

fn covers_resource(held: &Rule, resource: &str) -> bool {
    has_or_all(&held.resources, resource)
        || resource.split_once('/').is_some_and(|(_, below)| {
            held.resources.iter().any(|have| have.strip_prefix("*/") == Some(below))
        })
}

/// `None` stands for all names.
fn covers_name(held: &Rule, name: Option<&str>) -> bool {
    held.resource_names.is_empty() || name.is_some_and(|name| has(&held.resource_names, name))
}

fn covers_path(held: &Rule, path: &str) -> bool {
    held.non_resource_urls.iter().any(|have| path_covers(have, path))
}

/// Looks for single permissions that no held rule covers.
struct Search {
    missing: Vec<Rule>,
    left: usize,
}

impl Search {
    /// Breaks `rule` down. `None`: there is more to it than may be looked at.
    fn rule(&mut self, held: &[&Rule], rule: &Rule) -> Option<()> {
        // Grants nothing, and would cost nothing of the budget.
        if rule.verbs.is_empty() {
            return Some(());
        }
        for group in &rule.api_groups {
            let in_group = narrowed(held, |held| has_or_all(&held.api_groups, group));
            for resource in &rule.resources {
                let on_resource = narrowed(&in_group, |held| covers_resource(held, resource));
                for verb in &rule.verbs {
                    let with_verb = narrowed(&on_resource, |held| has_or_all(&held.verbs, verb));
                    let single = || Rule::resources(&[verb], group, &[resource]);
                    if rule.resource_names.is_empty() {
                        self.single(&with_verb, |held| covers_name(held, None), single)?;
                    }
                    for name in &rule.resource_names {
                        let named = || Rule { resource_names: vec![name.clone()], ..single() };
                        self.single(&with_verb, |held| covers_name(held, Some(name)), named)?;
                    }
                }
            }
        }
        for path in &rule.non_resource_urls {
            let on_path = narrowed(held, |held| covers_path(held, path) && held.resource_names.is_empty());
            for verb in &rule.verbs {
                let single = || Rule::paths(&[verb], &[path]);
                self.single(&on_path, |held| has_or_all(&held.verbs, verb), single)?;
            }
        }
        Some(())
    }

    fn single(
        &mut self,
        held: &[&Rule],
        covers: impl Fn(&Rule) -> bool,
        permission: impl Fn() -> Rule,
    ) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if !held.iter().any(|held| covers(held)) {
            self.missing.push(permission());
        }
        Some(())
    }
}

fn narrowed<'a>(held: &[&'a Rule], fits: impl Fn(&Rule) -> bool) -> Vec<&'a Rule> {
    held.iter().copied().filter(|held| fits(held)).collect()
}

/// Puts permissions on the same resource that differ by verb alone into one.
fn compact(mut missing: Vec<Rule>) -> Vec<Missing> {
    let mut seen = BTreeSet::new();
    missing.retain(|rule| seen.insert(rule.clone()));
    let (paths, resources): (Vec<Rule>, Vec<Rule>) =
        missing.into_iter().partition(|rule| !rule.non_resource_urls.is_empty());
    let mut by_target: BTreeMap<Rule, Vec<String>> = BTreeMap::new();
    for mut rule in resources {
        let mut verbs = std::mem::take(&mut rule.verbs);
        by_target.entry(rule).or_default().append(&mut verbs);
    }
    let resources = by_target.into_iter().map(|(rule, verbs)| Rule { verbs, ..rule });
    resources.chain(paths).map(Missing).collect()
}
