//! What a platform without a quota of its own starts with: compute's resources, and more of each than one machine can hold.

use compute_api::k8s::{Namespace, ObjectMeta};
use compute_api::milo::RESOURCE_MANAGER_GROUP;
use compute_api::quota::{
    Allowance, AllowanceAmount, ClaimingResource, ConsumerType, ObjectReference, RESOURCE_INSTANCES,
    RESOURCE_MEMORY, RESOURCE_VCPUS, RESOURCE_WORKLOADS, ResourceGrant, ResourceGrantSpec,
    ResourceRegistration, ResourceRegistrationSpec,
};
use compute_runtime::Plane;
use compute_runtime::write::{self, Object, Writer};
use kube::Api;

use super::{NAME, NAMESPACE};

/// Name of the grant that a project starts with.
const GRANT: &str = "compute-default";

/// What a project may use unless somebody says otherwise.
const LIMITS: [(&str, i64); 3] = [
    (RESOURCE_INSTANCES, 100_000),
    // Thousandths of a CPU.
    (RESOURCE_VCPUS, 100_000_000),
    // MiB.
    (RESOURCE_MEMORY, 400_000 * 1024),
];

/// The registrations of compute's resources, for the core plane.
pub fn registrations() -> Vec<ResourceRegistration> {
    let entity = |resource, unit, kind| registration(resource, "Entity", (unit, unit, 1), kind);
    let amount = |resource, units| registration(resource, "Allocation", units, "Instance");
    vec![
        entity(RESOURCE_INSTANCES, "instance", "Instance"),
        amount(RESOURCE_VCPUS, ("millicore", "vCPU", 1000)),
        amount(RESOURCE_MEMORY, ("MiB", "GiB", 1024)),
        entity(RESOURCE_WORKLOADS, "workload", "Workload"),
    ]
}

fn registration(
    resource: &str,
    type_: &str,
    (base, display, factor): (&str, &str, i64),
    kind: &str,
) -> ResourceRegistration {
    let (group, short) = resource.split_once('/').unwrap_or(("", resource));
    let claims = |group: &str, kind: &str| ClaimingResource {
        api_group: Some(group.to_owned()),
        kind: kind.to_owned(),
    };
    ResourceRegistration {
        metadata: ObjectMeta { name: Some(format!("compute-{short}")), ..ObjectMeta::default() },
        spec: ResourceRegistrationSpec {
            resource_type: resource.to_owned(),
            type_: type_.to_owned(),
            consumer_type: ConsumerType {
                api_group: RESOURCE_MANAGER_GROUP.to_owned(),
                kind: "Project".to_owned(),
            },
            // A cell claims in the name of the project.
            claiming_resources: vec![claims(RESOURCE_MANAGER_GROUP, "Project"), claims(group, kind)],
            base_unit: base.to_owned(),
            display_unit: display.to_owned(),
            unit_conversion_factor: factor,
            description: None,
        },
        status: None,
    }
}

/// The namespace and the grant that a project starts with, for its own plane.
pub fn defaults(project: &str) -> (Namespace, ResourceGrant) {
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    let allowance = |(resource, amount): (&str, i64)| Allowance {
        resource_type: resource.to_owned(),
        buckets: vec![AllowanceAmount { amount }],
    };
    let grant = ResourceGrant {
        metadata: ObjectMeta {
            name: Some(GRANT.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: ResourceGrantSpec {
            consumer_ref: ObjectReference::project(project),
            allowances: LIMITS.map(allowance).to_vec(),
        },
        status: None,
    };
    (namespace, grant)
}

/// Makes the registrations that are missing in the core plane. What is there stays as it is.
///
/// # Errors
/// If one cannot be made. May be tried again.
pub async fn seed_core(core: &Plane) -> write::Result<()> {
    let api: Api<ResourceRegistration> = Api::all(core.client().clone());
    for registration in registrations() {
        create(&api, &registration).await?;
    }
    Ok(())
}

/// Gives a project what it starts with, in its own plane. What is there stays as it is.
///
/// # Errors
/// If it cannot be made. May be tried again.
pub async fn seed_project(project: &Plane) -> write::Result<()> {
    let (namespace, grant) = defaults(project.id().as_str());
    create(&Api::all(project.client().clone()), &namespace).await?;
    create(&Api::namespaced(project.client().clone(), NAMESPACE), &grant).await
}

async fn create<K: Object>(api: &Api<K>, object: &K) -> write::Result<()> {
    match Writer::new(NAME).create(api, object).await {
        Ok(_) | Err(write::Error::AlreadyExists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
