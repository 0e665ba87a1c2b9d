//! The instances of a deployment: what is true of them, what the planner says, and doing it.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use compute_api::compute::{Instance, WorkloadDeployment, gates};
use compute_api::k8s::ObjectMeta;
use compute_core::meta;
use compute_core::planner::{self, Action, Options, Step, Why};
use compute_runtime::Key;
use compute_runtime::write::{Error, MetadataPatch, Part, Target};
use futures::{StreamExt as _, stream};
use kube::Api;
use kube::api::PropagationPolicy;

use super::super::indexes::INSTANCES_OF;
use super::super::keys;
use super::super::write::unless_outdated;
use super::Deployments;

/// Writes to instances of one deployment that are under way at the same time: a large one is filled fast, and leaves the server to others.
const AT_ONCE: usize = 16;

impl Deployments {
    pub(super) fn instance_api(&self, deployment: &WorkloadDeployment) -> Api<Instance> {
        Api::namespaced(self.cell.plane.client().clone(), meta::namespace(&deployment.metadata))
    }

    /// The instances that a deployment controls, as new as is known; and whether caches are behind.
    pub(super) fn instances_of(&self, deployment: &WorkloadDeployment) -> (Vec<Arc<Instance>>, bool) {
        let uid = meta::uid(&deployment.metadata);
        let shown = self.instances.by_index(&INSTANCES_OF, uid).into_iter();
        let shown = shown.map(|instance| self.latest_instances.of(&keys::of(&*instance), instance)).collect();
        self.pending.overlay(&self.instances, uid, shown, self.now())
    }

    /// What the planner says.
    pub(super) fn plan(
        &self,
        deployment: &WorkloadDeployment,
        mut instances: Vec<Arc<Instance>>,
        options: &Options,
    ) -> Vec<Action> {
        let actions = planner::plan(deployment, instances.iter().map(Arc::as_ref), options);
        // What is not controlled by the deployment, or cannot be read, may hold a name that it wants.
        let namespace = meta::namespace(&deployment.metadata);
        let missing = actions.iter().filter(|action| matches!(action.step, Step::Create(_)));
        let holders: Vec<_> = missing.filter_map(|action| self.holder(namespace, &action.instance)).collect();
        if holders.is_empty() {
            return actions;
        }
        instances.extend(holders);
        planner::plan(deployment, instances.iter().map(Arc::as_ref), options)
    }

    fn holder(&self, namespace: &str, name: &str) -> Option<Arc<Instance>> {
        self.instances.get(namespace, name).or_else(|| {
            let unreadable = self.instances.is_unreadable(namespace, name);
            unreadable.then(|| {
                let metadata = ObjectMeta {
                    name: Some(name.to_owned()),
                    namespace: Some(namespace.to_owned()),
                    ..ObjectMeta::default()
                };
                Arc::new(Instance { metadata, ..Instance::default() })
            })
        })
    }

    /// Does what is to be done now. The first failure is returned after everything has been tried.
    pub(super) async fn execute(
        &self,
        key: &Key,
        deployment: &WorkloadDeployment,
        actions: Vec<Action>,
    ) -> anyhow::Result<()> {
        for action in &actions {
            match action.why {
                Why::Foreign => self.warn_of_foreign(key, deployment, &action.instance),
                Why::Missing => self.told.settled(key, &matter_of(&action.instance)),
                _ => {}
            }
        }
        let changes: Vec<_> = actions.into_iter().filter(Action::is_change).collect();
        let done: Vec<_> = stream::iter(changes)
            .map(|action| self.do_one(key, deployment, action))
            .buffered(AT_ONCE)
            .collect()
            .await;
        done.into_iter().collect()
    }

    async fn do_one(&self, key: &Key, deployment: &WorkloadDeployment, action: Action) -> anyhow::Result<()> {
        let api = self.instance_api(deployment);
        let Action { instance: name, step, why, .. } = action;
        match step {
            Step::Wait => Ok(()),
            Step::Create(instance) => {
                tracing::debug!(%key, instance = name, %why, "creating an instance");
                self.create(key, deployment, &api, &instance)
                    .await
                    .with_context(|| format!("creating {name}"))
            }
            Step::Delete { uid, resource_version } => {
                tracing::debug!(%key, instance = name, %why, "deleting an instance");
                let target = Target { name: name.clone(), uid: uid.clone(), resource_version };
                let deleted = self.writer.delete(&api, &target, PropagationPolicy::Background).await;
                if unless_outdated(deleted).with_context(|| format!("deleting {name}"))?.is_some() {
                    self.pending.deleted(&self.instances, meta::uid(&deployment.metadata), &uid);
                }
                Ok(())
            }
            Step::PatchLabels { uid, resource_version, labels } => {
                let patch = MetadataPatch {
                    labels: labels.into_iter().map(|(label, value)| (label, Some(value))).collect(),
                    uid: Some(uid),
                    resource_version,
                    ..MetadataPatch::default()
                };
                let patched = self.writer.patch_metadata(&api, &name, &patch).await;
                unless_outdated(patched).with_context(|| format!("labelling {name}"))?;
                Ok(())
            }
        }
    }

    async fn create(
        &self,
        key: &Key,
        deployment: &WorkloadDeployment,
        api: &Api<Instance>,
        instance: &Instance,
    ) -> anyhow::Result<()> {
        let held = match self.writer.create(api, instance).await {
            Ok(created) => {
                self.pending.created(&self.instances, created);
                return Ok(());
            }
            Err(Error::AlreadyExists(_)) => {
                self.writer.request(api.get(meta::name(&instance.metadata))).await
            }
            Err(error) => return Err(error.into()),
        };
        // The cache is behind: whose it is, the server knows.
        let held = match held {
            Err(Error::NotFound(_)) => return Err(anyhow!("one of that name has just gone")),
            held => held?,
        };
        if meta::is_controlled_by(&held.metadata, meta::uid(&deployment.metadata)) {
            self.pending.created(&self.instances, held);
        } else {
            self.warn_of_foreign(key, deployment, meta::name(&held.metadata));
        }
        Ok(())
    }

    /// An instance that is not the deployment's, or that cannot be read, has the name of one that it wants.
    fn warn_of_foreign(&self, key: &Key, deployment: &WorkloadDeployment, name: &str) {
        let message = match self.instances.is_unreadable(&key.namespace, name) {
            true => format!("{name}: there is an instance of that name that cannot be read"),
            false => format!("{name}: {}", Why::Foreign),
        };
        let matter = matter_of(name);
        self.told.warn(&self.cell.recorder, (key, deployment), (&matter, "InstanceNameTaken"), message);
    }

    /// Takes the `Network` gate out of every instance that has it.
    pub(super) async fn open_network_gates(
        &self,
        deployment: &WorkloadDeployment,
        instances: &[Arc<Instance>],
    ) -> anyhow::Result<()> {
        let mut held = instances.to_vec();
        held.retain(|instance| {
            instance.spec.has_gate(gates::NETWORK) && !meta::is_being_deleted(&instance.metadata)
        });
        let opened: Vec<_> = stream::iter(held)
            .map(|instance| self.open_network_gate(deployment, instance))
            .buffered(AT_ONCE)
            .collect()
            .await;
        opened.into_iter().collect()
    }

    async fn open_network_gate(
        &self,
        deployment: &WorkloadDeployment,
        instance: Arc<Instance>,
    ) -> anyhow::Result<()> {
        let (api, gate) = (self.instance_api(deployment), ("name", gates::NETWORK));
        let removed = self
            .writer
            .remove_entry(&api, &*instance, Part::Main, "/spec/controller/schedulingGates", gate)
            .await;
        let written = unless_outdated(removed)
            .with_context(|| format!("opening the network gate of {}", meta::name(&instance.metadata)))?;
        if let Some(after) = written.flatten() {
            self.latest_instances.wrote(&keys::of(&*instance), &instance, after);
        }
        Ok(())
    }
}

/// What people are told about the name of an instance.
fn matter_of(instance: &str) -> String {
    format!("name of {instance}")
}
