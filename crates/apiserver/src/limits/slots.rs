//! Places among the requests in flight, and among the watches.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::fair::{Caps, Fair, Flow};

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// As many wait already as may.
    QueueFull,
    /// None came free in time.
    TooLong,
}

/// A number of places.
pub(super) struct Pool(Mutex<Fair<oneshot::Sender<()>>>);

impl Pool {
    pub(super) fn new(caps: Caps) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Fair::new(caps))))
    }

    /// A place, if there is one.
    pub(super) fn try_take(self: &Arc<Self>, flow: &Flow) -> Option<Slot> {
        let taken = self.0.lock().try_enter(flow);
        taken.then(|| Slot { pool: self.clone(), flow: flow.clone(), ticket: None })
    }

    /// How many places a flow has.
    pub(super) fn held(&self, flow: &Flow) -> usize {
        self.0.lock().held(flow)
    }

    /// A place, now or when it is this flow's turn within `limit`; and whether it was waited for.
    pub(super) async fn wait(self: Arc<Self>, flow: Flow, limit: Duration) -> Result<(Slot, bool), Refusal> {
        let (sender, granted) = oneshot::channel();
        let ticket = {
            let mut fair = self.0.lock();
            match fair.try_enter(&flow) {
                true => None,
                false => Some(fair.queue(&flow, sender).ok_or(Refusal::QueueFull)?),
            }
        };
        // From here on the ticket is given back, whether it stands for a wait or already for a place.
        let mut slot = Slot { pool: self, flow, ticket };
        if ticket.is_some() {
            match tokio::time::timeout(limit, granted).await {
                Ok(Ok(())) => slot.ticket = None,
                _ => return Err(Refusal::TooLong),
            }
        }
        Ok((slot, ticket.is_some()))
    }
}

/// A place; it comes back when this is dropped.
pub(crate) struct Slot {
    pool: Arc<Pool>,
    flow: Flow,
    /// While it is waited for.
    ticket: Option<u64>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = {
            let mut fair = self.pool.0.lock();
            let waits = self.ticket.is_some_and(|ticket| fair.cancel(&self.flow, ticket));
            if waits { None } else { fair.leave(&self.flow) }
        };
        if let Some(next) = next {
            // One who has gone gives the place back by dropping its ticket.
            let _ = next.send(());
        }
    }
}

#[cfg(test)]
impl Pool {
    pub(super) fn taken(&self) -> (usize, usize) {
        self.0.lock().taken()
    }
}
