//! The columns of nodes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{AGE_COLUMN, Column, NAME_COLUMN, age_cell, at, column, list, name_cell, text, text_or, wide};

pub(super) const COLUMNS: &[Column] = &[
    NAME_COLUMN,
    column("Status", "The status of the node"),
    column("Roles", "The roles of the node"),
    AGE_COLUMN,
    column("Version", "Kubelet Version reported by the node."),
    wide("Internal-IP", "List of addresses reachable to the node."),
    wide("External-IP", "List of addresses reachable to the node."),
    wide(
        "OS-Image",
        "OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 (wheezy)).",
    ),
    wide(
        "Kernel-Version",
        "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64).",
    ),
    wide(
        "Container-Runtime",
        "ContainerRuntime Version reported by the node through runtime remote API (e.g. containerd://1.4.2).",
    ),
];

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

pub(super) fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name_cell(node),
        status(node).into(),
        roles(node).into(),
        age_cell(node, now),
        text(node, "status.nodeInfo.kubeletVersion").into(),
        address(node, "InternalIP").into(),
        address(node, "ExternalIP").into(),
        text_or(node, "status.nodeInfo.osImage", UNKNOWN).into(),
        text_or(node, "status.nodeInfo.kernelVersion", UNKNOWN).into(),
        text_or(node, "status.nodeInfo.containerRuntimeVersion", UNKNOWN).into(),
    ]
}

fn status(node: &Value) -> String {
    let ready = list(node, "status.conditions").iter().find(|condition| text(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if at(node, "spec.unschedulable") == &Value::Bool(true) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

/// Roles stand in the names of labels, or in the value of an older one.
fn roles(node: &Value) -> String {
    let Value::Object(labels) = at(node, "metadata.labels") else { return NONE.to_owned() };
    let roles: BTreeSet<&str> = labels
        .iter()
        .filter_map(|(label, value)| match label.strip_prefix("node-role.kubernetes.io/") {
            None if label == "kubernetes.io/role" => value.as_str(),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { NONE.to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn address<'a>(node: &'a Value, type_: &str) -> &'a str {
    let found = list(node, "status.addresses").iter().find(|address| text(address, "type") == type_);
    found.map_or(NONE, |address| text(address, "address"))
}
