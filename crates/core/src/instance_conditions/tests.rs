//! `Ready` under each thing that can be in the way, and under all of them.

use compute_api::compute::{InstanceControl, InstanceStatus, SchedulingGate};
use proptest::prelude::*;

use super::*;
use crate::fixtures::{at, condition, deployment, instance, ready as running};

fn with_gates(gates: &[&str]) -> Instance {
    let mut held = instance(&deployment(1), 0);
    let scheduling_gates = gates.iter().map(|name| SchedulingGate { name: (*name).to_owned() }).collect();
    held.spec.controller = Some(InstanceControl { template_hash: String::new(), scheduling_gates });
    held
}

fn quota(status: Status, reason: &str, message: &str) -> Update {
    Update::new(c::QUOTA_GRANTED, status, reason, message)
}

fn granted() -> Facts<'static> {
    Facts { quota: quota(Status::True, c::QUOTA_AVAILABLE, ""), data: None, network: None }
}

fn reason(instance: &Instance, facts: &Facts<'_>) -> (String, String) {
    let update = ready(instance, facts);
    (update.reason, update.message)
}

#[test]
fn ready_needs_both_of_the_provider_and_no_gate() {
    let up = running(instance(&deployment(1), 0));
    assert_eq!(ready(&up, &granted()).status, Status::True);
    assert_eq!(ready(&up, &granted()).reason, c::INSTANCE_AVAILABLE);
    // A quota that becomes unsure later holds nothing.
    let unsure = Facts { quota: quota(Status::Unknown, c::QUOTA_BACKEND_UNAVAILABLE, "down"), ..granted() };
    assert_eq!(ready(&up, &unsure).status, Status::True);
    let mut gated = up.clone();
    gated.spec.controller.as_mut().unwrap().scheduling_gates =
        vec![SchedulingGate { name: "Other".to_owned() }];
    assert_eq!(
        reason(&gated, &granted()),
        (
            c::SCHEDULING_GATES_PRESENT.to_owned(),
            "The instance is held by: Other; who put that there takes it away".to_owned()
        )
    );
    let mut half = up;
    half.status.as_mut().unwrap().conditions[1] =
        condition(c::AVAILABLE, Status::False, c::INSTANCE_CRASHING, "exit code 1");
    assert_eq!(reason(&half, &granted()), (c::INSTANCE_CRASHING.to_owned(), "exit code 1".to_owned()));
}

#[test]
fn each_gate_speaks_for_itself() {
    let held = with_gates(&[gates::QUOTA]);
    let exceeded = Facts { quota: quota(Status::False, c::QUOTA_EXCEEDED, "2 asked, 1 left"), ..granted() };
    assert_eq!(reason(&held, &exceeded), (c::QUOTA_EXCEEDED.to_owned(), "2 asked, 1 left".to_owned()));
    let pending = Facts { quota: quota(Status::Unknown, c::PENDING_EVALUATION, "asked"), ..granted() };
    assert_eq!(reason(&held, &pending), (c::PENDING_QUOTA.to_owned(), "asked".to_owned()));
    assert_eq!(reason(&held, &granted()).0, c::PENDING_QUOTA);

    let held = with_gates(&[gates::NETWORK]);
    assert_eq!(reason(&held, &granted()).0, c::NETWORK_PROVISIONING);
    let failed = condition(c::NETWORK_READY, Status::False, c::NETWORK_FAILED_TO_CREATE, "no addresses");
    let failed = Facts { network: Some(&failed), ..granted() };
    assert_eq!(reason(&held, &failed), (c::NETWORK_FAILED_TO_CREATE.to_owned(), "no addresses".to_owned()));

    let held = with_gates(&[gates::REFERENCED_DATA]);
    let missing = Update::new(c::REFERENCED_DATA_READY, Status::False, c::SOURCE_NOT_FOUND, "no such Secret");
    let missing = Facts { data: Some(missing), ..granted() };
    assert_eq!(reason(&held, &missing), (c::SOURCE_NOT_FOUND.to_owned(), "no such Secret".to_owned()));
    assert_eq!(reason(&held, &granted()).0, c::RESOLVING);
}

#[test]
fn what_nobody_has_written_says_nothing() {
    let mut fresh = with_gates(&[]);
    assert_eq!(reason(&fresh, &granted()).0, c::PENDING_PROGRAMMING);
    let defaults = [c::PROGRAMMED, c::AVAILABLE]
        .map(|type_| condition(type_, Status::Unknown, c::PENDING, "Waiting for controller"));
    fresh.status = Some(InstanceStatus { conditions: defaults.to_vec(), ..InstanceStatus::default() });
    assert_eq!(
        reason(&fresh, &granted()),
        (
            c::PENDING_PROGRAMMING.to_owned(),
            "The instance waits to be set up; nothing is asked of you".to_owned()
        )
    );
}

#[test]
fn only_what_changes_is_written() {
    let mut up = running(instance(&deployment(1), 0));
    let first = own(&up, granted(), at(5));
    let types: Vec<_> = first.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(types, [c::QUOTA_GRANTED, c::READY]);
    assert!(first.iter().all(|condition| condition.observed_generation == Some(1)));
    assert!(differs(&up, &first));
    let conditions = &mut up.status.as_mut().unwrap().conditions;
    for condition in &first {
        c::remove(conditions, &condition.type_);
        conditions.push(condition.clone());
    }
    let again = own(&up, granted(), at(9));
    assert!(changed(&up, &again).is_empty() && !differs(&up, &again));
    // A condition that has no place any more is taken away.
    up.status.as_mut().unwrap().conditions.push(condition(
        c::REFERENCED_DATA_READY,
        Status::True,
        c::DATA_READY,
        "",
    ));
    assert!(differs(&up, &own(&up, granted(), at(9))));
}

fn any_instance() -> impl Strategy<Value = Instance> {
    let gates =
        prop::sample::subsequence(vec![gates::NETWORK, gates::QUOTA, gates::REFERENCED_DATA, "Other"], 0..4);
    let said = prop::sample::select(vec![
        (Status::True, c::INSTANCE_AVAILABLE),
        (Status::False, c::IMAGE_UNAVAILABLE),
        (Status::False, c::PROVISIONING),
        (Status::False, c::STARTING),
        (Status::Unknown, c::PENDING),
        (Status::False, "Odd"),
    ]);
    (gates, said.clone(), said).prop_map(|(gates, programmed, available)| {
        let mut made = with_gates(&gates);
        let conditions = [(c::PROGRAMMED, programmed), (c::AVAILABLE, available)]
            .map(|(type_, (status, reason))| condition(type_, status, reason, reason));
        made.status = Some(InstanceStatus { conditions: conditions.to_vec(), ..InstanceStatus::default() });
        made
    })
}

proptest! {
    #[test]
    fn one_more_obstacle_never_looks_better(made in any_instance(), exceeded in any::<bool>()) {
        let facts = if exceeded {
            Facts { quota: quota(Status::False, c::QUOTA_EXCEEDED, "no"), ..granted() }
        } else {
            granted()
        };
        let before = ready(&made, &facts);
        prop_assert!(!before.message.is_empty());
        let mut worse = made.clone();
        worse.spec.controller.as_mut().unwrap().scheduling_gates.push(SchedulingGate { name: gates::QUOTA.to_owned() });
        let after = ready(&worse, &facts);
        prop_assert!(after.status == Status::False);
        if before.status == Status::False {
            // Nothing but the default for "nobody has begun" gives way to a gate.
            let floor = reasons::of_instance(&before.reason).min(reasons::of_instance(c::PENDING_QUOTA));
            prop_assert!(reasons::of_instance(&after.reason) >= floor);
        }
        // The order in which conditions are stored does not matter.
        let mut turned = made;
        turned.status.as_mut().unwrap().conditions.reverse();
        prop_assert_eq!(ready(&turned, &facts), before);
    }
}
