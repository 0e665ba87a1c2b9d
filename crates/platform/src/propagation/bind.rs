//! Notes on each template of the hub which policy has it and where it goes.
//!
//! The note is written before anything is sent, so that a choice is never made twice. It is the one thing that this writes.

use std::sync::Arc;

use compute_api::compute::WorkloadDeployment;
use compute_api::kube::{Api, Resource as _};
use compute_core::meta;
use compute_core::propagation::Template;
use compute_core::propagation::binding::{self, Binding};
use compute_runtime::controller::Error;
use compute_runtime::events::Notice;
use compute_runtime::write::{MetadataPatch, Writer};
use compute_runtime::{Key, Next, Reconciler};

use super::World;
use super::copy::{AFTER_RACE, is_race};

/// Binds templates to clusters. Keys are templates of the hub.
pub(super) struct Binder {
    world: Arc<World>,
    writer: Writer,
}

impl Binder {
    pub(super) const NAME: &'static str = "propagation-bind";

    pub(super) fn new(world: Arc<World>, writer: Writer) -> Self {
        Self { world, writer }
    }
}

impl Reconciler for Binder {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let hub = &self.world.hub;
        let Some(template) = hub.templates.get(&key.namespace, &key.name) else { return Ok(Next::Done) };
        let object = &template.metadata;
        if meta::is_being_deleted(object) {
            return Ok(Next::Done);
        }
        let held = Binding::of(object);
        let (policies, clusters) = (hub.policies.in_namespace(&key.namespace), hub.clusters.list());
        let clusters: Vec<_> = clusters.iter().map(|cluster| &**cluster).collect();
        let described = Template {
            api_version: &WorkloadDeployment::api_version(&()),
            kind: &WorkloadDeployment::kind(&()),
            namespace: &key.namespace,
            name: &key.name,
            labels: object.labels.as_ref(),
        };
        let policies = policies.iter().map(|policy| &**policy);
        let wanted = binding::decide(&described, &held, policies, &clusters, &self.world.names);
        if wanted == held {
            return Ok(Next::Done);
        }
        let patch = MetadataPatch {
            annotations: wanted.annotations(&key.namespace),
            uid: object.uid.clone(),
            resource_version: object.resource_version.clone(),
            ..MetadataPatch::default()
        };
        let api: Api<WorkloadDeployment> = Api::namespaced(hub.plane.client().clone(), &key.namespace);
        match self.writer.patch_metadata(&api, &key.name, &patch).await {
            Ok(_) => {}
            Err(error) if is_race(&error) => return Ok(AFTER_RACE),
            Err(error) => return Err(error.into()),
        }
        if let (Some(policy), true) = (&wanted.policy, wanted.clusters.is_empty()) {
            let message = format!("No cluster is what policy {policy} asks for");
            hub.recorder.tell(&*template, Notice::warning("ScheduleBindingFailed", message));
        }
        Ok(Next::Done)
    }
}
