//! What happens to a Workload that is being deleted: its deployments go, and then it.

use std::time::Duration;

use anyhow::Context as _;
use compute_api::compute::{Workload, WorkloadDeployment};
use compute_api::kube::Api;
use compute_api::kube::api::{ListParams, PropagationPolicy};
use compute_api::{finalizers, k8s::ResourceExt as _, labels};
use compute_core::location::Offered;
use compute_core::{deployments, meta};
use compute_runtime::Next;
use compute_runtime::controller::Error;
use compute_runtime::events::Notice;
use compute_runtime::write::{self, Target};

use super::reconcile::{Held, WorkloadReconciler, held};
use crate::management::requests::gone;
use crate::management::view::Project;

/// How soon to ask again about deployments that are not to be seen but are there. Rare: they cannot be decoded, or the watch is behind.
const RECHECK: Duration = Duration::from_secs(5);

impl WorkloadReconciler {
    pub(super) async fn release(&self, project: &Project, workload: &Workload) -> Result<Next, Error> {
        if !workload.finalizers().iter().any(|held| held == finalizers::WORKLOAD) {
            return Ok(Next::Done);
        }
        let mut held = held(project, workload);
        let all = || held.values().map(|deployment| &**deployment);
        let plan = deployments::decide(workload, all(), &Offered::default());
        if !deployments::none_left(workload, all()) {
            self.report_wiring_fault(project, workload, &held);
            self.execute(project, &plan, &mut held).await?;
            return Ok(Next::Done);
        }
        if self.any_left(project, workload).await? {
            return Ok(Next::After(RECHECK));
        }
        let workloads: Api<Workload> = Api::namespaced(project.client(), meta::namespace(&workload.metadata));
        match self.writer.remove_finalizer(&workloads, workload, finalizers::WORKLOAD).await {
            Ok(_) | Err(write::Error::NotFound(_)) => Ok(Next::Done),
            Err(error) => Err(error).context("taking the finalizer off"),
        }
    }

    /// Asks the project itself whether a deployment is left, and deletes those that are not to be seen from here.
    async fn any_left(&self, project: &Project, workload: &Workload) -> Result<bool, Error> {
        let uid = meta::uid(&workload.metadata);
        let api: Api<WorkloadDeployment> =
            Api::namespaced(project.client(), meta::namespace(&workload.metadata));
        let params = ListParams::default().labels(&format!("{}={uid}", labels::WORKLOAD_UID));
        let left = self.writer.request(api.list_metadata(&params)).await;
        let left = left.context("asking for deployments that are left")?;
        let ours = left.items.iter().filter(|one| meta::is_controlled_by(&one.metadata, uid));
        let mut any = false;
        for one in ours {
            any = true;
            if let Some(target) = Target::of(one).filter(|_| !meta::is_being_deleted(&one.metadata)) {
                let deleted = self.writer.delete(&api, &target, PropagationPolicy::Background).await;
                gone(deleted).with_context(|| format!("deleting deployment {}", target.name))?;
            }
        }
        Ok(any)
    }

    /// Without a hub nobody takes the federator's finalizer off, and nobody else may: what it stands for would be left behind.
    pub(super) fn report_wiring_fault(&self, project: &Project, workload: &Workload, held: &Held) {
        if self.view.hub().is_some() {
            return;
        }
        let stuck = held.values().find(|deployment| {
            meta::is_being_deleted(&deployment.metadata)
                && meta::is_controlled_by(&deployment.metadata, meta::uid(&workload.metadata))
                && deployment.finalizers().iter().any(|held| held == finalizers::FEDERATOR)
        });
        let Some(stuck) = stuck else { return };
        let name = meta::name(&stuck.metadata);
        tracing::error!(project = %project.id(), deployment = name,
            "a deployment was sent to a hub, and no hub is configured: it cannot be deleted");
        let message = format!(
            "Deployment {name} was sent to a federation hub, and none is configured: it stays until one is"
        );
        let recorder = self.events.recorder(project.id().as_str(), project.client());
        recorder.tell(workload, Notice::warning("FederationMissing", message));
    }
}
