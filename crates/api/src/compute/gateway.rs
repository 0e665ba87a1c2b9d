//! State of the gateway in front of a workload, in the form that the Gateway API gives it.
//!
//! Nothing here writes it; it is part of the published schema and is kept as it comes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayStatus {
    /// Addresses that the gateway is reached at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 16))]
    pub addresses: Vec<GatewayAddress>,
    /// What is known of the gateway.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend(
            "maxItems" = 8,
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["type"],
            "x-default" = crate::schema::pending_conditions(&["Accepted", "Programmed"])
        )
    )]
    pub conditions: Vec<Condition>,
    /// State of each listener.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "maxItems" = 64,
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub listeners: Vec<GatewayListener>,
}

/// An address that a gateway is reached at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [{
    "message": r"Hostname value must only contain valid characters (matching ^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$)",
    "rule": r#"self.type == 'Hostname' ? self.value.matches(r"""^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"""): true"#
}]))]
pub struct GatewayAddress {
    /// `IPAddress`, `Hostname`, or a name with a domain.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "x-default" = "IPAddress",
        "minLength" = 1,
        "maxLength" = 253,
        "pattern" = r"^Hostname|IPAddress|NamedAddress|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$"
    ))]
    pub type_: Option<String>,
    /// The address.
    #[schemars(extend("minLength" = 1, "maxLength" = 253))]
    pub value: String,
}

/// State of one listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayListener {
    /// Name of the listener.
    #[schemars(extend(
        "minLength" = 1,
        "maxLength" = 253,
        "pattern" = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    ))]
    pub name: String,
    /// Kinds of routes that the listener takes.
    #[schemars(extend("maxItems" = 8))]
    pub supported_kinds: Vec<RouteGroupKind>,
    /// How many routes are attached.
    #[schemars(with = "i32")]
    pub attached_routes: i64,
    /// What is known of the listener.
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("maxItems" = 8, "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

/// A kind of route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteGroupKind {
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "x-default" = "gateway.networking.k8s.io",
        "maxLength" = 253,
        "pattern" = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    ))]
    pub group: Option<String>,
    /// Its kind.
    #[schemars(extend(
        "minLength" = 1,
        "maxLength" = 63,
        "pattern" = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"
    ))]
    pub kind: String,
}
