//! `restartedAt`: a time on a template whose change restarts instances. Of several the latest counts.

use compute_api::{annotations::RESTARTED_AT, compute::InstanceTemplate, k8s::Timestamp};

/// The later of two values. One that is no time loses against one that is; of equals the first is taken.
pub fn later<'a>(first: Option<&'a str>, second: Option<&'a str>) -> Option<&'a str> {
    match (first, second) {
        (Some(a), Some(b)) => Some(if time(b) > time(a) { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// The template with the later of its own `restartedAt` and another.
pub fn with_later(mut template: InstanceTemplate, other: Option<&str>) -> InstanceTemplate {
    let own = template.annotation(RESTARTED_AT);
    if let Some(value) = later(own, other)
        && own != Some(value)
    {
        let value = value.to_owned();
        template.set_annotation(RESTARTED_AT, value);
    }
    template
}

fn time(value: &str) -> Option<Timestamp> {
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_wins_in_any_time_zone() {
        let (early, late) = ("2026-05-01T12:00:00+02:00", "2026-05-01T11:00:00Z");
        assert_eq!(later(Some(early), Some(late)), Some(late));
        assert_eq!(later(Some(late), Some(early)), Some(late));
        assert_eq!(later(None, Some(early)), Some(early));
        assert_eq!(later(Some(early), None), Some(early));
        assert_eq!(later(None, None), None);
    }

    #[test]
    fn what_is_no_time_loses() {
        assert_eq!(later(Some("now"), Some("2026-05-01T11:00:00Z")), Some("2026-05-01T11:00:00Z"));
        assert_eq!(later(Some("2026-05-01T11:00:00Z"), Some("now")), Some("2026-05-01T11:00:00Z"));
        assert_eq!(later(Some("a"), Some("b")), Some("a"));
    }

    #[test]
    fn a_template_is_touched_only_if_needed() {
        let plain = InstanceTemplate::default();
        assert_eq!(with_later(plain.clone(), None), plain);
        let restarted = with_later(plain, Some("2026-05-01T11:00:00Z"));
        assert_eq!(restarted.annotation(RESTARTED_AT), Some("2026-05-01T11:00:00Z"));
        assert_eq!(with_later(restarted.clone(), Some("2025-05-01T11:00:00Z")), restarted);
    }
}
