//! Conditions: their types and reasons in one place, and the one way to change them.
//!
//! # Guarantees
//!
//! `lastTransitionTime` moves only when the status does, and nothing here reads a clock. Types and reasons are
//! constants; [`ALL_REASONS`] has every reason that our controllers and providers write.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

pub mod platform;
mod reasons;
pub use reasons::*;

/// Of a Workload, its placements and a WorkloadDeployment: it serves. Of an Instance: its process runs.
pub const AVAILABLE: &str = "Available";
/// Of an Instance: the provider has set it up.
pub const PROGRAMMED: &str = "Programmed";
/// Of an Instance: the sum of everything else.
pub const READY: &str = "Ready";
/// Of an Instance: the project's quota covers it.
pub const QUOTA_GRANTED: &str = "QuotaGranted";
/// Of an Instance: every ConfigMap and Secret that it names is in the cell.
pub const REFERENCED_DATA_READY: &str = "ReferencedDataReady";
/// Of a placement: every city that it names is offered to the project. Only there while that is not so.
pub const LOCATIONS_AVAILABLE: &str = "LocationsAvailable";
/// Of a WorkloadDeployment: its networks are set up.
pub const NETWORK_READY: &str = "NetworkReady";
/// What `Available` of an Instance was once called. Never written; removed where it is found.
pub const RUNNING_RETIRED: &str = "Running";

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It does.
    True,
    /// It does not.
    False,
    /// Nobody can tell.
    Unknown,
}

impl Status {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Reads the word on the wire. Anything that is not a status says nothing: Unknown.
    pub fn of(condition: &Condition) -> Self {
        match condition.status.as_str() {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// What somebody has to say about a condition. When it changed is worked out by [`next`] and [`set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Which condition.
    pub type_: String,
    /// Whether it holds.
    pub status: Status,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// The generation that this is about.
    pub observed_generation: Option<i64>,
}

impl Update {
    /// Says something about a condition, of no generation in particular.
    pub fn new(type_: &str, status: Status, reason: &str, message: impl Into<String>) -> Self {
        Self {
            type_: type_.to_owned(),
            status,
            reason: reason.to_owned(),
            message: message.into(),
            observed_generation: None,
        }
    }

    /// The same, of this generation.
    #[must_use]
    pub fn of_generation(mut self, generation: Option<i64>) -> Self {
        self.observed_generation = generation;
        self
    }
}

/// The condition that follows `previous`: changed at `now` if its status differs, else when that one was.
pub fn next(previous: Option<&Condition>, update: Update, now: Timestamp) -> Condition {
    let since = previous
        .filter(|previous| previous.status == update.status.as_str())
        .map_or(Time(now), |previous| previous.last_transition_time.clone());
    Condition {
        last_transition_time: since,
        message: update.message,
        observed_generation: update.observed_generation,
        reason: update.reason,
        status: update.status.as_str().to_owned(),
        type_: update.type_,
    }
}

/// Puts what `update` says into the list. A condition that is already there keeps its place; true if anything
/// has changed.
pub fn set(conditions: &mut Vec<Condition>, update: Update, now: Timestamp) -> bool {
    let Some(held) = conditions.iter_mut().find(|condition| condition.type_ == update.type_) else {
        conditions.push(next(None, update, now));
        return true;
    };
    let wanted = next(Some(held), update, now);
    let changed = *held != wanted;
    *held = wanted;
    changed
}

/// The condition of that type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// The status of the condition of that type. One that is not there is Unknown.
pub fn status_of(conditions: &[Condition], type_: &str) -> Status {
    find(conditions, type_).map_or(Status::Unknown, Status::of)
}

/// Whether the condition of that type is there and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    status_of(conditions, type_) == Status::True
}

/// Takes every condition of that type out of the list; true if there was one.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

#[cfg(test)]
mod tests;
