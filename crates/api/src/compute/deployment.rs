//! [`WorkloadDeployment`]: one placement of a workload in one city.
//!
//! The management plane writes `spec` (but never `spec.replicas`, which belongs to whoever scales); the cell
//! that serves the city writes `status`, and the federator brings it back to the project.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InstanceTemplate, LocationReference, ScaleSettings};

/// What to run in one city, and how many of it.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "compute.datumapis.com",
    version = "v1alpha",
    kind = "WorkloadDeployment",
    plural = "workloaddeployments",
    namespaced,
    status = "WorkloadDeploymentStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "One placement of a workload in one city.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
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
    printcolumn(name = "Replicas", type_ = "string", json_path = ".status.replicas"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.readyReplicas"),
    printcolumn(name = "Desired", type_ = "string", json_path = ".status.desiredReplicas"),
    printcolumn(name = "Up-to-date", type_ = "string", json_path = ".status.updatedReplicas"),
    printcolumn(
        name = "Location Namespace",
        type_ = "string",
        json_path = ".status.location.namespace",
        priority = 1
    ),
    printcolumn(name = "Location Name", type_ = "string", json_path = ".status.location.name", priority = 1)
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct WorkloadDeploymentSpec {
    /// The workload that this deployment belongs to.
    pub workload_ref: WorkloadReference,
    /// The placement of the workload that asks for this deployment.
    pub placement_name: String,
    /// The city that the instances run in.
    pub city_code: String,
    /// The instance to run.
    pub template: InstanceTemplate,
    /// How many instances may run, and when that changes.
    pub scale_settings: ScaleSettings,
    /// How many instances are wanted, within `scaleSettings`. Unset: `scaleSettings.minReplicas`. Set through
    /// the scale subresource, by a person or an autoscaler.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("minimum" = 0))]
    pub replicas: Option<i64>,
    /// While true no running instance is replaced because its template changed. Copied from the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// Names the workload that a deployment belongs to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadReference {
    /// Name of the workload.
    pub name: String,
    /// UID of the workload, as it is in the project.
    pub uid: String,
}

/// What became of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-default" = crate::schema::pending_status(&["Available"])))]
pub struct WorkloadDeploymentStatus {
    /// What is known of the deployment; `Available` sums it up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// The generation of the project's object that this status speaks of, on every plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The location that the instances run in, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationReference>,
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
    /// Label selector of the instances, for whoever reads the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

crate::lenient::optional_spec!(WorkloadDeploymentSpec);
