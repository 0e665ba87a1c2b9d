//! One simulated instance: how far it is, as a function of the time that is passed in.

use std::time::Duration;

use compute_api::k8s::Timestamp;
use compute_core::provider::{Observation, State, Trouble};
use tokio::time::Instant;

use super::addresses::Assigned;
use super::logs::{Story, Told};
use super::wishes::Wishes;
use crate::engine::{Error, Result, Seen, Stop, Usage};

/// A point in time, for timers and for people.
pub(super) type Now = (Instant, Timestamp);

/// One simulated instance.
pub(super) struct Entry {
    pub(super) uid: String,
    pub(super) addresses: Vec<Assigned>,
    pub(super) usage: Usage,
    pub(super) story: Story,
    containers: Vec<String>,
    phase: Phase,
    start_delay: Duration,
    /// Whether it ever was set up: from then on it shows its addresses.
    was_set_up: bool,
}

enum Phase {
    /// Nobody has asked for it to run yet.
    New,
    Starting {
        since: Instant,
    },
    Running,
    Troubled(Trouble),
    Stopping {
        since: Instant,
    },
    /// Remembered until its object is gone, so that a stop that is asked for twice takes its time once.
    Stopped,
}

impl Entry {
    /// An instance that was running before, or a new one.
    pub(super) fn new(uid: String, addresses: Vec<Assigned>, is_running: bool, (_, time): Now) -> Self {
        let mut story = Story::default();
        if is_running {
            story.tell(time, Told::FoundRunning);
        }
        Self {
            uid,
            was_set_up: !addresses.is_empty(),
            addresses,
            usage: Usage::default(),
            story,
            containers: Vec::new(),
            phase: if is_running { Phase::Running } else { Phase::New },
            start_delay: Duration::ZERO,
        }
    }

    /// Does what the instance is to do now.
    pub(super) fn ensure(&mut self, wishes: Wishes, (now, time): Now) -> Seen {
        let Wishes { start_delay, trouble, usage, containers } = wishes;
        (self.start_delay, self.usage, self.containers) = (start_delay, usage, containers);
        match (&self.phase, trouble) {
            (Phase::Stopping { .. } | Phase::Stopped, _) => {}
            (Phase::Troubled(known), Some(trouble)) if *known == trouble => {}
            (_, Some(trouble)) => {
                self.story.tell(time, Told::of(&trouble));
                self.phase = Phase::Troubled(trouble);
            }
            (Phase::New | Phase::Troubled(_), None) => {
                self.story.tell(time, Told::Starting);
                self.phase = Phase::Starting { since: now };
            }
            (Phase::Starting { .. } | Phase::Running, None) => {}
        }
        if let Phase::Starting { since } = self.phase
            && now.duration_since(since) >= self.start_delay
        {
            self.story.tell(time, Told::Running);
            self.phase = Phase::Running;
        }
        self.was_set_up |= matches!(
            self.phase,
            Phase::Starting { .. } | Phase::Running | Phase::Troubled(Trouble::Crashing { .. })
        );
        self.seen(now)
    }

    /// Stops the instance, which takes so long.
    pub(super) fn stop(&mut self, delay: Duration, (now, time): Now) -> Stop {
        let since = match self.phase {
            Phase::Stopped => return Stop::Gone,
            Phase::Stopping { since } => since,
            Phase::New | Phase::Starting { .. } | Phase::Running | Phase::Troubled(_) => {
                self.story.tell(time, Told::Stopping);
                self.phase = Phase::Stopping { since: now };
                now
            }
        };
        let rest = delay.saturating_sub(now.duration_since(since));
        if rest.is_zero() {
            self.story.tell(time, Told::Stopped);
            self.phase = Phase::Stopped;
            return Stop::Gone;
        }
        Stop::Stopping { again: Some(rest) }
    }

    /// How the instance is.
    pub(super) fn seen(&self, now: Instant) -> Seen {
        let again = match self.phase {
            Phase::Starting { since } => Some(self.start_delay.saturating_sub(now.duration_since(since))),
            _ => None,
        };
        let state = match &self.phase {
            Phase::New => State::Preparing,
            Phase::Starting { .. } => State::Starting,
            Phase::Running => State::Running,
            Phase::Troubled(trouble) => State::Trouble(trouble.clone()),
            Phase::Stopping { .. } => State::Stopping,
            Phase::Stopped => State::Stopped,
        };
        // One whose image could never be had was never set up.
        let shown = if self.was_set_up { &self.addresses[..] } else { &[] };
        let addresses = shown.iter().map(Assigned::assignment).collect();
        Seen { observation: Observation { state, addresses }, again }
    }

    /// Whether it runs.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// Whether it was asked to stop.
    pub(super) fn is_on_its_way_out(&self) -> bool {
        matches!(self.phase, Phase::Stopping { .. } | Phase::Stopped)
    }

    /// Whether nothing is left of it.
    pub(super) fn has_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped)
    }

    /// How many lines it has ever told.
    pub(super) fn lines(&self) -> u64 {
        self.story.end()
    }

    /// Whether it has that container. Before it was first looked at, nobody can tell.
    pub(super) fn check_container(&self, container: Option<&str>) -> Result<()> {
        match container {
            Some(name) if !self.containers.is_empty() && !self.containers.iter().any(|have| have == name) => {
                Err(Error::UnknownContainer(name.to_owned()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(start_delay: u64, trouble: Option<Trouble>) -> Wishes {
        Wishes {
            start_delay: Duration::from_secs(start_delay),
            trouble,
            usage: Usage::default(),
            containers: Vec::new(),
        }
    }

    fn after(start: Instant, seconds: u64) -> Now {
        (start + Duration::from_secs(seconds), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn it_starts_in_its_time_breaks_heals_and_stops() {
        let start = Instant::now();
        let crash = || Some(Trouble::Crashing { exit_code: Some(1) });
        let mut entry = Entry::new("uid".to_owned(), Vec::new(), false, after(start, 0));
        let seen = entry.ensure(wishes(5, None), after(start, 0));
        assert_eq!((seen.observation.state, seen.again), (State::Starting, Some(Duration::from_secs(5))));
        let seen = entry.ensure(wishes(5, None), after(start, 3));
        assert_eq!((seen.observation.state, seen.again), (State::Starting, Some(Duration::from_secs(2))));
        let seen = entry.ensure(wishes(5, None), after(start, 5));
        assert_eq!((seen.observation.state, seen.again), (State::Running, None));
        let seen = entry.ensure(wishes(5, crash()), after(start, 6));
        assert_eq!(seen.observation.state, State::Trouble(crash().unwrap()));
        let seen = entry.ensure(wishes(5, None), after(start, 7));
        assert_eq!((seen.observation.state, seen.again), (State::Starting, Some(Duration::from_secs(5))));
        let delay = Duration::from_secs(4);
        assert_eq!(entry.stop(delay, after(start, 8)), Stop::Stopping { again: Some(delay) });
        assert_eq!(entry.stop(delay, after(start, 12)), Stop::Gone);
        assert_eq!(entry.stop(delay, after(start, 12)), Stop::Gone, "it takes its time once");
    }

    #[test]
    fn one_that_ran_before_runs_on() {
        let start = Instant::now();
        let mut entry = Entry::new("uid".to_owned(), Vec::new(), true, after(start, 0));
        let seen = entry.ensure(wishes(60, None), after(start, 0));
        assert_eq!((seen.observation.state, seen.again), (State::Running, None));
    }
}
