//! How long ago something was, in the few characters of a table cell.
//!
//! The coarser the age, the fewer its units: seconds up to two minutes, then minutes with seconds, minutes,
//! hours with minutes, hours, days with hours, days, years with days, and years. These steps are those that
//! every `kubectl` user knows.

use jiff::Timestamp;
use serde_json::Value;

/// Shown for a time that is not known.
pub(super) const UNKNOWN: &str = "<unknown>";
/// Shown for a time that is not one, or that lies in the future.
const INVALID: &str = "<invalid>";

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// A span of whole seconds as text; spans below zero are invalid, but for the second that clocks may differ
/// by.
pub fn human(seconds: i64) -> String {
    /// Below `under` seconds: a count of `unit`, followed by the rest as a count of `rest` when that is not
    /// zero.
    struct Step {
        under: i64,
        unit: (i64, char),
        rest: Option<(i64, char)>,
    }
    const STEPS: [Step; 8] = [
        Step { under: 2 * MINUTE, unit: (1, 's'), rest: None },
        Step { under: 10 * MINUTE, unit: (MINUTE, 'm'), rest: Some((1, 's')) },
        Step { under: 3 * HOUR, unit: (MINUTE, 'm'), rest: None },
        Step { under: 8 * HOUR, unit: (HOUR, 'h'), rest: Some((MINUTE, 'm')) },
        Step { under: 2 * DAY, unit: (HOUR, 'h'), rest: None },
        Step { under: 8 * DAY, unit: (DAY, 'd'), rest: Some((HOUR, 'h')) },
        Step { under: 2 * YEAR, unit: (DAY, 'd'), rest: None },
        Step { under: 8 * YEAR, unit: (YEAR, 'y'), rest: Some((DAY, 'd')) },
    ];
    const LAST: Step = Step { under: i64::MAX, unit: (YEAR, 'y'), rest: None };

    if seconds < -1 {
        return INVALID.to_owned();
    }
    let seconds = seconds.max(0);
    let step = STEPS.iter().find(|step| seconds < step.under).unwrap_or(&LAST);
    let (size, letter) = step.unit;
    let whole = format!("{}{letter}", seconds / size);
    match step.rest.map(|(part, letter)| (seconds % size / part, letter)) {
        Some((rest, letter)) if rest != 0 => format!("{whole}{rest}{letter}"),
        _ => whole,
    }
}

/// The age of a time as it stands in an object; absent, empty and `null` times are unknown.
pub(super) fn since(value: &Value, now: Timestamp) -> String {
    match value {
        Value::String(text) if !text.is_empty() && text != "null" => match text.parse::<Timestamp>() {
            Ok(time) => since_time(time, now),
            Err(_) => INVALID.to_owned(),
        },
        Value::String(_) | Value::Null => UNKNOWN.to_owned(),
        _ => INVALID.to_owned(),
    }
}

/// The age of a time.
pub(super) fn since_time(time: Timestamp, now: Timestamp) -> String {
    /// The first second of the year 1, which stands for "no time" in Go's and so in Kubernetes' JSON.
    const ZERO: i64 = -62_135_596_800;
    if time.as_second() == ZERO {
        return UNKNOWN.to_owned();
    }
    // Whole seconds are cut towards zero, so that a time less than a second ahead is "now".
    human(now.duration_since(time).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn spans_shrink_to_the_units_that_matter() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (1, "1s"),
            (119, "119s"),
            (120, "2m"),
            (130, "2m10s"),
            (599, "9m59s"),
            (600, "10m"),
            (659, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 12 * MINUTE, "3h12m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 3 * DAY, "2y3d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR, "8y"),
            (30 * YEAR, "30y"),
            (i64::MAX, "292471208677y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn ages_of_odd_times_are_named() {
        let now: Timestamp = "2025-06-01T12:00:00Z".parse().unwrap();
        let cases = [
            (json!("2025-06-01T11:55:00Z"), "5m"),
            (json!("2025-06-01T11:55:00.123456Z"), "4m59s"),
            (json!("2025-06-01T13:55:00+02:00"), "5m"),
            (json!("2025-06-01T12:00:00.5Z"), "0s"),
            (json!("2025-06-01T12:00:05Z"), "<invalid>"),
            (json!("0001-01-01T00:00:00Z"), "<unknown>"),
            (json!(""), "<unknown>"),
            (json!("null"), "<unknown>"),
            (json!(null), "<unknown>"),
            (json!("yesterday"), "<invalid>"),
            (json!(12), "<invalid>"),
        ];
        for (value, text) in cases {
            assert_eq!(since(&value, now), text, "{value}");
        }
    }
}
