//! Hub namespaces that have lost what they stand for.
//!
//! A key is in the name of its project, so that a project that does not answer delays no other. One that has deployments needs no look while
//! its project is served: these are looked at themselves, and the last one that goes brings the namespace here.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use compute_api::compute::WorkloadDeployment;
use compute_api::k8s::Namespace;
use compute_api::kube::Api;
use compute_api::kube::api::PropagationPolicy;
use compute_api::milo;
use compute_api::names;
use compute_core::federation::Upstream;
use compute_core::federation::namespace::{self, Verdict};
use compute_core::meta;
use compute_runtime::controller::Error;
use compute_runtime::write::{Target, Writer};
use compute_runtime::{Change, Key, Next, Plane, PlaneId, Queue, Reconciler};

use super::WRITER;
use super::deployments::as_namespace;
use crate::management::requests::{gone, says_absent};
use crate::management::view::{Hub, Kind, NamespaceMeta, Project, View, Watcher};

/// What logs and metrics call it.
pub(in crate::management) const NAME: &str = "federator-namespaces";

/// How often a hub namespace that nobody uses is looked at: nothing tells when the project's namespace goes.
const RECHECK: Duration = Duration::from_secs(600);

/// How long a project may take to be served before core is asked about it: after a start, all are on their way.
const GRACE: Duration = Duration::from_secs(30);

/// Keys of hub namespaces.
pub(in crate::management) struct Keys(Queue);

impl Keys {
    pub(in crate::management) fn new(queue: &Queue) -> Self {
        Self(queue.clone())
    }

    /// What does not say whose it is, is not ours.
    fn add(&self, view: &View, held: &NamespaceMeta) {
        let Some(upstream) = Upstream::of(&held.metadata) else { return };
        let project = PlaneId::new(names::bare_project_name(&upstream.project));
        let key = Key::new(&project, "", meta::name(&held.metadata));
        match view.project(&project) {
            Some(_) => self.0.add(key),
            None => self.0.add_after(key, GRACE),
        }
    }
}

impl Watcher for Keys {
    /// The project's namespace is gone, so the hub's may go.
    fn namespace(&self, _: &View, project: &Project, change: &Change<NamespaceMeta>) {
        if let (Some(before), None) = (&change.before, &change.after) {
            self.0.add(project.key("", &names::hub_namespace(meta::uid(&before.metadata))));
        }
    }

    fn connected(&self, view: &View, project: &Project, kind: Kind) {
        if let (Some(hub), Kind::Deployment | Kind::Namespace) = (view.hub(), kind) {
            hub.namespaces_of(project.id()).iter().for_each(|held| self.add(view, held));
        }
    }

    fn disengaged(&self, view: &View, id: &PlaneId) {
        self.0.remove_plane(id);
        // Core is asked what has become of the project.
        if let Some(hub) = view.hub() {
            self.0.add_all(
                hub.namespaces_of(id).iter().map(|held| Key::new(id, "", meta::name(&held.metadata))),
            );
        }
    }

    fn hub_deployment(&self, view: &View, hub: &Hub, change: &Change<WorkloadDeployment>) {
        if change.after.is_none()
            && let Some(held) = hub.namespaces.get("", &change.name.namespace)
        {
            self.add(view, &held);
        }
    }

    fn hub_namespace(&self, view: &View, _: &Hub, change: &Change<NamespaceMeta>) {
        if let Some(held) = &change.after {
            self.add(view, held);
        }
    }

    fn hub_connected(&self, view: &View, hub: &Hub, kind: Kind) {
        if !matches!(kind, Kind::Deployment | Kind::Namespace) {
            return;
        }
        hub.namespaces.list().iter().for_each(|held| self.add(view, held));
    }
}

/// Removes hub namespaces that have lost what they stand for.
pub(in crate::management) struct NamespaceFederator {
    view: Arc<View>,
    hub: Arc<Hub>,
    core: Option<Plane>,
    writer: Writer,
}

impl Reconciler for NamespaceFederator {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        // What is missing here comes again when it is complete.
        if !self.hub.deployments.is_connected() {
            return Ok(Next::Done);
        }
        let Some(held) = self.hub.namespaces.get("", &key.name) else { return Ok(Next::Done) };
        let upstream = Upstream::of(&held.metadata);
        let Some(upstream) =
            upstream.filter(|upstream| names::bare_project_name(&upstream.project) == key.plane.as_str())
        else {
            return Ok(Next::Done);
        };
        if meta::is_being_deleted(&held.metadata) {
            return Ok(Next::Done);
        }
        let known = match self.view.project(&key.plane) {
            Some(_) if self.is_used(&key.name) => return Ok(Next::Done),
            Some(project) => self.ask_project(&project, &upstream.namespace).await?,
            None => self.ask_core(key.plane.as_str()).await?,
        };
        match namespace::judge(&as_namespace(&held.metadata), &known) {
            Verdict::Keep => Ok(Next::After(RECHECK)),
            Verdict::Remove { uid } => {
                tracing::info!(hub_namespace = &*key.name, project = %key.plane, ?known, "removing a hub namespace");
                let api: Api<Namespace> = Api::all(self.hub.client());
                let target = Target { name: key.name.to_string(), uid, resource_version: None };
                let deleted = self.writer.delete(&api, &target, PropagationPolicy::Background).await;
                gone(deleted).context("deleting the hub namespace")?;
                Ok(Next::Done)
            }
        }
    }
}

impl NamespaceFederator {
    pub(in crate::management) fn new(view: &Arc<View>, hub: &Arc<Hub>, core: Option<Plane>) -> Self {
        Self { view: view.clone(), hub: hub.clone(), core, writer: Writer::new(WRITER) }
    }

    fn is_used(&self, namespace: &str) -> bool {
        !self.hub.deployments.is_namespace_empty(namespace) || self.hub.deployments.has_unreadable(namespace)
    }

    async fn ask_project(&self, project: &Project, name: &str) -> Result<namespace::Project, Error> {
        let api: Api<Namespace> = Api::all(project.client());
        match self.writer.request(api.get_metadata(name)).await {
            Ok(found) => Ok(namespace::Project::WithNamespace { uid: meta::uid(&found.metadata).to_owned() }),
            Err(error) if says_absent(&error, "namespaces", name) => Ok(namespace::Project::WithoutNamespace),
            Err(error) => Err(error).context("asking the project for its namespace"),
        }
    }

    async fn ask_core(&self, project: &str) -> Result<namespace::Project, Error> {
        let Some(core) = &self.core else { return Ok(namespace::Project::Unknown) };
        let api: Api<milo::Project> = Api::all(core.client().clone());
        match self.writer.request(api.get_metadata(project)).await {
            Ok(_) => Ok(namespace::Project::Unknown),
            Err(error) if says_absent(&error, "projects", project) => Ok(namespace::Project::Absent),
            Err(error) => Err(error).context("asking core for the project"),
        }
    }
}
