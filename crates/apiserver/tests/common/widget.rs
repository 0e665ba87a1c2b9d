//! The custom resource that tests work with.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a widget should be. It has a status and a scale, a default, a selectable field, and a list whose entries are
/// told apart by name.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "test.example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    shortname = "wd",
    selectable = ".spec.color",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    derive = "Default",
    derive = "PartialEq"
)]
pub struct WidgetSpec {
    /// How many there should be.
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
    /// A colour, if it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Set by default.
    #[serde(default = "medium", skip_serializing_if = "String::is_empty")]
    pub size: String,
    /// Parts by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub parts: Vec<Part>,
}

fn medium() -> String {
    "medium".to_owned()
}

/// One part of a widget.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// What it is told apart by.
    pub name: String,
    /// How much it weighs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
}

/// What a widget is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct WidgetStatus {
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// A label selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// A widget that has not been created.
pub fn widget(name: &str, replicas: i32) -> Widget {
    Widget::new(name, WidgetSpec { replicas, ..WidgetSpec::default() })
}
