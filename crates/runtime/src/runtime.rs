//! What everything in a process shares: clock, randomness, metrics, and the number of lists in flight.

use std::sync::Arc;

use crate::clock::{Clock, Random, SystemClock};
use crate::lists::Lists;
use crate::metrics::Metrics;

/// What everything in a process shares. Cheap to clone.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    random: Random,
    metrics: Metrics,
    lists: Lists,
}

impl Runtime {
    /// A runtime with this time and randomness.
    pub fn new(clock: impl Clock, random: Random) -> Self {
        let (clock, metrics) = (Arc::new(clock), Metrics::new());
        Self(Arc::new(Inner { clock, random, metrics, lists: Lists::new() }))
    }

    /// A runtime with the machine's own time and randomness.
    pub fn system() -> Self {
        Self::new(SystemClock, Random::from_os())
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

    pub(crate) fn lists(&self) -> &Lists {
        &self.0.lists
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Runtime")
    }
}
