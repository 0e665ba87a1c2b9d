//! One pass over a deployment: the steps, in order.

use std::sync::Arc;

use anyhow::Context as _;
use compute_api::compute::{Instance, LocationReference, WorkloadDeployment};
use compute_api::conditions::Update;
use compute_api::k8s::{Resource as _, Timestamp};
use compute_api::{finalizers, labels, names};
use compute_core::news;
use compute_core::planner::Options;
use compute_core::rollup::deployment as rollup;
use compute_core::{meta, networks, scale};
use compute_runtime::controller::Error;
use compute_runtime::write::{Error as WriteError, Result as WriteResult};
use compute_runtime::{Key, Next, Reconciler};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use super::super::write::unless_outdated;
use super::pending::PATIENCE;
use super::{Deployments, NAME};

impl Reconciler for Deployments {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(cached) = self.deployments.get(&key.namespace, &key.name) else {
            self.latest.forget(key);
            self.told.forget(key);
            return Ok(Next::Done);
        };
        let deployment = self.latest.of(key, cached);
        if meta::is_being_deleted(&deployment.metadata) {
            return self.let_go(key, &deployment).await;
        }
        // No instance is made before the deployment waits for it.
        let held =
            self.writer.add_finalizer(&self.api(key), &*deployment, finalizers::WORKLOAD_DEPLOYMENT).await;
        let deployment = match unless_outdated(held).context("holding the deployment")? {
            None => return Ok(Next::Done),
            Some(None) => deployment,
            Some(Some(written)) => self.latest.wrote(key, &deployment, written),
        };
        self.serve(key, &deployment).await
    }
}

/// What to say of networks when the server refuses what they need: waiting does not mend that, and it says what would.
fn refusal(error: &WriteError) -> Option<Update> {
    let said = match error {
        WriteError::Forbidden(said) | WriteError::Invalid(said) => said,
        _ => return None,
    };
    Some(networks::refused(said.message.as_str()))
}

impl Deployments {
    pub(super) fn now(&self) -> Timestamp {
        self.cell.plane.runtime().clock().now()
    }

    fn api(&self, key: &Key) -> Api<WorkloadDeployment> {
        Api::namespaced(self.cell.plane.client().clone(), &key.namespace)
    }

    async fn serve(&self, key: &Key, deployment: &Arc<WorkloadDeployment>) -> Result<Next, Error> {
        let location = self.location(key, deployment);
        let (network, asked, ready) = match &self.networks {
            None => (None, Ok(()), true),
            Some(networks) => {
                let plan = networks.plan(deployment, location.as_ref());
                let asked = self.set_up_networks(deployment, networks, &plan).await;
                let ready = plan.is_ready();
                let condition = asked.as_ref().err().and_then(refusal).unwrap_or(plan.condition);
                (Some(condition), asked.context("setting up networks"), ready)
            }
        };
        let options = Options { network_gate: self.networks.is_some(), location: location.clone() };
        let (instances, _) = self.instances_of(deployment);
        let executed = self.execute(key, deployment, self.plan(deployment, instances, &options)).await;
        let opened = match ready {
            true => self.open_network_gates(deployment, &self.instances_of(deployment).0).await,
            false => Ok(()),
        };
        let (instances, behind) = self.instances_of(deployment);
        let reported = self.report(key, deployment, &instances, location, network).await;
        asked?;
        executed?;
        opened?;
        reported?;
        // If the cache never shows what it is behind with, it is believed after that time.
        Ok(if behind { Next::After(PATIENCE) } else { Next::Done })
    }

    /// The location of the deployment's city, best effort.
    fn location(&self, key: &Key, deployment: &WorkloadDeployment) -> Option<LocationReference> {
        const MATTER: &str = "location";
        let resolved = self.networks.as_ref()?.location(&deployment.spec.city_code)?;
        if resolved.others.is_empty() {
            self.told.settled(key, MATTER);
        } else {
            let message = format!(
                "City {} is that of several locations: {} is taken, and not {}",
                deployment.spec.city_code,
                resolved.location.name,
                resolved.others.join(", ")
            );
            self.told.warn(&self.cell.recorder, (key, deployment), (MATTER, "AmbiguousLocation"), message);
        }
        Some(resolved.location)
    }

    async fn report(
        &self,
        key: &Key,
        deployment: &Arc<WorkloadDeployment>,
        instances: &[Arc<Instance>],
        location: Option<LocationReference>,
        network: Option<Update>,
    ) -> Result<(), Error> {
        let instances = instances.iter().map(Arc::as_ref);
        let status = rollup::status(deployment, instances, location, network, self.now());
        if !rollup::differs(deployment.status.as_ref(), &status) {
            return Ok(());
        }
        if news::deployment_passes(deployment.status.as_ref(), &status) && self.queue.hold(key, news::MOMENT)
        {
            return Ok(());
        }
        let fields = json!({
            "apiVersion": WorkloadDeployment::api_version(&()),
            "kind": WorkloadDeployment::kind(&()),
            "metadata": { "uid": deployment.metadata.uid },
            "status": status,
        });
        let applied = self.writer.apply_status(&self.api(key), &key.name, &fields).await;
        if let Some(after) = unless_outdated(applied).context("writing status")? {
            self.latest.wrote(key, deployment, after);
        }
        Ok(())
    }

    /// Has the instances of a deployment deleted, and lets it go after the last.
    async fn let_go(&self, key: &Key, deployment: &Arc<WorkloadDeployment>) -> Result<Next, Error> {
        let finalizer = finalizers::WORKLOAD_DEPLOYMENT;
        if !deployment.metadata.finalizers.iter().flatten().any(|held| held == finalizer) {
            return Ok(Next::Done);
        }
        let options = Options { network_gate: false, location: None };
        let (instances, _) = self.instances_of(deployment);
        self.execute(key, deployment, self.plan(deployment, instances, &options)).await?;
        let (left, behind) = self.instances_of(deployment);
        if !left.is_empty() {
            return Ok(if behind { Next::After(PATIENCE) } else { Next::Done });
        }
        if let Some(unreadable) = self.unreadable_instance(deployment) {
            let message = format!("Instance {unreadable} cannot be read, and may belong to this deployment");
            let matter = ("unreadable", "InstanceUnreadable");
            self.told.warn(&self.cell.recorder, (key, &**deployment), matter, message);
            return Ok(Next::Done);
        }
        // The cache may be behind without knowing it, and nothing would make up for an instance that is left behind.
        if self.has_instances(deployment).await.context("looking for instances that are left")? {
            return Ok(Next::After(PATIENCE));
        }
        let released = self.writer.remove_finalizer(&self.api(key), &**deployment, finalizer).await;
        if let Some(Some(after)) = unless_outdated(released).context("letting the deployment go")? {
            self.latest.wrote(key, deployment, after);
        }
        self.pending.forget(meta::uid(&deployment.metadata));
        Ok(Next::Done)
    }

    /// Whether the server has instances of a deployment, whatever the cache shows.
    async fn has_instances(&self, deployment: &WorkloadDeployment) -> WriteResult<bool> {
        let uid = meta::uid(&deployment.metadata);
        let labelled = ListParams::default().labels(&format!("{}={uid}", labels::WORKLOAD_DEPLOYMENT_UID));
        let api = self.instance_api(deployment);
        let found = self.writer.request(api.list_metadata(&labelled)).await?;
        Ok(found.items.iter().any(|found| meta::is_controlled_by(&found.metadata, uid)))
    }

    /// An instance that has a name of this deployment's and cannot be read: nobody can say that it is not ours.
    fn unreadable_instance(&self, deployment: &WorkloadDeployment) -> Option<String> {
        let (namespace, name) = (meta::namespace(&deployment.metadata), meta::name(&deployment.metadata));
        let most = u32::try_from(scale::MAX_REPLICAS).unwrap_or(u32::MAX);
        (0..most)
            .map(|ordinal| names::instance_name(name, ordinal))
            .find(|instance| self.instances.is_unreadable(namespace, instance))
    }
}
