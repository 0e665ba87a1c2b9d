//! Objects as people write them.

use compute_api::compute::{
    InstanceResources, InstanceRuntime, InstanceSpec, InstanceTemplate, NetworkInterface, NetworkReference,
    Sandbox, SandboxContainer, ScaleSettings, TemplateMetadata, Workload, WorkloadPlacement, WorkloadSpec,
};
use kube::api::ObjectMeta;

/// An image that every provider can get.
pub const IMAGE: &str = "docker.io/library/nginx:1.27";
/// Another one.
pub const NEXT_IMAGE: &str = "docker.io/library/nginx:1.28";
/// An image that nobody can get: the name of its registry resolves nowhere.
pub const BAD_IMAGE: &str = "registry.invalid/web:1";

/// A workload of one container, with one placement `main` in some cities.
pub fn workload(name: &str, cities: &[&str], replicas: i64) -> Workload {
    Workload {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: WorkloadSpec {
            template: template(IMAGE),
            placements: vec![placement("main", cities, replicas)],
            paused: None,
        },
        status: None,
    }
}

/// A placement with a number of instances in each of some cities.
pub fn placement(name: &str, cities: &[&str], replicas: i64) -> WorkloadPlacement {
    WorkloadPlacement {
        name: name.to_owned(),
        city_codes: cities.iter().map(|city| (*city).to_owned()).collect(),
        scale_settings: ScaleSettings { min_replicas: replicas, ..ScaleSettings::default() },
    }
}

/// One container of an image on network `default`.
pub fn template(image: &str) -> InstanceTemplate {
    let container =
        SandboxContainer { name: "app".to_owned(), image: image.to_owned(), ..SandboxContainer::default() };
    InstanceTemplate {
        metadata: Some(TemplateMetadata::default()),
        spec: InstanceSpec {
            runtime: InstanceRuntime {
                resources: InstanceResources {
                    instance_type: "datumcloud/d1-standard-2".to_owned(),
                    ..InstanceResources::default()
                },
                sandbox: Some(Sandbox { containers: vec![container], ..Sandbox::default() }),
                ..InstanceRuntime::default()
            },
            network_interfaces: vec![NetworkInterface {
                network: NetworkReference { name: "default".to_owned(), namespace: None },
                network_policy: None,
            }],
            ..InstanceSpec::default()
        },
    }
}
