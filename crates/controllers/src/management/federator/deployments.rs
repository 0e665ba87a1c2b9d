//! A project's deployment: its hub namespace, its copy there, and the status that comes back.
//!
//! A pass, in this order: record finalizer and hub namespace on the project's object; the hub namespace; the copy; the status.

use std::sync::Arc;

use anyhow::Context as _;
use compute_api::compute::{API_VERSION, WorkloadDeployment};
use compute_api::k8s::{Namespace, ObjectMeta, ResourceExt as _};
use compute_api::karmada::Cluster;
use compute_api::kube::Api;
use compute_api::kube::api::PropagationPolicy;
use compute_api::{annotations, finalizers, names};
use compute_core::federation::copy::{self, Step};
use compute_core::federation::status::Cell;
use compute_core::federation::{Upstream, namespace, status};
use compute_core::{meta, news};
use compute_runtime::controller::Error;
use compute_runtime::write::{MetadataPatch, Part, Target, Writer};
use compute_runtime::{Change, Clock, Key, Next, PlaneId, Queue, Reconciler};
use serde_json::json;

use super::WRITER;
use crate::management::requests::gone;
use crate::management::view::{Hub, Kind, NamespaceMeta, Project, View, Watcher};

/// What logs and metrics call it.
pub(in crate::management) const NAME: &str = "federator";

/// Keys of deployments, under their names in their projects.
pub(in crate::management) struct Keys(Queue);

impl Keys {
    pub(in crate::management) fn new(queue: &Queue) -> Self {
        Self(queue.clone())
    }

    /// Deployments of one namespace of a project.
    fn add_namespace(&self, project: &Project, namespace: &str) {
        let all = project.deployments.in_namespace(namespace);
        self.0.add_all(all.iter().map(|deployment| Key::of(project.id(), &**deployment)));
    }

    fn add_project(&self, project: &Project) {
        self.0.add_all(
            project.deployments.list().iter().map(|deployment| Key::of(project.id(), &**deployment)),
        );
    }

    /// The project's objects that copies stand for. Those that do not say are nobody's, and not ours.
    fn add_copies<'a>(&self, copies: impl IntoIterator<Item = &'a Arc<WorkloadDeployment>>) {
        self.0.add_all(copies.into_iter().filter_map(|copy| Hub::upstream_key(&copy.metadata)));
    }
}

impl Watcher for Keys {
    fn deployment(&self, _: &View, project: &Project, change: &Change<WorkloadDeployment>) {
        self.0.add(project.key(&change.name.namespace, &change.name.name));
    }

    fn namespace(&self, _: &View, project: &Project, change: &Change<NamespaceMeta>) {
        if change.before.is_none() {
            self.add_namespace(project, &change.name.name);
        }
    }

    fn connected(&self, view: &View, project: &Project, kind: Kind) {
        if !matches!(kind, Kind::Deployment | Kind::Namespace) {
            return;
        }
        self.add_project(project);
        // Among them may be some whose object is gone.
        if let Some(hub) = view.hub() {
            self.add_copies(&hub.copies_of_project(project.id()));
        }
    }

    fn disengaged(&self, _: &View, id: &PlaneId) {
        self.0.remove_plane(id);
    }

    fn hub_deployment(&self, _: &View, hub: &Hub, change: &Change<WorkloadDeployment>) {
        self.add_copies(change.versions());
        if change.latest().is_none() {
            self.0.add_all(hub.key_by_namespace(&change.name));
        }
    }

    fn hub_namespace(&self, view: &View, _: &Hub, change: &Change<NamespaceMeta>) {
        let labels = |version: &Option<Arc<NamespaceMeta>>| {
            version.as_ref().and_then(|held| held.metadata.labels.clone())
        };
        if change.before.is_some()
            && change.after.is_some()
            && labels(&change.before) == labels(&change.after)
        {
            return;
        }
        for upstream in change.versions().filter_map(|version| Upstream::of(&version.metadata)) {
            let project = PlaneId::new(names::bare_project_name(&upstream.project));
            if let Some(project) = view.project(&project) {
                self.add_namespace(&project, &upstream.namespace);
            }
        }
    }

    /// Every deployment in a city whose cell comes, goes, or answers differently. What else a cell reports is of no interest.
    fn cluster(&self, _: &View, hub: &Hub, change: &Change<Cluster>) {
        for city in change.versions().filter_map(|cluster| Hub::city_of(cluster)) {
            if status::cell(city, change.before.as_deref()) != status::cell(city, change.after.as_deref()) {
                self.add_copies(&hub.deployments_in(city));
            }
        }
    }

    fn hub_connected(&self, view: &View, hub: &Hub, kind: Kind) {
        if !matches!(kind, Kind::Deployment | Kind::Namespace | Kind::Cluster) {
            return;
        }
        view.projects().iter().for_each(|project| self.add_project(project));
        self.add_copies(&hub.deployments.list());
    }
}

/// Sends deployments to the hub and brings their status back.
pub(in crate::management) struct DeploymentFederator {
    view: Arc<View>,
    pub(super) hub: Arc<Hub>,
    pub(super) writer: Writer,
    clock: Arc<dyn Clock>,
    queue: Queue,
}

impl Reconciler for DeploymentFederator {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        // What happens on the hub to a project that is not served is dropped; it is looked at again when it is.
        let Some(project) = self.view.project(&key.plane) else { return Ok(Next::Done) };
        // What is missing here comes again when it is complete.
        if ![&self.hub.deployments, &project.deployments].iter().all(|cache| cache.is_connected()) {
            return Ok(Next::Done);
        }
        match project.deployments.get(&key.namespace, &key.name) {
            Some(deployment) if meta::is_being_deleted(&deployment.metadata) => {
                self.release(key, &project, &deployment.metadata).await?;
            }
            Some(deployment) => self.federate(key, &project, &deployment).await?,
            None if project.deployments.is_unreadable(&key.namespace, &key.name) => {
                self.release_unreadable(key, &project).await?;
            }
            None => {
                self.remove_orphans(key, &project).await?;
            }
        }
        Ok(Next::Done)
    }
}

impl DeploymentFederator {
    pub(in crate::management) fn new(
        view: &Arc<View>,
        hub: &Arc<Hub>,
        clock: &Arc<dyn Clock>,
        queue: Queue,
    ) -> Self {
        Self {
            view: view.clone(),
            hub: hub.clone(),
            writer: Writer::new(WRITER),
            clock: clock.clone(),
            queue,
        }
    }

    async fn federate(
        &self,
        key: &Key,
        project: &Project,
        deployment: &WorkloadDeployment,
    ) -> Result<(), Error> {
        let Some(active) = project.active() else { return Ok(()) };
        let Some(federated) =
            active.federated.as_ref().filter(|federated| federated.namespaces.is_connected())
        else {
            return Ok(());
        };
        if !self.hub.namespaces.is_connected() {
            return Ok(());
        }
        // A namespace that is not to be seen yet will be.
        let Some(held) = federated.namespaces.get("", &key.namespace) else { return Ok(()) };
        let wanted = namespace::hub_namespace(key.plane.as_str(), &as_namespace(&held.metadata))?;
        let hub_namespace = meta::name(&wanted.metadata);

        let recorded = self.record(project, deployment, hub_namespace).await?;
        let deployment = recorded.as_ref().unwrap_or(deployment);
        if !self.ensure_namespace(&wanted).await? {
            return Ok(());
        }
        self.remove_superseded(key, Some(hub_namespace)).await?;
        let upstream = Upstream { project: key.plane.to_string(), namespace: key.namespace.to_string() };
        let copy = self.copy(deployment, &upstream, hub_namespace).await?;
        self.mirror(project, deployment, copy.as_deref()).await
    }

    /// Makes the project's object say where its copy is, and wait for us before it goes. The object, if that changed it.
    async fn record(
        &self,
        project: &Project,
        deployment: &WorkloadDeployment,
        hub_namespace: &str,
    ) -> Result<Option<WorkloadDeployment>, Error> {
        let mut patch = MetadataPatch::default();
        if !deployment.finalizers().iter().any(|held| held == finalizers::FEDERATOR) {
            let held = deployment.finalizers().iter().cloned();
            patch.finalizers = Some(held.chain([finalizers::FEDERATOR.to_owned()]).collect());
        }
        if meta::annotation(&deployment.metadata, annotations::FEDERATION_NAMESPACE) != Some(hub_namespace) {
            let key = annotations::FEDERATION_NAMESPACE.to_owned();
            patch.annotations.insert(key, Some(hub_namespace.to_owned()));
        }
        if patch.is_empty() {
            return Ok(None);
        }
        patch.uid.clone_from(&deployment.metadata.uid);
        patch.resource_version.clone_from(&deployment.metadata.resource_version);
        let api = deployments_of(project, &deployment.metadata);
        let written = self.writer.patch_metadata(&api, meta::name(&deployment.metadata), &patch).await;
        let metadata = written.context("recording the hub namespace")?.metadata;
        Ok(Some(WorkloadDeployment { metadata, ..deployment.clone() }))
    }

    /// Makes the hub namespace. Whether it is there: one on its way out is waited for.
    async fn ensure_namespace(&self, wanted: &Namespace) -> Result<bool, Error> {
        let name = meta::name(&wanted.metadata);
        let stored = self.hub.namespaces.get("", name).map(|stored| as_namespace(&stored.metadata));
        if stored.as_ref().is_some_and(|stored| meta::is_being_deleted(&stored.metadata)) {
            return Ok(false);
        }
        if namespace::differs(stored.as_ref(), wanted) {
            let api: Api<Namespace> = Api::all(self.hub.client());
            let fields = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": { "name": name, "labels": wanted.metadata.labels },
            });
            self.writer.apply(&api, name, &fields).await.context("applying the hub namespace")?;
        }
        Ok(true)
    }

    /// Makes the copy what it should be; the copy as it is then, if there is one.
    async fn copy(
        &self,
        deployment: &WorkloadDeployment,
        upstream: &Upstream,
        hub_namespace: &str,
    ) -> Result<Option<Arc<WorkloadDeployment>>, Error> {
        let name = meta::name(&deployment.metadata);
        if self.hub.deployments.is_unreadable(hub_namespace, name) {
            return Ok(None);
        }
        let decide =
            |copy: Option<&WorkloadDeployment>| copy::decide(deployment, upstream, hub_namespace, copy);
        let api: Api<WorkloadDeployment> = Api::namespaced(self.hub.client(), hub_namespace);
        let mut held = self.hub.deployments.get(hub_namespace, name);
        let mut step = decide(held.as_deref())?;
        if matches!(step, Step::Apply(_)) {
            // What is applied is decided from what is there now: a predecessor's copy must never be taken over, with its status.
            held = self.writer.request(api.get_opt(name)).await.context("reading the copy")?.map(Arc::new);
            step = decide(held.as_deref())?;
        }
        match step {
            Step::Apply(body) => {
                let mut applied = self.writer.apply(&api, name, &*body).await.context("applying the copy")?;
                if let Some(patch) = copy::correction(&applied, &body) {
                    let corrected = self.writer.merge(&api, name, Part::Main, &patch).await;
                    applied = corrected.context("taking what others added out of the copy")?;
                }
                held = Some(Arc::new(applied));
            }
            Step::Delete { uid, why } => {
                tracing::info!(hub_namespace, deployment = name, ?why, "deleting a copy");
                let target = Target { name: name.to_owned(), uid, resource_version: None };
                let deleted = self.writer.delete(&api, &target, PropagationPolicy::Background).await;
                gone(deleted).context("deleting the copy of a predecessor")?;
                held = None;
            }
            Step::UpToDate | Step::Wait | Step::Release => {}
        }
        Ok(held)
    }

    /// Brings the status of the copy back, under what is known of the cell.
    async fn mirror(
        &self,
        project: &Project,
        deployment: &WorkloadDeployment,
        copy: Option<&WorkloadDeployment>,
    ) -> Result<(), Error> {
        let city = &deployment.spec.city_code;
        let cell = if self.hub.clusters.is_connected() {
            status::cell(city, self.hub.cells_in(city).iter().map(|cluster| &**cluster))
        } else {
            Cell::Unknown
        };
        let wanted = status::mirror(deployment, copy, &cell, self.clock.now());
        let key = Key::of(project.id(), deployment);
        if !status::differs(deployment.status.as_ref(), &wanted) {
            return Ok(());
        }
        if news::deployment_passes(deployment.status.as_ref(), &wanted) && self.queue.hold(&key, news::MOMENT)
        {
            return Ok(());
        }
        let name = meta::name(&deployment.metadata);
        let fields = json!({
            "apiVersion": API_VERSION,
            "kind": "WorkloadDeployment",
            // When something changed is worked out from what was there.
            "metadata": { "name": name, "uid": deployment.metadata.uid, "resourceVersion": deployment.metadata.resource_version },
            "status": wanted,
        });
        let api = deployments_of(project, &deployment.metadata);
        self.writer.apply_status(&api, name, &fields).await.context("writing the status")?;
        Ok(())
    }
}

/// The deployments of an object's namespace in a project.
pub(super) fn deployments_of(project: &Project, meta: &ObjectMeta) -> Api<WorkloadDeployment> {
    Api::namespaced(project.client(), meta::namespace(meta))
}

/// A namespace of which only metadata is known.
pub(super) fn as_namespace(meta: &ObjectMeta) -> Namespace {
    Namespace { metadata: meta.clone(), ..Namespace::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_written_under_the_name_that_the_decision_looks_for() {
        assert_eq!(Writer::new(WRITER).manager(), copy::FIELD_MANAGER);
    }
}
