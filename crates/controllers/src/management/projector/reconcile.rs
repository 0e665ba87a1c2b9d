//! One pass over one instance.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::kube::Api;
use compute_api::kube::api::PropagationPolicy;
use compute_api::{annotations, names};
use compute_core::projection::{self, OWNER_RECHECK, Step};
use compute_core::{meta, news};
use compute_runtime::cache::ObjectName;
use compute_runtime::controller::Error;
use compute_runtime::events::{Events, Notice};
use compute_runtime::write::{Part, Target, Writer};
use compute_runtime::{Key, Next, Queue, Reconciler};

use super::{NAME, Quarantine};
use crate::management::requests::gone;
use crate::management::view::{Federated, Hub, Project, View};

/// Shows hub instances in their projects.
pub(in crate::management) struct InstanceProjector {
    view: Arc<View>,
    hub: Arc<Hub>,
    events: Events,
    writer: Writer,
    quarantine: Arc<Quarantine>,
    queue: Queue,
}

impl Reconciler for InstanceProjector {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(project) = self.view.project(&key.plane) else { return Ok(Next::Done) };
        // What is missing here comes again when it is complete.
        if !self.hub.instances.is_connected() || !project.deployments.is_connected() {
            return Ok(Next::Done);
        }
        let active = project.active();
        let federated = active.as_ref().and_then(|active| active.federated.as_ref());
        let copies = self.hub.instance_copies(key);
        let owner = copies.first().and_then(|copy| projection::owner_name(copy));
        if owner.is_some_and(|owner| project.deployments.is_unreadable(&key.namespace, owner)) {
            return Ok(Next::Done);
        }
        let owner = owner.and_then(|owner| project.deployments.get(&key.namespace, owner));
        let copy = present_copy(&copies, owner.as_deref());
        let projected = match federated {
            Some(federated) if !federated.instances.is_connected() => return Ok(Next::Done),
            // What cannot be decoded is left alone: it is there, and cannot be made.
            Some(federated) if federated.instances.is_unreadable(&key.namespace, &key.name) => {
                return Ok(Next::Done);
            }
            Some(federated) => federated.instances.get(&key.namespace, &key.name),
            // An idle project has no owner, and what has an owner comes again when its project is watched in full.
            None if owner.is_some() => return Ok(Next::Done),
            None => None,
        };
        if copy.is_none() && self.may_have_copy(key, &project, federated) {
            return Ok(Next::Done);
        }
        let uid = copy.map(|copy| meta::uid(&copy.metadata));
        let waited = uid.map_or(Duration::ZERO, |uid| self.quarantine.waited(key, uid));
        let step =
            projection::decide(copy.map(|copy| &**copy), projected.as_deref(), owner.as_deref(), waited);
        self.quarantine.set_waiting(key, uid.filter(|_| matches!(step, Step::Wait | Step::Quarantine(_))));
        if let (Some(copy), Step::Quarantine(why)) = (copy, &step) {
            let name = ObjectName::of(&**copy);
            self.quarantine.report(
                &self.hub,
                &name,
                copy.metadata.uid.as_deref(),
                Some(&key.plane),
                &why.to_string(),
            );
            return Ok(Next::Done);
        }
        if let Some(copy) = copy {
            self.quarantine.release_copy(copy);
        }
        if let Step::Write { projection, .. } = &step
            && news::instance_passes(projected.as_deref(), projection)
            && self.queue.hold(key, news::MOMENT)
        {
            return Ok(Next::Done);
        }
        self.execute(&project, projected.as_deref(), step).await
    }
}

impl InstanceProjector {
    pub(in crate::management) fn new(
        view: &Arc<View>,
        hub: &Arc<Hub>,
        events: &Events,
        quarantine: &Arc<Quarantine>,
        queue: Queue,
    ) -> Self {
        Self {
            view: view.clone(),
            hub: hub.clone(),
            events: events.clone(),
            writer: Writer::new(NAME),
            quarantine: quarantine.clone(),
            queue,
        }
    }

    /// Whether the hub may have a copy that cannot be read.
    fn may_have_copy(&self, key: &Key, project: &Project, federated: Option<&Federated>) -> bool {
        let deployment = names::split_instance_name(&key.name).map(|(deployment, _)| deployment);
        let owner = deployment.and_then(|name| project.deployments.get(&key.namespace, name));
        let recorded = owner.and_then(|owner| recorded_namespace(&owner).map(str::to_owned));
        let held = federated.and_then(|federated| federated.namespaces.get("", &key.namespace));
        let present = held.map(|held| names::hub_namespace(meta::uid(&held.metadata)));
        recorded
            .into_iter()
            .chain(present)
            .any(|namespace| self.hub.instances.is_unreadable(&namespace, &key.name))
    }

    async fn execute(
        &self,
        project: &Project,
        projected: Option<&Instance>,
        step: Step,
    ) -> Result<Next, Error> {
        match step {
            Step::UpToDate | Step::Quarantine(_) => Ok(Next::Done),
            Step::Wait => Ok(Next::After(OWNER_RECHECK)),
            Step::Delete { uid } => {
                // It was looked at, so it is there.
                let Some(projected) = projected else { return Ok(Next::Done) };
                let api: Api<Instance> =
                    Api::namespaced(project.client(), meta::namespace(&projected.metadata));
                let target =
                    Target { name: meta::name(&projected.metadata).to_owned(), uid, resource_version: None };
                let deleted = self.writer.delete(&api, &target, PropagationPolicy::Background).await;
                gone(deleted).context("deleting the projection")?;
                Ok(Next::Done)
            }
            Step::Write { projection, object, status } => {
                self.write(project, projected, &projection, object, status).await?;
                Ok(Next::Done)
            }
        }
    }

    async fn write(
        &self,
        project: &Project,
        projected: Option<&Instance>,
        wanted: &Instance,
        object: bool,
        status: bool,
    ) -> Result<(), Error> {
        let name = meta::name(&wanted.metadata);
        let api: Api<Instance> = Api::namespaced(project.client(), meta::namespace(&wanted.metadata));
        let made = match projected {
            None => {
                let new = Instance { status: None, ..wanted.clone() };
                Some(self.writer.create(&api, &new).await.context("creating the projection")?)
            }
            Some(stored) if object => {
                let patch = projection::object_patch(stored, wanted);
                let made = self.writer.merge(&api, name, Part::Main, &patch).await;
                Some(made.context("updating the projection")?)
            }
            Some(_) => None,
        };
        let Some(stored) = made.as_ref().or(projected).filter(|_| status) else { return Ok(()) };
        let patch = projection::status_patch(stored, wanted);
        let patched = self.writer.merge(&api, name, Part::Status, &patch).await;
        let patched = patched.context("updating the projection's status")?;
        self.tell(project, projected, &patched);
        Ok(())
    }

    /// Tells people of a problem that is new or over.
    fn tell(&self, project: &Project, before: Option<&Instance>, after: &Instance) {
        let Some(ready) = projection::ready_condition(after) else { return };
        let Some(event) = projection::event(before.and_then(projection::ready_condition), ready) else {
            return;
        };
        let notice = if event.warning { Notice::warning } else { Notice::normal };
        let recorder = self.events.recorder(project.id().as_str(), project.client());
        recorder.tell(after, notice(event.reason, event.message));
    }
}

/// Of several copies of one name the one in the hub namespace that its owner records.
fn present_copy<'a>(
    copies: &'a [Arc<Instance>],
    owner: Option<&WorkloadDeployment>,
) -> Option<&'a Arc<Instance>> {
    let recorded = owner.and_then(recorded_namespace);
    let recorded = copies.iter().find(|copy| Some(meta::namespace(&copy.metadata)) == recorded);
    recorded.or_else(|| copies.first())
}

fn recorded_namespace(owner: &WorkloadDeployment) -> Option<&str> {
    meta::annotation(&owner.metadata, annotations::FEDERATION_NAMESPACE)
}
