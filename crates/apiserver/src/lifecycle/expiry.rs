//! Events are kept for an hour after their last write, as Kubernetes keeps them.
//!
//! Each write of an event makes room for itself: it removes a few that are past their time. There is no timer, so a plane
//! that records nothing does nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::auth::Identity;
use crate::planes::Plane;
use crate::server::Shared;
use crate::store::{Change, Event, GroupResource, ObjectKey};
use crate::verbs::{self, DeleteOptions, Target};

/// How long an event is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(1);
/// How many a write removes at most: more than it adds, so that a backlog shrinks.
const PER_WRITE: usize = 4;

/// Writes of events in one plane, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Expiry(Mutex<VecDeque<(Timestamp, ObjectKey, u64)>>);

impl Expiry {
    /// Notes a write, and takes out what is past its time.
    fn exchange(&self, now: Timestamp, event: &Event) -> Vec<(ObjectKey, u64)> {
        let mut writes = self.0.lock();
        writes.push_back((now, event.object.meta.key.clone(), event.revision()));
        let old =
            writes.iter().take(PER_WRITE).take_while(|(time, ..)| now.duration_since(*time) > KEPT).count();
        writes.drain(..old).map(|(_, key, revision)| (key, revision)).collect()
    }
}

/// Is told of every change; looks at those of events.
pub(crate) async fn notice(
    shared: &Arc<Shared>,
    plane: &Arc<Plane>,
    resource: &GroupResource,
    event: &Event,
) {
    if resource.resource != "events" || !resource.group.is_empty() || event.change == Change::Deleted {
        return;
    }
    let expired = plane.expiry.exchange(shared.options.clock.now(), event);
    if expired.is_empty() {
        return;
    }
    let registry = plane.registry();
    let Some(resource) = registry.find_table(resource) else { return };
    let target = Target::new(shared, plane, resource, Identity::server());
    for (key, revision) in expired {
        // One that was written again since is at another revision, and has its own entry.
        let resource_version = Some(revision.to_string());
        let options = DeleteOptions { resource_version, ..DeleteOptions::default() };
        if let Err(error) = Box::pin(verbs::delete(&target, &key, &options)).await {
            tracing::debug!(%error, "event not removed");
        }
    }
}
