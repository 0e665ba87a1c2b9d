//! Aggregated ClusterRoles show the rules that they have in effect. Authorization does not wait for that: it works the rules out
//! itself.

use serde_json::json;

use super::settled;
use crate::authz::RBAC;
use crate::error::Result;
use crate::store::GroupResource;
use crate::verbs::{self, Patch, Target, WriteOptions};

/// Where ClusterRoles are.
pub(super) fn table() -> GroupResource {
    GroupResource::new(RBAC, "clusterroles")
}

/// Writes the rules of all aggregated roles that show others.
pub(super) async fn aggregate(target: &Target) -> Result<()> {
    let (roles, _) = target.plane.store.list(&table(), None, |_| true);
    for role in roles {
        let Some(rules) = target.plane.aggregated_rules(&role.value()) else { continue };
        // On condition that the role is the one that was looked at: whoever changes it has told the queue.
        let version = role.revision.to_string();
        let patch = json!({ "metadata": { "resourceVersion": version }, "rules": rules });
        let options = WriteOptions::by("clusterrole-aggregation-controller");
        settled(verbs::patch(target, &role.meta.key, Patch::Merge(patch), &options).await)?;
    }
    Ok(())
}
