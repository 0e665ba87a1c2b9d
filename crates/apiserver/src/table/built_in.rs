//! The columns of built-in kinds: which kind has which, and those that need only a line or two.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    AGE_COLUMN, CREATED_AT_COLUMN, CellsOf, Column, NAME_COLUMN, age_cell, at, column, count, event, list,
    name_cell, node, pod, service, text, wide,
};

const NAMESPACE: &[Column] = &[NAME_COLUMN, column("Status", "The status of the namespace"), AGE_COLUMN];
const CONFIG_MAP: &[Column] = &[
    NAME_COLUMN,
    column(
        "Data",
        "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' \
            or '.'.",
    ),
    AGE_COLUMN,
];
const SECRET: &[Column] = &[
    NAME_COLUMN,
    column("Type", "Used to facilitate programmatic handling of secret data."),
    column(
        "Data",
        "Data contains the secret data. Each key must consist of alphanumeric characters, '-', '_' or '.'.",
    ),
    AGE_COLUMN,
];
const SERVICE_ACCOUNT: &[Column] = &[
    NAME_COLUMN,
    column(
        "Secrets",
        "Secrets is a list of the secrets that pods running using this ServiceAccount may use.",
    ),
    AGE_COLUMN,
];
const LEASE: &[Column] = &[
    NAME_COLUMN,
    column("Holder", "holderIdentity contains the identity of the holder of a current lease."),
    AGE_COLUMN,
];
const BINDING: &[Column] = &[
    NAME_COLUMN,
    column("Role", "RoleRef references the role whose rules are bound."),
    AGE_COLUMN,
    wide("Users", "Users in the binding"),
    wide("Groups", "Groups in the binding"),
    wide("ServiceAccounts", "ServiceAccounts in the binding"),
];
const WEBHOOKS: &[Column] = &[
    NAME_COLUMN,
    Column {
        type_: "integer",
        ..column("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration.")
    },
    AGE_COLUMN,
];
const CREATED_AT: &[Column] = &[NAME_COLUMN, CREATED_AT_COLUMN];
const AGE: &[Column] = &[NAME_COLUMN, AGE_COLUMN];

/// The columns of a kind, and how its cells come about.
pub(super) fn columns(group: &str, kind: &str) -> (&'static [Column], CellsOf) {
    match (group, kind) {
        ("", "Namespace") => {
            (NAMESPACE, |namespace, now| with_age(namespace, [text(namespace, "status.phase").into()], now))
        }
        ("", "ConfigMap") => (CONFIG_MAP, |config_map, now| {
            with_age(config_map, [json!(count(config_map, "data") + count(config_map, "binaryData"))], now)
        }),
        ("", "Secret") => (SECRET, |secret, now| {
            with_age(secret, [text(secret, "type").into(), json!(count(secret, "data"))], now)
        }),
        ("", "ServiceAccount") => {
            (SERVICE_ACCOUNT, |account, now| with_age(account, [json!(count(account, "secrets"))], now))
        }
        ("coordination.k8s.io", "Lease") => {
            (LEASE, |lease, now| with_age(lease, [text(lease, "spec.holderIdentity").into()], now))
        }
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => (WEBHOOKS, |configuration, now| {
            with_age(configuration, [json!(count(configuration, "webhooks"))], now)
        }),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => (BINDING, binding),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => (CREATED_AT, created_at),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => (CREATED_AT, created_at),
        ("", "Event") => (event::COLUMNS, event::core_cells),
        ("events.k8s.io", "Event") => (event::COLUMNS, event::events_cells),
        ("", "Pod") => (pod::COLUMNS, pod::cells),
        ("", "Node") => (node::COLUMNS, node::cells),
        ("", "Service") => (service::COLUMNS, service::cells),
        _ => (AGE, |object, now| with_age(object, [], now)),
    }
}

/// Name, these, age.
fn with_age<const N: usize>(object: &Value, cells: [Value; N], now: Timestamp) -> Vec<Value> {
    let mut row = vec![name_cell(object)];
    row.extend(cells);
    row.push(age_cell(object, now));
    row
}

fn created_at(object: &Value, _now: Timestamp) -> Vec<Value> {
    vec![name_cell(object), at(object, "metadata.creationTimestamp").clone()]
}

fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = format!("{}/{}", text(object, "roleRef.kind"), text(object, "roleRef.name"));
    let subjects = |kind: &str| -> Value {
        let of_kind = list(object, "subjects").iter().filter(|subject| text(subject, "kind") == kind);
        let names = of_kind.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
            _ => text(subject, "name").to_owned(),
        });
        names.collect::<Vec<_>>().join(", ").into()
    };
    let mut row = with_age(object, [role.into()], now);
    row.extend(["User", "Group", "ServiceAccount"].map(subjects));
    row
}
