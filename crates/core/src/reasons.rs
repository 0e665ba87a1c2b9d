//! Which of several reasons tells people most. One order for instances, one for what sums them up.

use compute_api::conditions as c;

/// Reasons of an instance that is not ready, the most telling first.
pub(crate) const OF_INSTANCES: [&str; 27] = [
    c::NETWORK_FAILED_TO_CREATE,
    c::IMAGE_UNAVAILABLE,
    c::INSTANCE_CRASHING,
    c::CONFIGURATION_ERROR,
    c::SOURCE_NOT_FOUND,
    c::SOURCE_TOO_LARGE,
    c::SOURCE_UNAUTHORIZED,
    c::QUOTA_EXCEEDED,
    c::QUOTA_MISCONFIGURED,
    c::VALIDATION_FAILED,
    c::QUOTA_NO_BUDGET,
    c::QUOTA_PROJECT_NOT_FOUND,
    c::QUOTA_NAMESPACE_NOT_FOUND,
    c::QUOTA_PROJECT_ID_UNRESOLVABLE,
    c::QUOTA_BACKEND_UNAVAILABLE,
    c::RESOLVING,
    c::AWAITING_PROPAGATION,
    c::PENDING_QUOTA,
    c::NETWORK_PROVISIONING,
    c::PROVISIONING,
    c::PROGRAMMING_IN_PROGRESS,
    c::STARTING,
    c::STOPPING,
    c::STOPPED,
    c::PENDING_PROGRAMMING,
    c::SCHEDULING_GATES_PRESENT,
    c::PENDING,
];

/// Reasons of what sums up instances and is not available, the most telling first. Data stands before quota, as it does for an instance
/// whose data cannot be had; data that is only on its way would stand behind it, which the word does not tell. So the two are equally bad
/// ([`severity`]).
pub(crate) const OF_SUMS: [&str; 15] = [
    c::NETWORK_NOT_FOUND,
    c::NETWORK_FAILED_TO_CREATE,
    c::IMAGE_UNAVAILABLE,
    c::INSTANCE_CRASHING,
    c::CONFIGURATION_ERROR,
    c::REFERENCED_DATA_NOT_READY,
    c::QUOTA_NOT_GRANTED,
    c::NO_MATCHING_LOCATION,
    c::LOCATION_UNAVAILABLE,
    c::CELL_NOT_READY,
    c::NETWORK_PROVISIONING,
    c::INSTANCES_PROVISIONING,
    c::NO_AVAILABLE_DEPLOYMENTS,
    c::NO_AVAILABLE_PLACEMENTS,
    c::PENDING,
];

/// How telling a reason is: the higher, the worse it is for whoever waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(usize);

/// The rank of an instance's reason. A word that is not ours stands where the runtime's own progress does.
pub fn of_instance(reason: &str) -> Rank {
    rank(&OF_INSTANCES, reason, c::PROVISIONING)
}

/// The rank of the reason of a deployment, a placement or a Workload.
pub fn of_sum(reason: &str) -> Rank {
    rank(&OF_SUMS, reason, c::INSTANCES_PROVISIONING)
}

/// How bad it looks if this is the reason of a deployment, a placement or a Workload: it never looks better when an instance gets worse.
pub fn severity(reason: &str) -> Rank {
    of_sum(if reason == c::REFERENCED_DATA_NOT_READY { c::QUOTA_NOT_GRANTED } else { reason })
}

fn rank(order: &[&str], reason: &str, otherwise: &str) -> Rank {
    let position = |word: &str| order.iter().position(|known| *known == word);
    let position = position(reason).or_else(|| position(otherwise)).unwrap_or(order.len());
    Rank(order.len() - position)
}

/// Whether an instance with that reason needs somebody to do something; the others pass by themselves.
pub fn is_problem(reason: &str) -> bool {
    of_instance(reason) >= of_instance(c::QUOTA_BACKEND_UNAVAILABLE)
}

/// What a deployment says when this is the reason of its worst instance.
pub fn of_deployment(instance_reason: &str) -> &str {
    match instance_reason {
        c::NETWORK_FAILED_TO_CREATE
        | c::IMAGE_UNAVAILABLE
        | c::INSTANCE_CRASHING
        | c::CONFIGURATION_ERROR
        | c::NETWORK_PROVISIONING => instance_reason,
        c::SOURCE_NOT_FOUND
        | c::SOURCE_TOO_LARGE
        | c::SOURCE_UNAUTHORIZED
        | c::RESOLVING
        | c::AWAITING_PROPAGATION => c::REFERENCED_DATA_NOT_READY,
        c::QUOTA_EXCEEDED
        | c::QUOTA_MISCONFIGURED
        | c::VALIDATION_FAILED
        | c::QUOTA_NO_BUDGET
        | c::QUOTA_PROJECT_NOT_FOUND
        | c::QUOTA_NAMESPACE_NOT_FOUND
        | c::QUOTA_PROJECT_ID_UNRESOLVABLE
        | c::QUOTA_BACKEND_UNAVAILABLE
        | c::PENDING_QUOTA => c::QUOTA_NOT_GRANTED,
        _ => c::INSTANCES_PROVISIONING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_contract() {
        let order = [
            c::NETWORK_FAILED_TO_CREATE,
            c::IMAGE_UNAVAILABLE,
            c::INSTANCE_CRASHING,
            c::CONFIGURATION_ERROR,
            c::SOURCE_NOT_FOUND,
            c::SOURCE_TOO_LARGE,
            c::SOURCE_UNAUTHORIZED,
            c::QUOTA_EXCEEDED,
            c::QUOTA_MISCONFIGURED,
            c::QUOTA_NO_BUDGET,
            c::QUOTA_BACKEND_UNAVAILABLE,
            c::RESOLVING,
            c::AWAITING_PROPAGATION,
            c::PENDING_QUOTA,
            c::NETWORK_PROVISIONING,
            c::PROVISIONING,
            c::PENDING_PROGRAMMING,
            c::SCHEDULING_GATES_PRESENT,
        ];
        assert!(order.is_sorted_by(|a, b| of_instance(a) > of_instance(b)));
        assert_eq!(of_instance("Whatever"), of_instance(c::PROVISIONING));
    }

    #[test]
    fn what_needs_somebody_is_a_problem() {
        for reason in [c::IMAGE_UNAVAILABLE, c::SOURCE_NOT_FOUND, c::QUOTA_EXCEEDED, c::QUOTA_NO_BUDGET] {
            assert!(is_problem(reason), "{reason}");
        }
        for reason in [c::AWAITING_PROPAGATION, c::PENDING_QUOTA, c::INSTANCE_AVAILABLE, c::PENDING, "New"] {
            assert!(!is_problem(reason), "{reason}");
        }
    }

    #[test]
    fn every_reason_of_a_deployment_has_its_place() {
        for reason in OF_INSTANCES {
            assert!(OF_SUMS.contains(&of_deployment(reason)), "{reason}");
        }
    }

    #[test]
    fn a_worse_instance_is_never_a_better_deployment() {
        let severities = OF_INSTANCES.map(|reason| severity(of_deployment(reason)));
        assert!(severities.is_sorted_by(|worse, better| worse >= better), "{severities:?}");
    }

    #[test]
    fn every_reason_of_an_instance_that_is_not_ready_has_a_rank() {
        // Those that are not in the order are said of something else, or of what is well.
        let others = [
            c::NO_AVAILABLE_PLACEMENTS,
            c::NO_AVAILABLE_DEPLOYMENTS,
            c::NETWORK_NOT_FOUND,
            c::LOCATION_UNAVAILABLE,
            c::STABLE_INSTANCE_FOUND,
            c::SCALED_TO_ZERO,
            c::NO_MATCHING_LOCATION,
            c::CELL_NOT_READY,
            c::QUOTA_NOT_GRANTED,
            c::REFERENCED_DATA_NOT_READY,
            c::INSTANCES_PROVISIONING,
            c::QUOTA_DISABLED,
            c::QUOTA_AVAILABLE,
            c::PENDING_EVALUATION,
            c::DATA_READY,
            c::INSTANCE_PROGRAMMED,
            c::INSTANCE_AVAILABLE,
        ];
        for reason in c::ALL_REASONS {
            assert!(OF_INSTANCES.contains(&reason) != others.contains(&reason), "{reason}");
        }
    }
}
