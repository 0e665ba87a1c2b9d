//! Times in few words.

use compute_api::k8s::Timestamp;

/// Seconds from one time to another; none if it is the other way round.
fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_secs().max(0)
}

/// How long something has been, for a table: `3m`, `2h`, `5d`.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    short(seconds(since, now))
}

/// A time in one unit, or two where the first is small.
pub(crate) fn short(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..600 if seconds % 60 != 0 => format!("{}m{}s", seconds / 60, seconds % 60),
        60..3600 => format!("{}m", seconds / 60),
        3600..36_000 if (seconds % 3600) / 60 != 0 => {
            format!("{}h{}m", seconds / 3600, (seconds % 3600) / 60)
        }
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// When something was, for a sentence: `3 minutes ago`.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    match seconds(at, now) {
        ..5 => "just now".to_owned(),
        seconds => format!("{} ago", long(seconds)),
    }
}

/// Since when something is, for a sentence: `for 3 minutes`.
pub(crate) fn lasting(since: Timestamp, now: Timestamp) -> String {
    format!("for {}", long(seconds(since, now).max(1)))
}

fn long(seconds: i64) -> String {
    let (number, unit) = match seconds {
        ..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    super::count(number, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_or_two_units() {
        let texts = [0, 59, 60, 61, 600, 3599, 3600, 3661, 36_000, 172_800].map(short);
        assert_eq!(texts, ["0s", "59s", "1m", "1m1s", "10m", "59m", "1h", "1h1m", "10h", "2d"]);
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(ago(at(0), at(180)), "3 minutes ago");
        assert_eq!(ago(at(0), at(2)), "just now");
        assert_eq!(ago(at(9), at(2)), "just now");
        assert_eq!(lasting(at(0), at(3600)), "for 1 hour");
    }
}
