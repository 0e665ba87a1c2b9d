//! What is said about an instance: our conditions, and events when there is trouble.

use std::sync::Arc;

use anyhow::Context as _;
use compute_api::compute::Instance;
use compute_api::conditions as c;
use compute_api::k8s::{Condition, Resource as _};
use compute_core::instance_conditions::{self, Facts};
use compute_core::news;
use compute_core::quota::{self, Outcome};
use compute_runtime::Key;
use compute_runtime::controller::Error;
use compute_runtime::events::Notice;
use serde_json::json;

use super::Instances;

/// Reasons of `Ready` that people hear of by an event. Those of quota have their own.
const TROUBLE: [&str; 4] =
    [c::IMAGE_UNAVAILABLE, c::INSTANCE_CRASHING, c::CONFIGURATION_ERROR, c::NETWORK_FAILED_TO_CREATE];

impl Instances {
    /// Writes our conditions, if they differ from what is stored. `None` if the instance is another one by now.
    pub(super) async fn say(
        &self,
        key: &Key,
        instance: Arc<Instance>,
        facts: Facts<'_>,
    ) -> Result<Option<Arc<Instance>>, Error> {
        let own = instance_conditions::own(&instance, facts, self.cell.plane.runtime().clock().now());
        if !instance_conditions::differs(&instance, &own) {
            return Ok(Some(instance));
        }
        if news::own_conditions_pass(&instance, &own) && self.queue.hold(key, news::MOMENT) {
            return Ok(Some(instance));
        }
        let fields = json!({
            "apiVersion": Instance::api_version(&()),
            "kind": Instance::kind(&()),
            "metadata": { "uid": instance.metadata.uid },
            "status": { "conditions": own },
        });
        let applied = self.writer.apply_status(&self.api(key), &key.name, &fields).await.map(Some);
        let written = self.written(key, instance.clone(), applied).context("writing conditions")?;
        if written.is_some() {
            self.tell_trouble(&instance, &own);
        }
        Ok(written)
    }

    /// Tells people when an instance gets into trouble, and not while it stays there.
    fn tell_trouble(&self, before: &Instance, own: &[Condition]) {
        let stored = before.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let reason =
            |conditions: &[Condition]| c::find(conditions, c::READY).map(|ready| ready.reason.clone());
        let Some(ready) = c::find(own, c::READY).filter(|ready| TROUBLE.contains(&ready.reason.as_str()))
        else {
            return;
        };
        if reason(stored).as_ref() != Some(&ready.reason) {
            self.cell.recorder.tell(before, Notice::warning(&ready.reason, &ready.message));
        }
    }

    /// Tells people how asking for quota failed, once for each way.
    pub(super) fn warn_of_quota(&self, key: &Key, instance: &Instance, outcome: &Outcome) {
        const MATTER: &str = "quota";
        if quota::is_failure(outcome) {
            let said = quota::condition(outcome, None);
            let reason = match outcome {
                Outcome::HeldByOtherCell { .. } => "QuotaClaimHeldByOtherCell",
                _ => &said.reason,
            };
            self.told.warn(&self.cell.recorder, (key, instance), (MATTER, reason), said.message);
        } else if matches!(outcome, Outcome::Granted | Outcome::Disabled) {
            self.told.settled(key, MATTER);
        }
    }
}
