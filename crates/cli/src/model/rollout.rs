//! A rollout: whether it goes on, is done, or is certain not to get on.

use compute_api::compute::{Instance, Workload};
use compute_core::meta;

use super::city::{CityView, Phase};
use super::instance::{self, Heap};
use super::workload::WorkloadView;

/// Where a rollout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on.
    Going,
    /// Everything is as wanted.
    Done,
    /// It waits until it is resumed.
    Paused,
    /// It does not get on until somebody does something.
    Stuck,
}

/// Where a rollout stands.
pub(crate) fn verdict(workload: &Workload, view: &WorkloadView) -> Verdict {
    let status = workload.status.clone().unwrap_or_default();
    let taken_up =
        status.observed_generation.is_some() && status.observed_generation == workload.metadata.generation;
    let is = |phase: Phase| view.cities.iter().any(|city| city.phase == phase);
    let is_certain = |city: &CityView| city.trouble.as_ref().is_some_and(|trouble| trouble.is_certain);
    let moves = is(Phase::Waiting) || is(Phase::Updating);
    match () {
        () if meta::is_being_deleted(&workload.metadata) => Verdict::Stuck,
        () if view.cities.iter().any(is_certain) => Verdict::Stuck,
        () if !taken_up => Verdict::Going,
        () if view.is_done() && sums_agree(&status) => Verdict::Done,
        () if is(Phase::Paused) && !moves && !is(Phase::Blocked) => Verdict::Paused,
        () => Verdict::Going,
    }
}

/// Whether the workload's own sums say that it is done, too.
fn sums_agree(status: &compute_api::compute::WorkloadStatus) -> bool {
    [status.ready_replicas, status.updated_replicas, status.replicas] == [status.desired_replicas; 3]
}

/// Whether the instances that are there are as many as are wanted, and each is available.
pub(crate) fn instances_agree(view: &WorkloadView, instances: &[Instance]) -> bool {
    let are_available = instances.iter().all(|one| instance::view(one).heap == Heap::Available);
    are_available && i64::try_from(instances.len()) == Ok(view.desired)
}
