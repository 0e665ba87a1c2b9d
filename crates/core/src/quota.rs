//! Quota of an instance: how much it takes, the claim for that, and what the ledger's answer means.
//!
//! # Guarantees
//!
//! Every way in which asking can end is an [`Outcome`], and every outcome is one condition. Nothing but a grant,
//! or the absence of any quota, lets an instance run.
//!
//! [`size`] says how much an instance takes, [`claim`] reads and makes claims, [`pace`] says when to look again.

use compute_api::{
    compute::{Instance, gates},
    conditions::{self as c, Status, Update},
    k8s::Condition,
};

pub mod claim;
pub mod pace;
pub mod size;

/// How asking the ledger for an instance ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No quota is configured at all.
    Disabled,
    /// No claim is made yet.
    NotClaimed,
    /// The ledger has not looked at the claim.
    NotEvaluated,
    /// The claim is granted.
    Granted,
    /// The claim is denied.
    Denied {
        /// What was asked and what is left.
        message: String,
    },
    /// The project has no budget for what is claimed.
    NoBudget,
    /// The ledger cannot be asked.
    Unreachable {
        /// What went wrong.
        message: String,
    },
    /// The namespace does not say which project it belongs to.
    ProjectUnresolvable {
        /// What is missing.
        message: String,
    },
    /// The project has no such namespace.
    NamespaceNotFound,
    /// There is no such project.
    ProjectNotFound,
    /// The ledger does not take the claim.
    Refused {
        /// What it says.
        message: String,
    },
    /// The ledger calls the claim invalid.
    Invalid {
        /// What it says.
        message: String,
    },
    /// A claim of that name was not made by this cell and is left alone.
    HeldByOtherCell {
        /// The cell that made it, if it says.
        source_cluster: Option<String>,
    },
    /// A claim left by an earlier instance of that name goes first.
    PredecessorLeaving,
}

/// What to say as `QuotaGranted`. `stored` is what was said last: a refusal by the ledger stands until another claim is answered, any other
/// failure until somebody asks again, and a grant for good. What runs runs, also while a claim that has disappeared is made again.
pub fn condition(outcome: &Outcome, stored: Option<&Condition>) -> Update {
    let pending =
        matches!(outcome, Outcome::NotClaimed | Outcome::NotEvaluated | Outcome::PredecessorLeaving);
    let answered = matches!(outcome, Outcome::Granted | Outcome::Disabled);
    let stands = stored.filter(|stored| match stored.reason.as_str() {
        c::QUOTA_AVAILABLE => !answered && Status::of(stored) == Status::True,
        c::QUOTA_EXCEEDED | c::QUOTA_NO_BUDGET | c::VALIDATION_FAILED => pending,
        c::QUOTA_DISABLED | c::PENDING_EVALUATION => false,
        // Nothing was asked since.
        _ => matches!(outcome, Outcome::NotClaimed),
    });
    if let Some(stored) = stands {
        return Update::new(c::QUOTA_GRANTED, Status::of(stored), &stored.reason, stored.message.as_str());
    }
    let (status, reason, message) = say(outcome);
    Update::new(c::QUOTA_GRANTED, status, reason, message)
}

fn say(outcome: &Outcome) -> (Status, &'static str, String) {
    let or = |message: &String, otherwise: &str| {
        if message.is_empty() { otherwise.to_owned() } else { message.clone() }
    };
    match outcome {
        Outcome::Disabled => (Status::True, c::QUOTA_DISABLED, "Quota is not enforced here".to_owned()),
        Outcome::NotClaimed => {
            (Status::Unknown, c::PENDING_EVALUATION, "Quota is about to be asked for".to_owned())
        }
        Outcome::NotEvaluated => {
            (Status::Unknown, c::PENDING_EVALUATION, "The quota claim is being evaluated".to_owned())
        }
        Outcome::PredecessorLeaving => (
            Status::Unknown,
            c::PENDING_EVALUATION,
            "The quota claim of an earlier instance of this name is being released".to_owned(),
        ),
        Outcome::Granted => (Status::True, c::QUOTA_AVAILABLE, "Quota is granted".to_owned()),
        Outcome::Denied { message } => {
            (Status::False, c::QUOTA_EXCEEDED, or(message, "The project's quota is used up"))
        }
        Outcome::NoBudget => (
            Status::Unknown,
            c::QUOTA_NO_BUDGET,
            "The project has no quota for what the instance needs".to_owned(),
        ),
        Outcome::Unreachable { message } => {
            (Status::Unknown, c::QUOTA_BACKEND_UNAVAILABLE, or(message, "The quota service does not answer"))
        }
        Outcome::ProjectUnresolvable { message } => (
            Status::Unknown,
            c::QUOTA_PROJECT_ID_UNRESOLVABLE,
            or(message, "The namespace does not say which project it belongs to"),
        ),
        Outcome::NamespaceNotFound => (
            Status::Unknown,
            c::QUOTA_NAMESPACE_NOT_FOUND,
            "The project does not have the instance's namespace".to_owned(),
        ),
        Outcome::ProjectNotFound => {
            (Status::Unknown, c::QUOTA_PROJECT_NOT_FOUND, "The project does not exist".to_owned())
        }
        Outcome::Refused { message } => {
            (Status::False, c::QUOTA_MISCONFIGURED, or(message, "The quota service refuses the claim"))
        }
        Outcome::Invalid { message } => {
            (Status::False, c::VALIDATION_FAILED, or(message, "The quota service calls the claim invalid"))
        }
        Outcome::HeldByOtherCell { source_cluster } => (
            Status::Unknown,
            c::PENDING_EVALUATION,
            match source_cluster {
                Some(cell) => format!("A quota claim of that name belongs to cell {cell}"),
                None => "A quota claim of that name was not made by this cell".to_owned(),
            },
        ),
    }
}

/// Whether an outcome calls for a warning event.
pub fn is_failure(outcome: &Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Disabled
            | Outcome::NotClaimed
            | Outcome::NotEvaluated
            | Outcome::Granted
            | Outcome::PredecessorLeaving
    )
}

/// Whether the quota gate may go: this pass has seen the grant, and what is stored says so about the present
/// generation.
pub fn gate_may_go(instance: &Instance, outcome: &Outcome) -> bool {
    let stored = instance.status.as_ref().and_then(|s| c::find(&s.conditions, c::QUOTA_GRANTED));
    let told = stored.is_some_and(|stored| {
        Status::of(stored) == Status::True && stored.observed_generation == instance.metadata.generation
    });
    instance.spec.has_gate(gates::QUOTA) && told && matches!(outcome, Outcome::Granted | Outcome::Disabled)
}

#[cfg(test)]
mod tests;
