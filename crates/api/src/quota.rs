//! The kinds of group `quota.miloapis.com` that we use.
//!
//! A cell creates and deletes ResourceClaims; everything else here is written by the ledger and the platform.
//! Missing fields and malformed conditions never keep an object from being decoded.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod ledger;
pub use ledger::{
    Allowance, AllowanceAmount, AllowanceBucket, AllowanceBucketSpec, AllowanceBucketStatus,
    ClaimingResource, ConsumerType, ContributingGrant, ResourceGrant, ResourceGrantSpec, ResourceGrantStatus,
    ResourceRegistration, ResourceRegistrationSpec, ResourceRegistrationStatus,
};

/// API group of these kinds.
pub const GROUP: &str = "quota.miloapis.com";

/// `Granted` of a ResourceClaim.
pub const CONDITION_GRANTED: &str = "Granted";
/// `Active` of a ResourceGrant and of a ResourceRegistration.
pub const CONDITION_ACTIVE: &str = "Active";

/// Reason of `Granted`: granted.
pub const REASON_QUOTA_AVAILABLE: &str = "QuotaAvailable";
/// Reason of `Granted`: denied, for good.
pub const REASON_QUOTA_EXCEEDED: &str = "QuotaExceeded";
/// Reason of `Granted`, and of `Active`: the object makes no sense.
pub const REASON_VALIDATION_FAILED: &str = "ValidationFailed";
/// Reason of `Granted`: not yet looked at.
pub const REASON_PENDING_EVALUATION: &str = "PendingEvaluation";
/// Reason of a grant's `Active`: it counts.
pub const REASON_GRANT_ACTIVE: &str = "GrantActive";
/// Reason of a grant's `Active`: not yet looked at.
pub const REASON_GRANT_PENDING: &str = "GrantPending";
/// Reason of a registration's `Active`: it counts.
pub const REASON_REGISTRATION_ACTIVE: &str = "RegistrationActive";
/// Reason of a registration's `Active`: not yet looked at.
pub const REASON_REGISTRATION_PENDING: &str = "RegistrationPending";

/// Status of an allocation: granted.
pub const ALLOCATION_GRANTED: &str = "Granted";
/// Status of an allocation: denied.
pub const ALLOCATION_DENIED: &str = "Denied";
/// Status of an allocation: not decided.
pub const ALLOCATION_PENDING: &str = "Pending";

/// Resource type: one for each workload. Declared, not claimed.
pub const RESOURCE_WORKLOADS: &str = "compute.datumapis.com/workloads";
/// Resource type: one for each instance.
pub const RESOURCE_INSTANCES: &str = "compute.datumapis.com/instances";
/// Resource type: thousandths of a CPU.
pub const RESOURCE_VCPUS: &str = "compute.datumapis.com/vcpus";
/// Resource type: MiB of memory.
pub const RESOURCE_MEMORY: &str = "compute.datumapis.com/memory";

/// Names an object of any kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl ObjectReference {
    /// Names a project.
    pub fn project(name: &str) -> Self {
        Self {
            api_group: Some(crate::milo::RESOURCE_MANAGER_GROUP.to_owned()),
            kind: "Project".to_owned(),
            name: name.to_owned(),
            namespace: None,
        }
    }
}

/// Asks the ledger for amounts.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "quota.miloapis.com",
    version = "v1alpha1",
    kind = "ResourceClaim",
    plural = "resourceclaims",
    namespaced,
    status = "ResourceClaimStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "Asks the quota ledger for amounts.",
    printcolumn(
        name = "Granted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Granted')].status"
    ),
    printcolumn(
        name = "Resource",
        type_ = "string",
        json_path = ".spec.requests[0].resourceType",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    selectable = ".spec.consumerRef.kind",
    selectable = ".spec.consumerRef.name",
    selectable = ".spec.resourceRef.apiGroup",
    selectable = ".spec.resourceRef.kind",
    selectable = ".spec.resourceRef.name",
    selectable = ".spec.resourceRef.namespace"
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct ResourceClaimSpec {
    /// Whose budget it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_ref: Option<ObjectReference>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_ref: Option<ObjectReference>,
    /// The amounts.
    #[schemars(extend("minItems" = 1, "maxItems" = 20))]
    pub requests: Vec<ResourceRequest>,
}

/// An amount of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRequest {
    /// The resource.
    pub resource_type: String,
    /// How much of it, in its base unit.
    #[schemars(extend("minimum" = 0))]
    pub amount: i64,
}

/// What the ledger answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-default" = {
    "conditions": [
        crate::schema::condition("Granted", "False", "PendingEvaluation", "Awaiting capacity evaluation")
    ]
}))]
pub struct ResourceClaimStatus {
    /// The generation that the ledger has looked at. Unset: it has not looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is known of the claim; `Granted` is what counts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(
        schema_with = "crate::schema::conditions",
        extend("x-kubernetes-validations" = [{
            "message": "Granted condition reason must be valid",
            "rule": "self.all(c, c.type == 'Granted' ? c.reason in ['QuotaAvailable', 'QuotaExceeded', 'ValidationFailed', 'PendingEvaluation'] : true)"
        }])
    )]
    pub conditions: Vec<Condition>,
    /// The answer for each amount.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["resourceType"]))]
    pub allocations: Vec<ResourceAllocation>,
}

/// The answer for one amount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["lastTransitionTime", "resourceType", "status"]))]
pub struct ResourceAllocation {
    /// The resource.
    #[schemars(extend("minLength" = 1))]
    pub resource_type: String,
    /// `Granted`, `Denied` or `Pending`.
    #[schemars(extend("enum" = ["Granted", "Denied", "Pending"]))]
    pub status: String,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How much was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub allocated_amount: Option<i64>,
    /// The bucket that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocating_bucket: Option<String>,
    /// When the status last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::date_time")]
    pub last_transition_time: Option<Time>,
}

crate::lenient::optional_spec!(ResourceClaimSpec);
