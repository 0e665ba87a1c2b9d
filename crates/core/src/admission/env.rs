//! Rules for the environment variables of a container.

use std::collections::BTreeSet;

use compute_api::compute::{EnvFromSource, EnvVar, EnvVarSource, SandboxContainer};

use super::{error::Errors, path::Path, syntax};

pub(super) fn check(container: &SandboxContainer, path: &Path, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (at, variable) in container.env.iter().enumerate() {
        let path = path.child("env").index(at);
        if syntax::check_env_name(&variable.name, &path.child("name"), errors)
            && !names.insert(&variable.name)
        {
            errors.duplicate(&path.child("name"), variable.name.as_str(), "each variable can be set once");
        }
        check_variable(variable, &path, errors);
    }
    for (at, source) in container.env_from.iter().enumerate() {
        check_source(source, &path.child("envFrom").index(at), errors);
    }
}

fn check_variable(variable: &EnvVar, path: &Path, errors: &mut Errors) {
    let Some(from) = &variable.value_from else { return };
    let path = path.child("valueFrom");
    if variable.value.as_deref().is_some_and(|value| !value.is_empty()) {
        errors.forbidden(&path, "value is set, too; only one of value and valueFrom may be");
    }
    let sources = [
        from.config_map_key_ref.is_some(),
        from.secret_key_ref.is_some(),
        from.field_ref.is_some(),
        from.resource_field_ref.is_some(),
    ];
    exactly_one(&sources, "configMapKeyRef, secretKeyRef, fieldRef and resourceFieldRef", &path, errors);
    check_value_from(from, &path, errors);
}

fn check_value_from(from: &EnvVarSource, path: &Path, errors: &mut Errors) {
    if let Some(source) = &from.config_map_key_ref {
        let path = path.child("configMapKeyRef");
        syntax::check_object_name(&source.name, &path.child("name"), "name the ConfigMap", errors);
        syntax::check_data_key(&source.key, &path.child("key"), errors);
    }
    if let Some(source) = &from.secret_key_ref {
        let path = path.child("secretKeyRef");
        syntax::check_object_name(&source.name, &path.child("name"), "name the Secret", errors);
        syntax::check_data_key(&source.key, &path.child("key"), errors);
    }
    if from.field_ref.as_ref().is_some_and(|source| source.field_path.is_empty()) {
        errors.required(&path.child("fieldRef").child("fieldPath"), "name the field, such as metadata.name");
    }
    if from.resource_field_ref.as_ref().is_some_and(|source| source.resource.is_empty()) {
        let path = path.child("resourceFieldRef").child("resource");
        errors.required(&path, "name the resource, such as limits.cpu");
    }
}

fn check_source(source: &EnvFromSource, path: &Path, errors: &mut Errors) {
    if let Some(prefix) = source.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        syntax::check_env_name(prefix, &path.child("prefix"), errors);
    }
    let sources = [source.config_map_ref.is_some(), source.secret_ref.is_some()];
    exactly_one(&sources, "configMapRef and secretRef", path, errors);
    if let Some(source) = &source.config_map_ref {
        let path = path.child("configMapRef").child("name");
        syntax::check_object_name(&source.name, &path, "name the ConfigMap", errors);
    }
    if let Some(source) = &source.secret_ref {
        let path = path.child("secretRef").child("name");
        syntax::check_object_name(&source.name, &path, "name the Secret", errors);
    }
}

/// Of some fields one must be set, and no other.
pub(super) fn exactly_one(set: &[bool], names: &str, path: &Path, errors: &mut Errors) {
    match set.iter().filter(|is_set| **is_set).count() {
        0 => errors.required(path, format!("one of {names} is needed")),
        1 => {}
        _ => errors.forbidden(path, format!("only one of {names} may be set")),
    }
}
