//! Objects that tests make, and questions that tests ask about objects.

use compute_api::compute::{
    Instance, InstanceTemplate, NetworkInterface, NetworkReference, POLICY_PARALLEL, Sandbox,
    SandboxContainer, WorkloadDeployment, WorkloadDeploymentSpec, WorkloadReference,
};
use compute_api::conditions as c;
use compute_api::k8s::{Condition, Namespace};
use compute_api::karmada::Cluster;
use compute_api::networking::Location;
use compute_api::quota::ResourceClaim;
use compute_api::{labels, names};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::world::{PROJECT, World, eventually, namespace};

/// The namespace in the project.
pub const PROJECT_NAMESPACE: &str = "default";
/// The deployment that most tests have.
pub const WEB: &str = "web-main-dfw";

pub async fn create_namespaces(cell: &Client, hub: &Client) {
    let labels = json!({
        (labels::UPSTREAM_CLUSTER_NAME): names::upstream_cluster_name(PROJECT).unwrap(),
        (labels::UPSTREAM_NAMESPACE): PROJECT_NAMESPACE,
    });
    for client in [cell, hub] {
        create_namespace(client, &namespace(), labels.clone()).await;
    }
}

pub async fn create_namespace(client: &Client, name: &str, labels: Value) {
    let api: Api<Namespace> = Api::all(client.clone());
    let namespace =
        serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap();
    api.create(&PostParams::default(), &namespace).await.unwrap();
}

pub async fn create_cluster(hub: &Client, name: &str) {
    let cluster = serde_json::from_value(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": { "name": name, "labels": { (labels::TOPOLOGY_CITY_CODE): "DFW" } },
        "spec": { "syncMode": "Push" },
    }))
    .unwrap();
    let api: Api<Cluster> = Api::all(hub.clone());
    api.create(&PostParams::default(), &cluster).await.unwrap();
}

pub async fn create_location(cell: &Client, name: &str, city: &str) {
    let location = serde_json::from_value(json!({
        "apiVersion": "networking.datumapis.com/v1alpha", "kind": "Location",
        "metadata": { "name": name },
        "spec": {
            "locationClassName": "datum-managed",
            "topology": { (labels::TOPOLOGY_CITY_CODE): city },
            "provider": {},
        },
    }))
    .unwrap();
    let api: Api<Location> = Api::all(cell.clone());
    api.create(&PostParams::default(), &location).await.unwrap();
}

/// A template that runs an image.
pub fn template(image: &str) -> InstanceTemplate {
    let container =
        SandboxContainer { name: "app".to_owned(), image: image.to_owned(), ..SandboxContainer::default() };
    let mut template = InstanceTemplate::default();
    template.spec.runtime.resources.instance_type = "datumcloud/d1-standard-2".to_owned();
    template.spec.runtime.sandbox = Some(Sandbox { containers: vec![container], ..Sandbox::default() });
    let network = NetworkReference { name: "default".to_owned(), namespace: None };
    template.spec.network_interfaces = vec![NetworkInterface { network, network_policy: None }];
    template
}

/// A deployment as the hub sends it.
pub fn deployment(name: &str, replicas: i64) -> WorkloadDeployment {
    let spec = WorkloadDeploymentSpec {
        workload_ref: WorkloadReference { name: "web".to_owned(), uid: "workload-uid".to_owned() },
        placement_name: "main".to_owned(),
        city_code: "DFW".to_owned(),
        template: template("app:1"),
        scale_settings: compute_api::compute::ScaleSettings { min_replicas: replicas, ..Default::default() },
        ..WorkloadDeploymentSpec::default()
    };
    let labels = [
        (labels::UPSTREAM_CLUSTER_NAME, names::upstream_cluster_name(PROJECT).unwrap()),
        (labels::UPSTREAM_NAMESPACE, PROJECT_NAMESPACE.to_owned()),
        (labels::TOPOLOGY_CITY_CODE, "DFW".to_owned()),
    ];
    WorkloadDeployment {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    }
}

pub fn parallel(mut deployment: WorkloadDeployment) -> WorkloadDeployment {
    deployment.spec.scale_settings.instance_management_policy = POLICY_PARALLEL.to_owned();
    deployment
}

impl World {
    pub fn deployments(&self) -> Api<WorkloadDeployment> {
        Api::namespaced(self.cell.clone(), &namespace())
    }

    pub fn instances(&self) -> Api<Instance> {
        Api::namespaced(self.cell.clone(), &namespace())
    }

    pub fn hub_deployments(&self) -> Api<WorkloadDeployment> {
        Api::namespaced(self.hub.clone(), &namespace())
    }

    pub fn copies(&self) -> Api<Instance> {
        Api::namespaced(self.hub.clone(), &namespace())
    }

    pub fn claims(&self) -> Api<ResourceClaim> {
        Api::namespaced(self.project.clone(), PROJECT_NAMESPACE)
    }

    /// Puts a deployment on the hub and into the cell, as propagation would.
    pub async fn deploy(&self, deployment: &WorkloadDeployment) -> WorkloadDeployment {
        self.hub_deployments().create(&PostParams::default(), deployment).await.unwrap();
        self.deployments().create(&PostParams::default(), deployment).await.unwrap()
    }

    /// Changes a deployment in the cell.
    pub async fn patch(&self, name: &str, patch: Value) {
        self.deployments().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn scale(&self, name: &str, replicas: i64) {
        self.patch(name, json!({ "spec": { "scaleSettings": { "minReplicas": replicas } } })).await;
    }

    pub async fn set_image(&self, name: &str, image: &str) {
        let template = serde_json::to_value(template(image)).unwrap();
        self.patch(name, json!({ "spec": { "template": template } })).await;
    }

    /// All instances of the namespace, by name.
    pub async fn all_instances(&self) -> Vec<Instance> {
        let mut found = self.instances().list(&ListParams::default()).await.unwrap().items;
        found.sort_by_key(|instance| instance.name_any());
        found
    }

    /// Names of all instances.
    pub async fn names(&self) -> Vec<String> {
        self.all_instances().await.iter().map(|instance| instance.name_any()).collect()
    }

    /// Waits until exactly the instances of these ordinals are there and Ready, and the deployment says so.
    pub async fn ready(&self, name: &str, replicas: usize) -> Vec<Instance> {
        eventually(&format!("{replicas} ready instances"), async || {
            let instances = self.all_instances().await;
            let wanted: Vec<_> = (0..replicas).map(|ordinal| format!("{name}-{ordinal}")).collect();
            let mut names: Vec<_> = instances.iter().map(|instance| instance.name_any()).collect();
            names.sort();
            let mut sorted = wanted.clone();
            sorted.sort();
            if names != sorted || !instances.iter().all(is_ready) {
                return Err(format!("{:?}", instances.iter().map(summary).collect::<Vec<_>>()));
            }
            let status = self.deployments().get(name).await.unwrap().status.unwrap();
            let replicas = i64::try_from(replicas).unwrap();
            if (status.ready_replicas, status.updated_replicas) != (Some(replicas), Some(replicas)) {
                return Err(format!("{status:?}"));
            }
            Ok(instances)
        })
        .await
    }

    /// Waits until an instance has a condition with this reason.
    pub async fn says(&self, name: &str, type_: &str, reason: &str) -> Condition {
        eventually(&format!("{name} says {type_}={reason}"), async || {
            let Some(instance) = self.instances().get_opt(name).await.unwrap() else {
                return Err("it is not there".to_owned());
            };
            let found = condition(&instance, type_).cloned();
            found.filter(|found| found.reason == reason).ok_or_else(|| summary(&instance))
        })
        .await
    }

    /// Waits until an instance is gone.
    pub async fn gone(&self, name: &str) {
        eventually(&format!("{name} is gone"), async || {
            match self.instances().get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(instance) => Err(summary(&instance)),
            }
        })
        .await;
    }

    pub async fn delete_instance(&self, name: &str) {
        self.instances().delete(name, &DeleteParams::default()).await.unwrap();
    }
}

pub fn condition<'a>(instance: &'a Instance, type_: &str) -> Option<&'a Condition> {
    c::find(&instance.status.as_ref()?.conditions, type_)
}

pub fn is_ready(instance: &Instance) -> bool {
    condition(instance, c::READY).is_some_and(|ready| ready.status == "True")
        && instance.metadata.deletion_timestamp.is_none()
}

pub fn gates(instance: &Instance) -> Vec<String> {
    instance.spec.gates().iter().map(|gate| gate.name.clone()).collect()
}

pub fn image(instance: &Instance) -> String {
    instance.spec.runtime.sandbox.as_ref().unwrap().containers[0].image.clone()
}

/// What a failing test shows of an instance.
pub fn summary(instance: &Instance) -> String {
    let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let said: Vec<_> = conditions
        .iter()
        .map(|one| format!("{}={}/{} {:?}", one.type_, one.status, one.reason, one.message))
        .collect();
    let leaving = instance.metadata.deletion_timestamp.is_some();
    format!(
        "{} ({}, gates {:?}, leaving {leaving}, finalizers {:?}): {}",
        instance.name_any(),
        image(instance),
        gates(instance),
        instance.finalizers(),
        said.join(", ")
    )
}
