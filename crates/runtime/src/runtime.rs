//! What everything in a process shares: clock, randomness, metrics, the number of lists in flight, and whose turn it is.

use std::sync::Arc;

use crate::clock::{Clock, Random, SystemClock};
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::turns::Turns;

/// Enough to keep a few processors and one disk busy.
const TURNS: usize = 8;

/// What everything in a process shares. Cheap to clone.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    random: Random,
    metrics: Metrics,
    lists: Lists,
    turns: Turns,
}

impl Runtime {
    /// A runtime with this time and randomness.
    pub fn new(clock: impl Clock, random: Random) -> Self {
        Self::with(clock, random, Turns::default())
    }

    fn with(clock: impl Clock, random: Random, turns: Turns) -> Self {
        let (clock, metrics) = (Arc::new(clock), Metrics::new());
        Self(Arc::new(Inner { clock, random, metrics, lists: Lists::new(), turns }))
    }

    /// A runtime with the machine's own time and randomness.
    pub fn system() -> Self {
        Self::new(SystemClock, Random::from_os())
    }

    /// The same for a process that serves planes itself: passes need its processors and wait for little else, so they take turns, those
    /// of urgent queues ([`Limits::urgent`](crate::queue::Limits::urgent)) first.
    pub fn beside_planes() -> Self {
        Self::with(SystemClock, Random::from_os(), Turns::of(TURNS))
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// The source of random numbers.
    pub fn random(&self) -> &Random {
        &self.0.random
    }

    /// The process's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    pub(crate) fn lists(&self) -> &Lists {
        &self.0.lists
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Runtime")
    }
}
