//! Letting an instance go: after everybody else who holds it, and when its claim is released. Nothing here waits for the hub.

use std::sync::Arc;

use anyhow::Context as _;
use compute_api::compute::Instance;
use compute_api::conditions::{self as c, Status, Update};
use compute_api::finalizers;
use compute_api::k8s::Condition;
use compute_core::instance_conditions::Facts;
use compute_core::meta;
use compute_core::quota::{self, Outcome};
use compute_runtime::controller::Error;
use compute_runtime::events::Notice;
use compute_runtime::{Key, Next};

use super::super::quota::Released;
use super::Instances;

impl Instances {
    pub(super) async fn let_go(&self, key: &Key, instance: Arc<Instance>) -> Result<Next, Error> {
        // It asks for nothing any more, however long it takes to go.
        self.quota.pause(key);
        let held = instance.metadata.finalizers.as_deref().unwrap_or_default();
        if !held.iter().any(|held| held == finalizers::INSTANCE) {
            return Ok(Next::Done);
        }
        let others = |held: &&String| {
            *held != finalizers::INSTANCE && !finalizers::GARBAGE_COLLECTOR.contains(&held.as_str())
        };
        if held.iter().find(others).is_some() {
            // It still runs, or is being stopped: people see how.
            self.say_on_the_way_out(key, instance).await?;
            return Ok(Next::Done);
        }
        match self.quota.release(key, &instance).await {
            Ok(Released::Done) => {}
            Ok(Released::Orphaned(why)) => {
                let message = format!("The quota claim of the instance is not released: {why}");
                self.cell.recorder.tell(&*instance, Notice::warning("QuotaClaimOrphaned", message));
            }
            Err(error) => {
                let message = "The instance has stopped; its quota claim cannot be released yet";
                let matter = ("release", "QuotaReleaseFailed");
                self.told.warn(&self.cell.recorder, (key, &*instance), matter, message);
                return Err(error);
            }
        }
        let released = self.writer.remove_finalizer(&self.api(key), &*instance, finalizers::INSTANCE).await;
        self.written(key, instance, released).context("letting the instance go")?;
        Ok(Next::Done)
    }

    /// What is said of quota and data stays as it is: nothing is asked for what is on its way out.
    async fn say_on_the_way_out(&self, key: &Key, instance: Arc<Instance>) -> Result<(), Error> {
        let deployment = self.deployment_of(&instance);
        let stored = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let quota = c::find(stored, c::QUOTA_GRANTED).map(again);
        let facts = Facts {
            quota: quota.unwrap_or_else(|| quota::condition(&Outcome::NotClaimed, None)),
            data: c::find(stored, c::REFERENCED_DATA_READY).map(again),
            network: deployment
                .as_ref()
                .and_then(|deployment| c::find(&deployment.status.as_ref()?.conditions, c::NETWORK_READY)),
        };
        debug_assert!(meta::is_being_deleted(&instance.metadata));
        self.say(key, instance.clone(), facts).await?;
        Ok(())
    }
}

/// The same once more.
fn again(condition: &Condition) -> Update {
    Update::new(&condition.type_, Status::of(condition), &condition.reason, condition.message.as_str())
}
