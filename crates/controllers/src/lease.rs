//! What it takes to run for a Lease.

use k8s_openapi::api::rbac::v1::PolicyRule;

/// To run for the Lease of this name, to renew it and to give it up, in the namespace where it is: no other Lease, and no list.
pub(crate) fn rules(name: &str) -> Vec<PolicyRule> {
    let rule = |verbs: &[&str], names: Option<Vec<String>>| PolicyRule {
        api_groups: Some(vec!["coordination.k8s.io".to_owned()]),
        resources: Some(vec!["leases".to_owned()]),
        resource_names: names,
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    // What is created has no name yet, as far as a server's rules can tell.
    vec![rule(&["create"], None), rule(&["get", "update"], Some(vec![name.to_owned()]))]
}
