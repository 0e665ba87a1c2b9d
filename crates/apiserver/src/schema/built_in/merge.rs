//! How lists and maps of built-in kinds merge: facts of the Kubernetes API that its generated Rust
//! types do not carry.
//!
//! Lists that are not here are atomic, maps that are not here merge by key.

/// What is said about one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// A list keyed by these fields; strategic merge goes by the first.
    Keyed(&'static [&'static str]),
    /// A list keyed by these fields that a strategic merge replaces whole.
    KeyedNoPatch(&'static [&'static str]),
    /// A list that is one value to server-side apply, but that a strategic merge merges by this field.
    AtomicPatch(&'static str),
    /// A set that a strategic merge replaces whole.
    Set,
    /// A set that a strategic merge merges.
    SetPatch,
    /// A map that is one value.
    AtomicMap,
    /// A default that merging depends on: part of a key, or filled in on every write.
    Default(&'static str),
}

use Said::{AtomicMap, AtomicPatch, Default, Keyed, KeyedNoPatch, Set, SetPatch};

/// Fields by component. The component is named without the part that all Kubernetes APIs share.
const FIELDS: &[(&str, &str, Said)] = &[
    // core: pods
    ("core.v1.PodSpec", "containers", Keyed(&["name"])),
    ("core.v1.PodSpec", "initContainers", Keyed(&["name"])),
    ("core.v1.PodSpec", "ephemeralContainers", Keyed(&["name"])),
    ("core.v1.PodSpec", "volumes", Keyed(&["name"])),
    ("core.v1.PodSpec", "imagePullSecrets", Keyed(&["name"])),
    ("core.v1.PodSpec", "hostAliases", Keyed(&["ip"])),
    ("core.v1.PodSpec", "resourceClaims", Keyed(&["name"])),
    ("core.v1.PodSpec", "schedulingGates", Keyed(&["name"])),
    ("core.v1.PodSpec", "topologySpreadConstraints", Keyed(&["topologyKey", "whenUnsatisfiable"])),
    ("core.v1.PodSpec", "nodeSelector", AtomicMap),
    ("core.v1.Container", "env", Keyed(&["name"])),
    ("core.v1.Container", "ports", Keyed(&["containerPort", "protocol"])),
    ("core.v1.Container", "volumeDevices", Keyed(&["devicePath"])),
    ("core.v1.Container", "volumeMounts", Keyed(&["mountPath"])),
    ("core.v1.EphemeralContainer", "env", Keyed(&["name"])),
    ("core.v1.EphemeralContainer", "ports", Keyed(&["containerPort", "protocol"])),
    ("core.v1.EphemeralContainer", "volumeDevices", Keyed(&["devicePath"])),
    ("core.v1.EphemeralContainer", "volumeMounts", Keyed(&["mountPath"])),
    ("core.v1.ContainerPort", "protocol", Default("TCP")),
    ("core.v1.ResourceRequirements", "claims", KeyedNoPatch(&["name"])),
    ("core.v1.PodStatus", "conditions", Keyed(&["type"])),
    ("core.v1.PodStatus", "podIPs", Keyed(&["ip"])),
    ("core.v1.PodStatus", "hostIPs", AtomicPatch("ip")),
    ("core.v1.PodStatus", "resourceClaimStatuses", Keyed(&["name"])),
    ("core.v1.ContainerStatus", "allocatedResourcesStatus", Keyed(&["name"])),
    ("core.v1.ContainerStatus", "volumeMounts", Keyed(&["mountPath"])),
    ("core.v1.ResourceStatus", "resources", KeyedNoPatch(&["resourceID"])),
    // core: the rest
    ("core.v1.NamespaceStatus", "conditions", Keyed(&["type"])),
    ("core.v1.NodeSpec", "podCIDRs", SetPatch),
    ("core.v1.NodeStatus", "addresses", Keyed(&["type"])),
    ("core.v1.NodeStatus", "conditions", Keyed(&["type"])),
    ("core.v1.ServiceAccount", "secrets", Keyed(&["name"])),
    ("core.v1.ServiceSpec", "ports", Keyed(&["port", "protocol"])),
    ("core.v1.ServiceSpec", "selector", AtomicMap),
    ("core.v1.ServicePort", "protocol", Default("TCP")),
    ("core.v1.ServiceStatus", "conditions", Keyed(&["type"])),
    ("core.v1.EndpointPort", "protocol", Default("TCP")),
    ("core.v1.PersistentVolumeClaimStatus", "conditions", Keyed(&["type"])),
    ("core.v1.ReplicationControllerSpec", "selector", AtomicMap),
    ("core.v1.ReplicationControllerStatus", "conditions", Keyed(&["type"])),
    ("core.v1.ResourceQuotaStatus", "conditions", Keyed(&["type"])),
    // workloads
    ("apps.v1.DaemonSetStatus", "conditions", Keyed(&["type"])),
    ("apps.v1.DeploymentStatus", "conditions", Keyed(&["type"])),
    ("apps.v1.ReplicaSetStatus", "conditions", Keyed(&["type"])),
    ("apps.v1.StatefulSetStatus", "conditions", Keyed(&["type"])),
    ("batch.v1.JobStatus", "conditions", AtomicPatch("type")),
    ("batch.v1.PodFailurePolicyOnExitCodesRequirement", "values", Set),
    ("autoscaling.v2.HorizontalPodAutoscalerStatus", "conditions", Keyed(&["type"])),
    ("policy.v1.PodDisruptionBudgetStatus", "conditions", Keyed(&["type"])),
    // networking
    ("discovery.v1.Endpoint", "addresses", Set),
    ("networking.v1.ServiceCIDRStatus", "conditions", Keyed(&["type"])),
    ("storage.v1.CSINodeSpec", "drivers", Keyed(&["name"])),
    ("certificates.v1.CertificateSigningRequestStatus", "conditions", KeyedNoPatch(&["type"])),
    ("flowcontrol.v1.FlowSchemaStatus", "conditions", Keyed(&["type"])),
    ("flowcontrol.v1.PriorityLevelConfigurationStatus", "conditions", Keyed(&["type"])),
    // access and admission
    ("rbac.v1.RoleRef", "apiGroup", Default("rbac.authorization.k8s.io")),
    ("admissionregistration.v1.MutatingWebhookConfiguration", "webhooks", Keyed(&["name"])),
    ("admissionregistration.v1.ValidatingWebhookConfiguration", "webhooks", Keyed(&["name"])),
    ("admissionregistration.v1.MutatingWebhook", "matchConditions", Keyed(&["name"])),
    ("admissionregistration.v1.ValidatingWebhook", "matchConditions", Keyed(&["name"])),
    ("admissionregistration.v1.ValidatingAdmissionPolicySpec", "matchConditions", Keyed(&["name"])),
    ("admissionregistration.v1.ValidatingAdmissionPolicySpec", "variables", Keyed(&["name"])),
    ("admissionregistration.v1.ValidatingAdmissionPolicyStatus", "conditions", KeyedNoPatch(&["type"])),
    // extension
    ("apiextensions.v1.CustomResourceDefinitionStatus", "conditions", KeyedNoPatch(&["type"])),
    ("apiregistration.v1.APIServiceStatus", "conditions", Keyed(&["type"])),
];

/// Components that are one value wherever they stand: selectors and references.
const ATOMIC: &[&str] = &[
    "admissionregistration.v1.MatchResources",
    "admissionregistration.v1.NamedRuleWithOperations",
    "admissionregistration.v1.ParamKind",
    "admissionregistration.v1.ParamRef",
    "autoscaling.v1.CrossVersionObjectReference",
    "core.v1.ConfigMapKeySelector",
    "core.v1.EndpointAddress",
    "core.v1.EndpointPort",
    "core.v1.FileKeySelector",
    "core.v1.LocalObjectReference",
    "core.v1.NodeSelector",
    "core.v1.NodeSelectorTerm",
    "core.v1.ObjectFieldSelector",
    "core.v1.ObjectReference",
    "core.v1.ResourceFieldSelector",
    "core.v1.ScopeSelector",
    "core.v1.SecretKeySelector",
    "core.v1.SecretReference",
    "core.v1.TopologySelectorTerm",
    "core.v1.TypedLocalObjectReference",
    "discovery.v1.EndpointPort",
    "meta.v1.LabelSelector",
    "rbac.v1.RoleRef",
    "rbac.v1.Subject",
];

/// A component's name without what all have in common: `core.v1.PodSpec`.
fn short(component: &str) -> &str {
    const PREFIXES: [&str; 4] = [
        "io.k8s.api.",
        "io.k8s.apimachinery.pkg.apis.",
        "io.k8s.apiextensions-apiserver.pkg.apis.",
        "io.k8s.kube-aggregator.pkg.apis.",
    ];
    PREFIXES.iter().find_map(|prefix| component.strip_prefix(prefix)).unwrap_or(component)
}

/// What is said about the fields of a component.
pub fn of(component: &str) -> impl Iterator<Item = (&'static str, Said)> {
    let component = short(component);
    FIELDS.iter().filter(move |(name, ..)| *name == component).map(|&(_, field, said)| (field, said))
}

/// Whether values of a component are one value.
pub fn is_atomic(component: &str) -> bool {
    ATOMIC.contains(&short(component))
}

/// Every component and field that is spoken of, for tests that check that they exist.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let fields = FIELDS.iter().map(|&(component, field, _)| (component, Some(field)));
    fields.chain(ATOMIC.iter().map(|&component| (component, None)))
}
