//! When work that failed is tried again.
//!
//! Guarantees: each item waits once, however often it becomes due meanwhile; the more often it fails, the longer, up
//! to [`LONGEST`]. It waits because of the disk, or because a hook refuses or cannot answer: neither gets better by being asked
//! without a pause.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Item, Queue};

/// The first wait.
const SHORTEST: Duration = Duration::from_secs(1);
/// No wait is longer.
const LONGEST: Duration = Duration::from_secs(60);

/// Items that failed when they were last tried.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<BTreeMap<Item, Failure>>);

#[derive(Debug, Default)]
struct Failure {
    times: u32,
    waiting: bool,
}

impl Failures {
    /// The item has succeeded, or there is nothing left to do.
    pub(super) fn forget(&self, item: &Item) {
        self.0.lock().remove(item);
    }

    /// How long an item that failed waits; none if it waits already.
    fn wait(&self, item: &Item) -> Option<Duration> {
        let mut failures = self.0.lock();
        let failure = failures.entry(item.clone()).or_default();
        if std::mem::replace(&mut failure.waiting, true) {
            return None;
        }
        let wait = SHORTEST.saturating_mul(1 << failure.times.min(16)).min(LONGEST);
        failure.times += 1;
        Some(wait)
    }

    fn waited(&self, item: &Item) {
        if let Some(failure) = self.0.lock().get_mut(item) {
            failure.waiting = false;
        }
    }
}

/// Makes an item that failed due again after a while.
pub(super) fn later(queue: &Queue, item: Item) {
    let Some(wait) = queue.0.failures.wait(&item) else { return };
    let queue = queue.clone();
    tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        queue.0.failures.waited(&item);
        queue.add(item);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planes::PlaneName;
    use crate::store::{GroupResource, ObjectKey};

    #[test]
    fn an_item_waits_once_and_ever_longer() {
        let item = Item {
            plane: PlaneName::new("p").unwrap(),
            resource: GroupResource::new("", "configmaps"),
            key: ObjectKey::new("default", "c"),
            gone_owner: None,
            expired_at: None,
        };
        let failures = Failures::default();
        let mut waits = Vec::new();
        for _ in 0..8 {
            waits.extend(failures.wait(&item).map(|wait| wait.as_secs()));
            assert_eq!(failures.wait(&item), None, "it waits already");
            failures.waited(&item);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        failures.forget(&item);
        assert_eq!(failures.wait(&item), Some(SHORTEST));
    }
}
