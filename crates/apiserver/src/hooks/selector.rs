//! Label selectors as configurations write them: `matchLabels` and `matchExpressions`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::field_error::{FieldError, FieldErrorType};
use crate::meta;

/// A selector as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    match_labels: Option<BTreeMap<String, String>>,
    match_expressions: Option<Vec<RequirementSpec>>,
}

#[derive(Debug, Deserialize)]
struct RequirementSpec {
    key: Option<String>,
    operator: Option<String>,
    values: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

/// A compiled selector: all requirements must hold; an empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selector(Vec<(String, Test)>);

impl Selector {
    /// Compiles a selector; what is wrong with it is added to `errors`.
    pub(super) fn compile(spec: Option<Spec>, path: &str, errors: &mut Vec<FieldError>) -> Self {
        let spec = spec.unwrap_or_default();
        let mut requirements = Vec::new();
        let labels = format!("{path}.matchLabels");
        for (key, value) in spec.match_labels.into_iter().flatten() {
            check_key(&key, &labels, errors);
            check_value(&value, &labels, errors);
            requirements.push((key, Test::In(vec![value])));
        }
        for (i, requirement) in spec.match_expressions.into_iter().flatten().enumerate() {
            requirements.extend(compile_one(requirement, &format!("{path}.matchExpressions[{i}]"), errors));
        }
        Self(requirements)
    }

    /// Whether it matches everything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels, looked up by key, are picked.
    pub(super) fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|(key, test)| {
            let found = label(key);
            let among = |values: &[String]| found.is_some_and(|found| values.iter().any(|v| v == found));
            match test {
                Test::In(values) => among(values),
                Test::NotIn(values) => !among(values),
                Test::Exists => found.is_some(),
                Test::Absent => found.is_none(),
            }
        })
    }

    /// Whether the labels of an object are picked.
    pub(super) fn matches_object(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        object["metadata"].is_object() && self.matches(|key| labels.get(key).and_then(Value::as_str))
    }
}

fn compile_one(spec: RequirementSpec, path: &str, errors: &mut Vec<FieldError>) -> Option<(String, Test)> {
    let key = spec.key.unwrap_or_default();
    let values = spec.values.unwrap_or_default();
    let operator = spec.operator.unwrap_or_default();
    let at_values = format!("{path}.values");
    let test = match operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::new(&at_values, FieldErrorType::Required, detail));
            None
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::new(&at_values, FieldErrorType::Forbidden, detail));
            None
        }
        "In" => Some(Test::In(values.clone())),
        "NotIn" => Some(Test::NotIn(values.clone())),
        "Exists" => Some(Test::Exists),
        "DoesNotExist" => Some(Test::Absent),
        _ => {
            let at = format!("{path}.operator");
            errors.push(FieldError::invalid(at, &json!(operator), "not a valid selector operator"));
            None
        }
    };
    check_key(&key, &format!("{path}.key"), errors);
    for (i, value) in values.iter().enumerate() {
        check_value(value, &format!("{at_values}[{i}]"), errors);
    }
    test.map(|test| (key, test))
}

fn check_key(key: &str, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(problem) = meta::qualified_name_problem(key) {
        errors.push(FieldError::invalid(path, &json!(key), problem));
    }
}

fn check_value(value: &str, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(problem) = meta::label_value_problem(value) {
        errors.push(FieldError::invalid(path, &json!(value), problem));
    }
}
