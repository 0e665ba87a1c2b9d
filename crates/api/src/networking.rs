//! The kinds of group `networking.datumapis.com` that we use.
//!
//! We create NetworkBindings and SubnetClaims and only read the rest. Missing fields and malformed conditions
//! never keep an object from being decoded.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compute::NetworkReference;

mod location;
mod subnet;
pub use location::{
    Coordinates, GcpProvider, LocalLocationReference, Location, LocationBinding, LocationBindingSpec,
    LocationBindingStatus, LocationProvider, LocationSpec, LocationStatus,
};
pub use subnet::{Subnet, SubnetClaim, SubnetClaimSpec, SubnetClaimStatus, SubnetSpec, SubnetStatus};

/// API group of these kinds.
pub const GROUP: &str = "networking.datumapis.com";
/// `Ready`, of every kind here but LocationBinding.
pub const CONDITION_READY: &str = "Ready";
/// `Available` of a LocationBinding: the project may use the location.
pub const CONDITION_AVAILABLE: &str = "Available";
/// The class of the subnets that we claim.
pub const SUBNET_CLASS_PRIVATE: &str = "private";
/// The address family of the subnets that we claim.
pub const IPV4: &str = "IPv4";
/// The other address family.
pub const IPV6: &str = "IPv6";

/// Names an object in no namespace, or in that of the referrer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NameReference {
    /// Its name.
    pub name: String,
}

impl From<&str> for NameReference {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}

/// A network of a project.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.datumapis.com",
    version = "v1alpha",
    kind = "Network",
    plural = "networks",
    namespaced,
    status = "NetworkStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "A network of a project.",
    printcolumn(name = "IPv6Prefix", type_ = "string", json_path = ".status.ipam.ipv6Prefix"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "IPFamilies", type_ = "string", json_path = ".spec.ipFamilies", priority = 1),
    printcolumn(name = "IPAM", type_ = "string", json_path = ".spec.ipam.mode", priority = 1),
    printcolumn(name = "MTU", type_ = "integer", json_path = ".spec.mtu", priority = 1)
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct NetworkSpec {
    /// Where addresses come from.
    pub ipam: NetworkIpam,
    /// Address families of the network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "ip_families", extend("x-default" = ["IPv6"]))]
    pub ip_families: Vec<String>,
    /// Largest packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("minimum" = 1300, "maximum" = 8856, "x-default" = 1460))]
    pub mtu: Option<i64>,
}

/// Where the addresses of a network come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkIpam {
    /// `Auto` or `Policy`.
    #[schemars(extend("enum" = ["Auto", "Policy"]))]
    pub mode: String,
    /// IPv4 addresses to take from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv4_range: Option<String>,
    /// IPv6 addresses to take from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_range: Option<String>,
}

/// What became of a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-default" = crate::schema::pending_status(&["Ready"])))]
pub struct NetworkStatus {
    /// What is known of the network.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What the network was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipam: Option<NetworkIpamStatus>,
}

/// What a network was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkIpamStatus {
    /// Its IPv6 prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_prefix: Option<String>,
    /// The claim behind the prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_prefix_ref: Option<AddressClaimReference>,
}

/// Names a claim for addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AddressClaimReference {
    /// The claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_name: Option<String>,
    /// Its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The pool that it takes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_name: Option<String>,
    /// The project of the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Asks for a network in a location.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.datumapis.com",
    version = "v1alpha",
    kind = "NetworkBinding",
    plural = "networkbindings",
    namespaced,
    status = "NetworkBindingStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "Asks for a network in a location.",
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
pub struct NetworkBindingSpec {
    /// The network.
    #[schemars(extend("x-kubernetes-validations" = [
        { "message": "spec.network is immutable", "rule": "self == oldSelf" }
    ]))]
    pub network: NetworkReference,
    /// The location.
    #[schemars(extend("x-kubernetes-validations" = [
        { "message": "spec.location is immutable", "rule": "self == oldSelf" }
    ]))]
    pub location: NameReference,
    /// Who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<BindingConsumer>,
}

/// Who asks for a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BindingConsumer {
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// What became of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-default" = crate::schema::pending_status(&["Ready"])))]
pub struct NetworkBindingStatus {
    /// What is known of the binding.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The network in that location.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_context_ref: Option<NetworkContextReference>,
}

/// Names a network context.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkContextReference {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

/// A network in one location.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.datumapis.com",
    version = "v1alpha",
    kind = "NetworkContext",
    plural = "networkcontexts",
    namespaced,
    status = "NetworkContextStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "A network in one location.",
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
    printcolumn(name = "IPv6Subnet", type_ = "string", json_path = ".status.ipam.ipv6SubnetRef.name")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct NetworkContextSpec {
    /// The network.
    pub network: NameReference,
    /// The location.
    pub location: NameReference,
    /// Address families of the network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "ip_families", extend("minItems" = 1, "maxItems" = 2))]
    pub ip_families: Vec<String>,
    /// Largest packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("minimum" = 1300, "maximum" = 8856))]
    pub mtu: Option<i64>,
    /// The generation of the network that this follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_generation: Option<i64>,
}

/// What became of a network in one location.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-default" = crate::schema::pending_status(&["Ready"])))]
pub struct NetworkContextStatus {
    /// What is known of it.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipam: Option<NetworkContextIpam>,
}

/// What a network was given in one location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkContextIpam {
    /// The claim for IPv6 addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_claim_ref: Option<AddressClaimReference>,
    /// The IPv6 subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_subnet_ref: Option<NameReference>,
}

/// Schema of a list of address families.
fn ip_families(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": { "type": "string", "enum": [IPV4, IPV6] } })
}

crate::lenient::optional_spec!(NetworkSpec, NetworkBindingSpec, NetworkContextSpec);
