//! Writes that may wait for a moment, because what they would say is mostly overtaken by then.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{Key, Queue};

/// Holds a controller's writes back, each for a moment at most.
pub struct Pace {
    queue: Queue,
    moment: Duration,
    since: Mutex<BTreeMap<Key, Instant>>,
}

impl Pace {
    /// For the controller of a queue.
    pub fn new(queue: &Queue, moment: Duration) -> Self {
        Self { queue: queue.clone(), moment, since: Mutex::default() }
    }

    /// Whether a write is held back now. If so, the key is due again when it must be; what is written then is decided then.
    pub fn holds(&self, key: &Key) -> bool {
        let now = Instant::now();
        let mut since = self.since.lock();
        let until = *since.entry(key.clone()).or_insert(now) + self.moment;
        if until <= now {
            since.remove(key);
            return false;
        }
        drop(since);
        self.queue.add_after(key.clone(), until - now);
        true
    }

    /// Nothing is held back any more: it was written, or there is nothing to write to.
    pub fn clear(&self, key: &Key) {
        self.since.lock().remove(key);
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pace({} held back)", self.since.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Limits;
    use crate::{PlaneId, Runtime};

    const MOMENT: Duration = Duration::from_millis(200);

    #[tokio::test(start_paused = true)]
    async fn a_write_waits_once_and_comes_again_by_itself() {
        let queue = Queue::new(&Runtime::system(), "test", Limits::default());
        let pace = Pace::new(&queue, MOMENT);
        let key = Key::new(&PlaneId::new("p"), "ns", "name");
        let began = Instant::now();
        assert!(pace.holds(&key));
        tokio::time::sleep(MOMENT / 2).await;
        // Other news comes: the moment is still the first one's.
        assert!(pace.holds(&key));
        let work = queue.next().await;
        assert_eq!((work.key(), began.elapsed()), (&key, MOMENT));
        assert!(!pace.holds(&key));
        work.done();
        assert!(pace.holds(&key), "what comes next waits anew");
        pace.clear(&key);
        assert_eq!(format!("{pace:?}"), "Pace(0 held back)");
    }
}
