//! CustomResourceDefinitions: checked in full, completed, and compiled into [`Definition`]s.
//!
//! [`compile`] is a pure function of the CRD and reports everything that is wrong at once. What it makes
//! depends on `spec` alone, so planes that hold the same CRD can share it by its [`fingerprint`]; what a
//! CRD's metadata must satisfy is checked by [`validate_metadata`], which is cheap and has to be asked for
//! each object.

mod fingerprint;
mod names;
mod status;
mod version;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::definition::{Definition, GroupVersion};
use crate::field_error::{FieldError, FieldErrorType};

pub use fingerprint::fingerprint;
pub use status::{accepted_names_status, defaulted};

/// Where a kind of a group that belongs to Kubernetes says that it was approved.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// What a CRD defines.
#[derive(Debug)]
pub struct Compiled {
    /// One definition per served version.
    pub served: Vec<Arc<Definition>>,
    /// The version in which objects are stored, served or not.
    pub storage: Arc<Definition>,
}

/// Compiles a CRD.
///
/// # Errors
/// Everything that is wrong with it, by field.
pub fn compile(crd: &Value) -> Result<Compiled, Vec<FieldError>> {
    let mut errors = validate_metadata(crd);
    let spec = &crd["spec"];
    let names = names::read(spec, &mut errors);
    let group = group(spec, &mut errors);
    let namespaced = scope(spec, &mut errors);
    conversion(spec, &mut errors);
    if spec["preserveUnknownFields"] == Value::Bool(true) {
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &Value::Bool(true), "must be false"));
    }

    let versions = versions(spec, &mut errors);
    let mut served = Vec::new();
    let mut storage = None;
    for (at, version) in versions.iter().enumerate() {
        let gv = GroupVersion { group: group.to_owned(), version: text(&version["name"]).to_owned() };
        let path = format!("spec.versions[{at}]");
        let definition = version::compile(version, &path, gv, &names, namespaced, &mut errors);
        let Some(definition) = definition.map(Arc::new) else { continue };
        if version["storage"] == Value::Bool(true) {
            storage = Some(definition.clone());
        }
        if version["served"] == Value::Bool(true) {
            served.push(definition);
        }
    }
    match storage {
        Some(storage) if errors.is_empty() => Ok(Compiled { served, storage }),
        _ => Err(errors),
    }
}

/// Checks what a CRD's own metadata must satisfy: its name, and the approval of groups that belong to
/// Kubernetes.
pub fn validate_metadata(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (name, spec) = (&crd["metadata"]["name"], &crd["spec"]);
    let group = text(&spec["group"]);
    if text(name) != format!("{}.{group}", text(&spec["names"]["plural"])) {
        errors.push(FieldError::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }

    let protected = ["k8s.io", "kubernetes.io"]
        .into_iter()
        .any(|owner| group == owner || group.strip_suffix(owner).is_some_and(|prefix| prefix.ends_with('.')));
    if protected {
        let approval = &crd["metadata"]["annotations"][APPROVAL];
        let path = format!("metadata.annotations[{APPROVAL}]");
        match text(approval) {
            "" => errors.push(FieldError::new(
                path,
                FieldErrorType::Required,
                "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
                    https://github.com/kubernetes/enhancements/pull/1111",
            )),
            approved if approved.starts_with("unapproved") || is_url(approved) => {}
            _ => errors.push(FieldError::invalid(
                path,
                approval,
                "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either \
                    a URL or a reason starting with \"unapproved\", see \
                    https://github.com/kubernetes/enhancements/pull/1111",
            )),
        }
    }
    errors
}

/// The name of the version in which objects are stored; empty when there is none, which [`compile`] refuses.
fn storage_version(crd: &Value) -> &str {
    let storage =
        list(&crd["spec"]["versions"]).iter().find(|version| version["storage"] == Value::Bool(true));
    storage.map_or("", |version| text(&version["name"]))
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, host)| !scheme.is_empty() && !host.is_empty())
}

fn group<'a>(spec: &'a Value, errors: &mut Vec<FieldError>) -> &'a str {
    let group = text(&spec["group"]);
    if group.is_empty() {
        errors.push(FieldError::new("spec.group", FieldErrorType::Required, ""));
    } else if let Some(wrong) = names::wrong_subdomain(group) {
        errors.push(FieldError::invalid("spec.group", &spec["group"], wrong));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(
            "spec.group",
            &spec["group"],
            "should be a domain with at least one dot",
        ));
    }
    group
}

fn scope(spec: &Value, errors: &mut Vec<FieldError>) -> bool {
    let scope = &spec["scope"];
    match text(scope) {
        "Namespaced" => return true,
        "Cluster" => {}
        "" => errors.push(FieldError::new("spec.scope", FieldErrorType::Required, "")),
        _ => errors.push(FieldError::with_value(
            "spec.scope",
            FieldErrorType::NotSupported,
            scope,
            "supported values: \"Cluster\", \"Namespaced\"",
        )),
    }
    false
}

fn conversion(spec: &Value, errors: &mut Vec<FieldError>) {
    let conversion = &spec["conversion"];
    if conversion.is_null() {
        return;
    }
    let strategy = &conversion["strategy"];
    let (path, class) = ("spec.conversion.strategy", FieldErrorType::NotSupported);
    match text(strategy) {
        "None" => {
            if !conversion["webhook"].is_null() {
                let why = "should not be set when strategy is not set to Webhook";
                errors.push(FieldError::new("spec.conversion.webhook", FieldErrorType::Forbidden, why));
            }
        }
        "" => errors.push(FieldError::new(path, FieldErrorType::Required, "")),
        "Webhook" => {
            let why = "conversion webhooks are not supported by this server: supported values: \"None\"";
            errors.push(FieldError::with_value(path, class, strategy, why));
        }
        _ => errors.push(FieldError::with_value(path, class, strategy, "supported values: \"None\"")),
    }
}

/// The versions, after checks of the list as a whole.
fn versions<'a>(spec: &'a Value, errors: &mut Vec<FieldError>) -> &'a [Value] {
    let path = "spec.versions";
    let versions = list(&spec["versions"]);
    if versions.is_empty() {
        errors.push(FieldError::new(path, FieldErrorType::Required, "must have at least one version"));
        return versions;
    }
    for (at, version) in versions.iter().enumerate() {
        let name = &version["name"];
        if let Some(wrong) = names::wrong_label(text(name)) {
            errors.push(FieldError::invalid(format!("{path}[{at}].name"), name, wrong));
        }
    }
    let names: BTreeSet<&str> = versions.iter().map(|version| text(&version["name"])).collect();
    if names.len() < versions.len() {
        errors.push(FieldError::invalid(path, &spec["versions"], "must contain unique version names"));
    }
    if versions.iter().filter(|version| version["storage"] == Value::Bool(true)).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(path, &spec["versions"], why));
    }
    versions
}

/// A text; empty when the value is none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A list; empty when the value is none.
fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
