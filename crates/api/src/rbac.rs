//! Rules of access, each with its reason, as tables that `config/` is generated from.
//!
//! A rule is written where the requests are made that it allows; this is only its form. No rule has a wildcard: what a table does not name is
//! not granted.

use k8s_openapi::api::rbac::v1::PolicyRule;

/// What may be done to some resources of one API group, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Resources and parts of resources.
    pub resources: &'static [&'static str],
    /// Only objects of these names; all if there are none.
    pub names: &'static [&'static str],
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// Which request needs it. For people: it becomes a comment.
    pub why: &'static str,
}

impl Rule {
    /// A rule for all objects of some resources.
    pub const fn new(
        group: &'static str,
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self { group, resources, names: &[], verbs, why }
    }

    /// The same rule for objects of these names only.
    #[must_use]
    pub const fn named(mut self, names: &'static [&'static str]) -> Self {
        self.names = names;
        self
    }

    /// As a role has it.
    pub fn to_policy(&self) -> PolicyRule {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        PolicyRule {
            api_groups: Some(owned(&[self.group])),
            resources: Some(owned(self.resources)),
            resource_names: (!self.names.is_empty()).then(|| owned(self.names)),
            verbs: owned(self.verbs),
            ..PolicyRule::default()
        }
    }
}

/// Rules as a role has them.
pub fn policies(rules: &[Rule]) -> Vec<PolicyRule> {
    rules.iter().map(Rule::to_policy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_written_as_a_role_has_it() {
        let rule = Rule::new("", &["secrets"], &["get"], "to read it");
        let all = rule.to_policy();
        assert_eq!((all.api_groups.unwrap(), all.resource_names), (vec![String::new()], None));
        let one = &policies(&[rule.named(&["own"])])[0];
        assert_eq!(one.resource_names.as_deref(), Some(&["own".to_owned()][..]));
        assert_eq!(one.verbs, ["get"]);
    }
}
