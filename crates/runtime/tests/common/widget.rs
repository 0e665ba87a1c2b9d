//! A kind whose definition lets more through than its type can decode.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a widget should be.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(group = "test.example.com", version = "v1", kind = "Widget", namespaced, schema = "disabled")]
pub struct WidgetSpec {
    /// How large it is.
    pub size: u32,
}

/// The definition, in which a size may be anything.
pub fn widget_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.test.example.com" },
        "spec": {
            "group": "test.example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

/// A widget whose size may be anything.
pub fn widget_json(name: &str, size: impl Into<Value>) -> Value {
    json!({
        "apiVersion": "test.example.com/v1",
        "kind": "Widget",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "size": size.into() },
    })
}
