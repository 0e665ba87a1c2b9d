//! What a provider may do in its cell: no more than it does.

use compute_api::compute::GROUP;
use compute_api::networking;
use k8s_openapi::api::rbac::v1::PolicyRule;

/// In the cell's own plane, whatever the engine.
pub fn cell() -> Vec<PolicyRule> {
    vec![
        rule(GROUP, &["instances"], &["list", "watch", "patch"]),
        rule(GROUP, &["instances/status"], &["patch"]),
        // Where addresses come from, if the cell has networks.
        rule(networking::GROUP, &["networkcontexts", "subnetclaims", "subnets"], &["list", "watch"]),
        rule("", &["events"], &["create", "get", "patch"]),
    ]
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let all = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(all(resources)),
        verbs: all(verbs),
        ..PolicyRule::default()
    }
}
