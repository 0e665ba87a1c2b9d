//! The custom resource that tests work with.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a widget should be.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "test.example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    derive = "Default",
    derive = "PartialEq"
)]
pub struct WidgetSpec {
    /// How many there should be.
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
    /// What holds it back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
}

/// Something that holds a widget back.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Gate {
    /// What it is told apart by.
    pub name: String,
}

/// What a widget is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct WidgetStatus {
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// What is to say about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// One thing to say about a widget.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// What it is told apart by.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
}

/// A widget that has not been created.
pub fn widget(name: &str, replicas: i32) -> Widget {
    Widget::new(name, WidgetSpec { replicas, ..WidgetSpec::default() })
}
