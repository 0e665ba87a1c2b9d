//! The one controller of a provider: over the instances of a cell, with an engine that does the work.
//!
//! A pass, in order:
//! 1. what the engine still has of earlier instances of this name is stopped, and awaited;
//! 2. an instance that is being deleted is stopped; when nothing is left, the finalizer goes;
//! 3. one that may run gets the finalizer, then is started, then reported.
//!
//! # Guarantees
//!
//! - Nothing is started before the finalizer is stored, and the finalizer goes only after everything has stopped: whatever happens
//!   in between, somebody knows.
//! - Instances that are gone, or whose predecessor was never cleaned up, leave nothing behind in the engine.
//! - Nothing is done about an instance that cannot be decoded.

use std::sync::Arc;

use anyhow::Context as _;
use compute_api::compute::Instance;
use compute_api::finalizers;
use compute_api::k8s::Condition;
use compute_core::meta;
use compute_core::provider::{self, Locations, Observation, State, Trouble};
use compute_runtime::cache::ObjectName;
use compute_runtime::controller::Error;
use compute_runtime::events::{Notice, Recorder};
use compute_runtime::write::{self, Writer};
use compute_runtime::{Key, Next, OwnWrites, Plane, Reconciler};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::json;

use crate::engine::{self, Engine, Id, Stop};

/// Brings instances to their engine.
pub(crate) struct Provider {
    pub(crate) cell: Plane,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) locations: Locations,
    pub(crate) instances: OwnWrites<Instance>,
    pub(crate) events: Recorder,
    pub(crate) writer: Writer,
    pub(crate) finalizer: String,
}

impl Reconciler for Provider {
    fn name(&self) -> &'static str {
        "provider"
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let name = ObjectName { namespace: key.namespace.to_string(), name: key.name.to_string() };
        if self.instances.cache().is_unreadable(&name.namespace, &name.name) {
            return Ok(Next::Done);
        }
        let instance = self.instances.get(&name.namespace, &name.name);
        let uid = instance.as_ref().map(|instance| meta::uid(&instance.metadata));
        for left in self.engine.held(&name).iter().filter(|id| Some(id.uid.as_str()) != uid) {
            if let Stop::Stopping { again } = self.engine.stop(left, None).await.context("stopping")? {
                return Ok(again.map_or(Next::Done, Next::After));
            }
        }
        let Some(instance) = instance else { return Ok(Next::Done) };
        let done = if meta::is_being_deleted(&instance.metadata) {
            self.stop(&instance).await
        } else if provider::may_run(&instance, &self.locations) {
            self.run(instance).await
        } else {
            return Ok(Next::Done);
        };
        match done {
            Ok(next) => Ok(next),
            Err(Failure::Write(error)) => error.into_next(),
            Err(Failure::Engine(error)) => Err(error).context(self.engine.name()),
        }
    }
}

/// What can go wrong in a pass.
enum Failure {
    Write(write::Error),
    Engine(engine::Error),
}

impl From<write::Error> for Failure {
    fn from(error: write::Error) -> Self {
        Self::Write(error)
    }
}

impl From<engine::Error> for Failure {
    fn from(error: engine::Error) -> Self {
        Self::Engine(error)
    }
}

impl Provider {
    /// Whether the instance has been given to this provider.
    pub(crate) fn holds(&self, instance: &Instance) -> bool {
        instance.finalizers().contains(&self.finalizer)
    }

    async fn run(&self, mut instance: Arc<Instance>) -> Result<Next, Failure> {
        let api = self.api(&instance);
        if let Some(held) = self.writer.add_finalizer(&api, &*instance, &self.finalizer).await? {
            instance = self.instances.wrote(held);
        }
        let seen = match self.engine.ensure(&instance).await {
            Ok(seen) => seen,
            Err(error) => {
                // Nobody can tell how it is: what was said of one that ran stays; one that never did says that it waits.
                if !provider::is_running(&instance) {
                    self.report(&instance, &Observation::of(State::Preparing)).await?;
                }
                return Err(error.into());
            }
        };
        self.report(&instance, &seen.observation).await?;
        Ok(seen.again.map_or(Next::Done, Next::After))
    }

    async fn stop(&self, instance: &Instance) -> Result<Next, Failure> {
        if !self.holds(instance) {
            return Ok(Next::Done);
        }
        match self.engine.stop(&Id::of(instance), Some(instance)).await? {
            Stop::Gone => {
                let api = self.api(instance);
                if let Some(released) = self.writer.remove_finalizer(&api, instance, &self.finalizer).await? {
                    self.instances.wrote(released);
                }
                Ok(Next::Done)
            }
            Stop::Stopping { again } => {
                self.report(instance, &Observation::stopping(instance)).await?;
                Ok(again.map_or(Next::Done, Next::After))
            }
        }
    }

    /// Writes what is new about an instance, and tells people of troubles.
    async fn report(&self, instance: &Instance, seen: &Observation) -> Result<(), Failure> {
        let now = self.cell.runtime().clock().now();
        let status = provider::report(instance, seen, self.engine.note(), now);
        if !provider::differs(instance, &status) {
            return Ok(());
        }
        if let State::Trouble(Trouble::Provisioning(said)) = &seen.state {
            tracing::warn!(instance = %instance.name_any(), said, "the engine has a trouble of its own");
        }
        let fields = json!({
            "apiVersion": Instance::api_version(&()),
            "kind": Instance::kind(&()),
            // The uid keeps this from a successor of the same name.
            "metadata": { "name": instance.name_any(), "uid": instance.uid() },
            "status": status,
        });
        let written = self.writer.apply_status(&self.api(instance), &instance.name_any(), &fields).await?;
        self.instances.wrote(written);
        if let Some(Condition { reason, message, .. }) = provider::warning(instance, &status) {
            self.events.tell(instance, Notice::warning(reason, message));
        }
        Ok(())
    }

    fn api(&self, instance: &Instance) -> Api<Instance> {
        Api::namespaced(self.cell.client().clone(), meta::namespace(&instance.metadata))
    }

    /// The finalizer of the provider of that engine.
    pub(crate) fn finalizer_of(engine: &dyn Engine) -> String {
        finalizers::provider(engine.name())
    }
}
