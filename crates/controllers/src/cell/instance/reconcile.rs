//! One pass over an instance: the steps, in order.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use compute_api::compute::{Instance, WorkloadDeployment, gates};
use compute_api::conditions::{self as c, Status};
use compute_api::finalizers;
use compute_core::instance_conditions::Facts;
use compute_core::meta;
use compute_core::quota::{self, pace};
use compute_runtime::controller::Error;
use compute_runtime::write::{Part, Result as WriteResult};
use compute_runtime::{Key, Next, Reconciler};
use kube::Api;

use super::super::indexes::deployment_name;
use super::super::write::unless_outdated;
use super::{Instances, NAME};

impl Reconciler for Instances {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(cached) = self.instances.get(&key.namespace, &key.name) else {
            match self.instances.is_unreadable(&key.namespace, &key.name) {
                true => self.quota.pause(key),
                false => self.gone(key),
            }
            return Ok(Next::Done);
        };
        let instance = self.latest.of(key, cached);
        if meta::is_being_deleted(&instance.metadata) {
            return self.let_go(key, instance).await;
        }
        // Whatever it takes from now on is given back before it goes.
        let held = self.writer.add_finalizer(&self.api(key), &*instance, finalizers::INSTANCE).await;
        let Some(instance) = self.written(key, instance, held).context("holding the instance")? else {
            return Ok(Next::Done);
        };
        let Some(instance) = self.take_out_retired_condition(key, instance).await? else {
            return Ok(Next::Done);
        };
        self.serve(key, instance).await
    }
}

impl Instances {
    pub(super) fn api(&self, key: &Key) -> Api<Instance> {
        Api::namespaced(self.cell.plane.client().clone(), &key.namespace)
    }

    fn gone(&self, key: &Key) {
        self.latest.forget(key);
        self.told.forget(key);
        self.quota.forget(key, self.instances.is_namespace_empty(&key.namespace));
    }

    /// The deployment that controls an instance.
    pub(super) fn deployment_of(&self, instance: &Instance) -> Option<Arc<WorkloadDeployment>> {
        let found = self.deployments.get(meta::namespace(&instance.metadata), deployment_name(instance)?)?;
        meta::is_controlled_by(&instance.metadata, meta::uid(&found.metadata)).then_some(found)
    }

    /// The instance after a write that may have had nothing to do; `None` if it has changed meanwhile and comes again.
    pub(super) fn written(
        &self,
        key: &Key,
        before: Arc<Instance>,
        result: WriteResult<Option<Instance>>,
    ) -> WriteResult<Option<Arc<Instance>>> {
        Ok(unless_outdated(result)?.map(|written| match written {
            Some(after) => self.latest.wrote(key, &before, after),
            None => before,
        }))
    }

    async fn take_out_retired_condition(
        &self,
        key: &Key,
        instance: Arc<Instance>,
    ) -> Result<Option<Arc<Instance>>, Error> {
        let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
        if c::find(conditions, c::RUNNING_RETIRED).is_none() {
            return Ok(Some(instance));
        }
        let entry = ("type", c::RUNNING_RETIRED);
        let removed = self
            .writer
            .remove_entry(&self.api(key), &*instance, Part::Status, "/status/conditions", entry)
            .await;
        self.written(key, instance, removed).context("taking out a retired condition")
    }

    async fn serve(&self, key: &Key, instance: Arc<Instance>) -> Result<Next, Error> {
        let deployment = self.deployment_of(&instance);
        let answer = self.quota.evaluate(key, &instance).await;
        let stored = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let facts = Facts {
            quota: quota::condition(&answer.outcome, c::find(stored, c::QUOTA_GRANTED)),
            data: self.companions.condition(&instance, deployment.as_deref()),
            network: deployment
                .as_ref()
                .and_then(|deployment| c::find(&deployment.status.as_ref()?.conditions, c::NETWORK_READY)),
        };
        let data_is_there = facts.data.as_ref().is_none_or(|data| data.status == Status::True);
        self.warn_of_quota(key, &instance, &answer.outcome);
        // Who loses a race looks again soon, though the watch should tell before that.
        let retry = self.recheck(&instance);
        let Some(instance) = self.say(key, instance, facts).await? else { return Ok(Next::After(retry)) };
        let mut opening = Some(instance);
        if let Some(instance) = opening.take_if(|instance| quota::gate_may_go(instance, &answer.outcome)) {
            opening = self.open_gate(key, instance, gates::QUOTA).await?;
        }
        if let Some(instance) = opening.take_if(|_| data_is_there) {
            opening = self.open_gate(key, instance, gates::REFERENCED_DATA).await?;
        }
        match (answer.error, opening) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(Next::After(retry)),
            (None, Some(_)) => Ok(answer.again.map_or(Next::Done, Next::After)),
        }
    }

    /// How long until an instance of its age is looked at again.
    fn recheck(&self, instance: &Instance) -> Duration {
        let age = meta::created(&instance.metadata).duration_until(self.cell.plane.runtime().clock().now());
        pace::recheck(Duration::try_from(age).unwrap_or_default())
    }

    /// Takes a gate out of an instance, if it is there. `None` if the instance has changed meanwhile and comes again.
    async fn open_gate(
        &self,
        key: &Key,
        instance: Arc<Instance>,
        gate: &str,
    ) -> Result<Option<Arc<Instance>>, Error> {
        if !instance.spec.has_gate(gate) {
            return Ok(Some(instance));
        }
        let (list, entry) = ("/spec/controller/schedulingGates", ("name", gate));
        let removed = self.writer.remove_entry(&self.api(key), &*instance, Part::Main, list, entry).await;
        self.written(key, instance, removed).with_context(|| format!("opening gate {gate}"))
    }
}
