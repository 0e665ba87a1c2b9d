//! Who may do what in a plane: its RBAC objects, compiled.
//!
//! A plane whose objects are those of its template shares the template's policy. Changes mark the policy as out of date;
//! the next request compiles it anew, so that many changes in a row cost one compilation.

use std::sync::Arc;

use serde_json::Value;

use super::Plane;
use crate::authz::{Compiled, Policy, RBAC};
use crate::store::GroupResource;

const TABLES: [&str; 4] = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];

impl Plane {
    /// Who may do what at this moment.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        if let Some(policy) = &*self.policy.read() {
            return policy.clone();
        }
        // Whoever changes an object waits for this lock after the change is visible, so what is compiled here is never
        // older than the last call of `forget_policy`.
        let mut policy = self.policy.write();
        policy.get_or_insert_with(|| self.compile_policy()).clone()
    }

    /// Has the policy compiled anew. Called after each change of an RBAC object, before the change is answered.
    pub(crate) fn forget_policy(&self) {
        *self.policy.write() = None;
    }

    /// Sets a policy that is known to be what the objects say.
    pub(super) fn set_policy(&self, policy: Arc<Policy>) {
        *self.policy.write() = Some(policy);
    }

    fn compile_policy(&self) -> Arc<Policy> {
        let table = |resource: &str| GroupResource::new(RBAC, resource);
        let own = TABLES.map(|resource| self.store.beyond_template(&table(resource)));
        let compiled = match own {
            [Some(roles), Some(cluster_roles), Some(bindings), Some(cluster_bindings)] => {
                let own = [roles, cluster_roles, bindings, cluster_bindings];
                if own.iter().all(Vec::is_empty) {
                    return self.base_policy.clone();
                }
                let [a, b, c, d] = own.map(|objects| objects.into_iter().map(|object| object.value()));
                Policy::compile_over(self.base_policy.clone(), a, b, c, d)
            }
            // What the template grants may be gone, so it is no base to build on.
            _ => {
                let all = TABLES.map(|resource| self.store.list(&table(resource), None, |_| true).0);
                let [a, b, c, d] = all.map(|objects| objects.into_iter().map(|object| object.value()));
                Policy::compile(a, b, c, d)
            }
        };
        self.report(&compiled);
        Arc::new(compiled.policy)
    }

    fn report(&self, compiled: &Compiled) {
        for skipped in &compiled.skipped {
            tracing::error!(plane = %self.name(), %skipped, "stored RBAC object cannot be read and grants nothing");
        }
    }

    /// The rules that an aggregated ClusterRole is to show, if those in `role` are others.
    pub(crate) fn aggregated_rules(&self, role: &Value) -> Option<Value> {
        role["aggregationRule"].as_object()?;
        let policy = self.policy();
        let rules = policy.cluster_role_rules(role["metadata"]["name"].as_str()?)?;
        let rules = serde_json::to_value(rules).expect("rules always serialise into memory");
        let shown = role["rules"].as_array().map_or(&[][..], Vec::as_slice);
        (shown != rules.as_array().map_or(&[][..], Vec::as_slice)).then_some(rules)
    }
}
