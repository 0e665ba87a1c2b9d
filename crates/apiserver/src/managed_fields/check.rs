//! What an applied configuration must not do: repeat an entry of a list that is merged, or leave out
//! what the entry is told apart by.

use std::collections::BTreeSet;

use serde_json::Value;

use super::path::PathElement;
use super::shape::{NoIdentity, Shape};
use crate::field_error::{FieldError, FieldErrorType};
use crate::schema::ListType;

/// How many errors one answer names: enough to mend a configuration by, few enough for a message.
const MAX_ERRORS: usize = 64;

/// What is wrong with the lists of an applied configuration, up to a bounded number of errors.
pub(super) fn check(applied: &Value, shape: Shape<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(applied, shape, &mut String::new(), &mut errors);
    errors
}

fn walk(value: &Value, shape: Shape<'_>, path: &mut String, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_ERRORS {
        return;
    }
    let end = path.len();
    match value {
        Value::Object(map) if !shape.is_atomic_map() => {
            for (name, value) in map {
                if value.is_object() || value.is_array() {
                    let (field, declared) = shape.field(name);
                    push_field(path, name, declared);
                    walk(value, field, path, errors);
                    path.truncate(end);
                }
            }
        }
        Value::Array(items) if !matches!(shape.list_type(), ListType::Atomic) => {
            let mut seen = BTreeSet::new();
            for (at, item) in items.iter().enumerate() {
                if errors.len() >= MAX_ERRORS {
                    return;
                }
                path.push_str(&format!("[{at}]"));
                match shape.identity(item) {
                    Err(problem) => errors.push(describe(problem, path, item)),
                    Ok(identity) if seen.contains(&identity) => errors.push(duplicate(&identity, path)),
                    Ok(identity) => {
                        seen.insert(identity);
                        walk(item, shape.items(), path, errors);
                    }
                }
                path.truncate(end);
            }
        }
        _ => {}
    }
}

fn push_field(path: &mut String, name: &str, declared: bool) {
    if path.is_empty() {
        path.push_str(name);
    } else if declared {
        path.push('.');
        path.push_str(name);
    } else {
        path.push('[');
        path.push_str(name);
        path.push(']');
    }
}

fn duplicate(identity: &PathElement, path: &str) -> FieldError {
    let mut error = FieldError::new(path, FieldErrorType::Duplicate, "");
    if let PathElement::Key(json) | PathElement::Value(json) = identity {
        error.bad_value = Some(json.clone());
    }
    error
}

fn describe(problem: NoIdentity, path: &str, item: &Value) -> FieldError {
    match problem {
        NoIdentity::MissingKey(key) => FieldError::new(
            format!("{path}.{key}"),
            FieldErrorType::Required,
            "an entry of this list is told apart by this field, which has no default",
        ),
        NoIdentity::NotAnObject => FieldError::with_value(
            path,
            FieldErrorType::TypeInvalid,
            item,
            "an entry of a list that is merged by key must be an object",
        ),
        NoIdentity::NotAScalar => FieldError::with_value(
            path,
            FieldErrorType::TypeInvalid,
            item,
            "an entry of a set must be a scalar",
        ),
    }
}
