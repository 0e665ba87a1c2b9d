//! How an instance is attached to networks, and references to networks and locations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::IntOrString;

/// Names a location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LocationReference {
    /// Name of the location.
    pub name: String,
    /// Not needed: locations belong to no namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Names a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkReference {
    /// Name of the network.
    pub name: String,
    /// Namespace of the network. Empty: that of the object which holds the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// One attachment to a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkInterface {
    /// The network.
    pub network: NetworkReference,
    /// What may reach the instance over this interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkPolicy>,
}

/// What may reach an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicy {
    /// Traffic is let in if one of these rules matches it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ingress: Vec<NetworkPolicyIngress>,
}

/// One rule for traffic that comes in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicyIngress {
    /// Ports that the rule opens. Empty: all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<NetworkPolicyPort>,
    /// Sources that the rule lets in. Empty: all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub from: Vec<NetworkPeer>,
}

/// A port, or a range of ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicyPort {
    /// `TCP`, `UDP` or `SCTP`. Unset: `TCP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Number or name of the port. Unset: all ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<IntOrString>,
    /// Last port of the range that `port` begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    pub end_port: Option<i64>,
}

/// A source of traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPeer {
    /// A range of addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_block: Option<IpBlock>,
}

/// A range of addresses, without some of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IpBlock {
    /// The range, such as `10.0.0.0/8`.
    pub cidr: String,
    /// Ranges within `cidr` that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub except: Vec<String>,
}
