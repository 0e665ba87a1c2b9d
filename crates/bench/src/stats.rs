//! Percentiles and rates of what was timed.

use std::time::Duration;

/// How long each of many like operations took.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds one.
    pub fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// Adds those of another.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest sample that at least `percent` of 100 do not exceed (nearest rank); zero if there is none.
    pub fn percentile(&self, percent: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// The median, in milliseconds.
    pub fn p50(&self) -> f64 {
        millis(self.percentile(50.0))
    }

    /// The 99th percentile, in milliseconds.
    pub fn p99(&self) -> f64 {
        millis(self.percentile(99.0))
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(samples: I) -> Self {
        Self(samples.into_iter().collect())
    }
}

/// What a steady load came to.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Operations per second.
    pub rate: f64,
    /// How long each took.
    pub samples: Samples,
    /// How many were done in all, those before the measurement began included.
    pub all: usize,
}

impl Load {
    /// Of operations that were done over `elapsed`.
    pub fn over(samples: Samples, elapsed: Duration) -> Self {
        let all = samples.len();
        Self { rate: all as f64 / elapsed.as_secs_f64(), samples, all }
    }
}

/// A duration in milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: impl IntoIterator<Item = u64>) -> Samples {
        values.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let hundred = samples((1..=100).rev());
        assert_eq!((hundred.p50(), hundred.p99()), (50.0, 99.0));
        assert_eq!(hundred.percentile(100.0), Duration::from_millis(100));
        assert_eq!(hundred.percentile(0.0), Duration::from_millis(1));
        let three = samples([30, 10, 20]);
        assert_eq!((three.p50(), three.p99()), (20.0, 30.0));
        assert_eq!(samples([7]).p50(), 7.0);
    }

    #[test]
    fn nothing_measured_is_zero() {
        assert!(Samples::default().is_empty());
        assert_eq!(Samples::default().p99(), 0.0);
    }

    #[test]
    fn a_rate_is_operations_over_time() {
        assert_eq!(Load::over(samples([1; 50]), Duration::from_millis(500)).rate, 100.0);
    }
}
