//! The template that every instance of a workload is made from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InstanceSpec;

/// The instance to make, with the labels and annotations that it gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceTemplate {
    /// Labels and annotations of the instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What the instances are made of.
    pub spec: InstanceSpec,
}

impl InstanceTemplate {
    /// The value of one annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.as_ref()?.annotations.get(key).map(String::as_str)
    }

    /// Sets one annotation.
    pub fn set_annotation(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.metadata.get_or_insert_default().annotations.insert(key.into(), value.into());
    }
}

/// The part of an object's metadata that a template may carry.
///
/// The schema keeps all of it, so that nothing a person wrote is lost in silence; admission refuses what has
/// no meaning in a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateMetadata {
    /// Has no meaning in a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Has no meaning in a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels of the objects that are made.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the objects that are made.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Has no meaning in a template.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Has no meaning in a template.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::objects")]
    pub owner_references: Vec<serde_json::Value>,
}
