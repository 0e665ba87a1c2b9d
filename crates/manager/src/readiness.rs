//! Whether the process is ready: every role of it has seen the planes that it works on, or waits for its turn to lead.
//!
//! Once a role is ready it stays so: a plane that goes away later is the plane's trouble, and a restart would not mend it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;

/// Whether each part is ready. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Readiness(Arc<Mutex<BTreeMap<&'static str, State>>>);

/// How far a part has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has not begun.
    Starting,
    /// Another replica leads; this one waits.
    Standby,
    /// It has not seen this yet.
    WaitingFor(String),
    /// It works.
    Ready,
}

impl Readiness {
    /// Says how far a part has come.
    pub(crate) fn set(&self, part: &'static str, state: State) {
        self.0.lock().insert(part, state);
    }

    /// Whether all parts are ready, and a line for each.
    pub(crate) fn report(&self) -> (bool, String) {
        let parts = self.0.lock();
        let mut text = String::new();
        let mut all = true;
        for (part, state) in &*parts {
            let (is_ready, said) = match state {
                State::Starting => (false, "starting".to_owned()),
                State::Standby => (true, "ready, another replica leads".to_owned()),
                State::WaitingFor(what) => (false, format!("waiting for {what}")),
                State::Ready => (true, "ready".to_owned()),
            };
            all &= is_ready;
            // Writing to a string does not fail.
            let _ = writeln!(text, "{part}: {said}");
        }
        (all, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_must_be_ready() {
        let readiness = Readiness::default();
        readiness.set("cell", State::Standby);
        readiness.set("management", State::Starting);
        assert!(!readiness.report().0);
        readiness.set("management", State::WaitingFor("the hub".to_owned()));
        let (is_ready, text) = readiness.report();
        assert!(!is_ready);
        assert_eq!(text, "cell: ready, another replica leads\nmanagement: waiting for the hub\n");
        readiness.set("management", State::Ready);
        assert!(readiness.report().0);
    }
}
