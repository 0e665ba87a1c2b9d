//! The names of a custom resource, and what names must look like.

use serde_json::Value;

use super::{list, text};
use crate::field_error::{FieldError, FieldErrorType};
use crate::registry::definition::Names;

const MAX_LABEL: usize = 63;
const MAX_SUBDOMAIN: usize = 253;

/// Reads `spec.names`; `singular` and `listKind` stand in for themselves when they are missing.
pub(super) fn read(spec: &Value, errors: &mut Vec<FieldError>) -> Names {
    let path = "spec.names";
    let names = &spec["names"];
    let kind = text(&names["kind"]);
    for field in ["plural", "kind"] {
        if text(&names[field]).is_empty() {
            errors.push(FieldError::new(format!("{path}.{field}"), FieldErrorType::Required, ""));
        }
    }
    for field in ["plural", "singular"] {
        if let Some(wrong) = wrong_label(text(&names[field])).filter(|_| !text(&names[field]).is_empty()) {
            errors.push(FieldError::invalid(format!("{path}.{field}"), &names[field], wrong));
        }
    }
    for field in ["kind", "listKind"] {
        let lower = text(&names[field]).to_lowercase();
        if let Some(wrong) = wrong_label(&lower).filter(|_| !lower.is_empty()) {
            let wrong = format!("may have mixed case, but should otherwise match: {wrong}");
            errors.push(FieldError::invalid(format!("{path}.{field}"), &names[field], wrong));
        }
    }
    for field in ["shortNames", "categories"] {
        for (at, name) in list(&names[field]).iter().enumerate() {
            if let Some(wrong) = wrong_label(text(name)) {
                errors.push(FieldError::invalid(format!("{path}.{field}[{at}]"), name, wrong));
            }
        }
    }
    if !kind.is_empty() && names["kind"] == names["listKind"] {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(format!("{path}.listKind"), &names["listKind"], why));
    }

    let or = |given: &Value, otherwise: String| {
        Some(text(given)).filter(|text| !text.is_empty()).map_or(otherwise, str::to_owned)
    };
    let owned = |given: &Value| list(given).iter().map(|name| text(name).to_owned()).collect();
    Names {
        kind: kind.to_owned(),
        list_kind: or(&names["listKind"], format!("{kind}List")),
        plural: text(&names["plural"]).to_owned(),
        singular: or(&names["singular"], kind.to_lowercase()),
        short_names: owned(&names["shortNames"]),
        categories: owned(&names["categories"]),
    }
}

/// What is wrong with a text that has to be a DNS label beginning with a letter.
pub(super) fn wrong_label(name: &str) -> Option<String> {
    let well_formed = name.starts_with(|first: char| first.is_ascii_lowercase()) && is_label(name);
    let mut wrong = Vec::new();
    if name.len() > MAX_LABEL {
        wrong.push(format!("must be no more than {MAX_LABEL} bytes"));
    }
    if !well_formed {
        wrong.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
             alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
             regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    (!wrong.is_empty()).then(|| wrong.join(","))
}

/// What is wrong with a text that has to be a DNS subdomain.
pub(super) fn wrong_subdomain(name: &str) -> Option<String> {
    let mut wrong = Vec::new();
    if name.len() > MAX_SUBDOMAIN {
        wrong.push(format!("must be no more than {MAX_SUBDOMAIN} bytes"));
    }
    if !name.split('.').all(is_label) {
        wrong.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
             validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    (!wrong.is_empty()).then(|| wrong.join(","))
}

/// Lower case letters, digits and dashes, with no dash at either end.
fn is_label(text: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !text.is_empty() && text.chars().all(letters) && !text.starts_with('-') && !text.ends_with('-')
}
