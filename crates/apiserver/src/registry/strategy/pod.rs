//! Pods: the defaults that clients see, and what of a running pod may still change.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field_error::{FieldError, FieldErrorType};
use crate::meta::NameRule;

/// Sets a field that is absent. What is no object is left to the schema to refuse.
fn fill(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut()
        && fields.get(field).is_none_or(Value::is_null)
    {
        fields.insert(field.to_owned(), value);
    }
}

/// The entries of a list that are objects, to change them.
pub(super) fn entries<'a>(object: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = object.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter(|entry| entry.is_object())
}

pub(super) fn defaults(pod: &mut Value) {
    if pod["status"].is_null() {
        pod["status"] = json!({ "phase": "Pending", "qosClass": "BestEffort" });
    }
    let spec = &mut pod["spec"];
    if !spec.is_object() {
        return;
    }
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
    ] {
        fill(spec, field, value);
    }
    for list in ["containers", "initContainers"] {
        for container in entries(spec, list) {
            let image = container["image"].as_str().unwrap_or_default();
            let latest =
                image.ends_with(":latest") || !image.rsplit('/').next().unwrap_or_default().contains(':');
            fill(container, "imagePullPolicy", json!(if latest { "Always" } else { "IfNotPresent" }));
            fill(container, "resources", json!({}));
            fill(container, "terminationMessagePath", json!("/dev/termination-log"));
            fill(container, "terminationMessagePolicy", json!("File"));
            for port in entries(container, "ports") {
                fill(port, "protocol", json!("TCP"));
            }
        }
    }
}

pub(super) fn validate(before: Option<&Value>, pod: &Value, errors: &mut Vec<FieldError>) {
    let containers = pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        errors.push(FieldError::new("spec.containers", FieldErrorType::Required, ""));
    }
    let mut names = BTreeSet::new();
    for list in ["initContainers", "containers"] {
        for (i, container) in pod["spec"][list].as_array().into_iter().flatten().enumerate() {
            let path = |field: &str| format!("spec.{list}[{i}].{field}");
            let name = container["name"].as_str().unwrap_or_default();
            if name.is_empty() {
                errors.push(FieldError::new(path("name"), FieldErrorType::Required, ""));
            } else if let Some(problem) = NameRule::Label.problem(name) {
                errors.push(FieldError::invalid(path("name"), &container["name"], problem));
            } else if !names.insert(name) {
                errors.push(FieldError::with_value(
                    path("name"),
                    FieldErrorType::Duplicate,
                    &container["name"],
                    "",
                ));
            }
            if container["image"].as_str().unwrap_or_default().is_empty() {
                errors.push(FieldError::new(path("image"), FieldErrorType::Required, ""));
            }
        }
    }
    let is_frozen = |before: &Value| {
        let mut before = frozen(&before["spec"]);
        // A pod is bound to a node once.
        if before["nodeName"].is_null() && !pod["spec"]["nodeName"].is_null() {
            before["nodeName"] = pod["spec"]["nodeName"].clone();
        }
        before != frozen(&pod["spec"])
    };
    if before.is_some_and(is_frozen) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`,\
                      `spec.terminationGracePeriodSeconds`,`spec.nodeName` (once)";
        errors.push(FieldError::new("spec", FieldErrorType::Forbidden, detail));
    }
}

/// A pod's spec without what may change.
fn frozen(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for list in ["containers", "initContainers"] {
        for container in entries(&mut spec, list) {
            container.as_object_mut().map(|container| container.remove("image"));
        }
    }
    if let Some(spec) = spec.as_object_mut() {
        for field in
            ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"]
        {
            spec.remove(field);
        }
        spec.retain(|_, value| !value.is_null());
    }
    spec
}
