//! The columns of services.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    AGE_COLUMN, Column, NAME_COLUMN, age_cell, at, column, list, name_cell, number, text, text_or, wide,
};

pub(super) const COLUMNS: &[Column] = &[
    NAME_COLUMN,
    column(
        "Type",
        "type determines how the Service is exposed. Defaults to ClusterIP. Valid options are ExternalName, \
            ClusterIP, NodePort, and LoadBalancer.",
    ),
    column("Cluster-IP", "clusterIP is the IP address of the service and is usually assigned randomly."),
    column(
        "External-IP",
        "externalIPs is a list of IP addresses for which nodes in the cluster will also accept traffic for \
            this service.",
    ),
    column("Port(s)", "The list of ports that are exposed by this service."),
    AGE_COLUMN,
    wide("Selector", "Route service traffic to pods with label keys and values matching this selector."),
];

const NONE: &str = "<none>";

pub(super) fn cells(service: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name_cell(service),
        text(service, "spec.type").into(),
        cluster_ip(service).into(),
        external_ip(service).into(),
        ports(service).into(),
        age_cell(service, now),
        selector(service).into(),
    ]
}

fn cluster_ip(service: &Value) -> &str {
    let first = list(service, "spec.clusterIPs").first().and_then(Value::as_str);
    first.unwrap_or_else(|| text_or(service, "spec.clusterIP", NONE))
}

fn external_ip(service: &Value) -> String {
    let external: Vec<&str> = list(service, "spec.externalIPs").iter().filter_map(Value::as_str).collect();
    match text(service, "spec.type") {
        "ClusterIP" | "NodePort" => joined(&external, NONE),
        "LoadBalancer" => {
            let ingress = list(service, "status.loadBalancer.ingress").iter();
            let balancers: BTreeSet<&str> = ingress
                .map(|ingress| text_or(ingress, "ip", text(ingress, "hostname")))
                .filter(|address| !address.is_empty())
                .collect();
            let all: Vec<&str> = balancers.into_iter().chain(external).collect();
            joined(&all, "<pending>")
        }
        "ExternalName" => text(service, "spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn ports(service: &Value) -> String {
    let ports: Vec<String> = list(service, "spec.ports")
        .iter()
        .map(|port| {
            let (number_, protocol) = (number(port, "port"), text_or(port, "protocol", "TCP"));
            match number(port, "nodePort") {
                node_port if node_port > 0 => format!("{number_}:{node_port}/{protocol}"),
                _ => format!("{number_}/{protocol}"),
            }
        })
        .collect();
    if ports.is_empty() { NONE.to_owned() } else { ports.join(",") }
}

fn selector(service: &Value) -> String {
    let Value::Object(labels) = at(service, "spec.selector") else { return NONE.to_owned() };
    let mut pairs: Vec<String> = labels
        .iter()
        .map(|(label, value)| format!("{label}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort_unstable();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

fn joined(addresses: &[&str], missing: &str) -> String {
    if addresses.is_empty() { missing.to_owned() } else { addresses.join(",") }
}
