//! What can be said of built objects without a server.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::apply::{group, text};

/// Everything.
pub(super) fn all(objects: &[Value]) -> Result<()> {
    names(objects)?;
    for object in objects {
        let checked = strict(object).and_then(|()| pods(object));
        checked.with_context(|| name(object))?;
    }
    references(objects)?;
    mounts(objects)
}

/// An object in words.
pub(super) fn name(object: &Value) -> String {
    let namespace = text(object, "/metadata/namespace");
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{} {namespace}{slash}{}", text(object, "/kind"), text(object, "/metadata/name"))
}

/// Each has a name, and no two are the same.
fn names(objects: &[Value]) -> Result<()> {
    ensure!(!objects.is_empty(), "nothing is built");
    let mut seen = BTreeSet::new();
    for object in objects {
        ensure!(!text(object, "/metadata/name").is_empty(), "an object without a name: {object}");
        ensure!(seen.insert((group(object), name(object))), "{} is there twice", name(object));
    }
    Ok(())
}

/// No field that Kubernetes does not know. Kinds of others are for a server to judge.
fn strict(object: &Value) -> Result<()> {
    match (group(object).as_str(), text(object, "/kind").as_str()) {
        ("", "Namespace") => round_trip::<Namespace>(object),
        ("", "ConfigMap") => round_trip::<ConfigMap>(object),
        ("", "Service") => round_trip::<Service>(object),
        ("", "ServiceAccount") => round_trip::<ServiceAccount>(object),
        ("apps", "Deployment") => round_trip::<Deployment>(object),
        ("policy", "PodDisruptionBudget") => round_trip::<PodDisruptionBudget>(object),
        ("networking.k8s.io", "NetworkPolicy") => round_trip::<NetworkPolicy>(object),
        ("rbac.authorization.k8s.io", "Role") => round_trip::<Role>(object),
        ("rbac.authorization.k8s.io", "RoleBinding") => round_trip::<RoleBinding>(object),
        ("rbac.authorization.k8s.io", "ClusterRole") => round_trip::<ClusterRole>(object),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => round_trip::<ClusterRoleBinding>(object),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            round_trip::<MutatingWebhookConfiguration>(object)
        }
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            round_trip::<ValidatingWebhookConfiguration>(object)
        }
        (group, kind) => {
            ensure!(
                group.contains('.'),
                "{kind} of {group:?} is a kind of Kubernetes that is not looked at here"
            );
            Ok(())
        }
    }
}

fn round_trip<K: Serialize + DeserializeOwned>(object: &Value) -> Result<()> {
    let typed: K = serde_json::from_value(object.clone())?;
    let back = serde_json::to_value(typed)?;
    match lost(object, &back, "") {
        None => Ok(()),
        Some(path) => bail!("{path} is no field that Kubernetes knows"),
    }
}

/// The first field of `before` that `after` does not have.
fn lost(before: &Value, after: &Value, path: &str) -> Option<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => before.iter().find_map(|(key, value)| {
            let path = format!("{path}.{key}");
            match after.get(key) {
                Some(found) => lost(value, found, &path),
                None => Some(path),
            }
        }),
        (Value::Array(before), Value::Array(after)) => before
            .iter()
            .zip(after)
            .enumerate()
            .find_map(|(at, (before, after))| lost(before, after, &format!("{path}[{at}]"))),
        _ => None,
    }
}

/// Pods of a Deployment are what pod security calls restricted, with a read-only file system besides.
fn pods(object: &Value) -> Result<()> {
    if text(object, "/kind") != "Deployment" {
        return Ok(());
    }
    let spec = object.pointer("/spec/template/spec").context("a Deployment has pods")?;
    let is = |object: &Value, pointer: &str, wanted: Value| {
        ensure!(object.pointer(pointer) == Some(&wanted), "{pointer} must be {wanted}");
        Ok(())
    };
    is(spec, "/securityContext/runAsNonRoot", true.into())?;
    is(spec, "/securityContext/seccompProfile/type", "RuntimeDefault".into())?;
    ensure!(
        spec.pointer("/securityContext/runAsUser").and_then(Value::as_i64) > Some(0),
        "the user must be a number above 0"
    );
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        ensure!(spec.get(host).is_none(), "{host} must be left out");
    }
    for container in spec["containers"].as_array().into_iter().flatten() {
        is(container, "/securityContext/allowPrivilegeEscalation", false.into())?;
        is(container, "/securityContext/readOnlyRootFilesystem", true.into())?;
        is(container, "/securityContext/capabilities", serde_json::json!({ "drop": ["ALL"] }))?;
        ensure!(container.pointer("/resources/limits/memory").is_some(), "memory must have a limit");
    }
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        let fields =
            volume.as_object().map(|volume| volume.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        let allowed = ["name", "configMap", "secret", "csi", "projected", "emptyDir"];
        ensure!(
            fields.iter().all(|field| allowed.contains(&field.as_str())),
            "a volume of a kind that is not restricted: {fields:?}"
        );
    }
    Ok(())
}

/// What is named is there: roles, service accounts, config, services of webhooks.
fn references(objects: &[Value]) -> Result<()> {
    let has = |kind: &str, name: &str| {
        objects.iter().any(|object| text(object, "/kind") == kind && text(object, "/metadata/name") == name)
    };
    let runs_here = has("Deployment", "compute-manager");
    for object in objects {
        let said = || name(object);
        match text(object, "/kind").as_str() {
            "ClusterRoleBinding" | "RoleBinding" => {
                let (kind, role) = (text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
                ensure!(has(&kind, &role), "{}: there is no {kind} {role}", said());
                ensure!(role.starts_with("compute-"), "{}: the role is not ours", said());
                for subject in object["subjects"].as_array().into_iter().flatten() {
                    let (kind, subject) = (text(subject, "/kind"), text(subject, "/name"));
                    let is_known = match kind.as_str() {
                        "ServiceAccount" => has("ServiceAccount", &subject),
                        "Group" => {
                            !runs_here && ["compute:management", "compute:cells"].contains(&subject.as_str())
                        }
                        _ => false,
                    };
                    ensure!(is_known, "{}: {kind} {subject} must not be bound here", said());
                }
            }
            "Deployment" => {
                let account = text(object, "/spec/template/spec/serviceAccountName");
                ensure!(has("ServiceAccount", &account), "{}: there is no ServiceAccount {account}", said());
                let volumes = object.pointer("/spec/template/spec/volumes").and_then(Value::as_array);
                for volume in volumes.into_iter().flatten() {
                    let config = text(volume, "/configMap/name");
                    ensure!(
                        config.is_empty() || has("ConfigMap", &config),
                        "{}: there is no ConfigMap {config}",
                        said()
                    );
                    let issuer = volume.pointer("/csi/volumeAttributes/csi.cert-manager.io~1issuer-name");
                    ensure!(
                        volume.get("csi").is_none() || issuer.is_some(),
                        "{}: nobody issues the certificate",
                        said()
                    );
                }
            }
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                for webhook in object["webhooks"].as_array().into_iter().flatten() {
                    let service = text(webhook, "/clientConfig/service/name");
                    let url = text(webhook, "/clientConfig/url");
                    let is_reached =
                        if runs_here { has("Service", &service) } else { url.starts_with("https://") };
                    ensure!(is_reached, "{}: {} cannot be reached", said(), text(webhook, "/name"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Each file that the server config or the environment names is in a folder that is mounted.
fn mounts(objects: &[Value]) -> Result<()> {
    let Some(deployment) = objects.iter().find(|object| text(object, "/kind") == "Deployment") else {
        return Ok(());
    };
    let list = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let mounted: Vec<_> = list("/spec/template/spec/containers/0/volumeMounts")
        .map(|mount| text(mount, "/mountPath"))
        .collect();
    let mut named: Vec<_> =
        list("/spec/template/spec/containers/0/env").map(|variable| text(variable, "/value")).collect();
    named.extend(list("/spec/template/spec/containers/0/args").filter_map(|argument| {
        argument.as_str().and_then(|argument| argument.split_once('=')).map(|(_, value)| value.to_owned())
    }));
    let mut has_config = false;
    for config in
        objects.iter().map(|object| text(object, "/data/server.yaml")).filter(|config| !config.is_empty())
    {
        has_config = true;
        let config: Value = serde_saphyr::from_str(&config).context("server.yaml")?;
        strings(&config, &mut named);
    }
    ensure!(has_config, "there is no server.yaml");
    for path in named.iter().filter(|value| value.starts_with('/')) {
        let is_there = mounted.iter().any(|folder| path == folder || path.starts_with(&format!("{folder}/")));
        ensure!(is_there, "{path} is named, and nothing is mounted there");
    }
    Ok(())
}

fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(entries) => entries.iter().for_each(|entry| strings(entry, found)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
