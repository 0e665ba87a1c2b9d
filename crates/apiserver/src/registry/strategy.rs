//! What is special about the built-in kinds: their defaults, and rules that a schema cannot say.

mod network;
mod pod;
mod webhooks;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::definition::Definition;
use super::{APIEXTENSIONS, Registry, crd, events};
use crate::authz::{self, RBAC, RbacKind, Refusal};
use crate::error::{ApiError, Result, Subject};
use crate::field_error::{FieldError, FieldErrorType};
use crate::hooks::{Configuration, ConfigurationKind};
use crate::meta::NameRule;
use crate::store::GroupResource;
use crate::verbs::Target;

/// All values of a ConfigMap or Secret together.
const MAX_DATA: usize = 1 << 20;

/// The built-in kinds that have rules of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Namespace,
    ConfigMap,
    Secret,
    Event,
    Pod,
    Service,
    Lease,
    Crd,
    Rbac(RbacKind),
    Webhooks(ConfigurationKind),
    Other,
}

fn kind(table: &GroupResource) -> Kind {
    match (table.group.as_str(), table.resource.as_str()) {
        ("", "namespaces") => Kind::Namespace,
        ("", "configmaps") => Kind::ConfigMap,
        ("", "secrets") => Kind::Secret,
        ("", "events") => Kind::Event,
        ("", "pods") => Kind::Pod,
        ("", "services") => Kind::Service,
        ("coordination.k8s.io", "leases") => Kind::Lease,
        (APIEXTENSIONS, "customresourcedefinitions") => Kind::Crd,
        (RBAC, resource) => RbacKind::of(RBAC, resource).map_or(Kind::Other, Kind::Rbac),
        _ => ConfigurationKind::of(table).map_or(Kind::Other, Kind::Webhooks),
    }
}

/// How names of a kind must look.
pub(crate) fn name_rule(def: &Definition) -> NameRule {
    match (def.gv.group.as_str(), def.names.plural.as_str()) {
        ("", "namespaces") => NameRule::Label,
        ("", "services") => NameRule::Label1035,
        ("rbac.authorization.k8s.io", _) => NameRule::PathSegment,
        _ => NameRule::Subdomain,
    }
}

/// Whether an update may leave out the resource version it was decided from. Kinds by which clients agree among
/// each other do not allow that.
pub(crate) fn allows_unconditional_update(target: &Target) -> bool {
    let counts = !matches!(kind(&target.resource.table), Kind::Lease | Kind::Crd | Kind::Webhooks(_));
    target.resource.def.built_in && counts && target.resource.table.resource != "serviceaccounts"
}

/// Whether a write to `status` takes labels and annotations along.
pub(crate) fn status_carries_metadata(target: &Target) -> bool {
    target.resource.def.built_in && !target.resource.is_crd()
}

/// Whether objects of this kind count their desired states.
pub(crate) fn has_generation(target: &Target) -> bool {
    let counts = matches!(kind(&target.resource.table), Kind::Crd | Kind::Pod | Kind::Webhooks(_));
    !target.resource.def.built_in || counts
}

/// Whether anything but metadata and (if it is kept apart) status differs.
pub(crate) fn desired_state_differs(target: &Target, before: &Value, after: &Value) -> bool {
    let status_apart = target.resource.def.status;
    let counts = |(key, _): &(&String, &Value)| match key.as_str() {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !status_apart,
        _ => true,
    };
    match (before.as_object(), after.as_object()) {
        (Some(before), Some(after)) => !before.iter().filter(counts).eq(after.iter().filter(counts)),
        _ => true,
    }
}

/// Defaults and status of a new object.
pub(crate) fn before_create(target: &Target, object: &mut Value, now: &str) {
    let def = &target.resource.def;
    if def.status && !(def.built_in && def.names.kind == "Node") {
        object.as_object_mut().map(|object| object.remove("status"));
    }
    match kind(&target.resource.table) {
        Kind::Namespace => {
            object["spec"] = json!({ "finalizers": ["kubernetes"] });
            object["status"] = json!({ "phase": "Active" });
            label_with_name(object);
        }
        Kind::Secret => merge_string_data(object),
        Kind::Pod => pod::defaults(object),
        Kind::Service => network::service_defaults(target, object),
        Kind::Crd => {
            crd::defaulted(object);
            object["status"] = crd::accepted_names_status(object, now);
        }
        Kind::Rbac(kind) => authz::set_defaults(kind, object),
        Kind::Webhooks(kind) => webhooks::defaults(kind, object),
        Kind::ConfigMap | Kind::Event | Kind::Lease | Kind::Other => {}
    }
}

/// What an update of the main resource brings along.
pub(crate) fn before_update(target: &Target, before: &Value, object: &mut Value, now: &str) {
    match kind(&target.resource.table) {
        Kind::Namespace => {
            object["spec"] = before["spec"].clone();
            label_with_name(object);
        }
        Kind::Secret => {
            merge_string_data(object);
            if object["type"].is_null() {
                object["type"] = before["type"].clone();
            }
        }
        Kind::Pod => pod::defaults(object),
        Kind::Service => network::service_update(before, object),
        Kind::Crd => {
            crd::defaulted(object);
            if object["spec"] != before["spec"] {
                let mut status = crd::accepted_names_status(object, now);
                keep_stored_versions(before, &mut status);
                object["status"] = status;
            }
        }
        Kind::Rbac(kind) => authz::set_defaults(kind, object),
        Kind::Webhooks(kind) => webhooks::defaults(kind, object),
        Kind::ConfigMap | Kind::Event | Kind::Lease | Kind::Other => {}
    }
}

/// Every namespace carries its name as a label, so that selectors can pick it by name.
pub(crate) fn label_with_name(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    let labels = &mut object["metadata"]["labels"];
    if labels.is_null() {
        *labels = json!({});
    }
    if let Some(labels) =
        labels.as_object_mut().filter(|_| name.as_str().is_some_and(|name| !name.is_empty()))
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name);
    }
}

/// A version that once stored objects stays listed: some may still be in it.
fn keep_stored_versions(before: &Value, status: &mut Value) {
    let mut versions = before["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    for version in status["storedVersions"].as_array().into_iter().flatten() {
        if !versions.contains(version) {
            versions.push(version.clone());
        }
    }
    status["storedVersions"] = Value::Array(versions);
}

/// `stringData` is a convenience of writing: it is kept as `data`.
fn merge_string_data(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(Value::Object(plain)) = fields.remove("stringData") {
        let data = fields.entry("data").or_insert_with(|| json!({})).as_object_mut();
        let plain =
            plain.into_iter().filter_map(|(key, value)| Some((key, STANDARD.encode(value.as_str()?))));
        if let Some(data) = data {
            data.extend(plain.map(|(key, encoded)| (key, Value::String(encoded))));
        }
    }
    if fields.get("type").is_none_or(|found| found.is_null() || found == "") {
        fields.insert("type".to_owned(), json!("Opaque"));
    }
}

/// Rules beyond the schema.
pub(crate) fn validate(target: &Target, before: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match kind(&target.resource.table) {
        Kind::ConfigMap => {
            data_rules(object, &["data", "binaryData"], &mut errors);
            immutable_data(before, object, &["data", "binaryData"], &mut errors);
        }
        Kind::Secret => {
            data_rules(object, &["data"], &mut errors);
            immutable_data(before, object, &["data"], &mut errors);
            if let Some(before) = before.filter(|before| before["type"] != object["type"]) {
                errors.push(FieldError::invalid(
                    "type",
                    &object["type"],
                    format!("field is immutable: it is {}", before["type"]),
                ));
            }
        }
        Kind::Event => {
            let about = events::field_name(&target.resource.def, "involvedObject");
            let involved = object[about]["namespace"].as_str().unwrap_or_default();
            let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
            if involved != own && !(involved.is_empty() && own == "default") {
                let detail = "does not match event.namespace";
                errors.push(FieldError::invalid(
                    format!("{about}.namespace"),
                    &object[about]["namespace"],
                    detail,
                ));
            }
        }
        Kind::Lease => {
            let seconds = &object["spec"]["leaseDurationSeconds"];
            if seconds.as_i64().is_some_and(|seconds| seconds <= 0) {
                errors.push(FieldError::invalid(
                    "spec.leaseDurationSeconds",
                    seconds,
                    "must be greater than 0",
                ));
            }
        }
        Kind::Pod => pod::validate(before, object, &mut errors),
        Kind::Service => network::validate_service(target, before, object, &mut errors),
        Kind::Crd => errors.extend(validate_crd(target, before, object)),
        Kind::Rbac(kind) => errors.extend(authz::validate(kind, object, before)),
        Kind::Webhooks(kind) => errors.extend(Configuration::compile(kind, object).err().unwrap_or_default()),
        Kind::Namespace | Kind::Other => {}
    }
    errors
}

/// Refuses roles and bindings that would grant what the caller does not hold.
pub(crate) fn check_grant(target: &Target, before: Option<&Value>, object: &Value) -> Result<()> {
    let Kind::Rbac(kind) = kind(&target.resource.table) else { return Ok(()) };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let caller = target.identity.as_caller();
    authz::check_write(&target.plane.policy(), caller, kind, before, object).map_err(
        |refusal| match refusal {
            Refusal::NoSuchRole { resource, name } => {
                ApiError::NotFound(Subject { group: RBAC.to_owned(), resource: resource.to_owned(), name })
            }
            refusal => {
                let subject = target.subject(name);
                let message = format!("{} {name:?} is forbidden: {refusal}", subject.qualified());
                ApiError::Forbidden { subject, message, causes: Vec::new() }
            }
        },
    )
}

fn data_rules(object: &Value, maps: &[&str], errors: &mut Vec<FieldError>) {
    let mut total = 0;
    for map in maps {
        for (key, value) in object[*map].as_object().into_iter().flatten() {
            total += value.as_str().map_or(0, str::len);
            let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if key.is_empty()
                || key.len() > 253
                || !key.chars().all(good)
                || key == "."
                || key.starts_with("..")
            {
                let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
                              (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                errors.push(FieldError::invalid(format!("{map}[{key}]"), &json!(key), detail));
            }
        }
    }
    if total > MAX_DATA {
        errors.push(FieldError::new(
            maps[0],
            FieldErrorType::TooLong,
            format!("may not be more than {MAX_DATA} bytes"),
        ));
    }
}

fn immutable_data(before: Option<&Value>, object: &Value, maps: &[&str], errors: &mut Vec<FieldError>) {
    let Some(before) = before.filter(|before| before["immutable"] == true) else { return };
    if object["immutable"] != true {
        let detail = "field is immutable when `immutable` is set";
        errors.push(FieldError::new("immutable", FieldErrorType::Forbidden, detail));
    }
    for map in maps.iter().filter(|map| before[**map] != object[**map]) {
        let detail = "field is immutable when `immutable` is set";
        errors.push(FieldError::new(*map, FieldErrorType::Forbidden, detail));
    }
}

/// A CRD must compile, keep what its objects rely on, and take no name that is taken.
fn validate_crd(target: &Target, before: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let compiled = match target.shared.definitions.compile(object) {
        Ok(compiled) => compiled,
        Err(errors) => return errors,
    };
    let mut errors = Vec::new();
    if let Some(before) = before {
        for field in ["group", "scope"] {
            if before["spec"][field] != object["spec"][field] {
                let detail = "field is immutable";
                errors.push(FieldError::invalid(format!("spec.{field}"), &object["spec"][field], detail));
            }
        }
        for field in ["plural", "kind"] {
            if before["spec"]["names"][field] != object["spec"]["names"][field] {
                let detail = "field is immutable";
                errors.push(FieldError::invalid(
                    format!("spec.names.{field}"),
                    &object["spec"]["names"][field],
                    detail,
                ));
            }
        }
    }
    let (table, kind) = (&compiled.storage.table, &compiled.storage.def.names.kind);
    if Registry::built_in().find_table(table).is_some() {
        let detail = format!("{}.{} is built in", table.resource, table.group);
        errors.push(FieldError::invalid("spec.names.plural", &object["spec"]["names"]["plural"], detail));
    }
    let versions = target.registry.versions().filter(|(gv, _)| gv.group == table.group);
    let mut others = versions.flat_map(|(_, resources)| resources.values());
    if let Some(other) = others.find(|other| other.table != *table && other.def.names.kind == *kind) {
        let detail = format!("kind is already used by {}.{}", other.def.names.plural, table.group);
        errors.push(FieldError::invalid("spec.names.kind", &object["spec"]["names"]["kind"], detail));
    }
    let names: Vec<&Value> =
        object["spec"]["versions"].as_array().into_iter().flatten().map(|v| &v["name"]).collect();
    for (i, stored) in object["status"]["storedVersions"].as_array().into_iter().flatten().enumerate() {
        if !names.contains(&stored) {
            let path = format!("status.storedVersions[{i}]");
            errors.push(FieldError::invalid(path, stored, "must appear in spec.versions"));
        }
    }
    errors
}
