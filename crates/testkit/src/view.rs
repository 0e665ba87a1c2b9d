//! A project as a story sees it: what a person does there, and what is to be seen of it on every plane.

use std::collections::{BTreeMap, BTreeSet};

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::conditions as c;
use compute_api::k8s::Condition;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::stack::{Place, Stack};
use crate::wait::eventually;

/// The namespace that stories work in.
const NAMESPACE: &str = "default";

/// A project of a stack.
pub struct View<'a, S> {
    /// The stack.
    pub stack: &'a S,
    /// The project's name.
    pub project: String,
    /// What its namespace is called on the hub and in cells.
    pub hub_namespace: String,
}

impl<'a, S: Stack> View<'a, S> {
    /// Makes a project and looks at it.
    pub async fn new(stack: &'a S, project: &str) -> Self {
        stack.make_project(project).await;
        let client = stack.client(&Place::Project(project.to_owned()));
        let namespace = Api::<Namespace>::all(client).get(NAMESPACE).await.unwrap();
        let hub_namespace = compute_api::names::hub_namespace(&namespace.uid().unwrap());
        Self { stack, project: project.to_owned(), hub_namespace }
    }

    /// The project's own plane.
    pub fn place(&self) -> Place {
        Place::Project(self.project.clone())
    }

    /// A client for the project.
    pub fn client(&self) -> Client {
        self.stack.client(&self.place())
    }

    /// Objects of a kind in the project.
    pub fn mine<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client(), NAMESPACE)
    }

    /// Objects of a kind that belong to the project on the hub.
    pub fn on_hub<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.stack.client(&Place::Hub), &self.hub_namespace)
    }

    /// Objects of a kind that belong to the project in a cell.
    pub fn in_cell<K>(&self, city: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.stack.client(&Place::Cell(city.to_owned())), &self.hub_namespace)
    }

    /// Makes a workload.
    pub async fn create(&self, workload: &Workload) -> Workload {
        self.mine().create(&PostParams::default(), workload).await.unwrap()
    }

    /// Changes a workload by a merge patch.
    pub async fn change(&self, name: &str, patch: &Value) -> Workload {
        self.mine().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// Gives a workload another image.
    pub async fn set_image(&self, name: &str, image: &str) {
        let mut workload: Workload = self.mine().get(name).await.unwrap();
        workload.spec.template.spec.runtime.sandbox.as_mut().unwrap().containers[0].image = image.to_owned();
        self.change(name, &serde_json::json!({ "spec": { "template": workload.spec.template } })).await;
    }

    /// Gives a workload other placements.
    pub async fn set_placements(&self, name: &str, placements: &[compute_api::compute::WorkloadPlacement]) {
        self.change(name, &serde_json::json!({ "spec": { "placements": placements } })).await;
    }

    /// Asks for a workload to be deleted, and does not wait.
    pub async fn delete(&self, name: &str) {
        self.mine::<Workload>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until a workload is done: what is wanted is there, up to date and ready, in so many instances per deployment, and no more than that
    /// is seen in the project.
    pub async fn until_ready(&self, name: &str, wanted: &[(&str, usize)]) {
        eventually(&format!("{name} becomes ready"), async || self.is_ready(name, wanted).await).await;
    }

    /// Whether a workload is done, or else why not.
    pub async fn is_ready(&self, name: &str, wanted: &[(&str, usize)]) -> Result<(), String> {
        let workload: Workload = self.mine().get(name).await.map_err(|error| error.to_string())?;
        let status = workload.status.clone().unwrap_or_default();
        let said = format!("{status:?}");
        let total: usize = wanted.iter().map(|(_, count)| count).sum();
        let total = i64::try_from(total).unwrap();
        if status.observed_generation != workload.metadata.generation {
            return Err(format!("generation {:?} is not observed: {said}", workload.metadata.generation));
        }
        let counts =
            [status.replicas, status.desired_replicas, status.updated_replicas, status.ready_replicas];
        if counts.iter().any(|count| count.unwrap_or(0) != total) {
            return Err(format!("not {total} instances: {said}"));
        }
        if !c::is_true(&status.conditions, c::AVAILABLE) {
            return Err(format!("not available: {said}"));
        }
        let mut expected = BTreeSet::new();
        for (deployment, count) in wanted {
            let found: WorkloadDeployment =
                self.mine().get(deployment).await.map_err(|error| error.to_string())?;
            let said = format!("{:?}", found.status);
            let ready = found.status.and_then(|status| status.ready_replicas).unwrap_or(0);
            if ready != i64::try_from(*count).unwrap() {
                return Err(format!("{deployment} has {ready} of {count} ready: {said}"));
            }
            expected.extend((0..*count).map(|ordinal| format!("{deployment}-{ordinal}")));
        }
        let seen: BTreeSet<String> = self.instances_of(name).await.into_keys().collect();
        if seen != expected {
            return Err(format!("instances seen: {seen:?}, expected: {expected:?}"));
        }
        Ok(())
    }

    /// A workload's instances, as the project sees them.
    pub async fn instances_of(&self, workload: &str) -> BTreeMap<String, Instance> {
        let labels = format!("{}={workload}", compute_api::labels::WORKLOAD_NAME);
        list(&self.mine(), &ListParams::default().labels(&labels)).await
    }

    /// All instances in a cell.
    pub async fn instances_in(&self, city: &str) -> BTreeMap<String, Instance> {
        list(&self.in_cell(city), &ListParams::default()).await
    }

    /// Waits until nothing of a workload is left: not in the project, not on the hub, not in any cell.
    pub async fn until_gone(&self, workload: &str) {
        eventually(&format!("{workload} is gone everywhere"), async || self.is_gone(workload).await).await;
    }

    /// Whether nothing of a workload is left anywhere, or else what is.
    pub async fn is_gone(&self, workload: &str) -> Result<(), String> {
        if self.mine::<Workload>().get_opt(workload).await.unwrap().is_some() {
            return Err("the workload is there".to_owned());
        }
        let places = std::iter::once(self.place())
            .chain([Place::Hub])
            .chain(self.stack.cities().into_iter().map(Place::Cell));
        for place in places {
            let namespace = if place == self.place() { NAMESPACE } else { &self.hub_namespace };
            let client = self.stack.client(&place);
            let deployments: Api<WorkloadDeployment> = Api::namespaced(client.clone(), namespace);
            for deployment in deployments.list(&ListParams::default()).await.unwrap() {
                if deployment.spec.workload_ref.name == workload {
                    return Err(format!("deployment {} is in {place:?}", deployment.name_any()));
                }
            }
            let instances: Api<Instance> = Api::namespaced(client, namespace);
            let labels = format!("{}={workload}", compute_api::labels::WORKLOAD_NAME);
            if let Some(left) =
                instances.list(&ListParams::default().labels(&labels)).await.unwrap().items.first()
            {
                return Err(format!("instance {} is in {place:?}", left.name_any()));
            }
        }
        Ok(())
    }

    /// A condition of a workload.
    pub async fn condition(&self, workload: &str, type_: &str) -> Option<Condition> {
        let found: Workload = self.mine().get_opt(workload).await.unwrap()?;
        c::find(&found.status?.conditions, type_).cloned()
    }

    /// Waits until a workload says something.
    pub async fn until_says(&self, workload: &str, type_: &str, reason: &str) -> Condition {
        eventually(&format!("{workload} says {type_}/{reason}"), async || {
            let found = self.condition(workload, type_).await;
            found.clone().filter(|said| said.reason == reason).ok_or_else(|| format!("{found:?}"))
        })
        .await
    }

    /// Waits until a deployment, as the project sees it, says something.
    pub async fn until_deployment_says(&self, deployment: &str, type_: &str, reason: &str) -> Condition {
        eventually(&format!("{deployment} says {type_}/{reason}"), async || {
            let found: Option<WorkloadDeployment> = self.mine().get_opt(deployment).await.unwrap();
            let status = found.and_then(|found| found.status).unwrap_or_default();
            let said = c::find(&status.conditions, type_).cloned();
            said.clone().filter(|said| said.reason == reason).ok_or_else(|| format!("{said:?}"))
        })
        .await
    }
}

/// Objects by name.
pub async fn list<K>(api: &Api<K>, params: &ListParams) -> BTreeMap<String, K>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let found = api.list(params).await.unwrap();
    found.items.into_iter().map(|object| (object.name_any(), object)).collect()
}
