//! An audit log that is kept in memory.

use std::sync::{Arc, Mutex};

use compute_apiserver::audit::{Event, Sink};

/// Keeps every event.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Event>>>);

impl Sink for Recorder {
    fn record(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

impl Recorder {
    /// What has been recorded so far.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    /// What has been recorded since this was last asked.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}
