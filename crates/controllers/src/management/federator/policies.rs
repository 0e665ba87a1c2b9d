//! The policies that send a city's deployments to its cell, each under its own key: hub namespace and city, in lower case.

use std::sync::Arc;

use anyhow::Context as _;
use compute_api::compute::WorkloadDeployment;
use compute_api::karmada::PropagationPolicy;
use compute_api::kube::Api;
use compute_api::kube::api::PropagationPolicy as Propagation;
use compute_api::names;
use compute_core::federation::Upstream;
use compute_core::federation::policy::{self, Step};
use compute_core::meta;
use compute_runtime::cache::ObjectName;
use compute_runtime::controller::Error;
use compute_runtime::write::{Part, Target, Writer};
use compute_runtime::{Change, Key, Next, Queue, Reconciler};

use super::WRITER;
use crate::management::requests::gone;
use crate::management::view::{Hub, Kind, NamespaceMeta, View, Watcher};

/// What logs and metrics call it.
pub(in crate::management) const NAME: &str = "federator-policies";

/// Keys of policies.
pub(in crate::management) struct Keys(Queue);

impl Keys {
    pub(in crate::management) fn new(queue: &Queue) -> Self {
        Self(queue.clone())
    }

    fn add(&self, hub: &Hub, namespace: &str, city: &str) {
        // Policies elsewhere are somebody else's, whatever they are called.
        if names::project_namespace_uid(namespace).is_some() {
            self.0.add(Key::new(hub.id(), namespace, &city.to_ascii_lowercase()));
        }
    }

    fn add_of_deployment(&self, hub: &Hub, deployment: &WorkloadDeployment) {
        if let Some(city) = policy::city(deployment) {
            self.add(hub, meta::namespace(&deployment.metadata), city);
        }
    }

    fn add_policy(&self, hub: &Hub, name: &ObjectName) {
        if let Some(city) = policy::city_of_name(&name.name) {
            self.add(hub, &name.namespace, city);
        }
    }
}

impl Watcher for Keys {
    /// One that comes, goes, or changes city. What else changes about it, such as its status, changes no policy.
    fn hub_deployment(&self, _: &View, hub: &Hub, change: &Change<WorkloadDeployment>) {
        let user = |version: &Option<Arc<WorkloadDeployment>>| {
            version.as_ref().map(|one| (one.metadata.uid.clone(), policy::city(one).map(str::to_owned)))
        };
        if change.before.is_some() && user(&change.before) == user(&change.after) {
            return;
        }
        change.versions().for_each(|deployment| self.add_of_deployment(hub, deployment));
        if change.latest().is_none() {
            // One that could not be decoded has come or gone: it may have been the last that held a policy.
            let all = hub.policies.in_namespace(&change.name.namespace);
            all.iter().for_each(|policy| self.add_policy(hub, &ObjectName::of(&**policy)));
        }
    }

    fn policy(&self, _: &View, hub: &Hub, change: &Change<PropagationPolicy>) {
        self.add_policy(hub, &change.name);
    }

    /// One that comes, or says of something else that it stands for it.
    fn hub_namespace(&self, _: &View, hub: &Hub, change: &Change<NamespaceMeta>) {
        let upstream = |version: &Option<Arc<NamespaceMeta>>| {
            version.as_ref().and_then(|held| Upstream::of(&held.metadata))
        };
        if change.before.is_none() || upstream(&change.before) != upstream(&change.after) {
            hub.deployments
                .in_namespace(&change.name.name)
                .iter()
                .for_each(|one| self.add_of_deployment(hub, one));
        }
    }

    fn hub_connected(&self, _: &View, hub: &Hub, kind: Kind) {
        if !matches!(kind, Kind::Deployment | Kind::Policy | Kind::Namespace) {
            return;
        }
        hub.deployments.list().iter().for_each(|deployment| self.add_of_deployment(hub, deployment));
        hub.policies.list().iter().for_each(|policy| self.add_policy(hub, &ObjectName::of(&**policy)));
    }
}

/// Keeps one policy for each city of each hub namespace that has a deployment there.
pub(in crate::management) struct PolicyFederator {
    hub: Arc<Hub>,
    writer: Writer,
}

impl PolicyFederator {
    pub(in crate::management) fn new(hub: &Arc<Hub>) -> Self {
        Self { hub: hub.clone(), writer: Writer::new(WRITER) }
    }
}

impl Reconciler for PolicyFederator {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let (namespace, city) = (&*key.namespace, &*key.name);
        // What is missing here comes again when it is complete.
        if !self.hub.deployments.is_connected()
            || !self.hub.policies.is_connected()
            || !self.hub.namespaces.is_connected()
        {
            return Ok(Next::Done);
        }
        let held = self.hub.namespaces.get("", namespace);
        let mut within = held.map(|held| held.metadata.clone()).unwrap_or_default();
        if meta::is_being_deleted(&within) {
            // Everything in it goes by itself, and nothing can be made in it.
            return Ok(Next::Done);
        }
        within.name = Some(namespace.to_owned());
        let name = policy::name(city);
        let stored = self.hub.policies.get(namespace, &name);
        if stored.is_none() && self.hub.policies.is_unreadable(namespace, &name) {
            return Ok(Next::Done);
        }
        let users = self.hub.policy_users(namespace, city);
        let users = users.iter().map(|deployment| &**deployment);
        let api: Api<PropagationPolicy> = Api::namespaced(self.hub.client(), namespace);
        match policy::decide(&within, city, users, stored.as_deref()) {
            Step::Apply(wanted) => {
                let applied =
                    self.writer.apply(&api, &name, &*wanted).await.context("applying the policy")?;
                if let Some(patch) = policy::correction(&applied, &wanted) {
                    let corrected = self.writer.merge(&api, &name, Part::Main, &patch).await;
                    corrected.context("taking what others added out of the policy")?;
                }
            }
            // A deployment that cannot be read may be one of its users.
            Step::Delete { .. } if self.hub.deployments.has_unreadable(namespace) => {}
            Step::Delete { uid } => {
                let target = Target { name, uid, resource_version: None };
                let deleted = self.writer.delete(&api, &target, Propagation::Background).await;
                gone(deleted).context("deleting the policy")?;
            }
            Step::Wait | Step::Nothing => {}
        }
        Ok(Next::Done)
    }
}
