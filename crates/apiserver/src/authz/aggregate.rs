//! Aggregated cluster roles: rules that are the union of other cluster roles' rules, picked by label.
//!
//! Aggregated roles may pick aggregated roles, even each other. The result is what repeated one-step aggregation
//! comes to rest at: the rules of all plain roles that can be reached.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::role::{ClusterRole, RoleObject};
use super::rule::Rule;

/// The rules that ClusterRole `role` has in effect among `all` ClusterRoles: in the order of its selectors, then of
/// role names, none twice. A role without `aggregationRule` has its own. Objects that cannot be read count as
/// absent.
pub fn aggregate(role: &Value, all: impl IntoIterator<Item: Borrow<Value>>) -> Vec<Rule> {
    let Ok(object) = RoleObject::read(role) else { return Vec::new() };
    if object.aggregation_rule.is_none() {
        return object.rules;
    }
    let name = object.metadata.name.clone();
    let others = all.into_iter().filter_map(|value| RoleObject::read(value.borrow()).ok());
    let others: BTreeMap<String, ClusterRole> =
        others.map(|other| (other.metadata.name.clone(), other.into())).collect();
    let by_name = others.iter().map(|(name, role)| (name.as_str(), role)).collect();
    effective(&name, &object.into(), &by_name)
}

/// The rules of aggregated role `role`, called `name`.
pub(super) fn effective(name: &str, role: &ClusterRole, all: &BTreeMap<&str, &ClusterRole>) -> Vec<Rule> {
    let mut seen = BTreeSet::from([name]);
    let mut known = BTreeSet::new();
    let mut rules = Vec::new();
    // Depth first, with the next one to look at on top: the order of a recursion, at any depth.
    let mut waiting = picked(role, all);
    while let Some((name, role)) = waiting.pop() {
        if !seen.insert(name) {
            continue;
        }
        if role.aggregates.is_some() {
            waiting.append(&mut picked(role, all));
        } else {
            rules.extend(role.rules.iter().filter(|rule| known.insert(*rule)).cloned());
        }
    }
    rules
}

/// What a role picks directly, last first.
fn picked<'a>(
    role: &ClusterRole,
    all: &BTreeMap<&'a str, &'a ClusterRole>,
) -> Vec<(&'a str, &'a ClusterRole)> {
    let selectors = role.aggregates.iter().flatten().rev();
    selectors
        .flat_map(|selector| {
            let last_first = all.iter().rev();
            last_first.filter(|(_, role)| selector.matches(&role.labels)).map(|(name, role)| (*name, *role))
        })
        .collect()
}
