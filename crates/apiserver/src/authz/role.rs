//! Roles and cluster roles as the policy keeps them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::json::{Metadata, nullable};
use super::label_selector::LabelSelector;
use super::rule::Rule;

/// A role or cluster role as it is stored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RoleObject {
    pub(super) metadata: Metadata,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) rules: Vec<Rule>,
    #[serde(default)]
    pub(super) aggregation_rule: Option<AggregationRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AggregationRule {
    #[serde(deserialize_with = "nullable")]
    cluster_role_selectors: Vec<LabelSelector>,
}

impl RoleObject {
    pub(super) fn read(value: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(value)
    }
}

/// A cluster role.
#[derive(Debug, Default)]
pub(super) struct ClusterRole {
    pub(super) labels: BTreeMap<String, String>,
    /// Whose rules it is made of, if it has none of its own.
    pub(super) aggregates: Option<Vec<LabelSelector>>,
    /// What it grants. For an aggregated one, as of the last aggregation.
    pub(super) rules: Arc<[Rule]>,
}

impl From<RoleObject> for ClusterRole {
    fn from(object: RoleObject) -> Self {
        let aggregates = object.aggregation_rule.map(|rule| rule.cluster_role_selectors);
        // What an aggregated role says itself has no effect: its rules are those of others.
        let rules = if aggregates.is_some() { Vec::new() } else { object.rules };
        Self { labels: object.metadata.labels, aggregates, rules: rules.into() }
    }
}
