//! What deployments, placements and Workloads say about the instances below them.
//!
//! [`deployment`] sums up instances in a cell; [`workload`] sums up deployments in a project. Both return the
//! whole status that their one writer owns, and say whether it differs from what is stored.
//!
//! # Guarantees
//!
//! One that serves makes the sum serve; else the worst reason wins, with its own message. A worse part never
//! makes the sum look better, and the order of parts does not matter. Nothing looks done before it is: a
//! deployment that has not reported on its present generation adds nothing to what counts as updated.

use compute_api::{
    conditions::{self as c, Status, Update},
    k8s::Condition,
};

use crate::reasons;

pub mod deployment;
pub mod workload;

/// What a part says about being available.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    status: Status,
    reason: String,
    message: String,
}

impl Said {
    fn new(status: Status, reason: &str, message: impl Into<String>) -> Self {
        Self { status, reason: reason.to_owned(), message: message.into() }
    }

    fn of(condition: &Condition) -> Self {
        Self::new(Status::of(condition), &condition.reason, condition.message.as_str())
    }

    fn available(self) -> Update {
        Update::new(c::AVAILABLE, self.status, &self.reason, self.message)
    }

    /// Whether something runs, as opposed to nothing being wanted.
    fn serves(&self) -> bool {
        self.status == Status::True && self.reason != c::SCALED_TO_ZERO
    }
}

/// What a sum says: that one part serves, that nothing is wanted, or what the worst part says.
fn sum_up(parts: Vec<Said>, ready: i64, desired: i64, otherwise: Said) -> Said {
    if parts.iter().any(Said::serves) {
        let message = format!("{ready} of {desired} instances are ready");
        return Said::new(Status::True, c::STABLE_INSTANCE_FOUND, message);
    }
    if desired == 0 {
        return scaled_to_zero();
    }
    let mut trouble: Vec<_> = parts.into_iter().filter(|part| part.status != Status::True).collect();
    // Of equally bad ones the message decides, so that the order of parts does not.
    trouble.sort_by(|a, b| {
        (reasons::of_sum(&b.reason), &a.reason, &a.message).cmp(&(
            reasons::of_sum(&a.reason),
            &b.reason,
            &b.message,
        ))
    });
    trouble.into_iter().next().unwrap_or(otherwise)
}

fn scaled_to_zero() -> Said {
    Said::new(Status::True, c::SCALED_TO_ZERO, "No instance is wanted")
}

/// Whether `stored` has each of `wanted`, the same, and of `types` none that is not wanted.
fn conditions_differ(stored: &[Condition], wanted: &[Condition], types: &[&str]) -> bool {
    let changed = wanted.iter().any(|condition| c::find(stored, &condition.type_) != Some(condition));
    let dropped =
        types.iter().any(|type_| c::find(stored, type_).is_some() && c::find(wanted, type_).is_none());
    changed || dropped
}

#[cfg(test)]
mod tests;
