//! What is wrong with a field, and what a refused client is told, in the words that Kubernetes has for it.

use std::fmt;

use serde_json::{Value, json};

use super::path::Path;

/// The most faults that one refusal lists. More would be of no use to anybody, and an object can have a hundred thousand.
const MAX_CAUSES: usize = 500;
/// The longest value that is shown, in bytes.
const MAX_SHOWN: usize = 256;

/// The class of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Something is missing.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value stands twice where it may stand once.
    Duplicate,
    /// The value is none of those that there are.
    NotSupported,
    /// The field may not be set, or not by this caller.
    Forbidden,
    /// The text is too long.
    TooLong,
    /// What the value names is not there.
    NotFound,
}

impl Reason {
    /// The `reason` of a cause.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::NotFound => "FieldValueNotFound",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid => "Invalid value",
            Self::Duplicate => "Duplicate value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::NotFound => "Not found",
        }
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Where: `spec.template.spec.runtime.sandbox.containers[1].name`.
    pub path: String,
    /// What class of fault.
    pub reason: Reason,
    /// The bad value, where it helps to see it and cannot be a secret.
    pub value: Option<Value>,
    /// What would be right.
    pub detail: String,
}

impl FieldError {
    /// The message without the path, as it stands in a cause.
    pub fn message(&self) -> String {
        let mut text = self.reason.words().to_owned();
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(&shown(value));
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message())
    }
}

/// A scalar in full up to a limit, anything else by its type.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "\"object\"".to_owned(),
        Value::Array(_) => "\"array\"".to_owned(),
        scalar => {
            let mut text = scalar.to_string();
            if text.len() > MAX_SHOWN {
                text.truncate(text.floor_char_boundary(MAX_SHOWN));
                text.push('…');
            }
            text
        }
    }
}

/// Faults as they are found.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<FieldError>);

impl Errors {
    fn add(&mut self, path: &Path, reason: Reason, value: Option<Value>, detail: impl Into<String>) {
        self.0.push(FieldError { path: path.to_string(), reason, value, detail: detail.into() });
    }

    pub(super) fn required(&mut self, path: &Path, detail: impl Into<String>) {
        self.add(path, Reason::Required, None, detail);
    }

    pub(super) fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl Into<String>) {
        self.add(path, Reason::Invalid, Some(value.into()), detail);
    }

    /// As [`invalid`](Self::invalid), for a value that must not be shown.
    pub(super) fn invalid_unseen(&mut self, path: &Path, detail: impl Into<String>) {
        self.add(path, Reason::Invalid, None, detail);
    }

    pub(super) fn duplicate(&mut self, path: &Path, value: impl Into<Value>, detail: impl Into<String>) {
        self.add(path, Reason::Duplicate, Some(value.into()), detail);
    }

    pub(super) fn unsupported(&mut self, path: &Path, value: impl Into<Value>, supported: &[&str]) {
        let supported: Vec<_> = supported.iter().map(|one| format!("{one:?}")).collect();
        self.not_offered(path, value, format!("supported values: {}", supported.join(", ")));
    }

    /// As [`unsupported`](Self::unsupported), in other words.
    pub(super) fn not_offered(&mut self, path: &Path, value: impl Into<Value>, detail: impl Into<String>) {
        self.add(path, Reason::NotSupported, Some(value.into()), detail);
    }

    pub(super) fn forbidden(&mut self, path: &Path, detail: impl Into<String>) {
        self.add(path, Reason::Forbidden, None, detail);
    }

    pub(super) fn too_long(&mut self, path: &Path, most: usize) {
        self.add(path, Reason::TooLong, None, format!("may not be more than {most} characters"));
    }

    pub(super) fn not_found(&mut self, path: &Path, value: impl Into<Value>, detail: impl Into<String>) {
        self.add(path, Reason::NotFound, Some(value.into()), detail);
    }

    pub(super) fn into_list(self) -> Vec<FieldError> {
        self.0
    }
}

/// Why a write is refused, as a `Status` tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason.
    pub reason: &'static str,
    /// In words.
    pub message: String,
    /// The `details` of the status: what it is about, and the causes.
    pub details: Value,
}

impl Refusal {
    /// The object breaks rules of its kind.
    pub(super) fn invalid(kind: &str, group: &str, name: &str, errors: &[FieldError]) -> Self {
        let listed = &errors[..errors.len().min(MAX_CAUSES)];
        let mut words: Vec<String> = listed.iter().map(ToString::to_string).collect();
        if errors.len() > listed.len() {
            words.push(format!("and {} more", errors.len() - listed.len()));
        }
        let words = match words.as_slice() {
            [only] => only.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes: Vec<_> = listed
            .iter()
            .map(|error| json!({ "reason": error.reason.as_str(), "message": error.message(), "field": error.path }))
            .collect();
        Self {
            code: 422,
            reason: "Invalid",
            message: format!("{kind}.{group} {name:?} is invalid: {words}"),
            details: json!({ "name": name, "group": group, "kind": kind, "causes": causes }),
        }
    }

    /// The caller may not do it.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        Self {
            code: 403,
            reason: "Forbidden",
            message: format!("{resource}.{group} {name:?} is forbidden: {why}"),
            details: json!({ "name": name, "group": group, "kind": resource }),
        }
    }

    /// The request itself makes no sense.
    pub fn bad_request(why: impl Into<String>) -> Self {
        Self { code: 400, reason: "BadRequest", message: why.into(), details: json!({}) }
    }

    /// It could not be judged. The client may try again.
    pub fn unanswered(why: &str) -> Self {
        let message = format!("{why}; try again");
        Self {
            code: 500,
            reason: "InternalError",
            details: json!({ "causes": [{ "message": message }] }),
            message: format!("Internal error occurred: {message}"),
        }
    }
}
