//! [`Instance`]: one running copy of a template.
//!
//! A cell creates an Instance once and from then on only takes gates out of its spec. In `status` each writer
//! applies its own conditions: the provider `Programmed` and `Available`, the cell's controllers the rest.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InstanceRuntime, LocationReference, NetworkInterface, Volume};

/// Names of the scheduling gates that keep a provider from starting an instance.
pub mod gates {
    /// Held until the networks of the instance are ready.
    pub const NETWORK: &str = "Network";
    /// Held until the project's quota ledger has granted the instance's claim.
    pub const QUOTA: &str = "Quota";
    /// Held until every ConfigMap and Secret that the instance names is in the cell.
    pub const REFERENCED_DATA: &str = "ReferencedData";
}

/// What an instance is made of.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "compute.datumapis.com",
    version = "v1alpha",
    kind = "Instance",
    plural = "instances",
    namespaced,
    status = "InstanceStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "One running copy of a workload's template. Read-only in a project.",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(
        name = "Network IP",
        type_ = "string",
        json_path = ".status.networkInterfaces[0].assignments.networkIP"
    ),
    printcolumn(
        name = "External IP",
        type_ = "string",
        json_path = ".status.networkInterfaces[0].assignments.externalIP"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    ),
    printcolumn(
        name = "Quota",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="QuotaGranted")].reason"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct InstanceSpec {
    /// What runs, and on how much machine.
    pub runtime: InstanceRuntime,
    /// The networks that the instance is attached to, in order.
    #[schemars(extend("minItems" = 1))]
    pub network_interfaces: Vec<NetworkInterface>,
    /// Volumes that containers or the virtual machine may attach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub volumes: Vec<Volume>,
    /// The location that the instance runs in. Set by the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationReference>,
    /// What the service keeps about the instance. Set by the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<InstanceControl>,
}

impl InstanceSpec {
    /// The hash of the template that the instance was made from.
    pub fn template_hash(&self) -> Option<&str> {
        self.controller.as_ref().map(|control| control.template_hash.as_str())
    }

    /// Whether the gate of that name still holds the instance.
    pub fn has_gate(&self, name: &str) -> bool {
        self.gates().iter().any(|gate| gate.name == name)
    }

    /// The gates that still hold the instance, in their stored order.
    pub fn gates(&self) -> &[SchedulingGate] {
        self.controller.as_ref().map_or(&[], |control| &control.scheduling_gates)
    }
}

/// What the service keeps in an instance's spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceControl {
    /// Hash of the template that the instance was made from.
    pub template_hash: String,
    /// A provider starts the instance only when this list is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scheduling_gates: Vec<SchedulingGate>,
}

/// Something that must be done before the instance may start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingGate {
    /// Name of the gate.
    pub name: String,
}

/// What became of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-default" = crate::schema::pending_instance_status()))]
pub struct InstanceStatus {
    /// What is known of the instance; `Ready` sums it up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// State and addresses of the network interfaces, in the order of the spec.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_interfaces: Vec<InstanceInterfaceStatus>,
    /// What the provider says about the template it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<InstanceControlStatus>,
}

impl InstanceStatus {
    /// The hash of the template that the provider runs.
    pub fn observed_template_hash(&self) -> Option<&str> {
        self.controller.as_ref().map(|control| control.observed_template_hash.as_str())
    }
}

/// What the provider says about the template it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceControlStatus {
    /// Hash of the template that is running.
    pub observed_template_hash: String,
}

/// State of one network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceInterfaceStatus {
    /// Addresses of the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignments: Option<InterfaceAssignments>,
}

/// Addresses of a network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InterfaceAssignments {
    /// Address within the network.
    #[serde(rename = "networkIP", skip_serializing_if = "Option::is_none")]
    pub network_ip: Option<String>,
    /// Address that is reached from outside.
    #[serde(rename = "externalIP", skip_serializing_if = "Option::is_none")]
    pub external_ip: Option<String>,
}

crate::lenient::optional_spec!(InstanceSpec);
