//! How many instances run, and what makes that number change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;

/// One step at a time; an instance is made when the lower ones are ready. The default.
pub const POLICY_ORDERED_READY: &str = "OrderedReady";
/// All missing instances at once.
pub const POLICY_PARALLEL: &str = "Parallel";

/// The CPU metric.
pub const METRIC_CPU: &str = "cpu";
/// The memory metric.
pub const METRIC_MEMORY: &str = "memory";

/// How many instances may run, and when that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleSettings {
    /// The fewest instances that run.
    #[schemars(with = "i32")]
    pub min_replicas: i64,
    /// The most instances that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    pub max_replicas: Option<i64>,
    /// `OrderedReady` or `Parallel`.
    #[schemars(extend("x-default" = "OrderedReady"))]
    pub instance_management_policy: String,
    /// What an autoscaler looks at. Needs `maxReplicas`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
}

impl Default for ScaleSettings {
    fn default() -> Self {
        Self {
            min_replicas: 0,
            max_replicas: None,
            instance_management_policy: POLICY_ORDERED_READY.to_owned(),
            metrics: Vec::new(),
        }
    }
}

/// One thing that an autoscaler looks at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricSpec {
    /// A resource that the instances use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetric>,
}

/// How much of a resource the instances use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceMetric {
    /// `cpu` or `memory`.
    pub name: String,
    /// The usage to aim at.
    pub target: MetricTarget,
}

/// The usage to aim at, in one of three forms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricTarget {
    /// Usage over all instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    /// Usage per instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
    /// Usage per instance, in percent of what it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    pub average_utilization: Option<i64>,
}
