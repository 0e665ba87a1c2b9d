//! Instances of one project whose claims were denied, and whose turn it is to claim again.
//!
//! # Guarantees
//!
//! - After a denial an instance waits: 15 s, doubling to 300 s, or until a claim of the project is released.
//! - Of those whose wait is over one at a time claims, the oldest first. Its turn ends when its claim is answered, when it cannot
//!   be asked for, and when the instance is gone. One that does not take its turn within [`FALLBACK`] is passed over.
//! - A release that is seen between a claim and its denial counts after the denial: whether the ledger knew of it nobody can tell.

use std::collections::BTreeMap;
use std::time::Duration;

use compute_api::k8s::Timestamp;
use compute_runtime::Key;
use tokio::time::Instant;

/// How long an instance that waits for another's turn sleeps if nobody wakes it, and how long one may take to come when it is its turn.
const FALLBACK: Duration = Duration::from_secs(15);

/// The denied of one project.
#[derive(Default)]
pub(super) struct Line {
    denied: BTreeMap<Key, Denied>,
    turn: Option<Key>,
    /// Whose turn it is, if it comes, and since when.
    called: Option<(Key, Instant)>,
    /// Releases so far.
    releases: u64,
    /// How many there had been when each claim was made that is not answered.
    asked: BTreeMap<Key, u64>,
}

struct Denied {
    /// When the instance was made.
    created: Timestamp,
    denials: u32,
    due: Instant,
    /// Uid of the claim that was denied last.
    claim: Option<String>,
}

impl Line {
    /// A claim of an instance was denied. `pause` says how long to wait after so many denials.
    pub(super) fn denied(
        &mut self,
        key: &Key,
        created: Timestamp,
        claim: Option<&str>,
        now: Instant,
        pause: impl FnOnce(u32) -> Duration,
    ) {
        let denied =
            self.denied.entry(key.clone()).or_insert(Denied { created, denials: 0, due: now, claim: None });
        // A claim that could not be deleted is seen again, and was denied once.
        if claim.is_none() || denied.claim.as_deref() != claim {
            denied.denials += 1;
            let pause = pause(denied.denials);
            let is_old = *self.asked.entry(key.clone()).or_insert(self.releases) != self.releases;
            denied.due = if is_old { now } else { now + pause };
            denied.claim = claim.map(str::to_owned);
        }
    }

    /// An instance was denied before this process began: it is due, in its turn.
    pub(super) fn was_denied(&mut self, key: &Key, created: Timestamp, now: Instant) {
        self.denied.entry(key.clone()).or_insert(Denied { created, denials: 0, due: now, claim: None });
    }

    /// Takes the turn, if the instance may claim now; else how long until it should ask again.
    pub(super) fn take_turn(&mut self, key: &Key, now: Instant) -> Result<(), Duration> {
        let Some(own) = self.denied.get(key) else {
            self.asked.insert(key.clone(), self.releases);
            return Ok(());
        };
        if let Some(wait) = own.due.checked_duration_since(now).filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        if self.turn.as_ref().is_some_and(|turn| turn != key) || self.next(now).as_ref() != Some(key) {
            return Err(FALLBACK);
        }
        self.turn = Some(key.clone());
        self.called = None;
        self.asked.insert(key.clone(), self.releases);
        Ok(())
    }

    /// How long until an instance's wait is over, if it has one.
    pub(super) fn wait(&self, key: &Key, now: Instant) -> Option<Duration> {
        self.denied.get(key).map(|denied| denied.due.saturating_duration_since(now))
    }

    /// An instance has a claim that is not answered yet: if nobody has the turn, it is that one's.
    pub(super) fn claims(&mut self, key: &Key) {
        if self.turn.is_none() && self.denied.contains_key(key) {
            self.turn = Some(key.clone());
        }
    }

    /// An instance has got its answer, or cannot get one; it does not stand in the way of others for `pause`, unless a claim was released
    /// since it claimed. Who is to be woken.
    pub(super) fn answered(&mut self, key: &Key, now: Instant, pause: Duration) -> Option<Key> {
        let is_old = self.asked.remove(key).is_some_and(|releases| releases != self.releases);
        let denied = self.denied.get_mut(key)?;
        denied.due = if is_old { denied.due.min(now) } else { denied.due.max(now + pause) };
        self.end_turn(key, now)
    }

    /// An instance does not wait any more: its claim is granted, or it is gone. Who is to be woken.
    pub(super) fn leave(&mut self, key: &Key, now: Instant) -> Option<Key> {
        self.asked.remove(key);
        self.denied.remove(key)?;
        self.end_turn(key, now)
    }

    fn end_turn(&mut self, key: &Key, now: Instant) -> Option<Key> {
        if self.turn.as_ref() == Some(key) {
            self.turn = None;
        }
        if self.turn.is_some() { None } else { self.next(now) }
    }

    /// A claim of the project was released: everybody's wait is over. Who is to be woken.
    pub(super) fn released(&mut self, now: Instant) -> Option<Key> {
        self.releases += 1;
        for denied in self.denied.values_mut() {
            denied.due = denied.due.min(now);
        }
        if self.turn.is_some() { None } else { self.next(now) }
    }

    /// The oldest whose wait is over. One that was called and has not come waits again: it must not keep everybody waiting.
    fn next(&mut self, now: Instant) -> Option<Key> {
        if let Some((missing, _)) = self.called.take_if(|(_, since)| now.duration_since(*since) >= FALLBACK)
            && let Some(denied) = self.denied.get_mut(&missing)
        {
            denied.due = denied.due.max(now + FALLBACK);
        }
        let due = self.denied.iter().filter(|(_, denied)| denied.due <= now);
        let next = due.min_by_key(|(key, denied)| (denied.created, *key)).map(|(key, _)| key.clone());
        if self.called.as_ref().map(|(key, _)| key) != next.as_ref() {
            self.called = next.clone().map(|key| (key, now));
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::keys;
    use super::*;

    const PAUSE: Duration = Duration::from_secs(15);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn one_at_a_time_and_the_oldest_first() {
        let (old, new, now) = (keys::key("ns", "z"), keys::key("ns", "a"), Instant::now());
        let mut line = Line::default();
        assert_eq!(line.take_turn(&new, now), Ok(()), "who was never denied may claim");
        line.denied(&new, at(2), Some("c1"), now, |_| PAUSE);
        line.denied(&old, at(1), Some("c2"), now, |_| PAUSE);
        assert_eq!(line.take_turn(&old, now), Err(PAUSE));
        let later = now + PAUSE;
        assert_eq!(line.take_turn(&new, later), Err(FALLBACK), "the older comes first");
        assert_eq!(line.take_turn(&old, later), Ok(()));
        assert_eq!(line.take_turn(&old, later), Ok(()), "it keeps its turn");
        assert_eq!(line.take_turn(&new, later), Err(FALLBACK));
        line.denied(&old, at(1), Some("c3"), later, |denials| PAUSE * denials);
        assert_eq!(line.answered(&old, later, Duration::ZERO), Some(new.clone()));
        assert_eq!(line.take_turn(&new, later), Ok(()));
        assert_eq!(line.leave(&new, later), None, "nobody else is due");
        assert_eq!(line.wait(&old, later), Some(PAUSE * 2));
        assert_eq!(line.released(later), Some(old.clone()));
        assert_eq!(line.take_turn(&old, later), Ok(()));
        assert_eq!(line.leave(&old, later), None);
    }

    #[test]
    fn who_cannot_be_answered_does_not_stand_in_the_way() {
        let (old, new, now) = (keys::key("ns", "z"), keys::key("ns", "a"), Instant::now());
        let mut line = Line::default();
        line.was_denied(&old, at(1), now);
        line.was_denied(&new, at(2), now);
        line.claims(&old);
        assert_eq!(line.take_turn(&new, now), Err(FALLBACK));
        assert_eq!(line.answered(&old, now, PAUSE), Some(new.clone()));
        assert_eq!(line.take_turn(&new, now), Ok(()));
        assert_eq!(line.take_turn(&old, now), Err(PAUSE));
        assert_eq!(line.leave(&new, now + PAUSE), Some(old));
    }

    #[test]
    fn who_does_not_come_is_passed_over() {
        let (old, new, now) = (keys::key("ns", "z"), keys::key("ns", "a"), Instant::now());
        let mut line = Line::default();
        line.was_denied(&old, at(1), now);
        line.was_denied(&new, at(2), now);
        assert_eq!(line.take_turn(&new, now), Err(FALLBACK), "the older comes first");
        assert_eq!(line.take_turn(&new, now + FALLBACK), Ok(()), "if it comes");
        assert_eq!(line.take_turn(&old, now + FALLBACK), Err(FALLBACK));
        assert_eq!(line.leave(&new, now + FALLBACK * 2), Some(old.clone()));
        assert_eq!(line.take_turn(&old, now + FALLBACK * 2), Ok(()));
    }

    #[test]
    fn a_release_between_a_claim_and_its_denial_counts() {
        let (key, now) = (keys::key("ns", "a"), Instant::now());
        let mut line = Line::default();
        let deny = |line: &mut Line, claim: &str| line.denied(&key, at(1), Some(claim), now, |_| PAUSE);
        // Before the denial is read.
        assert_eq!(line.take_turn(&key, now), Ok(()));
        line.released(now);
        deny(&mut line, "c1");
        assert_eq!(line.wait(&key, now), Some(Duration::ZERO));
        assert_eq!(line.answered(&key, now, PAUSE), Some(key.clone()));
        assert_eq!(line.take_turn(&key, now), Ok(()), "once");
        deny(&mut line, "c2");
        assert_eq!(line.wait(&key, now), Some(PAUSE));
        // While the denied claim is being deleted.
        line.released(now);
        assert_eq!(line.answered(&key, now, PAUSE), Some(key.clone()));
        assert_eq!(line.take_turn(&key, now), Ok(()));
        deny(&mut line, "c3");
        assert_eq!(line.answered(&key, now, PAUSE), None);
        assert_eq!(line.take_turn(&key, now), Err(PAUSE));
    }

    #[test]
    fn a_denial_counts_once() {
        let (key, now) = (keys::key("ns", "a"), Instant::now());
        let mut line = Line::default();
        line.denied(&key, at(1), Some("c"), now, |denials| PAUSE * denials);
        line.denied(&key, at(1), Some("c"), now + PAUSE, |denials| PAUSE * denials);
        assert_eq!(line.wait(&key, now), Some(PAUSE));
    }
}
