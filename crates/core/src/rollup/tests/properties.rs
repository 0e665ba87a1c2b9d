//! Worse parts never make a sum look better, and their order does not matter: over every reason that there is.

use compute_api::compute::WorkloadStatus;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::fixtures::template;
use crate::reasons::{OF_INSTANCES, OF_SUMS, severity};

/// How bad a status looks: not serving is worse, then the reason.
fn badness(conditions: &[Condition]) -> (u8, reasons::Rank) {
    let said = c::find(conditions, c::AVAILABLE).unwrap();
    match Status::of(said) {
        Status::True => (0, severity(c::PENDING)),
        Status::False | Status::Unknown => (1, severity(&said.reason)),
    }
}

/// 0 is ready; the higher, the worse.
fn instance_at(of: &WorkloadDeployment, ordinal: u32, level: usize) -> Instance {
    let made = instance(of, ordinal);
    match level.checked_sub(1) {
        None => ready(made),
        Some(level) => {
            let reason = OF_INSTANCES[OF_INSTANCES.len() - 1 - level];
            not_ready(made, reason, &format!("{reason} of {ordinal}"))
        }
    }
}

const LEVELS: usize = OF_INSTANCES.len() + 1;

/// Reasons of the order that only placements and Workloads have.
const NOT_OF_DEPLOYMENTS: [&str; 4] =
    [c::NETWORK_NOT_FOUND, c::LOCATION_UNAVAILABLE, c::NO_AVAILABLE_DEPLOYMENTS, c::NO_AVAILABLE_PLACEMENTS];

/// 0 serves; the higher, the worse.
fn said_at(level: usize) -> Condition {
    let mut better_first = OF_SUMS.into_iter().rev().filter(|reason| !NOT_OF_DEPLOYMENTS.contains(reason));
    match level.checked_sub(1).and_then(|level| better_first.nth(level)) {
        None => serving(),
        Some(reason @ (c::CELL_NOT_READY | c::PENDING)) => {
            condition(c::AVAILABLE, Status::Unknown, reason, reason)
        }
        Some(reason) => broken(reason, reason),
    }
}

const SUM_LEVELS: usize = OF_SUMS.len() - NOT_OF_DEPLOYMENTS.len() + 1;

/// Two placements of three cities each.
const PLACES: [(&str, &str); 6] =
    [("a", "DFW"), ("a", "IAD"), ("a", "LHR"), ("b", "DFW"), ("b", "IAD"), ("b", "LHR")];

fn asked_for() -> Workload {
    stored_workload(&[("a", &["DFW", "IAD", "LHR"]), ("b", &["DFW", "IAD", "LHR"])])
}

fn deployment_at(place: usize, level: usize) -> WorkloadDeployment {
    let (placement, city) = PLACES[place];
    reporting(placement, city, &said_at(level), [1, i64::from(level == 0), 1, 1])
}

/// Makes one of the levels worse by so much.
fn worsen(levels: &[usize], which: &Index, by: usize, most: usize) -> Vec<usize> {
    let mut worse = levels.to_vec();
    let one = which.index(worse.len());
    worse[one] = (worse[one] + by).min(most - 1);
    worse
}

/// The same in another order, which `turns` decide.
fn shuffled<T: Clone>(all: &[T], turns: &[Index]) -> Vec<T> {
    let mut left = all.to_vec();
    let mut order = Vec::new();
    for turn in turns.iter().cycle() {
        if left.is_empty() {
            break;
        }
        order.push(left.remove(turn.index(left.len())));
    }
    order
}

fn turns() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 1..8)
}

proptest! {
    #[test]
    fn a_worse_instance_never_makes_a_deployment_look_better(
        levels in prop::collection::vec(0..LEVELS, 1..6),
        which in any::<Index>(),
        by in 1..LEVELS,
        turns in turns(),
    ) {
        let of = stored_deployment(3);
        let make = |levels: &[usize]| -> Vec<_> {
            (0_u32..).zip(levels).map(|(ordinal, level)| instance_at(&of, ordinal, *level)).collect()
        };
        let before = make(&levels);
        let status = deployment_status(&of, &before);
        prop_assert_eq!(&status, &deployment_status(&of, &shuffled(&before, &turns)));
        let after = deployment_status(&of, &make(&worsen(&levels, &which, by, LEVELS)));
        prop_assert!(badness(&after.conditions) >= badness(&status.conditions), "{:?} {:?}", status, after);
        prop_assert!(after.ready_replicas <= status.ready_replicas);
        prop_assert!(!available(&after).2.is_empty(), "whoever reads it is told something");
    }

    #[test]
    fn a_worse_deployment_never_makes_a_workload_look_better(
        levels in prop::collection::vec(0..SUM_LEVELS, 1..=PLACES.len()),
        which in any::<Index>(),
        by in 1..SUM_LEVELS,
        turns in turns(),
    ) {
        let of = asked_for();
        let make = |levels: &[usize]| -> Vec<_> {
            levels.iter().enumerate().map(|(place, level)| deployment_at(place, *level)).collect()
        };
        let before = make(&levels);
        let status = workload_status(&of, &before);
        prop_assert_eq!(&status, &workload_status(&of, &shuffled(&before, &turns)));
        let worse = make(&worsen(&levels, &which, by, SUM_LEVELS));
        let after = workload_status(&of, &worse);
        let look = |status: &WorkloadStatus| -> Vec<_> {
            let placements = status.placements.iter().map(|placement| &placement.conditions);
            [&status.conditions].into_iter().chain(placements).map(|all| badness(all)).collect()
        };
        for (before, after) in look(&status).into_iter().zip(look(&after)) {
            prop_assert!(after >= before, "{:?} {:?}", status, after);
        }
        let later = at(99);
        let mut stored = of;
        stored.status = Some(after);
        let again = workload::status(&stored, &worse, &Plan::default(), &[], later);
        prop_assert!(!workload::differs(stored.status.as_ref(), &again));
    }

    /// From the instance to the Workload, through the deployment: what an instance says is worse is nowhere better.
    #[test]
    fn a_worse_instance_never_makes_a_workload_look_better(
        levels in prop::collection::vec(prop::collection::vec(0..LEVELS, 1..4), 1..4),
        city in any::<Index>(),
        which in any::<Index>(),
        by in 1..LEVELS,
    ) {
        let of = asked_for();
        let make = |levels: &[Vec<usize>]| -> Vec<_> {
            levels.iter().enumerate().map(|(place, levels)| {
                let mut made = deployment_at(place, 0);
                made.spec.template = template("app:1");
                let instances: Vec<_> = (0_u32..).zip(levels)
                    .map(|(ordinal, level)| instance_at(&made, ordinal, *level))
                    .collect();
                made.status = Some(deployment_status(&made, &instances));
                made
            }).collect()
        };
        let mut worse = levels.clone();
        let one = city.index(worse.len());
        worse[one] = worsen(&worse[one], &which, by, LEVELS);
        let (before, after) = (workload_status(&of, &make(&levels)), workload_status(&of, &make(&worse)));
        prop_assert!(badness(&after.conditions) >= badness(&before.conditions), "{:?} {:?}", before, after);
    }
}
