//! The queue as a value: keys, timers and lanes, as a function of the time that is passed in. No task, no lock.
//!
//! A key is in one of three phases (see [`Phase`]); one that is in none has no entry. So keys with nothing to do cost nothing, and
//! nothing is done per key but by what happens to it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::{Key, Limits};
use crate::clock::Random;
use crate::plane::PlaneId;

/// An event for a key that waits after a failure brings it forward, but no nearer to the failure than this (or its backoff, if that is
/// shorter): a pass that fails after having written something must not start itself over and over.
const EAGER: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct State {
    entries: BTreeMap<Key, Entry>,
    timers: BTreeSet<(Instant, Key)>,
    planes: BTreeMap<PlaneId, PlaneState>,
    /// Planes that answer and have due keys, in turn.
    ready: VecDeque<PlaneId>,
    /// Planes that do not answer, have due keys and no pass in hand, in turn.
    slow: VecDeque<PlaneId>,
    /// When passes in hand will have taken too long, soonest first. Those that have ended are still here until then.
    stalls: VecDeque<(Instant, Key, u64)>,
    /// Passes in hand in each lane.
    busy: [usize; 2],
    due: usize,
    passes: u64,
}

struct Entry {
    phase: Phase,
    failures: u32,
    /// Until when an event does not make it due, after a failure.
    not_before: Option<Instant>,
    /// When it becomes due by itself. Also in `timers`.
    timer: Option<Instant>,
    /// Since when what its passes would write is held back.
    held: Option<Instant>,
}

enum Phase {
    /// Not due; its timer is set.
    Waiting,
    /// In its plane's line.
    Due,
    /// A worker has it.
    InHand(Pass),
}

struct Pass {
    number: u64,
    began: Instant,
    lane: Lane,
    /// It must run once more when this pass has ended.
    again: bool,
    /// It holds something back.
    holds: bool,
    /// Its plane was removed: what becomes of this pass is of no interest.
    abandoned: bool,
}

/// Passes over planes that answer share the workers; a plane that does not gets one pass at a time, beside them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    Ready,
    Slow,
}

#[derive(Default)]
struct PlaneState {
    line: VecDeque<Key>,
    in_hand: usize,
    /// Its latest pass took too long.
    slow: bool,
    /// It stands in `ready` or `slow`.
    listed: bool,
}

/// How a pass ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Done,
    After(Duration),
    Failed,
}

impl State {
    /// Keys that are due.
    pub(super) fn due(&self) -> usize {
        self.due
    }

    /// How often a key has failed in a row.
    pub(super) fn failures(&self, key: &Key) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.failures)
    }

    /// Whether it remembers nothing.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let keys = self.entries.is_empty() && self.timers.is_empty() && self.due == 0;
        let planes = self.planes.values().all(|plane| plane.slow && plane.line.is_empty());
        keys && planes && self.busy == [0, 0]
    }

    /// Makes a key due.
    pub(super) fn add(&mut self, key: Key, now: Instant) {
        let Some(entry) = self.entries.get_mut(&key) else {
            let entry =
                Entry { phase: Phase::Waiting, failures: 0, not_before: None, timer: None, held: None };
            self.entries.insert(key.clone(), entry);
            return self.make_due(key);
        };
        match &mut entry.phase {
            Phase::Waiting => match entry.not_before.filter(|at| *at > now) {
                Some(at) => self.set_timer(key, at),
                None => self.make_due(key),
            },
            Phase::Due => {}
            Phase::InHand(pass) => pass.again = true,
        }
    }

    /// Makes a key due at a time, if nothing does so sooner.
    pub(super) fn add_at(&mut self, key: Key, at: Instant, now: Instant) {
        if at <= now {
            return self.add(key, now);
        }
        let waiting = Entry { phase: Phase::Waiting, failures: 0, not_before: None, timer: None, held: None };
        let entry = self.entries.entry(key.clone()).or_insert(waiting);
        if !matches!(entry.phase, Phase::Due) {
            self.set_timer(key, at);
        }
    }

    /// Whether the pass in hand holds back what it would write. If so, the key is due again when it must not any more.
    pub(super) fn hold(&mut self, key: &Key, moment: Duration, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let Phase::InHand(pass) = &mut entry.phase else { return false };
        let until = *entry.held.get_or_insert(now) + moment;
        pass.holds = until > now;
        if pass.holds {
            self.set_timer(key.clone(), until);
        }
        until > now
    }

    /// The next key to work on.
    pub(super) fn take(&mut self, limits: &Limits, now: Instant) -> Option<Key> {
        self.fire(now);
        self.notice_stalls(limits, now);
        let (key, lane) = self.take_ready(limits).or_else(|| self.take_slow(limits))?;
        self.due -= 1;
        self.passes += 1;
        self.busy[lane as usize] += 1;
        let number = self.passes;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.not_before = None;
            entry.phase = Phase::InHand(Pass {
                number,
                began: now,
                lane,
                again: false,
                holds: false,
                abandoned: false,
            });
        }
        Some(key)
    }

    /// The pass of a key that was taken begins.
    pub(super) fn begins(&mut self, key: &Key, stalled: Duration, now: Instant) {
        let Some(Entry { phase: Phase::InHand(pass), .. }) = self.entries.get_mut(key) else { return };
        (pass.began, pass.again) = (now, false);
        if pass.lane == Lane::Ready {
            self.stalls.push_back((now + stalled, key.clone(), pass.number));
        }
    }

    fn take_ready(&mut self, limits: &Limits) -> Option<(Key, Lane)> {
        while self.busy[Lane::Ready as usize] < limits.concurrency {
            let id = self.ready.pop_front()?;
            if let Some(key) = self.next_in_line(&id, false) {
                return Some((key, Lane::Ready));
            }
        }
        None
    }

    fn take_slow(&mut self, limits: &Limits) -> Option<(Key, Lane)> {
        while self.busy[Lane::Slow as usize] < limits.slow_planes {
            let id = self.slow.pop_front()?;
            if let Some(key) = self.next_in_line(&id, true) {
                return Some((key, Lane::Slow));
            }
        }
        None
    }

    /// The next key of a plane that had its turn in a lane, if it still belongs there.
    fn next_in_line(&mut self, id: &PlaneId, slow: bool) -> Option<Key> {
        let plane = self.planes.get_mut(id)?;
        plane.listed = false;
        let key = if plane.slow == slow { plane.line.pop_front() } else { None };
        plane.in_hand += usize::from(key.is_some());
        self.list(id);
        key
    }

    /// What became of a pass.
    pub(super) fn finish(
        &mut self,
        key: Key,
        outcome: Outcome,
        delay: impl FnOnce(u32) -> Duration,
        limits: &Limits,
        now: Instant,
    ) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let Phase::InHand(pass) = std::mem::replace(&mut entry.phase, Phase::Waiting) else { return };
        let outcome = if pass.abandoned { Outcome::Done } else { outcome };
        let failed = matches!(outcome, Outcome::Failed);
        entry.held = entry.held.filter(|_| pass.holds);
        entry.failures = if failed { entry.failures.saturating_add(1) } else { 0 };
        let failures = entry.failures;
        self.pass_ended(&key, &pass, limits, now);
        match outcome {
            Outcome::Done | Outcome::After(_) if pass.again => self.make_due(key),
            Outcome::Done => self.rest(&key),
            Outcome::After(delay) => self.add_at(key, now + delay, now),
            Outcome::Failed => {
                let delay = delay(failures);
                let not_before = now + delay.min(EAGER);
                if let Some(entry) = self.entries.get_mut(&key) {
                    entry.not_before = Some(not_before);
                }
                self.set_timer(key, if pass.again { not_before } else { now + delay });
            }
        }
    }

    fn pass_ended(&mut self, key: &Key, pass: &Pass, limits: &Limits, now: Instant) {
        self.busy[pass.lane as usize] -= 1;
        if let Some(plane) = self.planes.get_mut(&key.plane) {
            plane.in_hand -= 1;
            plane.slow = plane.slow && now - pass.began >= limits.stalled;
        }
        self.list(&key.plane);
    }

    /// Forgets a plane's keys and timers. Passes in hand end by themselves.
    pub(super) fn remove_plane(&mut self, id: &PlaneId) {
        let first = Key { plane: id.clone(), namespace: "".into(), name: "".into() };
        let keys: Vec<Key> = self
            .entries
            .range(first..)
            .map(|(key, _)| key)
            .take_while(|key| key.plane == *id)
            .cloned()
            .collect();
        for key in keys {
            self.clear_timer(&key);
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            if let Phase::InHand(pass) = &mut entry.phase {
                (pass.again, pass.abandoned) = (false, true);
            } else {
                self.due -= usize::from(matches!(entry.phase, Phase::Due));
                self.entries.remove(&key);
            }
        }
        self.ready.retain(|listed| listed != id);
        self.slow.retain(|listed| listed != id);
        if let Some(plane) = self.planes.get_mut(id) {
            plane.line.clear();
            (plane.slow, plane.listed) = (false, false);
        }
        self.list(id);
    }

    /// When `take` may give something that it does not give now, if nothing else happens before.
    pub(super) fn wakes_at(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        // Only if keys wait for a worker does it matter that one has stalled.
        let stall = self.stalls.front().filter(|_| !self.ready.is_empty()).map(|(at, _, _)| *at);
        timer.into_iter().chain(stall).min()
    }

    fn fire(&mut self, now: Instant) {
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.timers.pop_first() else { return };
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            entry.timer = None;
            match &mut entry.phase {
                Phase::Waiting => self.make_due(key),
                Phase::Due => {}
                Phase::InHand(pass) => pass.again = true,
            }
        }
    }

    /// Gives the workers of passes that take too long to others.
    fn notice_stalls(&mut self, limits: &Limits, now: Instant) {
        while self.stalls.front().is_some_and(|(at, _, _)| *at <= now) {
            let Some((_, key, number)) = self.stalls.pop_front() else { return };
            let Some(Entry { phase: Phase::InHand(pass), .. }) = self.entries.get_mut(&key) else { continue };
            if pass.number != number || now - pass.began < limits.stalled {
                continue;
            }
            pass.lane = Lane::Slow;
            self.busy[Lane::Ready as usize] -= 1;
            self.busy[Lane::Slow as usize] += 1;
            if let Some(plane) = self.planes.get_mut(&key.plane) {
                plane.slow = true;
            }
        }
    }

    fn make_due(&mut self, key: Key) {
        self.clear_timer(&key);
        let Some(entry) = self.entries.get_mut(&key) else { return };
        entry.phase = Phase::Due;
        entry.not_before = None;
        self.due += 1;
        let id = key.plane.clone();
        self.planes.entry(id.clone()).or_default().line.push_back(key);
        self.list(&id);
    }

    /// Puts a plane where it belongs: at the end of a lane, or nowhere.
    fn list(&mut self, id: &PlaneId) {
        let Some(plane) = self.planes.get_mut(id) else { return };
        if plane.listed {
            return;
        }
        if plane.line.is_empty() {
            if plane.in_hand == 0 && !plane.slow {
                self.planes.remove(id);
            }
        } else if !plane.slow {
            plane.listed = true;
            self.ready.push_back(id.clone());
        } else if plane.in_hand == 0 {
            plane.listed = true;
            self.slow.push_back(id.clone());
        }
    }

    /// Keeps the entry only if it has a timer.
    fn rest(&mut self, key: &Key) {
        if self.entries.get(key).is_some_and(|entry| entry.timer.is_none()) {
            self.entries.remove(key);
        }
    }

    /// The soonest of several timers counts.
    fn set_timer(&mut self, key: Key, at: Instant) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if entry.timer.is_some_and(|timer| timer <= at) {
            return;
        }
        let before = entry.timer.replace(at);
        if let Some(before) = before {
            self.timers.remove(&(before, key.clone()));
        }
        self.timers.insert((at, key));
    }

    fn clear_timer(&mut self, key: &Key) {
        if let Some(timer) = self.entries.get_mut(key).and_then(|entry| entry.timer.take()) {
            self.timers.remove(&(timer, key.clone()));
        }
    }
}

/// How long a key waits after so many failures in a row.
pub(super) fn backoff<'a>(limits: &'a Limits, random: &'a Random) -> impl FnOnce(u32) -> Duration + 'a {
    |failures| limits.backoff.after(failures, random)
}
