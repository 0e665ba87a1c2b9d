//! What a cell does next about the instances of one deployment.
//!
//! [`plan`] compares the instances that are there with those that are wanted and returns actions. Those that
//! are skipped are there for people to see; [`Action::is_change`] picks the ones to execute.
//!
//! # Guarantees
//!
//! * Identity is the ordinal. Gaps are filled lowest first; surplus goes highest first.
//! * A changed template rolls by recreating, highest ordinal first, and takes one Ready instance down at a
//!   time: the next goes only when every other slot is Ready and nothing is surplus.
//! * A roll never wedges: what is neither Ready nor on the desired template is replaced at once.
//! * An instance being deleted holds its own slot and the roll of Ready ones, never the filling of others.
//! * The order of `instances` does not matter, and what the deployment does not control is never touched.
//!
//! [`template`] says what the desired template is and whether an instance is on it; [`build`] makes new ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use compute_api::{
    compute::{Instance, LocationReference, POLICY_PARALLEL, WorkloadDeployment},
    conditions, names,
};

use crate::{meta, scale};

pub mod build;
pub mod template;

pub use template::{Desired, desired};

/// What a new instance needs to know beyond its deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether new instances wait for their networks. Off without the networking integration.
    pub network_gate: bool,
    /// The location of the cell that has the deployment's city, if one is known.
    pub location: Option<LocationReference>,
}

/// One thing to do, or to wait for, about one instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Name of the instance.
    pub instance: String,
    /// What to do.
    pub step: Step,
    /// Why.
    pub why: Why,
    /// Why it is not done now. `None`: it is.
    pub skipped: Option<Held>,
}

impl Action {
    /// Whether executing the action changes something.
    pub fn is_change(&self) -> bool {
        self.skipped.is_none() && !matches!(self.step, Step::Wait)
    }
}

/// What to do about an instance.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create it by a POST. It is never applied: its spec is written once.
    Create(Box<Instance>),
    /// Delete it, on condition that it is still the one that was looked at.
    Delete {
        /// Its uid.
        uid: String,
        /// Its resource version.
        resource_version: Option<String>,
    },
    /// Nothing now.
    Wait,
    /// Set these labels by a patch of the metadata that carries the resource version.
    PatchLabels {
        /// Its uid.
        uid: String,
        /// Its resource version.
        resource_version: Option<String>,
        /// The labels that are missing or differ.
        labels: BTreeMap<String, String>,
    },
}

/// Why something is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The ordinal has no instance.
    Missing,
    /// The instance is neither Ready nor on the desired template: nothing is lost by replacing it.
    Stuck,
    /// The instance is Ready and not on the desired template.
    Outdated,
    /// The ordinal is not wanted.
    Surplus,
    /// The deployment is being deleted.
    DeploymentDeleted,
    /// The instance is being deleted.
    BeingDeleted,
    /// The instance is on the desired template and not Ready yet.
    NotReady,
    /// Something else owns an instance of that name.
    Foreign,
    /// Labels are missing or wrong.
    Labels,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "there is none",
            Self::Stuck => "it is not ready and its template has changed",
            Self::Outdated => "its template has changed",
            Self::Surplus => "it is more than are wanted",
            Self::DeploymentDeleted => "its deployment is being deleted",
            Self::BeingDeleted => "it is being deleted",
            Self::NotReady => "it is not ready",
            Self::Foreign => "an instance of that name belongs to something else",
            Self::Labels => "its labels are incomplete",
        })
    }
}

/// Why something is not done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// The deployment is paused.
    Paused,
    /// This instance comes first.
    WaitsFor(String),
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused => f.write_str("the deployment is paused"),
            Self::WaitsFor(instance) => write!(f, "{instance} comes first"),
        }
    }
}

/// What is to be done about the instances of a deployment, in the order to do it.
///
/// `instances` may hold any instances of the namespace: those that the deployment controls count, and of the
/// others only those that hold a name it wants.
pub fn plan<'a>(
    deployment: &'a WorkloadDeployment,
    instances: impl IntoIterator<Item = &'a Instance>,
    options: &'a Options,
) -> Vec<Action> {
    let planner = Planner::new(deployment, instances, options);
    let mut actions = planner.replacements();
    actions.extend(planner.surplus_deletes());
    actions.extend(planner.creates());
    actions.extend(planner.waits());
    actions.extend(planner.roll());
    let mut all = planner.label_patches(&actions);
    all.append(&mut actions);
    all
}

/// Whether an instance is Ready. One that is being deleted is not.
pub fn is_ready(instance: &Instance) -> bool {
    let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    !meta::is_being_deleted(&instance.metadata) && conditions::is_true(conditions, conditions::READY)
}

/// What holds the name of a wanted ordinal.
enum Slot<'a> {
    Empty,
    Foreign(&'a Instance),
    Leaving(&'a Instance),
    Taken { instance: &'a Instance, ready: bool, current: bool },
}

struct Planner<'a> {
    deployment: &'a WorkloadDeployment,
    options: &'a Options,
    desired: Desired,
    /// By ordinal.
    slots: Vec<Slot<'a>>,
    /// Highest ordinal first; before them what has a name that is no slot at all.
    surplus: Vec<&'a Instance>,
    being_deleted: bool,
    parallel: bool,
    paused: bool,
}

impl<'a> Planner<'a> {
    fn new(
        deployment: &'a WorkloadDeployment,
        instances: impl IntoIterator<Item = &'a Instance>,
        options: &'a Options,
    ) -> Self {
        let desired = desired(deployment);
        let being_deleted = meta::is_being_deleted(&deployment.metadata);
        let wanted = if being_deleted { 0 } else { scale::desired_replicas(&deployment.spec) };
        let mut slots: Vec<Slot<'a>> = (0..wanted).map(|_| Slot::Empty).collect();
        let mut surplus = Vec::new();
        // Names are unique in a namespace, but a list need not be; of two the same one is taken in any order.
        let by_name: BTreeMap<_, _> = {
            let mut sorted: Vec<_> = instances.into_iter().collect();
            sorted.sort_by_key(|instance| (meta::name(&instance.metadata), meta::uid(&instance.metadata)));
            sorted.into_iter().map(|instance| (meta::name(&instance.metadata), instance)).collect()
        };
        for (name, instance) in by_name {
            let ordinal = names::split_instance_name(name)
                .filter(|(of, _)| *of == meta::name(&deployment.metadata))
                .map(|(_, ordinal)| ordinal);
            let slot = ordinal.and_then(|ordinal| slots.get_mut(ordinal as usize));
            let leaving = meta::is_being_deleted(&instance.metadata);
            let ours = meta::is_controlled_by(&instance.metadata, meta::uid(&deployment.metadata));
            match (slot, ours) {
                (Some(slot), _) if leaving => *slot = Slot::Leaving(instance),
                (Some(slot), false) => *slot = Slot::Foreign(instance),
                (Some(slot), true) => {
                    let current = desired.matches(instance);
                    *slot = Slot::Taken { instance, ready: is_ready(instance), current };
                }
                (None, true) => surplus.push((ordinal, instance)),
                (None, false) => {}
            }
        }
        surplus.sort_by_key(|(ordinal, instance)| {
            // What is no slot at all comes before the highest.
            (std::cmp::Reverse(ordinal.unwrap_or(u32::MAX)), meta::name(&instance.metadata))
        });
        Self {
            deployment,
            options,
            desired,
            slots,
            surplus: surplus.into_iter().map(|(_, instance)| instance).collect(),
            being_deleted,
            parallel: deployment.spec.scale_settings.instance_management_policy == POLICY_PARALLEL,
            paused: deployment.spec.paused == Some(true),
        }
    }

    /// What is neither Ready nor on the desired template goes at once, under both policies.
    fn replacements(&self) -> Vec<Action> {
        let held = self.paused.then_some(Held::Paused);
        let stuck = self.slots.iter().rev().filter_map(|slot| match slot {
            Slot::Taken { instance, ready: false, current: false } => Some(*instance),
            _ => None,
        });
        stuck.map(|instance| delete(instance, Why::Stuck, held.clone())).collect()
    }

    /// Surplus goes highest first: all at once, or one after the other.
    fn surplus_deletes(&self) -> Vec<Action> {
        let why = if self.being_deleted { Why::DeploymentDeleted } else { Why::Surplus };
        let at_once = self.parallel || self.being_deleted;
        let mut before: Option<&str> = None;
        let (leaving, staying): (Vec<&Instance>, Vec<&Instance>) =
            self.surplus.iter().partition(|instance| meta::is_being_deleted(&instance.metadata));
        let mut actions = Vec::new();
        for instance in leaving {
            before.get_or_insert(meta::name(&instance.metadata));
            actions.push(wait(instance, Why::BeingDeleted));
        }
        for instance in staying {
            let held = before.filter(|_| !at_once).map(|name| Held::WaitsFor(name.to_owned()));
            before.get_or_insert(meta::name(&instance.metadata));
            actions.push(delete(instance, why, held));
        }
        actions
    }

    /// Gaps are filled lowest first: all at once, or each when what is below is Ready. What is on its way out
    /// or not ours holds only its own slot.
    fn creates(&self) -> Vec<Action> {
        let mut before: Option<String> = None;
        let mut actions = Vec::new();
        for (ordinal, slot) in (0_u32..).zip(&self.slots) {
            let name = names::instance_name(meta::name(&self.deployment.metadata), ordinal);
            match slot {
                Slot::Empty => {
                    let held = before.clone().filter(|_| !self.parallel).map(Held::WaitsFor);
                    let instance = build::instance(self.deployment, &self.desired, ordinal, self.options);
                    actions.push(Action {
                        instance: name.clone(),
                        step: Step::Create(Box::new(instance)),
                        why: Why::Missing,
                        skipped: held,
                    });
                    before.get_or_insert(name);
                }
                Slot::Taken { ready: false, .. } => {
                    before.get_or_insert(name);
                }
                Slot::Taken { ready: true, .. } | Slot::Leaving(_) | Slot::Foreign(_) => {}
            }
        }
        actions
    }

    fn waits(&self) -> Vec<Action> {
        let waits = self.slots.iter().filter_map(|slot| match slot {
            Slot::Leaving(instance) => Some(wait(instance, Why::BeingDeleted)),
            Slot::Foreign(instance) => Some(wait(instance, Why::Foreign)),
            Slot::Taken { instance, ready: false, current: true } => Some(wait(instance, Why::NotReady)),
            Slot::Taken { .. } | Slot::Empty => None,
        });
        waits.collect()
    }

    /// Ready instances of another template go one at a time, highest first.
    fn roll(&self) -> Vec<Action> {
        let mut held = self.roll_is_held();
        let mut actions = Vec::new();
        for slot in self.slots.iter().rev() {
            if let Slot::Taken { instance, ready: true, current: false } = slot {
                actions.push(delete(instance, Why::Outdated, held.clone()));
                held.get_or_insert_with(|| Held::WaitsFor(meta::name(&instance.metadata).to_owned()));
            }
        }
        actions
    }

    /// Why no Ready instance may be taken down now: one slot is down already, or something is on its way out.
    fn roll_is_held(&self) -> Option<Held> {
        if self.paused {
            return Some(Held::Paused);
        }
        let name = |instance: &Instance| meta::name(&instance.metadata).to_owned();
        let down = (0_u32..).zip(&self.slots).find_map(|(ordinal, slot)| match slot {
            Slot::Empty => Some(names::instance_name(meta::name(&self.deployment.metadata), ordinal)),
            Slot::Leaving(instance) | Slot::Taken { instance, ready: false, .. } => Some(name(instance)),
            Slot::Taken { ready: true, .. } | Slot::Foreign(_) => None,
        });
        down.or_else(|| self.surplus.first().map(|instance| name(instance))).map(Held::WaitsFor)
    }

    /// Labels of every instance that stays. They hold nothing and are held by nothing.
    fn label_patches(&self, actions: &[Action]) -> Vec<Action> {
        let going: BTreeSet<_> = actions
            .iter()
            .filter(|action| action.is_change() && matches!(action.step, Step::Delete { .. }))
            .map(|action| action.instance.as_str())
            .collect();
        let goes = |instance: &Instance| going.contains(meta::name(&instance.metadata));
        let taken = self.slots.iter().filter_map(|slot| match slot {
            Slot::Taken { instance, .. } => Some(*instance),
            _ => None,
        });
        let staying = taken.chain(self.surplus.iter().copied());
        let mut patches: Vec<_> = staying
            .filter(|instance| !meta::is_being_deleted(&instance.metadata) && !goes(instance))
            .filter_map(|instance| self.label_patch(instance))
            .collect();
        patches.sort_by(|a, b| a.instance.cmp(&b.instance));
        patches
    }

    fn label_patch(&self, instance: &Instance) -> Option<Action> {
        let name = meta::name(&instance.metadata);
        // One that is no slot of this deployment has no ordinal to be labelled with.
        let (_, ordinal) = names::split_instance_name(name)
            .filter(|(deployment, _)| *deployment == meta::name(&self.deployment.metadata))?;
        let labels: BTreeMap<_, _> = build::labels(self.deployment, ordinal)
            .into_iter()
            .filter(|(key, value)| meta::label(&instance.metadata, key) != Some(value))
            .collect();
        (!labels.is_empty()).then(|| Action {
            instance: name.to_owned(),
            step: Step::PatchLabels {
                uid: meta::uid(&instance.metadata).to_owned(),
                resource_version: instance.metadata.resource_version.clone(),
                labels,
            },
            why: Why::Labels,
            skipped: None,
        })
    }
}

fn delete(instance: &Instance, why: Why, skipped: Option<Held>) -> Action {
    Action {
        instance: meta::name(&instance.metadata).to_owned(),
        step: Step::Delete {
            uid: meta::uid(&instance.metadata).to_owned(),
            resource_version: instance.metadata.resource_version.clone(),
        },
        why,
        skipped,
    }
}

fn wait(instance: &Instance, why: Why) -> Action {
    Action { instance: meta::name(&instance.metadata).to_owned(), step: Step::Wait, why, skipped: None }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
