//! What a controller may hear of.

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::karmada::{Cluster, PropagationPolicy};
use compute_api::networking::{LocationBinding, Network};
use compute_runtime::{Change, PlaneId};

use super::{Hub, NamespaceMeta, Project, View};

/// A kind that is watched, in projects or on the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::management) enum Kind {
    /// Workloads of a project.
    Workload,
    /// Deployments.
    Deployment,
    /// Instances.
    Instance,
    /// Namespaces.
    Namespace,
    /// Cities that a project is offered.
    Binding,
    /// Networks of a project.
    Network,
    /// Policies on the hub.
    Policy,
    /// Cells, as the hub knows them.
    Cluster,
}

/// Turns changes into keys. Is called while a cache waits, so it must be quick.
pub(in crate::management) trait Watcher: Send + Sync + 'static {
    /// A Workload of a project.
    fn workload(&self, _: &View, _: &Project, _: &Change<Workload>) {}
    /// A deployment of a project.
    fn deployment(&self, _: &View, _: &Project, _: &Change<WorkloadDeployment>) {}
    /// A city that a project is offered.
    fn binding(&self, _: &View, _: &Project, _: &Change<LocationBinding>) {}
    /// A network of a project.
    fn network(&self, _: &View, _: &Project, _: &Change<Network>) {}
    /// A namespace of a project.
    fn namespace(&self, _: &View, _: &Project, _: &Change<NamespaceMeta>) {}
    /// An instance of a project.
    fn instance(&self, _: &View, _: &Project, _: &Change<Instance>) {}
    /// A kind of a project is complete, for the first time or after an interruption: passes that read it are due.
    fn connected(&self, _: &View, _: &Project, _: Kind) {}
    /// A project is not served any more.
    fn disengaged(&self, _: &View, _: &PlaneId) {}

    /// A deployment on the hub.
    fn hub_deployment(&self, _: &View, _: &Hub, _: &Change<WorkloadDeployment>) {}
    /// An instance on the hub.
    fn hub_instance(&self, _: &View, _: &Hub, _: &Change<Instance>) {}
    /// A policy on the hub.
    fn policy(&self, _: &View, _: &Hub, _: &Change<PropagationPolicy>) {}
    /// A namespace on the hub.
    fn hub_namespace(&self, _: &View, _: &Hub, _: &Change<NamespaceMeta>) {}
    /// A cell, as the hub knows it.
    fn cluster(&self, _: &View, _: &Hub, _: &Change<Cluster>) {}
    /// A kind of the hub is complete, for the first time or after an interruption: passes that read it are due.
    fn hub_connected(&self, _: &View, _: &Hub, _: Kind) {}
}
