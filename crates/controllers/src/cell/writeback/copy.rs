//! One copy: written, or removed.

use std::sync::Arc;

use anyhow::Context as _;
use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::k8s::Resource as _;
use compute_core::federation::Upstream;
use compute_core::writeback::{self, Refusal, Step};
use compute_core::{meta, news};
use compute_runtime::controller::Error;
use compute_runtime::write::Target;
use compute_runtime::{Key, Next};
use kube::Api;
use kube::api::PropagationPolicy;
use serde_json::{Value, json};

use super::super::indexes::deployment_name;
use super::super::write::unless_outdated;
use super::WriteBack;

impl WriteBack {
    fn hub_api(&self, key: &Key) -> Api<Instance> {
        Api::namespaced(self.hub.client().clone(), &key.namespace)
    }

    pub(super) async fn write(&self, key: &Key, instance: &Instance) -> Result<Next, Error> {
        if self.copies.is_unreadable(&key.namespace, &key.name) {
            return Ok(Next::Done);
        }
        let owner = deployment_name(instance).and_then(|name| self.hub_deployments.get(&key.namespace, name));
        let held = self.copies.get(&key.namespace, &key.name).map(|held| self.latest.of(key, held));
        let Some(upstream) = self.upstream(key, instance, owner.as_deref()) else { return Ok(Next::Done) };
        self.warn_of_labels(key, instance);
        let decided =
            writeback::decide(instance, owner.as_deref(), held.as_deref(), &upstream, &self.cluster_name);
        let (copy, object, status) = match decided {
            Ok(Step::Write { copy, object, status }) => (copy, object, status),
            Ok(Step::UpToDate | Step::Wait) => {
                return Ok(Next::Done);
            }
            Err(refusal @ Refusal::Project(_)) => {
                let matter = ("project", "NotWrittenBack");
                self.told.warn(&self.cell.recorder, (key, instance), matter, refusal.to_string());
                return Ok(Next::Done);
            }
            Err(refusal) => {
                tracing::debug!(%key, %refusal, "not written back");
                return Ok(Next::Done);
            }
        };
        if news::instance_passes(held.as_deref(), &copy) && self.queue.hold(key, news::MOMENT) {
            return Ok(Next::Done);
        }
        let api = self.hub_api(key);
        let mut before = held;
        if object {
            let applied = self.writer.apply(&api, &key.name, &main_fields(&copy)).await;
            let written = applied.context("writing the hub's copy")?;
            before = Some(self.took(key, before, written));
        }
        if status {
            let applied = self.writer.apply_status(&api, &key.name, &status_fields(&copy)).await;
            // If the copy has gone meanwhile, the hub's cache says so.
            if let Some(written) = unless_outdated(applied).context("writing the status of the hub's copy")? {
                self.took(key, before, written);
            }
        }
        Ok(Next::Done)
    }

    fn took(&self, key: &Key, before: Option<Arc<Instance>>, after: Instance) -> Arc<Instance> {
        match before {
            Some(before) => self.latest.wrote(key, &before, after),
            None => Arc::new(after),
        }
    }

    /// Where the instance comes from: its deployment on the hub knows best.
    fn upstream(
        &self,
        key: &Key,
        instance: &Instance,
        owner: Option<&WorkloadDeployment>,
    ) -> Option<Upstream> {
        const MATTER: &str = "upstream";
        let owner = owner?;
        let upstream = Upstream::of(&owner.metadata).or_else(|| Upstream::of(&instance.metadata));
        if upstream.is_some() {
            self.told.settled(key, MATTER);
        } else {
            let message = "Nothing says which project the instance belongs to: it is not written back";
            self.told.warn(&self.cell.recorder, (key, instance), (MATTER, "NotWrittenBack"), message);
        }
        upstream
    }

    fn warn_of_labels(&self, key: &Key, instance: &Instance) {
        const MATTER: &str = "labels";
        let missing = writeback::missing_labels(instance);
        if missing.is_empty() {
            self.told.settled(key, MATTER);
        } else {
            let message = format!("Labels are missing: {}", missing.join(", "));
            self.told.warn(&self.cell.recorder, (key, instance), (MATTER, "LabelsMissing"), message);
        }
    }

    /// The cell has no such instance, as far as its cache tells.
    pub(super) async fn remove(&self, key: &Key) -> Result<Next, Error> {
        self.told.forget(key);
        self.latest.forget(key);
        let held = self.copies.get(&key.namespace, &key.name);
        let Some(held) = held.filter(|held| !meta::is_being_deleted(&held.metadata)) else {
            return Ok(Next::Done);
        };
        let Some(target) = Target::of(&*held) else { return Ok(Next::Done) };
        // Caches may be behind: what the server has now decides.
        let own: Api<Instance> = Api::namespaced(self.cell.plane.client().clone(), &key.namespace);
        let there =
            self.writer.request(own.get_metadata_opt(&key.name)).await.context("looking for the instance")?;
        if there.is_some() {
            return Ok(Next::Done);
        }
        let deleted = self.writer.delete(&self.hub_api(key), &target, PropagationPolicy::Background).await;
        unless_outdated(deleted).context("deleting the hub's copy")?;
        Ok(Next::Done)
    }
}

/// Everything of a copy but its status.
fn main_fields(copy: &Instance) -> Value {
    json!({
        "apiVersion": Instance::api_version(&()),
        "kind": Instance::kind(&()),
        "metadata": copy.metadata,
        "spec": copy.spec,
    })
}

fn status_fields(copy: &Instance) -> Value {
    json!({
        "apiVersion": Instance::api_version(&()),
        "kind": Instance::kind(&()),
        "status": copy.status,
    })
}
