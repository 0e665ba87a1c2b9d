//! Finalizers that our controllers hold. Each is taken off by the one that put it on, and by nobody else.

/// On a Workload: goes after its last deployment.
pub const WORKLOAD: &str = "compute.datumapis.com/workload-controller";
/// On a project's deployment: goes after the delete call for its hub copy.
pub const FEDERATOR: &str = "compute.datumapis.com/federator";
/// On a cell's deployment: goes after its last instance.
pub const WORKLOAD_DEPLOYMENT: &str = "compute.datumapis.com/workload-deployment";
/// On a deployment: goes after the resolver has given up its companions.
pub const REFERENCED_DATA: &str = "compute.datumapis.com/referenced-data";
/// On an Instance: goes after its quota claim is released, when no provider holds it any more.
pub const INSTANCE: &str = "compute.datumapis.com/instance";

/// Finalizers of the garbage collector. They do not count as "somebody still holds the object".
pub const GARBAGE_COLLECTOR: [&str; 2] = ["foregroundDeletion", "orphan"];

/// On an Instance: held by the provider of that name from before it starts anything until everything has stopped.
pub fn provider(name: &str) -> String {
    format!("{}provider-{name}", crate::labels::PREFIX)
}
