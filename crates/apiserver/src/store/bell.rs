//! What wakes the watchers of a resource.
//!
//! A write is shown by the one thread that makes all planes' writes durable, under its plane's lock. Waking thousands of watchers there
//! would hold up every plane, and they would all be ready to run at once, before whatever comes next. So
//! watchers are woken in groups: a single group by the writer itself, more of them one after another by a task that lets
//! others run in between.
//!
//! Guarantees: whoever subscribed before a ring is woken after it, once for any number of rings in the meantime;
//! ringing takes a bounded time; the bell's end is every subscriber's end.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Watchers that are woken together. Each takes some 10 µs to send its event on, so others wait about a
/// millisecond for a group.
const GROUP: usize = 128;

type Groups = Arc<Mutex<Vec<watch::Sender<()>>>>;

/// Wakes the watchers of one resource.
#[derive(Debug, Default)]
pub(super) struct Bell {
    groups: Groups,
    /// Tells the task that wakes the groups; there is one as soon as there are two groups.
    herald: Option<watch::Sender<()>>,
}

impl Bell {
    /// A receiver that is told of every ring from now on.
    pub(super) fn subscribe(&mut self) -> watch::Receiver<()> {
        let mut groups = self.groups.lock();
        // Those that have ended leave room.
        if let Some(group) = groups.iter().find(|group| group.receiver_count() < GROUP) {
            return group.subscribe();
        }
        let (group, receiver) = watch::channel(());
        groups.push(group);
        if groups.len() == 2 && self.herald.is_none() {
            let (tell, told) = watch::channel(());
            tokio::spawn(spread(told, self.groups.clone()));
            self.herald = Some(tell);
        }
        receiver
    }

    /// Wakes all watchers, soon.
    pub(super) fn ring(&self) {
        match &self.herald {
            Some(herald) => {
                herald.send_replace(());
            }
            None => self.groups.lock().iter().for_each(|group| {
                group.send_replace(());
            }),
        }
    }

    /// Whether nobody listens.
    pub(super) fn is_idle(&self) -> bool {
        self.groups.lock().iter().all(|group| group.receiver_count() == 0)
    }
}

/// Wakes group after group whenever it is told to, until the bell is gone.
async fn spread(mut told: watch::Receiver<()>, groups: Groups) {
    while told.changed().await.is_ok() {
        for at in 0.. {
            match groups.lock().get(at) {
                Some(group) => group.send_replace(()),
                None => break,
            };
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_watcher_hears_every_ring_and_the_end() {
        for count in [1, GROUP, GROUP + 1, 5 * GROUP] {
            let mut bell = Bell::default();
            assert!(bell.is_idle());
            let mut watchers: Vec<_> = (0..count).map(|_| bell.subscribe()).collect();
            for _ in 0..3 {
                bell.ring();
                for watcher in &mut watchers {
                    watcher.changed().await.unwrap();
                }
            }
            assert_eq!(bell.groups.lock().len(), count.div_ceil(GROUP));
            assert_eq!(bell.herald.is_some(), count > GROUP);
            watchers.truncate(count / 2);
            let late = bell.subscribe();
            assert_eq!(bell.groups.lock().len(), count.div_ceil(GROUP), "room is used again");
            watchers.push(late);
            bell.ring();
            for watcher in &mut watchers {
                watcher.changed().await.unwrap();
            }
            assert!(!bell.is_idle());
            drop(bell);
            for watcher in &mut watchers {
                assert!(watcher.changed().await.is_err());
            }
        }
    }
}
