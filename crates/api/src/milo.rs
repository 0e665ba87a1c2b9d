//! Kinds of the platform around us: projects, their control planes, and access to a service.
//!
//! Only the command line creates one of them (a [`ServiceEntitlement`], to ask for access); otherwise they are
//! read. Missing fields and malformed conditions never keep an object from being decoded.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// API group of [`Project`].
pub const RESOURCE_MANAGER_GROUP: &str = "resourcemanager.miloapis.com";
/// API group of [`ProjectControlPlane`].
pub const INFRASTRUCTURE_GROUP: &str = "infrastructure.miloapis.com";
/// API group of [`ServiceEntitlement`] and [`ServiceConfiguration`].
pub const SERVICES_GROUP: &str = "services.miloapis.com";

/// `Ready` of a Project and of a ServiceEntitlement.
pub const CONDITION_READY: &str = "Ready";
/// `ControlPlaneReady` of a ProjectControlPlane.
pub const CONDITION_CONTROL_PLANE_READY: &str = "ControlPlaneReady";
/// Name of this service in the catalog, and of the entitlement that gives a project access to it.
pub const COMPUTE_ENTITLEMENT: &str = "compute";

/// Path of a project's control plane on the host of the platform's API.
pub fn project_control_plane_path(project: &str) -> String {
    format!("/apis/{RESOURCE_MANAGER_GROUP}/v1alpha1/projects/{project}/control-plane")
}

/// Address of a project's control plane inside the platform's own cluster.
pub fn project_internal_address(project: &str) -> String {
    format!("https://milo-apiserver.project-{project}.svc.cluster.local:6443")
}

/// Keys of the extra user information in which a request carries its project.
pub mod extra {
    /// Name of the parent resource, that is of the project.
    pub const PARENT_NAME: &str = "iam.miloapis.com/parent-name";
    /// Kind of the parent resource.
    pub const PARENT_TYPE: &str = "iam.miloapis.com/parent-type";
    /// API group of the parent resource.
    pub const PARENT_API_GROUP: &str = "iam.miloapis.com/parent-api-group";
}

/// A project.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "resourcemanager.miloapis.com",
    version = "v1alpha1",
    kind = "Project",
    plural = "projects",
    status = "ProjectStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "A project: one virtual control plane.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct ProjectSpec {
    /// Whose project it is.
    pub owner_ref: ProjectOwner,
}

/// Whose project it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectOwner {
    /// Always `Organization`.
    #[schemars(extend("enum" = ["Organization"]))]
    pub kind: String,
    /// The organization.
    pub name: String,
}

/// What became of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectStatus {
    /// What is known of the project; `Ready` is what counts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("x-default" = [
            crate::schema::condition("Ready", "Unknown", "Unknown", "Waiting for control plane to reconcile")
        ])
    )]
    pub conditions: Vec<Condition>,
}

/// The control plane of a project.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.miloapis.com",
    version = "v1alpha1",
    kind = "ProjectControlPlane",
    plural = "projectcontrolplanes",
    status = "ProjectControlPlaneStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "The control plane of a project, as the platform's own cluster sees it."
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct ProjectControlPlaneSpec {}

/// What became of a control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-default" = {
    "conditions": [
        crate::schema::condition(
            "ControlPlaneReady", "False", "Creating", "Creating a new control plane for the project"
        )
    ]
}))]
pub struct ProjectControlPlaneStatus {
    /// What is known of the control plane; `ControlPlaneReady` is what counts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// Gives a project access to a service.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "services.miloapis.com",
    version = "v1alpha1",
    kind = "ServiceEntitlement",
    plural = "serviceentitlements",
    status = "ServiceEntitlementStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "Gives the project that it is in access to a service.",
    printcolumn(name = "Service", type_ = "string", json_path = ".spec.serviceRef.name"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ServiceEntitlementSpec {
    /// The service.
    pub service_ref: ServiceReference,
}

/// Names a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceReference {
    /// Its name.
    pub name: String,
}

/// What became of a request for access.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ServiceEntitlementStatus {
    /// What is known of the request; `Ready` is what counts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

/// An entry of the platform's catalog: what a service is and needs. It has the service's name.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "services.miloapis.com",
    version = "v1alpha1",
    kind = "ServiceConfiguration",
    plural = "serviceconfigurations",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "An entry of the platform's catalog: what a service is and needs.",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ServiceConfigurationSpec {
    /// Where the service can be had.
    pub locations: ServiceLocations,
}

/// Where a service can be had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceLocations {
    /// Classes of locations that the service supports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supported_classes: Vec<String>,
}

crate::lenient::optional_spec!(
    ProjectSpec,
    ProjectControlPlaneSpec,
    ServiceEntitlementSpec,
    ServiceConfigurationSpec
);
