//! Labels that we set or read. Their spelling is part of the contract with other software.

/// What the keys of our own labels and annotations start with.
pub const PREFIX: &str = "compute.datumapis.com/";

/// On an Instance: uid of its workload.
pub const WORKLOAD_UID: &str = "compute.datumapis.com/workload-uid";
/// On an Instance: name of its workload.
pub const WORKLOAD_NAME: &str = "compute.datumapis.com/workload-name";
/// On an Instance: uid of its deployment on the plane where the instance is.
pub const WORKLOAD_DEPLOYMENT_UID: &str = "compute.datumapis.com/workload-deployment-uid";
/// On an Instance: name of its deployment, the same on every plane.
pub const WORKLOAD_DEPLOYMENT_NAME: &str = "compute.datumapis.com/workload-deployment-name";
/// On an Instance: the placement that asks for it.
pub const PLACEMENT_NAME: &str = "compute.datumapis.com/placement-name";
/// On an Instance: the city that it runs in.
pub const CITY_CODE: &str = "compute.datumapis.com/city-code";
/// On an Instance: its ordinal within the deployment.
pub const INSTANCE_INDEX: &str = "compute.datumapis.com/instance-index";

/// The labels that every Instance carries.
pub const ON_INSTANCES: [&str; 7] = [
    WORKLOAD_UID,
    WORKLOAD_NAME,
    WORKLOAD_DEPLOYMENT_UID,
    WORKLOAD_DEPLOYMENT_NAME,
    PLACEMENT_NAME,
    CITY_CODE,
    INSTANCE_INDEX,
];

/// On quota claims and written-back Instances: the cell that they come from.
pub const SOURCE_CLUSTER: &str = "compute.datumapis.com/source-cluster";
/// On a quota claim: the cell's namespace of the instance.
pub const INSTANCE_NAMESPACE: &str = "compute.datumapis.com/instance-namespace";
/// On a quota claim: uid of the instance.
pub const INSTANCE_UID: &str = "compute.datumapis.com/instance-uid";
/// On companions: they are copies of a project's ConfigMap or Secret.
pub const REFERENCED_DATA: &str = "compute.datumapis.com/referenced-data";

/// On hub deployments and Karmada clusters, and a key in the topology of locations: the city.
pub const TOPOLOGY_CITY_CODE: &str = "topology.datum.net/city-code";

/// On what we write outside a project: the project, in the form of [`crate::names::upstream_cluster_name`].
pub const UPSTREAM_CLUSTER_NAME: &str = "meta.datumapis.com/upstream-cluster-name";
/// On what we write outside a project: the namespace in the project.
pub const UPSTREAM_NAMESPACE: &str = "meta.datumapis.com/upstream-namespace";

/// The selector of a deployment's instances, as `status.selector` has it.
pub fn deployment_selector(deployment: &str) -> String {
    format!("{WORKLOAD_DEPLOYMENT_NAME}={deployment}")
}
