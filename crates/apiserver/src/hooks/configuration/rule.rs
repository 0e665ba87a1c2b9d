//! One entry of `rules`.

use serde::Deserialize;
use serde_json::json;

use super::choose;
use crate::field_error::{FieldError, FieldErrorType};
use crate::hooks::request::Operation;
use crate::hooks::rules::{Rule, Scope};

/// A rule as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    operations: Option<Vec<String>>,
    api_groups: Option<Vec<String>>,
    api_versions: Option<Vec<String>>,
    resources: Option<Vec<String>>,
    scope: Option<String>,
}

impl Spec {
    /// Compiles a rule; what is wrong with it is added to `errors`.
    pub(super) fn compile(self, path: &str, errors: &mut Vec<FieldError>) -> Rule {
        let at = |field: &str| format!("{path}.{field}");
        let operations = compile_operations(&self.operations.unwrap_or_default(), &at("operations"), errors);
        let api_groups = self.api_groups.unwrap_or_default();
        check_list(&api_groups, &at("apiGroups"), "API groups", errors);
        let api_versions = self.api_versions.unwrap_or_default();
        check_list(&api_versions, &at("apiVersions"), "API versions", errors);
        for (i, _) in api_versions.iter().enumerate().filter(|(_, version)| version.is_empty()) {
            errors.push(FieldError::new(format!("{path}.apiVersions[{i}]"), FieldErrorType::Required, ""));
        }
        let resources = self.resources.unwrap_or_default();
        check_resources(&resources, &at("resources"), errors);
        let scopes = [("*", Scope::All), ("Cluster", Scope::Cluster), ("Namespaced", Scope::Namespaced)];
        let scope = choose(self.scope, &at("scope"), &scopes, errors).unwrap_or_default();
        Rule { operations, api_groups, api_versions, resources, scope }
    }
}

fn compile_operations(given: &[String], path: &str, errors: &mut Vec<FieldError>) -> Vec<Operation> {
    check_list(given, path, "operations", errors);
    let mut operations = Vec::new();
    for (i, name) in given.iter().enumerate() {
        match Operation::ALL.into_iter().find(|operation| operation.name() == name) {
            Some(operation) => operations.push(operation),
            None if name == "*" => operations.extend(Operation::ALL),
            None => {
                let detail = r#"supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE""#;
                let at = format!("{path}[{i}]");
                errors.push(FieldError::with_value(at, FieldErrorType::NotSupported, &json!(name), detail));
            }
        }
    }
    operations
}

/// A list must have entries, and `*` stands alone.
fn check_list(list: &[String], path: &str, what: &str, errors: &mut Vec<FieldError>) {
    if list.is_empty() {
        errors.push(FieldError::new(path, FieldErrorType::Required, ""));
    } else if list.len() > 1 && list.iter().any(|entry| entry == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(path, &json!(list), detail));
    }
}

/// Entries that others already cover are refused: they show that the author means something else.
fn check_resources(resources: &[String], path: &str, errors: &mut Vec<FieldError>) {
    if resources.is_empty() {
        errors.push(FieldError::new(path, FieldErrorType::Required, ""));
    }
    for (i, entry) in resources.iter().enumerate() {
        let at = format!("{path}[{i}]");
        if entry.is_empty() {
            errors.push(FieldError::new(at, FieldErrorType::Required, ""));
            continue;
        }
        let Some((resource, part)) = entry.split_once('/') else { continue };
        for wider in [format!("{resource}/*"), format!("*/{part}")] {
            if resources[..i].contains(&wider) {
                let detail = format!("if '{wider}' is present, must not specify {entry}");
                errors.push(FieldError::invalid(&at, &json!(entry), detail));
            }
        }
    }
    let has = |wanted: &str| resources.iter().any(|entry| entry == wanted);
    if resources.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, &json!(resources), detail));
    }
    if has("*") && resources.iter().any(|entry| entry != "*" && !entry.contains('/')) {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, &json!(resources), detail));
    }
}
