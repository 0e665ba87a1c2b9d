//! How the API servers of projects are told to ask a manager about writes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compute_admission::{MUTATE_WORKLOADS, VALIDATE_INSTANCES, VALIDATE_WORKLOADS};
use compute_api::compute::GROUP;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// The webhook configurations of a project's plane, for a manager that listens there with a certificate of this authority.
pub fn configurations(server: SocketAddr, ca_pem: &str) -> Vec<Value> {
    let webhook = |name: &str, path: &str, operations: &[&str], resources: &[&str]| {
        json!({
            "name": format!("{name}.{GROUP}"),
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "timeoutSeconds": 10, "matchPolicy": "Equivalent",
            "clientConfig": { "url": format!("https://{server}{path}"), "caBundle": STANDARD.encode(ca_pem) },
            "rules": [{ "apiGroups": [GROUP], "apiVersions": ["v1alpha"], "operations": operations,
                "resources": resources, "scope": "Namespaced" }],
        })
    };
    let configuration = |kind: &str, webhooks: Vec<Value>| {
        json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": { "name": "compute" }, "webhooks": webhooks })
    };
    let made = ["CREATE", "UPDATE"];
    vec![
        configuration(
            "MutatingWebhookConfiguration",
            vec![webhook("defaults", MUTATE_WORKLOADS, &made, &["workloads"])],
        ),
        configuration(
            "ValidatingWebhookConfiguration",
            vec![
                webhook("workloads", VALIDATE_WORKLOADS, &made, &["workloads"]),
                webhook(
                    "instances",
                    VALIDATE_INSTANCES,
                    &["CREATE", "UPDATE", "DELETE"],
                    &["instances", "instances/status"],
                ),
            ],
        ),
    ]
}
