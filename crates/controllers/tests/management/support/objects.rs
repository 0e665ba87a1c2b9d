//! Objects, and what people, cells and the hub do with them.

use std::fmt::Debug;

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::k8s::{Condition, Namespace, ResourceExt};
use compute_api::karmada::{Cluster, PropagationPolicy};
use compute_api::kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use compute_api::kube::{Api, Resource};
use compute_api::milo::Project;
use compute_api::networking::{LocationBinding, Network};
use compute_api::{conditions, labels};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Event;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{World, eventually};

/// The namespace of a project that the tests use.
pub const NS: &str = "default";

/// A kind that lives in namespaces.
pub trait Kind:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}
impl<K> Kind for K where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A Workload `name` with placements of cities, two instances each.
pub fn workload(name: &str, placements: &[(&str, &[&str])]) -> Value {
    let placements: Vec<_> = placements
        .iter()
        .map(|(name, cities)| {
            json!({ "name": name, "cityCodes": cities, "scaleSettings": { "minReplicas": 2 } })
        })
        .collect();
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload",
        "metadata": { "name": name, "namespace": NS },
        "spec": {
            "template": { "spec": {
                "runtime": {
                    "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "app", "image": "app:1" }] },
                },
                "networkInterfaces": [{ "network": { "name": "default" } }],
            } },
            "placements": placements,
        },
    })
}

pub fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-05-01T10:00:00Z",
    })
}

/// What an object says about being available: status and reason.
pub fn available(conditions: &[Condition]) -> (&str, &str) {
    let said = conditions::find(conditions, conditions::AVAILABLE);
    said.map_or(("", ""), |said| (said.status.as_str(), said.reason.as_str()))
}

impl World {
    pub fn api<K: Kind>(&self, plane: &str, namespace: &str) -> Api<K> {
        Api::namespaced(self.client(plane), namespace)
    }

    /// Creates an object of any form.
    pub async fn create<K: Kind>(&self, plane: &str, object: &Value) -> K {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(NS);
        let name = object["metadata"]["name"].as_str().unwrap();
        self.store::<K>(plane, object).await;
        self.get(plane, namespace, name).await.unwrap()
    }

    /// Creates an object that need not be one of its kind.
    pub async fn store<K: Kind>(&self, plane: &str, object: &Value) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(NS);
        let object = serde_json::from_value(object.clone()).unwrap();
        self.dynamic::<K>(plane, namespace).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Objects of a kind that need not be decoded.
    pub fn dynamic<K: Kind>(&self, plane: &str, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client(plane), namespace, &ApiResource::erase::<K>(&()))
    }

    pub async fn get<K: Kind>(&self, plane: &str, namespace: &str, name: &str) -> Option<K> {
        self.api(plane, namespace).get_opt(name).await.unwrap()
    }

    pub async fn list<K: Kind>(&self, plane: &str) -> Vec<K> {
        Api::<K>::all(self.client(plane)).list(&ListParams::default()).await.unwrap().items
    }

    pub async fn names<K: Kind>(&self, plane: &str) -> Vec<String> {
        self.list::<K>(plane).await.iter().map(ResourceExt::name_any).collect()
    }

    pub async fn patch<K: Kind>(&self, plane: &str, namespace: &str, name: &str, patch: Value) -> K {
        self.api(plane, namespace).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    pub async fn patch_status<K: Kind>(&self, plane: &str, namespace: &str, name: &str, status: Value) -> K {
        let patch = Patch::Merge(json!({ "status": status }));
        self.api(plane, namespace).patch_status(name, &PatchParams::default(), &patch).await.unwrap()
    }

    pub async fn delete<K: Kind>(&self, plane: &str, namespace: &str, name: &str) {
        self.api::<K>(plane, namespace).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until an object is as it should be.
    pub async fn becomes<K: Kind>(
        &self,
        plane: &str,
        namespace: &str,
        name: &str,
        is: impl Fn(&K) -> bool,
    ) -> K {
        eventually(name, async || match self.get::<K>(plane, namespace, name).await {
            Some(object) if is(&object) => Ok(object),
            other => Err(format!("{other:#?}")),
        })
        .await
    }

    pub async fn appears<K: Kind>(&self, plane: &str, namespace: &str, name: &str) -> K {
        self.becomes(plane, namespace, name, |_| true).await
    }

    pub async fn disappears<K: Kind>(&self, plane: &str, namespace: &str, name: &str) {
        eventually(name, async || match self.get::<K>(plane, namespace, name).await {
            None => Ok(()),
            other => Err(format!("{other:#?}")),
        })
        .await;
    }

    /// Waits until a plane has objects of a kind with just these names.
    pub async fn has_only<K: Kind>(&self, plane: &str, names: &[&str]) {
        eventually("the names", async || {
            let found = self.names::<K>(plane).await;
            if found == names { Ok(()) } else { Err(format!("{found:?}, not {names:?}")) }
        })
        .await;
    }

    // What the platform does.

    /// Makes the objects that stand for projects in core.
    pub async fn projects_in_core(&self) {
        let api: Api<Project> = Api::all(self.client("core"));
        for name in ["a", "b"] {
            let object = json!({
                "apiVersion": "resourcemanager.miloapis.com/v1alpha1", "kind": "Project",
                "metadata": { "name": name }, "spec": { "ownerRef": { "kind": "Organization", "name": "acme" } },
            });
            api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        }
    }

    /// Offers a city to a project.
    pub async fn offer(&self, project: &str, city: &str) {
        let api: Api<LocationBinding> = Api::all(self.client(project));
        let name = city.to_lowercase();
        let binding = json!({
            "apiVersion": "networking.datumapis.com/v1alpha", "kind": "LocationBinding",
            "metadata": { "name": name },
            "spec": { "locationRef": { "name": name }, "topology": { labels::TOPOLOGY_CITY_CODE: city } },
        });
        let params = PatchParams::apply("test").force();
        api.patch(&name, &params, &Patch::Apply(binding)).await.unwrap();
        let status = json!({ "status": { "conditions": [condition("Available", "True", "Available", "")] } });
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Takes an offer back.
    pub async fn withdraw(&self, project: &str, city: &str) {
        let api: Api<LocationBinding> = Api::all(self.client(project));
        api.delete(&city.to_lowercase(), &DeleteParams::default()).await.unwrap();
    }

    pub async fn network(&self, project: &str, name: &str) {
        self.network_in(project, NS, name).await;
    }

    pub async fn network_in(&self, project: &str, namespace: &str, name: &str) {
        let network = json!({
            "apiVersion": "networking.datumapis.com/v1alpha", "kind": "Network",
            "metadata": { "name": name, "namespace": namespace }, "spec": { "ipam": { "mode": "Auto" } },
        });
        self.create::<Network>(project, &network).await;
    }

    /// The cell of a city, as the hub knows it.
    pub async fn cluster(&self, city: &str, ready: &str) {
        let api: Api<Cluster> = Api::all(self.client("hub"));
        let name = format!("cell-{}", city.to_lowercase());
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name, "labels": { labels::TOPOLOGY_CITY_CODE: city } },
            "spec": { "syncMode": "Push" },
        });
        let params = PatchParams::apply("test").force();
        api.patch(&name, &params, &Patch::Apply(cluster)).await.unwrap();
        let status = json!({ "status": { "conditions": [condition("Ready", ready, "Test", "")] } });
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    // What is on the hub.

    /// The hub namespace of a project's namespace.
    pub async fn hub_namespace(&self, project: &str) -> String {
        let api: Api<Namespace> = Api::all(self.client(project));
        format!("ns-{}", api.get(NS).await.unwrap().uid().unwrap())
    }

    pub async fn namespaces(&self, plane: &str) -> Vec<String> {
        let api: Api<Namespace> = Api::all(self.client(plane));
        let all = api.list(&ListParams::default()).await.unwrap();
        all.iter().map(ResourceExt::name_any).filter(|name| name.starts_with("ns-")).collect()
    }

    /// The hub copy of a project's deployment, once it is there.
    pub async fn copy(&self, project: &str, name: &str) -> WorkloadDeployment {
        let namespace = self.hub_namespace(project).await;
        self.appears("hub", &namespace, name).await
    }

    pub async fn policies(&self, project: &str) -> Vec<String> {
        let namespace = self.hub_namespace(project).await;
        let all =
            self.api::<PropagationPolicy>("hub", &namespace).list(&ListParams::default()).await.unwrap();
        all.iter().map(ResourceExt::name_any).collect()
    }

    // What a cell does.

    /// A cell reports on a deployment, of the generation that it was sent.
    pub async fn report(&self, project: &str, name: &str, ready: i64) {
        let copy = self.copy(project, name).await;
        let generation: i64 =
            copy.annotations()["compute.datumapis.com/upstream-generation"].parse().unwrap();
        let reason =
            if ready > 0 { conditions::STABLE_INSTANCE_FOUND } else { conditions::INSTANCES_PROVISIONING };
        let status = if ready > 0 { "True" } else { "False" };
        let status = json!({
            "conditions": [condition("Available", status, reason, "as the cell says")],
            "observedGeneration": generation,
            "replicas": 2, "currentReplicas": ready, "updatedReplicas": 2, "desiredReplicas": 2, "readyReplicas": ready,
            "selector": labels::deployment_selector(name),
        });
        self.patch_status::<WorkloadDeployment>("hub", &copy.namespace().unwrap(), name, status).await;
    }

    /// A cell writes an instance back, with what it says about being ready.
    pub async fn write_back(
        &self,
        project: &str,
        deployment: &str,
        ordinal: u32,
        ready: (&str, &str),
    ) -> Instance {
        let copy = self.copy(project, deployment).await;
        let namespace = copy.namespace().unwrap();
        let name = format!("{deployment}-{ordinal}");
        if self.get::<Instance>("hub", &namespace, &name).await.is_none() {
            self.create::<Instance>("hub", &instance(&copy, ordinal)).await;
        }
        let status = json!({ "conditions": [condition("Ready", ready.0, ready.1, "as the cell says")] });
        self.patch_status("hub", &namespace, &name, status).await
    }

    /// Reasons of the events about objects of a name in a plane, with how often each was told.
    pub async fn events(&self, plane: &str, about: &str) -> Vec<(String, i32)> {
        let all = self.list::<Event>(plane).await;
        let about = all.into_iter().filter(|event| event.involved_object.name.as_deref() == Some(about));
        let mut found: Vec<_> = about.map(|event| (event.reason.unwrap(), event.count.unwrap())).collect();
        found.sort();
        found
    }
}

/// An instance of a deployment, as a cell makes it.
pub fn instance_of(deployment: &WorkloadDeployment) -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance",
        "metadata": { "name": format!("{}-0", deployment.name_any()) },
        "spec": deployment.spec.template.spec,
    })
}

/// An instance as a cell writes it back.
pub fn instance(copy: &WorkloadDeployment, ordinal: u32) -> Value {
    let name = format!("{}-{ordinal}", copy.name_any());
    let label = |key: &str| copy.labels()[key].clone();
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance",
        "metadata": {
            "name": name, "namespace": copy.namespace(),
            "labels": {
                labels::UPSTREAM_CLUSTER_NAME: label(labels::UPSTREAM_CLUSTER_NAME),
                labels::UPSTREAM_NAMESPACE: label(labels::UPSTREAM_NAMESPACE),
                labels::WORKLOAD_UID: copy.spec.workload_ref.uid,
                labels::WORKLOAD_DEPLOYMENT_NAME: copy.name_any(),
                labels::WORKLOAD_DEPLOYMENT_UID: copy.uid(),
                labels::SOURCE_CLUSTER: "cell",
                "team": "blue",
            },
            "ownerReferences": [{
                "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
                "name": copy.name_any(), "uid": copy.uid(), "controller": true,
            }],
        },
        "spec": copy.spec.template.spec,
    })
}
