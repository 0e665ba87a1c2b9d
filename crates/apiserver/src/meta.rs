//! The rules of object metadata that hold for every kind: names, labels, annotations, finalizers, owners.

use serde_json::Value;

use crate::field_error::{FieldError, FieldErrorType};

/// How the names of a kind must look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 subdomain, at most 253 characters (most kinds).
    #[default]
    Subdomain,
    /// RFC 1123 label, at most 63 characters.
    Label,
    /// RFC 1035 label: starts with a letter.
    Label1035,
    /// Anything that fits into a path segment (RBAC kinds).
    PathSegment,
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// All annotations of an object together, keys and values.
const MAX_ANNOTATIONS: usize = 256 * 1024;

fn is_label(text: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    match text.as_bytes() {
        [] => false,
        [one] => edge(*one),
        [first, middle @ .., last] => {
            edge(*first) && edge(*last) && middle.iter().all(|b| edge(*b) || *b == b'-')
        }
    }
}

/// Whether `text` is an RFC 1123 subdomain, but for its length.
pub fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

impl NameRule {
    /// What is wrong with `name`, if anything.
    pub fn problem(self, name: &str) -> Option<String> {
        let too_long =
            |limit: usize| (name.len() > limit).then(|| format!("must be no more than {limit} characters"));
        match self {
            Self::Subdomain => too_long(253).or_else(|| (!is_subdomain(name)).then(|| SUBDOMAIN.to_owned())),
            Self::Label => too_long(63).or_else(|| (!is_label(name)).then(|| LABEL.to_owned())),
            Self::Label1035 => too_long(63).or_else(|| {
                let good = is_label(name) && name.as_bytes()[0].is_ascii_lowercase();
                (!good).then(|| LABEL_1035.to_owned())
            }),
            Self::PathSegment => match name {
                "." | ".." => Some(format!("may not be '{name}'")),
                name => {
                    ['/', '%'].iter().find(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'"))
                }
            },
        }
    }
}

fn is_qualified_part(text: &str) -> bool {
    let edge = |b: u8| b.is_ascii_alphanumeric();
    let inner = |b: &u8| edge(*b) || matches!(b, b'-' | b'_' | b'.');
    match text.as_bytes() {
        [] => false,
        [one] => edge(*one),
        [first, middle @ .., last] => edge(*first) && edge(*last) && middle.iter().all(inner),
    }
}

/// What is wrong with a qualified name (`example.com/name` or `name`), if anything.
pub fn qualified_name_problem(text: &str) -> Option<String> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            return Some("prefix part must be non-empty".to_owned());
        }
        if prefix.len() > 253 || !is_subdomain(prefix) {
            return Some(format!("prefix part {SUBDOMAIN}"));
        }
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 characters".to_owned());
    }
    (!is_qualified_part(name)).then(|| QUALIFIED.to_owned())
}

/// What is wrong with a label's value, if anything.
pub fn label_value_problem(text: &str) -> Option<String> {
    if text.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    (!text.is_empty() && !is_qualified_part(text)).then(|| LABEL_VALUE.to_owned())
}

/// Everything that is wrong with the metadata of an object about to be stored. Its fields have the right JSON types.
pub fn validate(metadata: &Value, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = metadata["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::new("metadata.name", FieldErrorType::Required, detail));
    } else if let Some(problem) = rule.problem(name) {
        errors.push(FieldError::invalid("metadata.name", &metadata["name"], problem));
    }
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        if let Some(problem) = qualified_name_problem(key) {
            errors.push(FieldError::invalid("metadata.labels", &Value::String(key.clone()), problem));
        }
        if let Some(problem) = label_value_problem(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid("metadata.labels", value, problem));
        }
    }
    let mut annotations = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        annotations += key.len() + value.as_str().map_or(0, str::len);
        if let Some(problem) = qualified_name_problem(&key.to_lowercase()) {
            errors.push(FieldError::invalid("metadata.annotations", &Value::String(key.clone()), problem));
        }
    }
    if annotations > MAX_ANNOTATIONS {
        let detail = format!("may not be more than {MAX_ANNOTATIONS} bytes");
        errors.push(FieldError::new("metadata.annotations", FieldErrorType::TooLong, detail));
    }
    for (i, finalizer) in metadata["finalizers"].as_array().into_iter().flatten().enumerate() {
        let text = finalizer.as_str().unwrap_or_default();
        let path = format!("metadata.finalizers[{i}]");
        if let Some(problem) = qualified_name_problem(text) {
            errors.push(FieldError::invalid(path, finalizer, problem));
        } else if !text.contains('/') && !matches!(text, FOREGROUND | ORPHAN | "kubernetes") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(path, finalizer, detail));
        }
    }
    validate_owners(&metadata["ownerReferences"], &mut errors);
    errors
}

fn validate_owners(references: &Value, errors: &mut Vec<FieldError>) {
    let mut controller: Option<String> = None;
    for (i, reference) in references.as_array().into_iter().flatten().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if reference[field].as_str().unwrap_or_default().is_empty() {
                let path = format!("metadata.ownerReferences[{i}].{field}");
                errors.push(FieldError::invalid(
                    path,
                    &Value::String(String::new()),
                    format!("{field} must not be empty"),
                ));
            }
        }
        if reference["controller"].as_bool().unwrap_or(false) {
            let this = format!(
                "{}/{}",
                reference["kind"].as_str().unwrap_or_default(),
                reference["name"].as_str().unwrap_or_default()
            );
            if let Some(other) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {other} and {this}"
                );
                errors.push(FieldError::invalid("metadata.ownerReferences", references, detail));
            }
            controller = Some(this);
        }
    }
}

/// Finalizer of an object whose dependents go first.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an object whose dependents are set free.
pub const ORPHAN: &str = "orphan";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names() {
        for (rule, good, bad) in [
            (NameRule::Subdomain, vec!["a", "a.b-c.d", "0a"], vec!["", "A", "a.", "-a", "a..b", "a_b"]),
            (NameRule::Label, vec!["a", "0-a"], vec!["a.b", "a-", ""]),
            (NameRule::Label1035, vec!["a-0"], vec!["0a", ""]),
            (NameRule::PathSegment, vec!["system:x", "A_b"], vec![".", "..", "a/b", "a%b"]),
        ] {
            for name in good {
                assert_eq!(rule.problem(name), None, "{name}");
            }
            for name in bad {
                assert!(rule.problem(name).is_some(), "{name:?} under {rule:?}");
            }
        }
        assert!(NameRule::Label.problem(&"a".repeat(64)).is_some());
    }

    #[test]
    fn metadata_faults_are_all_reported() {
        let metadata = json!({
            "name": "Bad Name", "labels": {"-x": "ok", "y": "?"}, "annotations": {"a b": ""},
            "finalizers": ["plain", "good.io/x"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true},
                {"apiVersion": "v1", "kind": "B", "name": "", "uid": "2", "controller": true},
            ],
        });
        let errors = validate(&metadata, NameRule::Subdomain);
        let paths: Vec<&str> = errors.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "metadata.name",
                "metadata.labels",
                "metadata.labels",
                "metadata.annotations",
                "metadata.finalizers[0]",
                "metadata.ownerReferences[1].name",
                "metadata.ownerReferences"
            ]
        );
    }
}
