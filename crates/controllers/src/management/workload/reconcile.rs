//! One pass over one Workload.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context as _;
use compute_api::compute::{API_VERSION, Workload, WorkloadDeployment};
use compute_api::finalizers;
use compute_api::kube::Api;
use compute_api::kube::api::PropagationPolicy;
use compute_core::deployments::{self, Plan, Step};
use compute_core::location::Offered;
use compute_core::{meta, news, rollup};
use compute_runtime::controller::Error;
use compute_runtime::events::Events;
use compute_runtime::write::{Part, Target, Writer};
use compute_runtime::{Clock, Key, Next, Queue, Reconciler};
use futures::{StreamExt as _, stream};
use serde_json::json;

use super::NAME;
use crate::management::requests::gone;
use crate::management::view::{Active, Project, View};

/// Deployments of one Workload that are written at the same time: a Workload with many cities is done in a few round trips, and does
/// not crowd out others.
const WRITES: usize = 8;

/// Turns Workloads into deployments.
pub(in crate::management) struct WorkloadReconciler {
    pub(super) view: Arc<View>,
    pub(super) writer: Writer,
    pub(super) events: Events,
    clock: Arc<dyn Clock>,
    queue: Queue,
}

/// Deployments that count for one Workload, by name: those that it controls, and those that hold a name it would choose.
pub(super) type Held = BTreeMap<String, Arc<WorkloadDeployment>>;

impl Reconciler for WorkloadReconciler {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(project) = self.view.project(&key.plane) else { return Ok(Next::Done) };
        // What is missing here comes again when it is complete.
        if !project.workloads.is_connected() || !project.deployments.is_connected() {
            return Ok(Next::Done);
        }
        let Some(workload) = project.workloads.get(&key.namespace, &key.name) else {
            return Ok(Next::Done);
        };
        if meta::is_being_deleted(&workload.metadata) {
            return self.release(&project, &workload).await;
        }
        let Some(active) = project.active() else { return Ok(Next::Done) };
        if !active.bindings.is_connected() {
            return Ok(Next::Done);
        }
        self.spread(&project, &active, &workload).await
    }
}

impl WorkloadReconciler {
    pub(in crate::management) fn new(
        view: &Arc<View>,
        events: &Events,
        clock: &Arc<dyn Clock>,
        queue: Queue,
    ) -> Self {
        let writer = Writer::new(NAME);
        Self { view: view.clone(), writer, events: events.clone(), clock: clock.clone(), queue }
    }

    /// Brings the deployments of a Workload to what it asks for, and its status to what they are.
    async fn spread(&self, project: &Project, active: &Active, workload: &Workload) -> Result<Next, Error> {
        let namespace = meta::namespace(&workload.metadata);
        let workloads: Api<Workload> = Api::namespaced(project.client(), namespace);
        let finalized = self.writer.add_finalizer(&workloads, workload, finalizers::WORKLOAD).await;
        let finalized = finalized.context("putting the finalizer on")?;
        let workload = finalized.as_ref().unwrap_or(workload);

        let offered = Offered::of(active.bindings.list().iter().map(|binding| &**binding));
        let mut held = held(project, workload);
        self.report_wiring_fault(project, workload, &held);
        let networks = Networks::of(active, workload);
        let decide = |held: &Held| {
            let mut plan = decide(project, workload, held, &offered);
            if networks.hold_new(workload) {
                plan.hold_new();
            }
            plan
        };
        let plan = decide(&held);
        let failure = self.execute(project, &plan, &mut held).await.err();
        let left = if plan.changes_nothing() { plan } else { decide(&held) };
        let written = self.report(project, &networks, workload, &held, &left).await;
        failure.map_or(Ok(()), Err)?;
        written?;
        Ok(Next::Done)
    }

    /// Does what a plan says, and notes in `held` what has become of it.
    ///
    /// # Errors
    ///
    /// The first failure; the rest is done all the same.
    pub(super) async fn execute(&self, project: &Project, plan: &Plan, held: &mut Held) -> Result<(), Error> {
        // What makes room comes after what takes it.
        let (deletions, writes): (Vec<_>, Vec<_>) =
            plan.steps.iter().partition(|step| matches!(step, Step::Delete { .. }));
        let mut done = Vec::with_capacity(plan.steps.len());
        for steps in [writes, deletions] {
            let seen = &*held;
            let passes: Vec<_> = steps
                .into_iter()
                .map(|step| async move { (name_of(step), self.step(project, seen, step).await) })
                .collect();
            done.extend(stream::iter(passes).buffered(WRITES).collect::<Vec<_>>().await);
        }
        let mut first = Ok(());
        for (name, result) in done {
            match result {
                Ok(Outcome::Stored(deployment)) => drop(held.insert(name.to_owned(), Arc::new(*deployment))),
                Ok(Outcome::Gone) => drop(held.remove(name)),
                Ok(Outcome::Nothing) => {}
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }

    async fn step(&self, project: &Project, held: &Held, step: &Step) -> Result<Outcome, Error> {
        let api = |meta| Api::<WorkloadDeployment>::namespaced(project.client(), meta::namespace(meta));
        match step {
            Step::Create(new) => {
                let made = self.writer.create(&api(&new.metadata), new).await;
                let made =
                    made.with_context(|| format!("creating deployment {}", meta::name(&new.metadata)))?;
                tracing::info!(project = %project.id(), namespace = meta::namespace(&new.metadata),
                    deployment = meta::name(&new.metadata), "created a deployment");
                Ok(Outcome::Stored(Box::new(made)))
            }
            Step::Update(update) => {
                let name = meta::name(&update.metadata);
                let stored = held.get(name).context("an update is made from what is held")?;
                let patch = deployments::patch(stored, update);
                let made = self.writer.merge(&api(&update.metadata), name, Part::Main, &patch).await;
                Ok(Outcome::Stored(Box::new(made.with_context(|| format!("updating deployment {name}"))?)))
            }
            Step::Delete { name, uid, why } => {
                let target = Target { name: name.clone(), uid: uid.clone(), resource_version: None };
                let stored = held.get(name).context("a deletion is made from what is held")?;
                let deleted =
                    self.writer.delete(&api(&stored.metadata), &target, PropagationPolicy::Background).await;
                gone(deleted).with_context(|| format!("deleting deployment {name}"))?;
                tracing::info!(project = %project.id(), namespace = meta::namespace(&stored.metadata),
                    deployment = name, ?why, "deleted a deployment");
                Ok(Outcome::Gone)
            }
            Step::Wait { .. } => Ok(Outcome::Nothing),
        }
    }

    /// Writes the status, if it differs.
    async fn report(
        &self,
        project: &Project,
        networks: &Networks,
        workload: &Workload,
        held: &Held,
        left: &Plan,
    ) -> Result<(), Error> {
        let missing = match networks {
            Networks::Unknown if says_network_not_found(workload) => return Ok(()),
            Networks::Unknown => &[],
            Networks::Missing(missing) => &missing[..],
        };
        let deployments = held.values().map(|deployment| &**deployment);
        let status = rollup::workload::status(workload, deployments, left, missing, self.clock.now());
        let key = Key::of(project.id(), workload);
        if !rollup::workload::differs(workload.status.as_ref(), &status) {
            return Ok(());
        }
        if news::workload_passes(workload.status.as_ref(), &status) && self.queue.hold(&key, news::MOMENT) {
            return Ok(());
        }
        let workloads: Api<Workload> = Api::namespaced(project.client(), meta::namespace(&workload.metadata));
        let name = meta::name(&workload.metadata);
        let fields = json!({
            "apiVersion": API_VERSION,
            "kind": "Workload",
            // When something changed is worked out from what was there.
            "metadata": { "name": name, "uid": workload.metadata.uid, "resourceVersion": workload.metadata.resource_version },
            "status": status,
        });
        self.writer.apply_status(&workloads, name, &fields).await.context("writing the status")?;
        Ok(())
    }
}

/// What is known of the networks that a Workload names.
enum Networks {
    /// Nothing yet: what was said of them stays, and nothing else waits for them.
    Unknown,
    /// Which of them are missing.
    Missing(Vec<String>),
}

impl Networks {
    fn of(active: &Active, workload: &Workload) -> Self {
        if !active.networks.is_synced() {
            return Self::Unknown;
        }
        let namespace = meta::namespace(&workload.metadata);
        // One that cannot be read is there.
        let is_there = |name: &String| {
            active.networks.get(namespace, name).is_some() || active.networks.is_unreadable(namespace, name)
        };
        let interfaces = workload.spec.template.spec.network_interfaces.iter();
        let names = interfaces.map(|interface| interface.network.name.clone());
        let present: BTreeSet<_> = names.filter(is_there).collect();
        Self::Missing(deployments::missing_networks(workload, &present))
    }

    /// Whether new deployments have to wait for a network: no cell can put an instance on one that does not exist.
    fn hold_new(&self, workload: &Workload) -> bool {
        match self {
            Self::Unknown => says_network_not_found(workload),
            Self::Missing(missing) => !missing.is_empty(),
        }
    }
}

fn says_network_not_found(workload: &Workload) -> bool {
    workload.status.as_ref().is_some_and(rollup::workload::says_network_not_found)
}

/// What became of a deployment.
enum Outcome {
    Stored(Box<WorkloadDeployment>),
    Gone,
    Nothing,
}

fn name_of(step: &Step) -> &str {
    match step {
        Step::Create(deployment) | Step::Update(deployment) => meta::name(&deployment.metadata),
        Step::Delete { name, .. } | Step::Wait { name, .. } => name,
    }
}

/// The deployments that count for a Workload.
pub(super) fn held(project: &Project, workload: &Workload) -> Held {
    let controlled = project.controlled_by(meta::uid(&workload.metadata));
    let namespace = meta::namespace(&workload.metadata);
    let wanted = workload.spec.placements.iter().flat_map(|placement| {
        placement
            .city_codes
            .iter()
            .flat_map(|city| deployments::candidate_names(workload, &placement.name, city))
    });
    let holders = wanted.filter_map(|name| project.deployments.get(namespace, &name));
    controlled.into_iter().chain(holders).map(|held| (meta::name(&held.metadata).to_owned(), held)).collect()
}

/// What is to be done, but for what an object that cannot be read is in the way of: it may be the very one that is wanted.
fn decide(project: &Project, workload: &Workload, held: &Held, offered: &Offered) -> Plan {
    let mut plan = deployments::decide(workload, held.values().map(|deployment| &**deployment), offered);
    let namespace = meta::namespace(&workload.metadata);
    for step in &mut plan.steps {
        let Step::Create(new) = &*step else { continue };
        let name = meta::name(&new.metadata);
        if project.deployments.is_unreadable(namespace, name) {
            *step = Step::Wait {
                name: name.to_owned(),
                placement: new.spec.placement_name.clone(),
                city: new.spec.city_code.clone(),
            };
        }
    }
    plan
}
