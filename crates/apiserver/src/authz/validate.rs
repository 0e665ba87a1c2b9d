//! What RBAC objects must satisfy beyond their schema, and what they get when they leave it out.
//!
//! Objects come here with fields of the right JSON types.

use serde_json::{Value, json};

use super::{RBAC, RbacKind};
use crate::field_error::{FieldError, FieldErrorType};
use crate::meta::{NameRule, label_value_problem, qualified_name_problem};

/// Everything that is wrong with an object about to be stored in the place of `old`. Of its
/// metadata nothing is looked at.
pub fn validate(kind: RbacKind, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match kind {
        RbacKind::Role => rules(new, true, &mut errors),
        RbacKind::ClusterRole => {
            rules(new, false, &mut errors);
            aggregation(&new["aggregationRule"], &mut errors);
        }
        RbacKind::RoleBinding => {
            role_ref(&new["roleRef"], &["Role", "ClusterRole"], &mut errors);
            subjects(new, true, &mut errors);
        }
        RbacKind::ClusterRoleBinding => {
            role_ref(&new["roleRef"], &["ClusterRole"], &mut errors);
            subjects(new, false, &mut errors);
        }
    }
    if let Some(old) = old
        && matches!(kind, RbacKind::RoleBinding | RbacKind::ClusterRoleBinding)
        && ["apiGroup", "kind", "name"].iter().any(|field| old["roleRef"][field] != new["roleRef"][field])
    {
        errors.push(FieldError::invalid("roleRef", &new["roleRef"], "cannot change roleRef"));
    }
    errors
}

/// Fills in the API groups that a binding may leave out.
pub fn set_defaults(kind: RbacKind, object: &mut Value) {
    if !matches!(kind, RbacKind::RoleBinding | RbacKind::ClusterRoleBinding) {
        return;
    }
    let fill = |reference: &mut Value| {
        if let Some(fields) = reference.as_object_mut()
            && fields.get("apiGroup").is_none_or(|group| group.is_null() || group == "")
        {
            fields.insert("apiGroup".to_owned(), json!(RBAC));
        }
    };
    if let Some(reference) = object.get_mut("roleRef") {
        fill(reference);
    }
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill(subject);
        }
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn entries<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn required(path: String, detail: &str) -> FieldError {
    FieldError::new(path, FieldErrorType::Required, detail)
}

fn not_supported(path: String, value: &str, supported: &[&str]) -> FieldError {
    let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    let detail = format!("supported values: {}", supported.join(", "));
    FieldError::with_value(path, FieldErrorType::NotSupported, &json!(value), detail)
}

fn rules(role: &Value, namespaced: bool, errors: &mut Vec<FieldError>) {
    for (i, rule) in entries(role, "rules").iter().enumerate() {
        let path = |field: &str| format!("rules[{i}].{field}");
        let has = |field: &str| !entries(rule, field).is_empty();
        if !has("verbs") {
            errors.push(required(path("verbs"), "verbs must contain at least one value"));
        }
        if has("nonResourceURLs") {
            let urls =
                |detail: &str| FieldError::invalid(path("nonResourceURLs"), &rule["nonResourceURLs"], detail);
            if namespaced {
                errors.push(urls("namespaced rules cannot apply to non-resource URLs"));
            }
            if has("apiGroups") || has("resources") || has("resourceNames") {
                errors.push(urls("rules cannot apply to both regular resources and non-resource URLs"));
            }
            continue;
        }
        if !has("apiGroups") {
            errors.push(required(path("apiGroups"), "resource rules must supply at least one api group"));
        }
        if !has("resources") {
            errors.push(required(path("resources"), "resource rules must supply at least one resource"));
        }
    }
}

fn aggregation(rule: &Value, errors: &mut Vec<FieldError>) {
    if rule.is_null() {
        return;
    }
    let path = "aggregationRule.clusterRoleSelectors";
    let selectors = entries(rule, "clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(required(path.to_owned(), detail));
    }
    for (i, selector) in selectors.iter().enumerate() {
        label_selector(&format!("{path}[{i}]"), selector, errors);
    }
}

fn label_selector(path: &str, selector: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        let path = format!("{path}.matchLabels");
        if let Some(problem) = qualified_name_problem(key) {
            errors.push(FieldError::invalid(&path, &json!(key), problem));
        }
        if let Some(problem) = label_value_problem(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(path, value, problem));
        }
    }
    for (i, expression) in entries(selector, "matchExpressions").iter().enumerate() {
        let path = |field: &str| format!("{path}.matchExpressions[{i}].{field}");
        let values = entries(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(required(path("values"), detail));
            }
            "In" | "NotIn" => {}
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::new(path("values"), FieldErrorType::Forbidden, detail));
            }
            "Exists" | "DoesNotExist" => {}
            _ => errors.push(FieldError::invalid(
                path("operator"),
                &expression["operator"],
                "not a valid selector operator",
            )),
        }
        if let Some(problem) = qualified_name_problem(text(expression, "key")) {
            errors.push(FieldError::invalid(path("key"), &expression["key"], problem));
        }
        for (j, value) in values.iter().enumerate() {
            if let Some(problem) = label_value_problem(value.as_str().unwrap_or_default()) {
                errors.push(FieldError::invalid(path(&format!("values[{j}]")), value, problem));
            }
        }
    }
}

fn role_ref(reference: &Value, kinds: &[&str], errors: &mut Vec<FieldError>) {
    let path = |field: &str| format!("roleRef.{field}");
    let (group, kind, name) = (text(reference, "apiGroup"), text(reference, "kind"), text(reference, "name"));
    if group != RBAC {
        errors.push(not_supported(path("apiGroup"), group, &[RBAC]));
    }
    if !kinds.contains(&kind) {
        errors.push(not_supported(path("kind"), kind, kinds));
    }
    if name.is_empty() {
        errors.push(required(path("name"), ""));
    } else if let Some(problem) = NameRule::PathSegment.problem(name) {
        errors.push(FieldError::invalid(path("name"), &reference["name"], problem));
    }
}

fn subjects(binding: &Value, namespaced: bool, errors: &mut Vec<FieldError>) {
    for (i, subject) in entries(binding, "subjects").iter().enumerate() {
        let path = |field: &str| format!("subjects[{i}].{field}");
        let (group, name) = (text(subject, "apiGroup"), text(subject, "name"));
        if name.is_empty() {
            errors.push(required(path("name"), ""));
        }
        match text(subject, "kind") {
            "ServiceAccount" => {
                if !name.is_empty()
                    && let Some(problem) = NameRule::Subdomain.problem(name)
                {
                    errors.push(FieldError::invalid(path("name"), &subject["name"], problem));
                }
                if !group.is_empty() {
                    errors.push(not_supported(path("apiGroup"), group, &[""]));
                }
                // In a namespace, the binding's own is meant.
                if !namespaced && text(subject, "namespace").is_empty() {
                    errors.push(required(path("namespace"), ""));
                }
            }
            "User" | "Group" => {
                if group != RBAC {
                    errors.push(not_supported(path("apiGroup"), group, &[RBAC]));
                }
            }
            kind => {
                errors.push(not_supported(path("kind"), kind, &["ServiceAccount", "User", "Group"]));
            }
        }
    }
}
