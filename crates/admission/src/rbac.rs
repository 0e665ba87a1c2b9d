//! What admission may do in a project's plane: look, and ask about access.

use compute_api::networking;
use k8s_openapi::api::rbac::v1::PolicyRule;

/// In each project's plane.
pub fn project() -> Vec<PolicyRule> {
    vec![
        rule(networking::GROUP, "networks", "get"),
        rule(networking::GROUP, "locationbindings", "list"),
        rule("authorization.k8s.io", "subjectaccessreviews", "create"),
    ]
}

fn rule(group: &str, resource: &str, verb: &str) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: vec![verb.to_owned()],
        ..PolicyRule::default()
    }
}
