//! The log of a simulated instance: what became of it, and that it is simulated.

use std::collections::VecDeque;

use compute_api::k8s::Timestamp;
use compute_core::provider::Trouble;
use compute_runtime::cache::ObjectName;
use futures::StreamExt as _;
use futures::stream;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::Simulated;
use crate::engine::{Error, Id, LogLine, LogQuery, Logs, Result};

/// Lines that are kept of an instance; more than any but one that is broken and mended all the time has.
const KEPT: usize = 32;

/// Something that became of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Starting,
    Running,
    FoundRunning,
    ImageUnavailable,
    Crashed,
    Misconfigured,
    Unready,
    Stopping,
    Stopped,
}

impl Told {
    pub(super) fn of(trouble: &Trouble) -> Self {
        match trouble {
            Trouble::ImageUnavailable { .. } => Self::ImageUnavailable,
            Trouble::Crashing { .. } => Self::Crashed,
            Trouble::Configuration(_) => Self::Misconfigured,
            Trouble::Network(_) | Trouble::Provisioning(_) => Self::Unready,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Starting => "simulated: starting; nothing really runs here",
            Self::Running => "simulated: running",
            Self::FoundRunning => "simulated: found running; nothing really runs here",
            Self::ImageUnavailable => "simulated: the image cannot be fetched",
            Self::Crashed => "simulated: ended with exit code 1",
            Self::Misconfigured => "simulated: cannot start as it is configured",
            Self::Unready => "simulated: not set up",
            Self::Stopping => "simulated: stopping",
            Self::Stopped => "simulated: stopped",
        }
    }
}

/// What became of an instance, the newest lines.
#[derive(Default)]
pub(super) struct Story {
    /// How many lines came before those that are kept.
    before: u64,
    lines: VecDeque<(Timestamp, Told)>,
}

impl Story {
    pub(super) fn tell(&mut self, at: Timestamp, told: Told) {
        if self.lines.len() == KEPT {
            self.lines.pop_front();
            self.before += 1;
        }
        self.lines.push_back((at, told));
    }

    /// How many lines there ever were.
    pub(super) fn end(&self) -> u64 {
        self.before + self.lines.len() as u64
    }

    /// The lines from a number on, as far as they are kept.
    fn from(&self, number: u64) -> Vec<LogLine> {
        let skip = usize::try_from(number.saturating_sub(self.before)).unwrap_or(usize::MAX);
        let line = |(at, told): &(Timestamp, Told)| LogLine { at: *at, text: told.text().to_owned() };
        self.lines.iter().skip(skip).map(line).collect()
    }
}

/// The log of an instance.
pub(super) fn open(engine: &Simulated, id: &Id, query: &LogQuery) -> Result<Logs> {
    // Before what is there is read, so that no line falls in between.
    let wake_ups = engine.0.told.subscribe();
    let (mut lines, next) = engine.look(id, |entry| {
        entry.check_container(query.container.as_deref())?;
        Ok((entry.story.from(0), entry.story.end()))
    })?;
    lines.retain(|line| query.since.is_none_or(|since| line.at >= since));
    let skip = query.tail.map_or(0, |tail| lines.len().saturating_sub(tail));
    let there = stream::iter(lines.into_iter().skip(skip).map(Ok));
    if !query.follow {
        return Ok(there.boxed());
    }
    let following = Following { engine: engine.clone(), id: id.clone(), next, wake_ups };
    let coming = stream::unfold(following, |mut following| async move {
        let lines = following.more().await?;
        Some((stream::iter(lines.into_iter().map(Ok::<_, Error>)), following))
    });
    Ok(there.chain(coming.flatten()).boxed())
}

/// Somebody who follows a log.
struct Following {
    engine: Simulated,
    id: Id,
    /// Number of the next line.
    next: u64,
    wake_ups: broadcast::Receiver<ObjectName>,
}

impl Following {
    /// The lines that have come, and whether they were the last. None if nothing is left of the instance.
    fn look(&mut self) -> Option<(Vec<LogLine>, bool)> {
        let state = self.engine.0.state.lock();
        let entry = state.entries.get(&self.id.name).filter(|entry| entry.uid == self.id.uid)?;
        let lines = entry.story.from(self.next);
        self.next = entry.story.end();
        Some((lines, entry.has_stopped()))
    }

    /// The next lines; None when there will be no more.
    async fn more(&mut self) -> Option<Vec<LogLine>> {
        loop {
            let (lines, has_stopped) = self.look()?;
            if !lines.is_empty() {
                return Some(lines);
            }
            if has_stopped {
                return None;
            }
            loop {
                match self.wake_ups.recv().await {
                    Ok(name) if name != self.id.name => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return None,
                }
            }
        }
    }
}
