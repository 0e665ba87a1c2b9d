//! What the quota ledger works with: registrations, grants and the buckets that sum them up.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ObjectReference;

/// Gives amounts to a consumer.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "quota.miloapis.com",
    version = "v1alpha1",
    kind = "ResourceGrant",
    plural = "resourcegrants",
    namespaced,
    status = "ResourceGrantStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "Gives a consumer a budget.",
    printcolumn(
        name = "Active",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Active')].status"
    ),
    printcolumn(
        name = "Consumer Group",
        type_ = "string",
        json_path = ".spec.consumerRef.apiGroup",
        priority = 1
    ),
    printcolumn(
        name = "Consumer Type",
        type_ = "string",
        json_path = ".spec.consumerRef.kind",
        priority = 1
    ),
    printcolumn(name = "Consumer", type_ = "string", json_path = ".spec.consumerRef.name", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    selectable = ".spec.consumerRef.kind",
    selectable = ".spec.consumerRef.name"
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct ResourceGrantSpec {
    /// Whose budget it is.
    pub consumer_ref: ObjectReference,
    /// The amounts.
    #[schemars(extend("minItems" = 1))]
    pub allowances: Vec<Allowance>,
}

/// Amounts of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Allowance {
    /// The resource.
    pub resource_type: String,
    /// The amounts; they add up.
    #[schemars(extend("minItems" = 1))]
    pub buckets: Vec<AllowanceAmount>,
}

/// One amount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowanceAmount {
    /// How much.
    #[schemars(extend("minimum" = 0))]
    pub amount: i64,
}

/// What became of a grant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceGrantStatus {
    /// The generation that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is known of the grant; `Active` is what counts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("x-kubernetes-validations" = [{
            "message": "Active condition reason must be valid",
            "rule": "self.all(c, c.type == 'Active' ? c.reason in ['GrantActive', 'ValidationFailed', 'GrantPending'] : true)"
        }])
    )]
    pub conditions: Vec<Condition>,
}

/// The budget of a consumer for one resource.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "quota.miloapis.com",
    version = "v1alpha1",
    kind = "AllowanceBucket",
    plural = "allowancebuckets",
    namespaced,
    status = "AllowanceBucketStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "The budget of a consumer for one resource, and how much of it is used.",
    printcolumn(name = "Resource Type", type_ = "string", json_path = ".spec.resourceType"),
    printcolumn(name = "Limit", type_ = "integer", json_path = ".status.limit"),
    printcolumn(name = "Allocated", type_ = "integer", json_path = ".status.allocated"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.available"),
    printcolumn(name = "Claims", type_ = "integer", json_path = ".status.claimCount"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    selectable = ".spec.consumerRef.kind",
    selectable = ".spec.consumerRef.name",
    selectable = ".spec.resourceType"
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct AllowanceBucketSpec {
    /// Whose budget it is.
    pub consumer_ref: ObjectReference,
    /// The resource.
    #[schemars(extend("minLength" = 1, "maxLength" = 253))]
    pub resource_type: String,
}

/// How much of a budget is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowanceBucketStatus {
    /// The generation that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The whole budget.
    #[schemars(extend("minimum" = 0))]
    pub limit: i64,
    /// How much of it is granted to claims.
    #[schemars(extend("minimum" = 0))]
    pub allocated: i64,
    /// How much of it is left.
    #[schemars(extend("minimum" = 0))]
    pub available: i64,
    /// How many claims take from it.
    #[schemars(with = "i32", extend("minimum" = 0))]
    pub claim_count: i64,
    /// How many grants add to it.
    #[schemars(with = "i32", extend("minimum" = 0))]
    pub grant_count: i64,
    /// The grants that add to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contributing_grant_refs: Vec<ContributingGrant>,
    /// When it was last summed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::date_time")]
    pub last_reconciliation: Option<Time>,
}

/// What one grant adds to a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContributingGrant {
    /// The grant.
    pub name: String,
    /// Its generation when it was summed up.
    pub last_observed_generation: i64,
    /// How much it adds.
    #[schemars(extend("minimum" = 0))]
    pub amount: i64,
}

/// Makes a resource known to the ledger.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "quota.miloapis.com",
    version = "v1alpha1",
    kind = "ResourceRegistration",
    plural = "resourceregistrations",
    status = "ResourceRegistrationStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "Makes a resource known to the quota ledger.",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(
        name = "Active",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Active')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    selectable = ".spec.consumerType.kind",
    selectable = ".spec.consumerType.apiGroup",
    selectable = ".spec.resourceType"
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct ResourceRegistrationSpec {
    /// The resource.
    #[schemars(extend("minLength" = 1, "maxLength" = 253))]
    pub resource_type: String,
    /// `Entity` (things are counted) or `Allocation` (amounts are).
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Entity", "Allocation"]))]
    pub type_: String,
    /// The kind whose budget it is.
    pub consumer_type: ConsumerType,
    /// The kinds that claims may be for.
    #[schemars(extend("minItems" = 1, "maxItems" = 20))]
    pub claiming_resources: Vec<ClaimingResource>,
    /// The unit that amounts are in.
    #[schemars(extend("minLength" = 1, "maxLength" = 50))]
    pub base_unit: String,
    /// The unit that people see.
    #[schemars(extend("minLength" = 1, "maxLength" = 50))]
    pub display_unit: String,
    /// How many base units a display unit has.
    #[schemars(extend("minimum" = 1))]
    pub unit_conversion_factor: i64,
    /// What the resource is, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minLength" = 1, "maxLength" = 500))]
    pub description: Option<String>,
}

/// A kind that has a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerType {
    /// Its group.
    #[schemars(extend("pattern" = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub api_group: String,
    /// Its kind.
    pub kind: String,
}

/// A kind that claims may be for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimingResource {
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub api_group: Option<String>,
    /// Its kind.
    #[schemars(extend("minLength" = 1, "maxLength" = 63))]
    pub kind: String,
}

/// What became of a registration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRegistrationStatus {
    /// The generation that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is known of the registration; `Active` is what counts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("x-kubernetes-validations" = [{
            "message": "Active condition reason must be valid",
            "rule": "self.all(c, c.type == 'Active' ? c.reason in ['RegistrationActive', 'ValidationFailed', 'RegistrationPending'] : true)"
        }])
    )]
    pub conditions: Vec<Condition>,
}

crate::lenient::optional_spec!(ResourceGrantSpec, AllowanceBucketSpec, ResourceRegistrationSpec);
