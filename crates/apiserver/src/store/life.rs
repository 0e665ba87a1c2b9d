//! Where a server's revisions begin.
//!
//! A server hands out more revisions than it keeps: those of templates are in memory alone, and those that were written after a
//! backup are lost with a restore. A client that comes back with one of them must hear that it is too old, not be given the
//! changes of another history. So each life of a server begins above every revision of its former lives: at the clock, in
//! microseconds, which no server reaches by counting (it makes fewer than a million changes a second).

use jiff::Timestamp;

/// How far a life begins above the newest revision that is known of the one before, should the clock have been set back: more
/// than there are objects in templates.
const STEP: u64 = 1 << 20;
/// The same for a restore: about two weeks, for what has been lost.
const LEAP: u64 = 1 << 40;

/// The first revision of a life in memory.
pub fn first(now: Timestamp) -> u64 {
    u64::try_from(now.as_microsecond()).unwrap_or(0)
}

/// The first revision of a life after one that is known to have reached `newest`.
pub(super) fn after(newest: u64, now: Timestamp) -> u64 {
    first(now).max(newest.saturating_add(STEP))
}

/// The first revision after a restore of a backup that was made at `newest`.
pub(super) fn after_restore(newest: u64, now: Timestamp) -> u64 {
    match first(now) {
        now if now > newest => now,
        _ => newest.saturating_add(LEAP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_begins_above_the_one_before() {
        let now = Timestamp::from_microsecond(1_000_000_000).unwrap();
        assert_eq!(after(5, now), 1_000_000_000);
        assert_eq!(after_restore(5, now), 1_000_000_000);
        // The clock has been set back.
        assert_eq!(after(2_000_000_000, now), 2_000_000_000 + STEP);
        assert_eq!(after_restore(2_000_000_000, now), 2_000_000_000 + LEAP);
        assert_eq!(after(u64::MAX, now), u64::MAX);
    }
}
