//! From objects to a policy.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::index::Index;
use super::{Compiled, Policy, Skipped};
use crate::authz::RbacKind;
use crate::authz::aggregate::effective;
use crate::authz::binding::{Binding, BindingKey, RoleKind};
use crate::authz::role::{ClusterRole, RoleObject};

impl Policy {
    /// Compiles the RBAC objects of a plane.
    pub fn compile(
        roles: impl IntoIterator<Item: Borrow<Value>>,
        cluster_roles: impl IntoIterator<Item: Borrow<Value>>,
        role_bindings: impl IntoIterator<Item: Borrow<Value>>,
        cluster_role_bindings: impl IntoIterator<Item: Borrow<Value>>,
    ) -> Compiled {
        Builder::default().build(roles, cluster_roles, role_bindings, cluster_role_bindings)
    }

    /// Compiles the RBAC objects of a plane that stand beside those of `base`, or in the place of those of the same
    /// name.
    pub fn compile_over(
        base: Arc<Self>,
        roles: impl IntoIterator<Item: Borrow<Value>>,
        cluster_roles: impl IntoIterator<Item: Borrow<Value>>,
        role_bindings: impl IntoIterator<Item: Borrow<Value>>,
        cluster_role_bindings: impl IntoIterator<Item: Borrow<Value>>,
    ) -> Compiled {
        let policy = Self { base: Some(base), ..Self::default() };
        Builder { policy, skipped: Vec::new() }.build(
            roles,
            cluster_roles,
            role_bindings,
            cluster_role_bindings,
        )
    }

    /// The binding that holds under `key`, here or in a base.
    fn binding(&self, key: &BindingKey) -> Option<&Arc<Binding>> {
        for layer in self.layers() {
            if let Some(binding) = layer.bindings.get(key) {
                return Some(binding);
            }
            if layer.hidden.contains(key) {
                return None;
            }
        }
        None
    }

    /// All cluster roles that hold, by name.
    fn all_cluster_roles(&self) -> BTreeMap<&str, &ClusterRole> {
        let mut all = BTreeMap::new();
        for layer in self.layers() {
            for (name, role) in &layer.cluster_roles {
                all.entry(&**name).or_insert(&**role);
            }
        }
        all
    }

    /// Whether the role that a binding names is one of this layer's own.
    fn owns_role_of(&self, binding: &Binding) -> bool {
        match binding.role.kind {
            RoleKind::ClusterRole => self.cluster_roles.contains_key(&binding.role.name),
            RoleKind::Role => {
                let roles = self.roles.get(&binding.key.namespace);
                roles.is_some_and(|roles| roles.contains_key(&binding.role.name))
            }
        }
    }
}

#[derive(Default)]
struct Builder {
    policy: Policy,
    skipped: Vec<Skipped>,
}

impl Builder {
    fn build(
        mut self,
        roles: impl IntoIterator<Item: Borrow<Value>>,
        cluster_roles: impl IntoIterator<Item: Borrow<Value>>,
        role_bindings: impl IntoIterator<Item: Borrow<Value>>,
        cluster_role_bindings: impl IntoIterator<Item: Borrow<Value>>,
    ) -> Compiled {
        roles.into_iter().for_each(|value| self.role(value.borrow(), RbacKind::Role));
        cluster_roles.into_iter().for_each(|value| self.role(value.borrow(), RbacKind::ClusterRole));
        self.aggregate();
        role_bindings.into_iter().for_each(|value| self.binding(value.borrow(), RbacKind::RoleBinding));
        let bindings = cluster_role_bindings.into_iter();
        bindings.for_each(|value| self.binding(value.borrow(), RbacKind::ClusterRoleBinding));
        self.rebind();
        self.policy.index = Index::new(self.policy.bindings.values());
        Compiled { policy: self.policy, skipped: self.skipped }
    }

    /// Namespace and name of an object; `None`, and a note, if it can have no place in the policy.
    fn place(&mut self, value: &Value, kind: RbacKind) -> Option<BindingKey> {
        let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
        let namespaced = matches!(kind, RbacKind::Role | RbacKind::RoleBinding);
        let key = BindingKey { namespace: text("namespace").into(), name: text("name").into() };
        if key.name.is_empty() {
            self.skip(kind, &key, &"has no name");
            return None;
        }
        if namespaced == key.namespace.is_empty() {
            self.skip(kind, &key, &if namespaced { "has no namespace" } else { "has a namespace" });
            return None;
        }
        Some(key)
    }

    fn skip(&mut self, kind: RbacKind, key: &BindingKey, problem: &dyn std::fmt::Display) {
        self.skipped.push(Skipped {
            kind: kind.name(),
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            problem: problem.to_string(),
        });
    }

    fn role(&mut self, value: &Value, kind: RbacKind) {
        let Some(key) = self.place(value, kind) else { return };
        // One that cannot be read still takes its place: a base's role of that name must not grant what this one
        // may have meant to take away.
        let object = RoleObject::read(value).map_err(|error| self.skip(kind, &key, &error)).ok();
        if kind == RbacKind::ClusterRole {
            let role = object.map(ClusterRole::from).unwrap_or_default();
            self.policy.cluster_roles.insert(key.name, Arc::new(role));
        } else {
            let rules = object.map(|object| object.rules).unwrap_or_default();
            self.policy.roles.entry(key.namespace).or_default().insert(key.name, rules.into());
        }
    }

    /// Gives aggregated roles their rules. Own roles may add rules to the base's aggregated ones, which then are
    /// kept here.
    fn aggregate(&mut self) {
        if self.policy.cluster_roles.is_empty() {
            return;
        }
        let all = self.policy.all_cluster_roles();
        let mut changed = Vec::new();
        for (name, role) in &all {
            if role.aggregates.is_none() {
                continue;
            }
            let rules = effective(name, role, &all);
            if *role.rules != *rules {
                let (labels, aggregates) = (role.labels.clone(), role.aggregates.clone());
                changed.push((Box::from(*name), ClusterRole { labels, aggregates, rules: rules.into() }));
            }
        }
        let changed = changed.into_iter().map(|(name, role)| (name, Arc::new(role)));
        self.policy.cluster_roles.extend(changed);
    }

    fn binding(&mut self, value: &Value, kind: RbacKind) {
        let Some(key) = self.place(value, kind) else { return };
        let base = self.policy.base.as_ref();
        if let Some(replaced) = base.and_then(|base| base.binding(&key)) {
            self.policy.hidden.insert(Arc::clone(&replaced.key));
        }
        match Binding::read(value) {
            Ok(mut binding) => {
                binding.rules = self.policy.role_rules(&binding.role, &key.namespace).cloned();
                self.policy.bindings.insert(Arc::clone(&binding.key), Arc::new(binding));
            }
            Err(error) => self.skip(kind, &key, &error),
        }
    }

    /// Bindings of the bases whose role is another one in this layer move up into it.
    fn rebind(&mut self) {
        let policy = &self.policy;
        if policy.cluster_roles.is_empty() && policy.roles.is_empty() {
            return;
        }
        let mut moved = Vec::new();
        for layer in policy.layers().skip(1) {
            for (key, binding) in &layer.bindings {
                if policy.owns_role_of(binding) && !policy.hides(layer, key) {
                    let rules = policy.role_rules(&binding.role, &key.namespace).cloned();
                    moved.push(Binding { rules, ..Binding::clone(binding) });
                }
            }
        }
        for binding in moved {
            self.policy.hidden.insert(Arc::clone(&binding.key));
            self.policy.bindings.insert(Arc::clone(&binding.key), Arc::new(binding));
        }
    }
}
