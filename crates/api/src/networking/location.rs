//! Places where instances can run, and offers of them to projects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a location.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LocationStatus {
    /// What is known of the location.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A place where instances can run.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.datumapis.com",
    version = "v1alpha",
    kind = "Location",
    plural = "locations",
    status = "LocationStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "A place where instances can run.",
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.locationClassName"),
    printcolumn(
        name = "City",
        type_ = "string",
        json_path = r".spec.topology.topology\.datum\.net/city-code"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    )
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct LocationSpec {
    /// Who runs the location, such as `datum-managed`.
    pub location_class_name: String,
    /// Facts about the place; the city code is one of them.
    pub topology: BTreeMap<String, String>,
    /// The provider behind the location.
    pub provider: LocationProvider,
    /// Where on earth it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinates: Option<Coordinates>,
}

impl LocationSpec {
    /// The city that the location is in.
    pub fn city_code(&self) -> Option<&str> {
        self.topology.get(crate::labels::TOPOLOGY_CITY_CODE).map(String::as_str)
    }
}

/// The provider behind a location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LocationProvider {
    /// Google Cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcp: Option<GcpProvider>,
}

/// A zone of Google Cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GcpProvider {
    /// The cloud project.
    pub project_id: String,
    /// The region.
    pub region: String,
    /// The zone.
    pub zone: String,
}

/// Where on earth a location is, in decimal degrees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Coordinates {
    /// Degrees north.
    #[schemars(extend(
        "pattern" = r"^-?\d{1,2}(\.\d+)?$",
        "x-kubernetes-validations" = [{
            "message": "latitude must be between -90 and 90",
            "rule": "double(self) >= -90.0 && double(self) <= 90.0"
        }]
    ))]
    pub latitude: String,
    /// Degrees east.
    #[schemars(extend(
        "pattern" = r"^-?\d{1,3}(\.\d+)?$",
        "x-kubernetes-validations" = [{
            "message": "longitude must be between -180 and 180",
            "rule": "double(self) >= -180.0 && double(self) <= 180.0"
        }]
    ))]
    pub longitude: String,
}

/// Offers a location to a project.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.datumapis.com",
    version = "v1alpha",
    kind = "LocationBinding",
    plural = "locationbindings",
    status = "LocationBindingStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "Offers a location to a project.",
    printcolumn(name = "Location", type_ = "string", json_path = ".spec.locationRef.name"),
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.locationClassName"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct LocationBindingSpec {
    /// The location.
    pub location_ref: LocalLocationReference,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Who runs the location.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location_class_name: Option<String>,
    /// Facts about the place; the city code is one of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub topology: BTreeMap<String, String>,
}

impl LocationBindingSpec {
    /// The city that the location is in.
    pub fn city_code(&self) -> Option<&str> {
        self.topology.get(crate::labels::TOPOLOGY_CITY_CODE).map(String::as_str)
    }
}

/// Names a location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = [], "x-kubernetes-map-type" = "atomic"))]
pub struct LocalLocationReference {
    /// Its name.
    #[schemars(extend("x-default" = ""))]
    pub name: String,
}

/// What became of an offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LocationBindingStatus {
    /// What is known of the offer; `Available` is what counts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

crate::lenient::optional_spec!(LocationSpec, LocationBindingSpec);
