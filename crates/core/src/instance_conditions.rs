//! What a cell's controllers say about an instance: `QuotaGranted`, `ReferencedDataReady`, and `Ready`, which
//! sums up everything.
//!
//! # Guarantees
//!
//! `Ready` is True if and only if the provider says `Programmed` and `Available` and no gate is left. Else it
//! carries the most telling reason of all that is in the way, with that reason's own message. What is not in
//! the way is not mentioned: a quota that is unsure after its gate went holds nothing.

use compute_api::{
    compute::{Instance, gates},
    conditions::{self as c, Status, Update},
    k8s::{Condition, Timestamp},
};

use crate::reasons;

/// What this pass has found out about an instance.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// What to say as `QuotaGranted`.
    pub quota: Update,
    /// What to say as `ReferencedDataReady`; `None` if the instance names no data.
    pub data: Option<Update>,
    /// `NetworkReady` of the instance's deployment, if it has one.
    pub network: Option<&'a Condition>,
}

/// The conditions of an instance that are ours, all of them: what is applied replaces what was.
pub fn own(instance: &Instance, facts: Facts<'_>, now: Timestamp) -> Vec<Condition> {
    let ready = ready(instance, &facts);
    let stored = stored(instance);
    let generation = instance.metadata.generation;
    [Some(facts.quota), facts.data, Some(ready)]
        .into_iter()
        .flatten()
        .map(|update| c::next(c::find(stored, &update.type_), update.of_generation(generation), now))
        .collect()
}

/// Those of our conditions that differ from what is stored.
pub fn changed<'a>(instance: &Instance, own: &'a [Condition]) -> Vec<&'a Condition> {
    let stored = stored(instance);
    own.iter().filter(|condition| c::find(stored, &condition.type_) != Some(condition)).collect()
}

/// Whether applying our conditions would change what is stored, be it by taking one away.
pub fn differs(instance: &Instance, own: &[Condition]) -> bool {
    let dropped = c::find(own, c::REFERENCED_DATA_READY).is_none()
        && c::find(stored(instance), c::REFERENCED_DATA_READY).is_some();
    dropped || !changed(instance, own).is_empty()
}

fn stored(instance: &Instance) -> &[Condition] {
    instance.status.as_ref().map_or(&[], |status| &status.conditions)
}

/// What to say as `Ready`.
pub fn ready(instance: &Instance, facts: &Facts<'_>) -> Update {
    let conditions = stored(instance);
    let runs = c::is_true(conditions, c::PROGRAMMED) && c::is_true(conditions, c::AVAILABLE);
    if runs && instance.spec.gates().is_empty() {
        return Update::new(c::READY, Status::True, c::INSTANCE_AVAILABLE, "The instance is available");
    }
    let worst = obstacles(instance, facts)
        .into_iter()
        // Of equals the first is taken.
        .reduce(|worst, next| {
            let worse = reasons::of_instance(&next.reason) > reasons::of_instance(&worst.reason);
            if worse { next } else { worst }
        })
        .unwrap_or_else(|| Obstacle::new(c::PENDING_PROGRAMMING, ""));
    let message = worst.message();
    Update::new(c::READY, Status::False, &worst.reason, message)
}

/// Something that keeps an instance from being ready.
struct Obstacle {
    reason: String,
    said: String,
}

impl Obstacle {
    fn new(reason: &str, said: &str) -> Self {
        Self { reason: reason.to_owned(), said: said.to_owned() }
    }

    /// The reason's own message, or a plain one where nobody gave any.
    fn message(&self) -> String {
        if !self.said.is_empty() {
            return self.said.clone();
        }
        match self.reason.as_str() {
            c::NETWORK_FAILED_TO_CREATE => {
                "A network of the instance cannot be set up; this is for the operators of the location"
            }
            c::NETWORK_PROVISIONING => {
                "The networks of the instance are being set up; nothing is asked of you"
            }
            c::PENDING_QUOTA => "The instance waits for quota; nothing is asked of you yet",
            c::RESOLVING | c::AWAITING_PROPAGATION => {
                "The instance waits for its ConfigMaps and Secrets; nothing is asked of you"
            }
            c::PENDING_PROGRAMMING => "The instance waits to be set up; nothing is asked of you",
            c::PROGRAMMING_IN_PROGRESS | c::PROVISIONING => {
                "The instance is being set up; nothing is asked of you"
            }
            c::STARTING => "The instance is starting; nothing is asked of you",
            c::STOPPING => "The instance is stopping; nothing is asked of you",
            c::STOPPED => "The instance has stopped; look at its log, and restart the workload",
            _ => "The instance is not ready",
        }
        .to_owned()
    }
}

fn obstacles(instance: &Instance, facts: &Facts<'_>) -> Vec<Obstacle> {
    let spec = &instance.spec;
    let mut found = Vec::new();
    let network_failed = facts.network.filter(|condition| condition.reason == c::NETWORK_FAILED_TO_CREATE);
    if let Some(condition) = network_failed {
        found.push(Obstacle::new(c::NETWORK_FAILED_TO_CREATE, &condition.message));
    } else if spec.has_gate(gates::NETWORK) {
        let said = facts.network.filter(|condition| Status::of(condition) != Status::True);
        found.push(Obstacle::new(c::NETWORK_PROVISIONING, said.map_or("", |condition| &condition.message)));
    }
    if spec.has_gate(gates::QUOTA) {
        let Update { status, reason, message, .. } = &facts.quota;
        let (reason, said) = match status {
            // The gate goes in a moment.
            Status::True => (c::PENDING_QUOTA, ""),
            Status::False | Status::Unknown if reasons::is_problem(reason) => (reason.as_str(), &**message),
            Status::False | Status::Unknown => (c::PENDING_QUOTA, &**message),
        };
        found.push(Obstacle::new(reason, said));
    }
    if spec.has_gate(gates::REFERENCED_DATA) {
        found.push(match &facts.data {
            Some(data) if data.status != Status::True => Obstacle::new(&data.reason, &data.message),
            Some(_) => Obstacle::new(c::AWAITING_PROPAGATION, ""),
            None => Obstacle::new(c::RESOLVING, ""),
        });
    }
    for type_ in [c::PROGRAMMED, c::AVAILABLE] {
        let condition = c::find(stored(instance), type_);
        // What nobody has written yet says nothing.
        let said = condition.filter(|said| Status::of(said) != Status::True && said.reason != c::PENDING);
        if let Some(condition) = said {
            found.push(Obstacle::new(&condition.reason, &condition.message));
        }
    }
    if !spec.gates().is_empty() {
        let names: Vec<_> = spec.gates().iter().map(|gate| gate.name.as_str()).collect();
        let said = format!("The instance is held by: {}; who put that there takes it away", names.join(", "));
        found.push(Obstacle::new(c::SCHEDULING_GATES_PRESENT, &said));
    }
    found
}

#[cfg(test)]
mod tests;
