//! A bound on TLS handshakes at the same time.
//!
//! Guarantees: however many clients connect and say nothing, one that means it gets through: when there are too many, the oldest
//! handshake is given up, and an honest one is over long before it is the oldest.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The handshakes that are going on, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct Handshakes {
    most: usize,
    going_on: Arc<Mutex<GoingOn>>,
}

#[derive(Debug, Default)]
struct GoingOn {
    count: u64,
    open: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// One handshake; it is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Handshake {
    of: Handshakes,
    number: u64,
    given_up: oneshot::Receiver<()>,
}

impl Handshakes {
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), going_on: Arc::default() }
    }

    /// Counts one more; the oldest is given up if there are too many.
    pub(super) fn start(&self) -> Handshake {
        let (keep, given_up) = oneshot::channel();
        let mut going_on = self.going_on.lock();
        going_on.count += 1;
        let number = going_on.count;
        if going_on.open.len() >= self.most {
            going_on.open.pop_front();
        }
        going_on.open.push_back((number, keep));
        Handshake { of: self.clone(), number, given_up }
    }
}

impl Handshake {
    /// Ready when it is given up in favour of others.
    pub(super) async fn given_up(&mut self) {
        let _ = (&mut self.given_up).await;
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let mut going_on = self.of.going_on.lock();
        if let Ok(at) = going_on.open.binary_search_by_key(&self.number, |(number, _)| *number) {
            going_on.open.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn the_oldest_gives_way() {
        let handshakes = Handshakes::new(2);
        let (mut a, mut b) = (handshakes.start(), handshakes.start());
        assert!(a.given_up().now_or_never().is_none());
        let mut c = handshakes.start();
        assert!(a.given_up().now_or_never().is_some());
        drop(b);
        let mut d = handshakes.start();
        assert!(c.given_up().now_or_never().is_none() && d.given_up().now_or_never().is_none());
        b = handshakes.start();
        assert!(c.given_up().now_or_never().is_some() && b.given_up().now_or_never().is_none());
        drop((a, b, c, d));
        assert!(handshakes.going_on.lock().open.is_empty());
    }
}
