//! The kinds of group `compute.datumapis.com`, version `v1alpha`.
//!
//! [`Workload`] is what a person writes, [`WorkloadDeployment`] is one placement of it in one city, and
//! [`Instance`] is one running copy. The three share the [`InstanceTemplate`] and everything below it.
//!
//! # Guarantees
//!
//! * Whatever the published schema accepts decodes: a field that is missing gets its empty value and an
//!   unknown word stays a string. What is wrong with an object is for admission to say, with a path.
//! * A field that is absent stays absent when the object is written again. So a value of one of these types
//!   that holds only some fields is a valid body for a server-side apply of just these fields.
//! * A field is required by the schema if and only if it is always written.

pub mod gateway;

mod deployment;
mod env;
mod instance;
mod network;
mod runtime;
mod scale;
mod template;
mod volume;
mod workload;

pub use deployment::{
    WorkloadDeployment, WorkloadDeploymentSpec, WorkloadDeploymentStatus, WorkloadReference,
};
pub use env::{
    ConfigMapKeySelector, EnvFromSource, EnvVar, EnvVarSource, LocalSource, ObjectFieldSelector,
    ResourceFieldSelector, SecretKeySelector,
};
pub use instance::{
    Instance, InstanceControl, InstanceControlStatus, InstanceInterfaceStatus, InstanceSpec, InstanceStatus,
    InterfaceAssignments, SchedulingGate, gates,
};
pub use network::{
    IpBlock, LocationReference, NetworkInterface, NetworkPeer, NetworkPolicy, NetworkPolicyIngress,
    NetworkPolicyPort, NetworkReference,
};
pub use runtime::{
    ContainerResources, ImagePullSecret, InstanceResources, InstanceRuntime, NamedPort, Sandbox,
    SandboxContainer, VirtualMachine, VolumeAttachment,
};
pub use scale::{
    METRIC_CPU, METRIC_MEMORY, MetricSpec, MetricTarget, POLICY_ORDERED_READY, POLICY_PARALLEL,
    ResourceMetric, ScaleSettings,
};
pub use template::{InstanceTemplate, TemplateMetadata};
pub use volume::{
    ConfigMapVolume, DiskPopulator, DiskResources, DiskSpec, DiskTemplate, DiskVolume, FilesystemPopulator,
    ImagePopulator, KeyToPath, SecretVolume, Volume,
};
pub use workload::{PlacementStatus, Workload, WorkloadPlacement, WorkloadSpec, WorkloadStatus};

/// API group of our kinds.
pub const GROUP: &str = "compute.datumapis.com";
/// The one version that is served and stored.
pub const VERSION: &str = "v1alpha";
/// `apiVersion` of our kinds.
pub const API_VERSION: &str = "compute.datumapis.com/v1alpha";

#[cfg(test)]
mod tests;
