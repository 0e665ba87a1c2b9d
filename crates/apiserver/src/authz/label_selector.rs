//! Label selectors in their structured form: `matchLabels` and `matchExpressions`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::json::nullable;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Expression {
    key: String,
    operator: Operator,
    #[serde(default, deserialize_with = "nullable")]
    values: Vec<String>,
}

/// Which labels are picked: all of its requirements must hold, so an empty one picks everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LabelSelector {
    #[serde(deserialize_with = "nullable")]
    match_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    match_expressions: Vec<Expression>,
}

impl LabelSelector {
    pub(super) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|expression| {
                let found = labels.get(&expression.key);
                match expression.operator {
                    Operator::In => found.is_some_and(|value| expression.values.contains(value)),
                    Operator::NotIn => found.is_none_or(|value| !expression.values.contains(value)),
                    Operator::Exists => found.is_some(),
                    Operator::DoesNotExist => found.is_none(),
                }
            })
    }
}
