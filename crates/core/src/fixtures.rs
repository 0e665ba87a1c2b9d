//! Objects for tests, as an API server would hand them out.

use compute_api::{
    compute::{
        Instance, InstanceControlStatus, InstanceRuntime, InstanceSpec, InstanceStatus, InstanceTemplate,
        NetworkInterface, NetworkReference, Sandbox, SandboxContainer, ScaleSettings, Workload,
        WorkloadDeployment, WorkloadDeploymentSpec, WorkloadPlacement, WorkloadReference, WorkloadSpec,
    },
    conditions::{self, Status, Update},
    k8s::{Condition, ObjectMeta, Time, Timestamp},
};

use crate::planner;

/// A point in time.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Metadata of a stored object.
pub fn stored(namespace: &str, name: &str, uid: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        uid: Some(uid.to_owned()),
        resource_version: Some("1".to_owned()),
        generation: Some(1),
        creation_timestamp: Some(Time(at(0))),
        ..ObjectMeta::default()
    }
}

/// A template that runs one container of an image on network `default`.
pub fn template(image: &str) -> InstanceTemplate {
    let container =
        SandboxContainer { name: "app".to_owned(), image: image.to_owned(), ..SandboxContainer::default() };
    let network = NetworkReference { name: "default".to_owned(), namespace: None };
    InstanceTemplate {
        metadata: None,
        spec: InstanceSpec {
            runtime: InstanceRuntime {
                sandbox: Some(Sandbox { containers: vec![container], ..Sandbox::default() }),
                ..InstanceRuntime::default()
            },
            network_interfaces: vec![NetworkInterface { network, network_policy: None }],
            ..InstanceSpec::default()
        },
    }
}

/// Scale settings with a minimum.
pub fn at_least(minimum: i64) -> ScaleSettings {
    ScaleSettings { min_replicas: minimum, ..ScaleSettings::default() }
}

/// A stored deployment `web-main-dfw` of workload `web` that wants some instances.
pub fn deployment(replicas: i64) -> WorkloadDeployment {
    WorkloadDeployment {
        metadata: stored("ns", "web-main-dfw", "deployment-uid"),
        spec: WorkloadDeploymentSpec {
            workload_ref: WorkloadReference { name: "web".to_owned(), uid: "workload-uid".to_owned() },
            placement_name: "main".to_owned(),
            city_code: "DFW".to_owned(),
            template: template("app:1"),
            scale_settings: at_least(replicas),
            replicas: None,
            paused: None,
        },
        status: None,
    }
}

/// A stored workload `web` with placements of cities.
pub fn workload(placements: &[(&str, &[&str])]) -> Workload {
    let placements = placements.iter().map(|(name, cities)| WorkloadPlacement {
        name: (*name).to_owned(),
        city_codes: cities.iter().map(|city| (*city).to_owned()).collect(),
        scale_settings: at_least(2),
    });
    Workload {
        metadata: stored("ns", "web", "workload-uid"),
        spec: WorkloadSpec { template: template("app:1"), placements: placements.collect(), paused: None },
        status: None,
    }
}

/// Options of a cell with networking.
pub fn options() -> planner::Options {
    planner::Options { network_gate: true, location: None }
}

/// The instance of a deployment at an ordinal, stored and not touched by anybody.
pub fn instance(deployment: &WorkloadDeployment, ordinal: u32) -> Instance {
    let mut instance =
        planner::build::instance(deployment, &planner::desired(deployment), ordinal, &options());
    let name = instance.metadata.name.clone().unwrap();
    let own = std::mem::take(&mut instance.metadata);
    instance.metadata = ObjectMeta {
        labels: own.labels,
        annotations: own.annotations,
        owner_references: own.owner_references,
        finalizers: own.finalizers,
        ..stored("ns", &name, &format!("uid-of-{name}"))
    };
    instance
}

/// The same, running and Ready.
pub fn ready(mut instance: Instance) -> Instance {
    let control = instance.spec.controller.as_mut().unwrap();
    control.scheduling_gates.clear();
    let observed_template_hash = control.template_hash.clone();
    let conditions = [
        (conditions::PROGRAMMED, conditions::INSTANCE_PROGRAMMED),
        (conditions::AVAILABLE, conditions::INSTANCE_AVAILABLE),
        (conditions::READY, conditions::INSTANCE_AVAILABLE),
    ];
    instance.status = Some(InstanceStatus {
        conditions: conditions.map(|(type_, reason)| condition(type_, Status::True, reason, "")).to_vec(),
        controller: Some(InstanceControlStatus { observed_template_hash }),
        ..InstanceStatus::default()
    });
    instance
}

/// The same with another `Ready`.
pub fn not_ready(mut instance: Instance, reason: &str, message: &str) -> Instance {
    let status = instance.status.get_or_insert_default();
    conditions::set(
        &mut status.conditions,
        Update::new(conditions::READY, Status::False, reason, message),
        at(0),
    );
    instance
}

/// The same with a deletion timestamp.
pub fn leaving<T: compute_api::k8s::Resource>(mut object: T) -> T {
    object.meta_mut().deletion_timestamp = Some(Time(at(1)));
    object
}

/// A condition as it is stored.
pub fn condition(type_: &str, status: Status, reason: &str, message: &str) -> Condition {
    conditions::next(None, Update::new(type_, status, reason, message), at(0))
}
