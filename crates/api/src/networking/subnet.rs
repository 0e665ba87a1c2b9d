//! Subnets of a network in one location, and the claims for them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NameReference;

/// Asks for a subnet.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.datumapis.com",
    version = "v1alpha",
    kind = "SubnetClaim",
    plural = "subnetclaims",
    namespaced,
    status = "SubnetClaimStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "Asks for a subnet of a network in one location.",
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
    )
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct SubnetClaimSpec {
    /// Class of the subnet, such as `private`.
    pub subnet_class: String,
    /// The network in that location.
    pub network_context: NameReference,
    /// The location.
    pub location: NameReference,
    /// `IPv4` or `IPv6`.
    #[schemars(extend("enum" = ["IPv4", "IPv6"]))]
    pub ip_family: String,
    /// First address that is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_address: Option<String>,
    /// Size that is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    pub prefix_length: Option<i64>,
}

/// What became of a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-default" = crate::schema::pending_status(&["Allocated", "Programmed", "Ready"])))]
pub struct SubnetClaimStatus {
    /// What is known of the claim.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_ref: Option<NameReference>,
    /// First address that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_address: Option<String>,
    /// Size that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    pub prefix_length: Option<i64>,
}

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.datumapis.com",
    version = "v1alpha",
    kind = "Subnet",
    plural = "subnets",
    namespaced,
    status = "SubnetStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "A subnet of a network in one location.",
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
    printcolumn(name = "Start Address", type_ = "string", json_path = ".status.startAddress"),
    printcolumn(name = "Prefix Length", type_ = "string", json_path = ".status.prefixLength")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct SubnetSpec {
    /// Class of the subnet, such as `private`.
    pub subnet_class: String,
    /// The network in that location.
    pub network_context: NameReference,
    /// The location.
    pub location: NameReference,
    /// `IPv4` or `IPv6`.
    #[schemars(extend("enum" = ["IPv4", "IPv6"]))]
    pub ip_family: String,
    /// First address.
    pub start_address: String,
    /// Size.
    #[schemars(with = "i32")]
    pub prefix_length: i64,
}

/// What became of a subnet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-default" = crate::schema::pending_status(&["Allocated", "Programmed", "Ready"])))]
pub struct SubnetStatus {
    /// What is known of the subnet.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
    /// First address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_address: Option<String>,
    /// Size.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    pub prefix_length: Option<i64>,
}

crate::lenient::optional_spec!(SubnetClaimSpec, SubnetSpec);
