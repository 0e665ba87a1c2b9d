//! [`Workload`]: what a person asks for, and what became of it over all cities.
//!
//! The person writes `spec`; the Workload controller of the management plane is the only writer of `status`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InstanceTemplate, ScaleSettings, gateway::GatewayStatus};

/// What to run, and where and how many of it.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "compute.datumapis.com",
    version = "v1alpha",
    kind = "Workload",
    plural = "workloads",
    namespaced,
    status = "WorkloadStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "A container or virtual machine that runs in many cities at once.",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].reason"#
    ),
    printcolumn(name = "Deployments", type_ = "string", json_path = ".status.deployments"),
    printcolumn(name = "Replicas", type_ = "string", json_path = ".status.replicas"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.readyReplicas"),
    printcolumn(name = "Desired", type_ = "string", json_path = ".status.desiredReplicas"),
    printcolumn(name = "Up-to-date", type_ = "string", json_path = ".status.updatedReplicas")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct WorkloadSpec {
    /// The instance that every placement runs.
    pub template: InstanceTemplate,
    /// Where instances run, and how many of them.
    #[schemars(extend("minItems" = 1))]
    pub placements: Vec<WorkloadPlacement>,
    /// While true no running instance is replaced because its template changed. Missing instances are still
    /// made, from the current template, and scaling goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// A set of cities that share one scaling rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadPlacement {
    /// Name of the placement, unique within the workload; a DNS label.
    pub name: String,
    /// City codes to run in, such as `DFW`. Each city gets its own deployment.
    pub city_codes: Vec<String>,
    /// How many instances run in each of the cities.
    pub scale_settings: ScaleSettings,
}

/// What became of a workload, over all its placements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-default" = crate::schema::pending_status(&["Available"])))]
pub struct WorkloadStatus {
    /// What is known of the workload; `Available` sums it up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// The generation for which every wanted deployment has been written. Everything here is current only if
    /// it equals `metadata.generation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many deployments there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub deployments: Option<i64>,
    /// How many instances there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub replicas: Option<i64>,
    /// How many instances are on the desired template and programmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub current_replicas: Option<i64>,
    /// How many instances are on the desired template, ready or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub updated_replicas: Option<i64>,
    /// How many instances there should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub desired_replicas: Option<i64>,
    /// How many instances are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub ready_replicas: Option<i64>,
    /// What became of each placement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<PlacementStatus>,
    /// State of the gateway in front of the workload, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayStatus>,
}

/// What became of one placement, over all its cities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementStatus {
    /// Name of the placement.
    pub name: String,
    /// What is known of the placement; `Available` sums it up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// The generation for which every wanted deployment of the placement has been written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many instances there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub replicas: Option<i64>,
    /// How many instances are on the desired template and programmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub current_replicas: Option<i64>,
    /// How many instances are on the desired template, ready or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub updated_replicas: Option<i64>,
    /// How many instances there should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub desired_replicas: Option<i64>,
    /// How many instances are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub ready_replicas: Option<i64>,
}

crate::lenient::optional_spec!(WorkloadSpec);
