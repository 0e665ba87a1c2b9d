//! An instance: how it is, in the words of the contract.

use compute_api::compute::Instance;
use compute_api::conditions::{self as c, Status};
use compute_api::k8s::{Condition, Timestamp};
use compute_api::{labels, names};
use compute_core::meta;
use serde::Serialize;

use crate::words;

/// How an instance is that nothing is wrong with yet.
pub(crate) const STARTING: &str = "Starting";

/// In which of three heaps an instance is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Heap {
    /// It was seen serving.
    Available,
    /// It is on its way.
    Pending,
    /// It needs somebody.
    Failed,
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceView {
    /// Its name.
    pub(crate) name: String,
    /// Its workload.
    pub(crate) workload: String,
    /// The placement that asks for it.
    pub(crate) placement: String,
    /// Its city.
    pub(crate) city: String,
    /// How it is, as lists show it.
    pub(crate) status: String,
    /// How it is, as its own page shows it.
    pub(crate) detail: String,
    /// Where it is counted.
    pub(crate) heap: Heap,
    /// Why it is not available, in the platform's own sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Since when it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<Timestamp>,
    /// Addresses within its networks.
    pub(crate) internal: Vec<String>,
    /// Addresses that are reached from outside.
    pub(crate) external: Vec<String>,
    /// Its images.
    pub(crate) images: Vec<String>,
    /// Its type.
    pub(crate) instance_type: String,
    /// Why it is not available, in one word; for decisions, not for people.
    #[serde(skip)]
    pub(crate) reason: String,
}

/// The reason and message of `Ready`, unless it holds.
fn unready(conditions: &[Condition]) -> Option<(String, String)> {
    match c::find(conditions, c::READY) {
        Some(ready) if Status::of(ready) == Status::True => None,
        Some(ready) => Some((ready.reason.clone(), ready.message.clone())),
        None => Some((c::PENDING.to_owned(), String::new())),
    }
}

/// How an instance is with this reason: its heap, and its status as lists show it.
fn status(reason: &str, is_programmed: bool) -> (Heap, String) {
    let short = words::of(reason).short;
    match reason {
        c::IMAGE_UNAVAILABLE | c::INSTANCE_CRASHING | c::CONFIGURATION_ERROR | c::SOURCE_NOT_FOUND => {
            (Heap::Failed, format!("Failed ({short})"))
        }
        c::STARTING => (Heap::Pending, STARTING.to_owned()),
        c::PENDING | c::PENDING_PROGRAMMING | c::PROGRAMMING_IN_PROGRESS | "" if !is_programmed => {
            (Heap::Pending, STARTING.to_owned())
        }
        _ => (Heap::Pending, format!("Pending ({short})")),
    }
}

/// What is known of an instance.
pub(crate) fn view(instance: &Instance) -> InstanceView {
    let label = |key| meta::label(&instance.metadata, key).unwrap_or_default().to_owned();
    let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let is_programmed = c::is_true(conditions, c::PROGRAMMED);
    let trouble = unready(conditions);
    let (heap, status, detail) = match &trouble {
        None => (Heap::Available, "Available".to_owned(), "Available".to_owned()),
        Some((reason, _)) => {
            let (heap, status) = status(reason, is_programmed);
            let short = words::of(reason).short;
            let detail = match (heap, status.as_str()) {
                (_, "Starting") => STARTING.to_owned(),
                (Heap::Failed, _) => format!("Not available — {short}"),
                _ => format!("Pending — {short}"),
            };
            (heap, status, detail)
        }
    };
    let interfaces = instance.status.as_ref().map_or(&[][..], |status| &status.network_interfaces);
    let assigned = interfaces.iter().filter_map(|interface| interface.assignments.as_ref());
    let runtime = &instance.spec.runtime;
    let containers = runtime.sandbox.as_ref().map_or(&[][..], |sandbox| &sandbox.containers);
    InstanceView {
        name: meta::name(&instance.metadata).to_owned(),
        workload: label(labels::WORKLOAD_NAME),
        placement: label(labels::PLACEMENT_NAME),
        city: label(labels::CITY_CODE),
        status,
        detail,
        heap,
        message: trouble.as_ref().map(|(_, message)| message.clone()).filter(|message| !message.is_empty()),
        since: c::find(conditions, c::READY).map(|ready| ready.last_transition_time.0),
        created: instance.metadata.creation_timestamp.as_ref().map(|time| time.0),
        internal: assigned.clone().filter_map(|one| one.network_ip.clone()).collect(),
        external: assigned.filter_map(|one| one.external_ip.clone()).collect(),
        images: containers.iter().map(|container| container.image.clone()).collect(),
        instance_type: runtime.resources.instance_type.clone(),
        reason: trouble.map(|(reason, _)| reason).unwrap_or_default(),
    }
}

/// Instances in the order of cities, then of their ordinals.
pub(crate) fn views<'a>(instances: impl IntoIterator<Item = &'a Instance>) -> Vec<InstanceView> {
    let mut views: Vec<_> = instances.into_iter().map(view).collect();
    views.sort_by_cached_key(|view| {
        let ordinal = names::split_instance_name(&view.name).map_or(u32::MAX, |(_, ordinal)| ordinal);
        (view.workload.clone(), view.placement.clone(), view.city.clone(), ordinal, view.name.clone())
    });
    views
}

/// `5 instances: 4 Available, 1 Pending, 0 Failed`.
pub(crate) fn tally(views: &[InstanceView]) -> String {
    let of = |heap| views.iter().filter(|view| view.heap == heap).count();
    let total = words::count(i64::try_from(views.len()).unwrap_or(i64::MAX), "instance");
    format!(
        "{total}: {} Available, {} Pending, {} Failed",
        of(Heap::Available),
        of(Heap::Pending),
        of(Heap::Failed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_the_contract() {
        let list = |reason, programmed| status(reason, programmed).1;
        assert_eq!(list(c::IMAGE_UNAVAILABLE, false), "Failed (image unavailable)");
        assert_eq!(list(c::INSTANCE_CRASHING, true), "Failed (crashing)");
        assert_eq!(list(c::CONFIGURATION_ERROR, false), "Failed (configuration error)");
        for starting in [c::PENDING, c::PENDING_PROGRAMMING, c::PROGRAMMING_IN_PROGRESS] {
            assert_eq!(list(starting, false), "Starting");
        }
        assert_eq!(list(c::QUOTA_EXCEEDED, false), "Pending (quota exceeded)");
        assert_eq!(list(c::QUOTA_NO_BUDGET, false), "Pending (no quota budget)");
        assert_eq!(list(c::PENDING_QUOTA, false), "Pending (waiting for quota)");
        for unavailable in [c::QUOTA_BACKEND_UNAVAILABLE, c::QUOTA_MISCONFIGURED, c::VALIDATION_FAILED] {
            assert_eq!(list(unavailable, false), "Pending (quota unavailable)");
        }
        assert_eq!(list(c::NETWORK_PROVISIONING, false), "Pending (network provisioning)");
        assert_eq!(list(c::AWAITING_PROPAGATION, false), "Pending (waiting for config)");
        assert_eq!(list(c::SOURCE_NOT_FOUND, false), "Failed (config not found)");
        assert_eq!(list(c::SCHEDULING_GATES_PRESENT, false), "Pending (held back)");
        assert_eq!(list("SomethingElse", true), "Pending (something else)");
    }
}
