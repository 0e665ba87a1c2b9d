//! Events are kept for an hour after their last write, as Kubernetes keeps them.
//!
//! Each write of an event makes room for itself: it removes a few that are past their time. There is no timer, so a plane
//! that records nothing does nothing.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::store::{Change, Event, GroupResource, ObjectKey};

/// How long an event is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(1);
/// How many a write removes at most: more than it adds, so that a backlog shrinks.
const PER_WRITE: usize = 4;

/// Writes of events in one plane, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Expiry(Mutex<VecDeque<(Timestamp, ObjectKey, u64)>>);

impl Expiry {
    /// Notes a write of an event, and takes out those that are past their time: key and revision of their last write.
    pub(super) fn exchange(
        &self,
        now: Timestamp,
        resource: &GroupResource,
        event: &Event,
    ) -> Vec<(ObjectKey, u64)> {
        if resource.resource != "events" || !resource.group.is_empty() || event.change == Change::Deleted {
            return Vec::new();
        }
        let mut writes = self.0.lock();
        writes.push_back((now, event.object.meta.key.clone(), event.revision()));
        let old =
            writes.iter().take(PER_WRITE).take_while(|(time, ..)| now.duration_since(*time) > KEPT).count();
        writes.drain(..old).map(|(_, key, revision)| (key, revision)).collect()
    }
}
