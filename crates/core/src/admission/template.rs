//! Rules for the template of a Workload: what it may say about the instances themselves, and on which networks they are.

use std::collections::BTreeMap;

use compute_api::{
    annotations::{ALLOWED_IN_TEMPLATES, RESTARTED_AT, SSH_KEYS},
    compute::{InstanceSpec, InstanceTemplate, NetworkInterface, TemplateMetadata},
};

use super::{containers, error::Errors, path::Path, ssh_keys, syntax, volumes};
use crate::planner;

pub(super) fn check(template: &InstanceTemplate, path: &Path, namespace: &str, errors: &mut Errors) {
    if let Some(metadata) = &template.metadata {
        check_metadata(metadata, &path.child("metadata"), errors);
    }
    check_spec(&template.spec, &path.child("spec"), namespace, errors);
}

fn check_spec(spec: &InstanceSpec, path: &Path, namespace: &str, errors: &mut Errors) {
    if spec.controller.is_some() {
        errors.forbidden(&path.child("controller"), "the service keeps this field; leave it out");
    }
    if spec.location.is_some() {
        let why = "where instances run is set by spec.placements[].cityCodes; leave it out";
        errors.forbidden(&path.child("location"), why);
    }
    containers::check_runtime(&spec.runtime, &spec.volumes, &path.child("runtime"), errors);
    check_interfaces(&spec.network_interfaces, &path.child("networkInterfaces"), namespace, errors);
    volumes::check(spec, path, errors);
}

fn check_interfaces(interfaces: &[NetworkInterface], path: &Path, namespace: &str, errors: &mut Errors) {
    if interfaces.is_empty() {
        errors.required(path, "at least one network interface is needed");
    }
    for (at, interface) in interfaces.iter().enumerate() {
        let path = path.index(at).child("network");
        syntax::check_object_name(&interface.network.name, &path.child("name"), "name the network", errors);
        let named = interface.network.namespace.as_deref().unwrap_or_default();
        if !named.is_empty() && named != namespace {
            let rule = format!("must be empty or the namespace of the workload, {namespace:?}");
            errors.invalid(&path.child("namespace"), named, rule);
        }
    }
}

fn check_metadata(metadata: &TemplateMetadata, path: &Path, errors: &mut Errors) {
    let is_set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    let refused = [
        ("name", is_set(&metadata.name), "instances are named by the service; leave it out"),
        (
            "namespace",
            is_set(&metadata.namespace),
            "the service puts instances where they belong; leave it out",
        ),
        (
            "finalizers",
            !metadata.finalizers.is_empty(),
            "the service sets those that instances need; leave them out",
        ),
        (
            "ownerReferences",
            !metadata.owner_references.is_empty(),
            "the service says who owns instances; leave them out",
        ),
    ];
    for (field, is_set, why) in refused {
        if is_set {
            errors.forbidden(&path.child(field), why);
        }
    }
    check_keys(&metadata.labels, &path.child("labels"), &[], errors);
    for (key, value) in &metadata.labels {
        syntax::check_label_value(value, &path.child("labels").key(key), errors);
    }
    let annotations = path.child("annotations");
    check_keys(&metadata.annotations, &annotations, &ALLOWED_IN_TEMPLATES, errors);
    if let Some(time) = metadata.annotations.get(RESTARTED_AT)
        && !syntax::is_rfc3339(time)
    {
        let rule = "must be a time as RFC 3339 has it, such as 2026-05-01T12:00:00Z";
        errors.invalid(&annotations.key(RESTARTED_AT), time.as_str(), rule);
    }
    if let Some(keys) = metadata.annotations.get(SSH_KEYS) {
        ssh_keys::check(keys, &annotations.key(SSH_KEYS), errors);
    }
}

fn check_keys(map: &BTreeMap<String, String>, path: &Path, allowed: &[&str], errors: &mut Errors) {
    for key in map.keys() {
        if allowed.contains(&key.as_str()) {
            continue;
        }
        match planner::build::our_prefix(key) {
            Some(prefix) if allowed.is_empty() => {
                errors.forbidden(&path.key(key), format!("keys under {prefix} belong to the service"));
            }
            Some(prefix) => {
                let ours = allowed.join(" and ");
                let why =
                    format!("keys under {prefix} belong to the service; a template may set {ours} only");
                errors.forbidden(&path.key(key), why);
            }
            None => {
                syntax::check_qualified_name(key, path, errors);
            }
        }
    }
}
