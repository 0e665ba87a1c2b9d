//! How long to wait after failures: exponential, with jitter, never shorter than after the failure before.

use std::time::Duration;

use crate::clock::Random;

/// Doubles from `base` to `max`. The wait after the n-th failure in a row lies between half of that and all of it, so that
/// what failed together does not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest wait after a first failure.
    pub base: Duration,
    /// The longest wait of all.
    pub max: Duration,
}

impl Backoff {
    /// How long to wait after this many failures in a row.
    pub fn after(&self, failures: u32, random: &Random) -> Duration {
        let factor = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let longest = self.base.saturating_mul(factor).min(self.max);
        random.between(longest / 2, longest)
    }
}
