//! Time of day and randomness, as the embedder gives them: nothing else in this crate reads a clock or a random number, so
//! that a simulation with a seed replays exactly. Delays and deadlines are tokio's and stand still when a test pauses them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use rand::{RngCore as _, SeedableRng as _, rngs::StdRng};
use tokio::time::Instant;

/// Where the present time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The present time.
    fn now(&self) -> Timestamp;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a given time and goes on with tokio's timers: in a test with paused time, the two agree.
#[derive(Clone, Copy, Debug)]
pub struct TimerClock {
    start: Timestamp,
    origin: Instant,
}

impl TimerClock {
    /// A clock that says `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }
}

impl Clock for TimerClock {
    fn now(&self) -> Timestamp {
        self.start.saturating_add(self.origin.elapsed()).unwrap_or(Timestamp::MAX)
    }
}

/// A source of random numbers that many tasks share.
#[derive(Clone)]
pub struct Random(Arc<Mutex<StdRng>>);

impl Random {
    /// Numbers that differ in each process.
    pub fn from_os() -> Self {
        Self(Arc::new(Mutex::new(StdRng::from_os_rng())))
    }

    /// The same numbers for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// A random 64-bit number.
    pub fn next_u64(&self) -> u64 {
        self.0.lock().next_u64()
    }

    /// A duration from `least` up to, and without, `most`; `least` if `most` is not longer.
    pub fn between(&self, least: Duration, most: Duration) -> Duration {
        let span = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX);
        if span == 0 {
            return least;
        }
        least + Duration::from_nanos(self.next_u64() % span)
    }
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Random")
    }
}
