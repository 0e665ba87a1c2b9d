//! Webhook configurations: what Kubernetes fills in where one says nothing.

use serde_json::{Value, json};

use super::network::fill;
use super::pod::entries;
use crate::hooks::ConfigurationKind;

/// Sets what each webhook leaves open, so that a configuration reads the same however it was written.
pub(super) fn defaults(kind: ConfigurationKind, configuration: &mut Value) {
    for webhook in entries(configuration, "webhooks") {
        fill(webhook, "failurePolicy", json!("Fail"));
        fill(webhook, "matchPolicy", json!("Equivalent"));
        fill(webhook, "namespaceSelector", json!({}));
        fill(webhook, "objectSelector", json!({}));
        fill(webhook, "timeoutSeconds", json!(10));
        if kind == ConfigurationKind::Mutating {
            fill(webhook, "reinvocationPolicy", json!("Never"));
        }
        for rule in entries(webhook, "rules") {
            fill(rule, "scope", json!("*"));
        }
        let service = webhook.get_mut("clientConfig").and_then(|client| client.get_mut("service"));
        if let Some(service) = service {
            fill(service, "port", json!(443));
        }
    }
}
