//! What is said at once of an instance and what sums it up, and what only passes on the way to something else.
//!
//! An instance that starts goes through half a dozen states within milliseconds. To carry each of them from plane to plane costs as much as
//! to carry the last, and nobody could read them. What passes may wait for a moment, and mostly is overtaken by then; what people wait
//! for, or have to see, never waits.

use std::time::Duration;

use compute_api::compute::{Instance, WorkloadDeploymentStatus, WorkloadStatus, gates};
use compute_api::conditions as c;
use compute_api::k8s::Condition;

use crate::{meta, reasons};

/// How long what passes may wait. Nobody notices, and a start takes less.
pub const MOMENT: Duration = Duration::from_millis(200);

/// Whether the copy of an instance may wait with what it would say next.
pub fn instance_passes(before: Option<&Instance>, after: &Instance) -> bool {
    let said = before.and_then(|before| before.status.as_ref()).map_or(&[][..], |status| &status.conditions);
    let says = after.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let stays = |instance: &Instance| !meta::is_being_deleted(&instance.metadata);
    stays(after) && before.is_none_or(stays) && !c::is_true(says, c::READY) && passes(said, says, c::READY)
}

/// Whether an instance may wait with its own conditions. A gate that waits for one of them does not.
pub fn own_conditions_pass(instance: &Instance, own: &[Condition]) -> bool {
    let said = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let opens_gate = c::is_true(own, c::QUOTA_GRANTED) && instance.spec.has_gate(gates::QUOTA);
    !opens_gate && !c::is_true(own, c::READY) && passes(said, own, c::READY)
}

/// Whether a deployment may wait with its status.
pub fn deployment_passes(
    before: Option<&WorkloadDeploymentStatus>,
    after: &WorkloadDeploymentStatus,
) -> bool {
    let (said, ready) = before.map_or((&[][..], None), |before| (&before.conditions, before.ready_replicas));
    ready.unwrap_or(0) == after.ready_replicas.unwrap_or(0) && passes(said, &after.conditions, c::AVAILABLE)
}

/// Whether a workload may wait with its status.
pub fn workload_passes(before: Option<&WorkloadStatus>, after: &WorkloadStatus) -> bool {
    let (said, ready) = before.map_or((&[][..], None), |before| (&before.conditions, before.ready_replicas));
    ready.unwrap_or(0) == after.ready_replicas.unwrap_or(0) && passes(said, &after.conditions, c::AVAILABLE)
}

/// Whether nothing changes that decides, and nothing that is a problem.
fn passes(said: &[Condition], says: &[Condition], deciding: &str) -> bool {
    let same = |one: &Condition, other: &Condition| one.status == other.status && one.reason == other.reason;
    let is_new = |next: &&Condition| c::find(said, &next.type_).is_none_or(|last| !same(last, next));
    let is_over = |last: &&Condition| c::find(says, &last.type_).is_some_and(|next| !same(last, next));
    let changed = says.iter().filter(is_new).chain(said.iter().filter(is_over));
    let troubled = changed.into_iter().any(|condition| reasons::is_problem(&condition.reason));
    !troubled && c::is_true(said, deciding) == c::is_true(says, deciding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, condition, instance, leaving, not_ready, ready};

    fn instances() -> [Instance; 4] {
        let new = instance(&fixtures::deployment(1), 0);
        [
            not_ready(new.clone(), c::PENDING, ""),
            not_ready(new.clone(), c::PROVISIONING, ""),
            not_ready(new.clone(), c::INSTANCE_CRASHING, "it crashed"),
            ready(new),
        ]
    }

    #[test]
    fn an_instance_on_its_way_may_wait() {
        let [pending, provisioning, ..] = instances();
        assert!(instance_passes(None, &pending));
        assert!(instance_passes(Some(&pending), &provisioning));
    }

    #[test]
    fn what_people_wait_for_or_have_to_see_may_not() {
        let [pending, _, crashing, ready] = instances();
        for (before, after) in [
            (Some(&pending), &ready),
            (Some(&ready), &pending),
            (Some(&ready), &ready),
            (Some(&pending), &crashing),
            (Some(&crashing), &pending),
            (Some(&pending), &leaving(pending.clone())),
            (None, &ready),
            (None, &crashing),
        ] {
            assert!(!instance_passes(before, after), "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_gate_does_not_wait_for_its_condition() {
        let [mut pending, ..] = instances();
        let granted = [condition(c::QUOTA_GRANTED, c::Status::True, c::QUOTA_AVAILABLE, "")];
        assert!(pending.spec.has_gate(gates::QUOTA) && !own_conditions_pass(&pending, &granted));
        pending.spec.controller = None;
        assert!(own_conditions_pass(&pending, &granted));
    }

    #[test]
    fn counts_may_wait_but_for_those_that_are_ready() {
        let with = |replicas, ready| WorkloadDeploymentStatus {
            replicas: Some(replicas),
            ready_replicas: Some(ready),
            ..WorkloadDeploymentStatus::default()
        };
        assert!(deployment_passes(None, &with(1, 0)));
        assert!(deployment_passes(Some(&with(1, 0)), &with(2, 0)));
        assert!(!deployment_passes(Some(&with(2, 0)), &with(2, 1)));
    }

    #[test]
    fn what_stops_a_deployment_may_not_wait() {
        let says = |type_, status, reason| WorkloadDeploymentStatus {
            conditions: vec![condition(type_, status, reason, "")],
            ..WorkloadDeploymentStatus::default()
        };
        let waits = says(c::AVAILABLE, c::Status::False, c::NETWORK_PROVISIONING);
        let starts = says(c::AVAILABLE, c::Status::False, c::INSTANCES_PROVISIONING);
        let broken = says(c::AVAILABLE, c::Status::False, c::IMAGE_UNAVAILABLE);
        let zero = says(c::AVAILABLE, c::Status::True, c::SCALED_TO_ZERO);
        assert!(deployment_passes(Some(&waits), &starts));
        assert!(!deployment_passes(Some(&starts), &broken));
        assert!(!deployment_passes(Some(&broken), &starts));
        assert!(!deployment_passes(Some(&starts), &zero));
        let failed = says(c::NETWORK_READY, c::Status::False, c::NETWORK_FAILED_TO_CREATE);
        assert!(!deployment_passes(None, &failed));
    }
}
