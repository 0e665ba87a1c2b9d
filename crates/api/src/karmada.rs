//! The kinds of Karmada that we use, with the fields that we use.
//!
//! On a hub we apply PropagationPolicies and one ResourceInterpreterCustomization and read Clusters. Karmada
//! has many more fields; the definitions for a local hub keep those as they come.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Taint, Toleration},
    apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector},
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// API group of [`PropagationPolicy`].
pub const POLICY_GROUP: &str = "policy.karmada.io";
/// API group of [`Cluster`].
pub const CLUSTER_GROUP: &str = "cluster.karmada.io";
/// API group of [`ResourceInterpreterCustomization`].
pub const CONFIG_GROUP: &str = "config.karmada.io";
/// `Ready` of a Cluster.
pub const CONDITION_READY: &str = "Ready";
/// Value of `spreadByField` that counts clusters.
pub const SPREAD_BY_CLUSTER: &str = "cluster";

/// What goes to which clusters.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "policy.karmada.io",
    version = "v1alpha1",
    kind = "PropagationPolicy",
    plural = "propagationpolicies",
    namespaced,
    category = "karmada-io",
    shortname = "pp",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "Sends objects of its namespace to clusters.",
    printcolumn(name = "CONFLICT-RESOLUTION", type_ = "string", json_path = ".spec.conflictResolution"),
    printcolumn(name = "PRIORITY", type_ = "string", json_path = ".spec.priority"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PropagationPolicySpec {
    /// The objects.
    #[schemars(extend("minItems" = 1))]
    pub resource_selectors: Vec<ResourceSelector>,
    /// The clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Whether what the objects depend on goes with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagate_deps: Option<bool>,
    /// Of several policies that match, the highest wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", extend("x-default" = 0))]
    pub priority: Option<i64>,
    /// Whether it takes objects over from a policy of lower priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "Never"], "x-default" = "Never"))]
    pub preemption: Option<String>,
    /// What happens to an object that the cluster already has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Abort", "Overwrite"], "x-default" = "Abort"))]
    pub conflict_resolution: Option<String>,
    /// Who chooses the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "default-scheduler"))]
    pub scheduler_name: Option<String>,
    /// Whether the objects stay in the clusters when they go from the hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
}

/// Chooses objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSelector {
    /// Their group and version.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// Their namespace. Unset: that of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of one object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The labels of many.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
}

/// Chooses clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Placement {
    /// Which clusters may be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,
    /// Which taints of clusters do not matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_tolerations: Vec<Toleration>,
    /// How many clusters are chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spread_constraints: Vec<SpreadConstraint>,
}

/// Which clusters may be chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ClusterAffinity {
    /// Clusters with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// Clusters with these names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_names: Vec<String>,
    /// Clusters that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

/// How many clusters are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadConstraint {
    /// What is counted; `cluster` counts clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["cluster", "region", "zone", "provider"]))]
    pub spread_by_field: Option<String>,
    /// A label whose values are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_by_label: Option<String>,
    /// The most that are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::integer")]
    pub max_groups: Option<i64>,
    /// The fewest that are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::integer")]
    pub min_groups: Option<i64>,
}

/// A member cluster; for us, a cell.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.karmada.io",
    version = "v1alpha1",
    kind = "Cluster",
    plural = "clusters",
    category = "karmada-io",
    status = "ClusterStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "A member cluster of the hub.",
    printcolumn(name = "VERSION", type_ = "string", json_path = ".status.kubernetesVersion"),
    printcolumn(name = "MODE", type_ = "string", json_path = ".spec.syncMode"),
    printcolumn(
        name = "READY",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ClusterSpec {
    /// `Push` (the hub writes to the cluster) or `Pull` (the cluster reads from the hub).
    #[schemars(extend("enum" = ["Push", "Pull"]))]
    pub sync_mode: String,
    /// Uid of the cluster's `kube-system` namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where the cluster's API is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_endpoint: Option<String>,
    /// Credentials for the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
    /// Credentials that may act as somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonator_secret_ref: Option<SecretReference>,
    /// Marks that keep objects away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// Names a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What is known of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ClusterStatus {
    /// Version of the cluster's API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// What is known of the cluster; `Ready` is what counts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::lenient::conditions")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// How Karmada treats a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "config.karmada.io",
    version = "v1alpha1",
    kind = "ResourceInterpreterCustomization",
    plural = "resourceinterpretercustomizations",
    category = "karmada-io",
    shortname = "ric",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "Tells the hub how to treat a kind.",
    printcolumn(name = "TARGET-API-VERSION", type_ = "string", json_path = ".spec.target.apiVersion"),
    printcolumn(name = "TARGET-KIND", type_ = "string", json_path = ".spec.target.kind"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct ResourceInterpreterCustomizationSpec {
    /// The kind.
    pub target: CustomizationTarget,
    /// What to do for it.
    pub customizations: Customizations,
}

/// The kind that a customization is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomizationTarget {
    /// Its group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// What to do for a kind, each in Lua.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Customizations {
    /// What the cluster may change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<LuaScript>,
    /// How many replicas an object asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_resource: Option<LuaScript>,
    /// How the number of replicas is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_revision: Option<LuaScript>,
    /// What of the status comes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reflection: Option<LuaScript>,
    /// How the statuses of several clusters become one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_aggregation: Option<LuaScript>,
    /// Whether an object is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_interpretation: Option<LuaScript>,
    /// What an object depends on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependency_interpretation: Option<LuaScript>,
    /// What the components of an object ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component_resource: Option<LuaScript>,
}

/// A script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LuaScript {
    /// Its text.
    pub lua_script: String,
}

impl From<&str> for LuaScript {
    fn from(text: &str) -> Self {
        Self { lua_script: text.to_owned() }
    }
}

/// Chooses by labels that must all be equal.
pub fn match_labels<const N: usize>(labels: [(&str, &str); N]) -> LabelSelector {
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    LabelSelector { match_labels: Some(BTreeMap::from(labels)), match_expressions: None }
}

crate::lenient::optional_spec!(PropagationPolicySpec, ClusterSpec, ResourceInterpreterCustomizationSpec);
