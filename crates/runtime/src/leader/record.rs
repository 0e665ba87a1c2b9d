//! What a Lease says, and the Leases that a process writes.

use std::time::Duration;

use compute_api::jiff::SignedDuration;
use compute_api::k8s::{Lease, LeaseSpec, MicroTime, ObjectMeta, Timestamp};

/// What of a Lease tells that its holder lives: whenever any of it changes, the time starts anew. Other fields
/// and metadata may be changed by anybody.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) holder: String,
    /// How long the holder says that it holds.
    pub(super) duration: Option<Duration>,
    acquired: Option<MicroTime>,
    renewed: Option<MicroTime>,
    transitions: Option<i32>,
}

impl Record {
    pub(super) fn of(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            holder: spec.holder_identity.unwrap_or_default(),
            duration: seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
            acquired: spec.acquire_time,
            renewed: spec.renew_time,
            transitions: spec.lease_transitions,
        }
    }
}

/// A Lease that did not exist.
pub(super) fn fresh(name: &str, identity: &str, duration: Duration, now: Timestamp) -> Lease {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let spec = LeaseSpec { lease_transitions: Some(0), ..held(identity, duration, now) };
    Lease { metadata, spec: Some(spec) }
}

/// A Lease that changes hands, or that comes back to a process of the same identity.
pub(super) fn taken(lease: &Lease, identity: &str, duration: Duration, now: Timestamp) -> Lease {
    let before = lease.spec.clone().unwrap_or_default();
    let is_same = before.holder_identity.as_deref() == Some(identity);
    let transitions = before.lease_transitions.unwrap_or(0);
    let held = held(identity, duration, now);
    let spec = LeaseSpec {
        acquire_time: before.acquire_time.clone().filter(|_| is_same).or(held.acquire_time),
        lease_transitions: Some(if is_same { transitions } else { transitions.saturating_add(1) }),
        holder_identity: held.holder_identity,
        lease_duration_seconds: held.lease_duration_seconds,
        renew_time: Some(changed(before.renew_time.as_ref(), now)),
        ..before
    };
    Lease { metadata: lease.metadata.clone(), spec: Some(spec) }
}

/// A Lease that its holder keeps.
pub(super) fn renewed(lease: &Lease, duration: Duration, now: Timestamp) -> Lease {
    let mut lease = lease.clone();
    let spec = lease.spec.get_or_insert_default();
    spec.renew_time = Some(changed(spec.renew_time.as_ref(), now));
    spec.lease_duration_seconds = Some(seconds(duration));
    lease
}

/// The time, or a little later if it is the one that the Lease shows already: others see that a holder lives by
/// a time that changes, so a wall clock that stands still must not stop it.
fn changed(before: Option<&MicroTime>, now: Timestamp) -> MicroTime {
    const MICROSECOND: SignedDuration = SignedDuration::from_micros(1);
    match before {
        Some(MicroTime(before)) if before.as_microsecond() == now.as_microsecond() => {
            MicroTime(before.saturating_add(MICROSECOND).unwrap_or(now))
        }
        _ => MicroTime(now),
    }
}

/// A Lease that nobody holds. It says a second, because no duration at all is not valid.
pub(super) fn released(lease: &Lease, now: Timestamp) -> Lease {
    let mut lease = renewed(lease, Duration::from_secs(1), now);
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = None;
    lease
}

fn held(identity: &str, duration: Duration, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(seconds(duration)),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        ..LeaseSpec::default()
    }
}

/// In whole seconds, rounded up: others may wait longer than the holder needs, never shorter.
fn seconds(duration: Duration) -> i32 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(seconds.max(1)).unwrap_or(i32::MAX)
}
