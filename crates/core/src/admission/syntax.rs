//! What names and texts look like, and how to say so.

use compute_api::k8s::Timestamp;

use super::{error::Errors, path::Path};

/// The longest DNS label, and the longest value of a label.
pub(super) const MAX_LABEL: usize = 63;
/// The longest name of an object.
const MAX_NAME: usize = 253;

/// How a DNS label looks.
pub(super) const DNS_LABEL: &str =
    "must be a DNS label: at most 63 lower-case letters, digits and '-', with a letter or digit at both ends";
/// How the name of an object looks.
const OBJECT_NAME: &str = "must be the name of an object: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends";
/// How the name of a variable looks.
const ENV_NAME: &str = "must be the name of a variable: letters, digits, '_', '-' and '.', not starting with a digit or with '..'";
/// How a key of a ConfigMap or Secret looks.
const DATA_KEY: &str = "must be a key of a ConfigMap or Secret: at most 253 letters, digits, '-', '_' and '.', and not '.' or '..'";
/// How the key of a label or annotation looks.
const QUALIFIED_NAME: &str = "must be a name of at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, and before it at most a DNS name and '/'";
/// How the value of a label looks.
const LABEL_VALUE: &str =
    "must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, or empty";

pub(super) fn is_dns_label(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.len() <= MAX_LABEL && text.bytes().all(is_inner) && has_solid_ends(text)
}

/// Whether an object may have this name.
pub(super) fn is_object_name(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !part.is_empty() && part.bytes().all(is_inner) && has_solid_ends(part)
    };
    text.len() <= MAX_NAME && text.split('.').all(is_part)
}

fn has_solid_ends(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

fn is_env_name(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    text.bytes().all(is_inner)
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text != "."
        && !text.starts_with("..")
}

fn is_data_key(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    text.len() <= MAX_NAME && text.bytes().all(is_inner) && text != "." && !text.starts_with("..")
}

fn is_label_text(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    text.len() <= MAX_LABEL && text.bytes().all(is_inner) && has_solid_ends(text)
}

fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_object_name(prefix) && is_label_text(name),
        None => is_label_text(text),
    }
}

/// Whether a text is a time as RFC 3339 has it. The parser alone takes more than that.
pub(super) fn is_rfc3339(text: &str) -> bool {
    let digits = |range: std::ops::Range<usize>| {
        text.as_bytes().get(range).is_some_and(|bytes| bytes.iter().all(u8::is_ascii_digit))
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let is_date_time = [0..4, 5..7, 8..10, 11..13, 14..16, 17..19].into_iter().all(digits)
        && marks.iter().all(|(at, mark)| text.as_bytes().get(*at) == Some(mark));
    let Some(rest) = text.get(19..).filter(|_| is_date_time) else { return false };
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
        None => rest,
    };
    let is_zone = match rest.as_bytes() {
        [b'Z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()),
        _ => false,
    };
    is_zone && text.parse::<Timestamp>().is_ok()
}

/// A text that must be there and look right. Says whether it is and does.
fn check(
    text: &str,
    path: &Path,
    missing: &str,
    is_good: impl Fn(&str) -> bool,
    rule: &str,
    errors: &mut Errors,
) -> bool {
    if text.is_empty() {
        errors.required(path, missing);
        return false;
    }
    let good = is_good(text);
    if !good {
        errors.invalid(path, text, rule);
    }
    good
}

/// A DNS label that must be there.
pub(super) fn check_dns_label(text: &str, path: &Path, missing: &str, errors: &mut Errors) -> bool {
    check(text, path, missing, is_dns_label, DNS_LABEL, errors)
}

/// The name of an object that must be there.
pub(super) fn check_object_name(text: &str, path: &Path, missing: &str, errors: &mut Errors) -> bool {
    check(text, path, missing, is_object_name, OBJECT_NAME, errors)
}

/// The name of a variable that must be there.
pub(super) fn check_env_name(text: &str, path: &Path, errors: &mut Errors) -> bool {
    check(text, path, "a variable needs a name", is_env_name, ENV_NAME, errors)
}

/// A key of a ConfigMap or Secret that must be there.
pub(super) fn check_data_key(text: &str, path: &Path, errors: &mut Errors) -> bool {
    check(text, path, "name the key", is_data_key, DATA_KEY, errors)
}

/// The key of a label or annotation.
pub(super) fn check_qualified_name(text: &str, path: &Path, errors: &mut Errors) -> bool {
    let good = is_qualified_name(text);
    if !good {
        errors.invalid(path, text, QUALIFIED_NAME);
    }
    good
}

/// The value of a label.
pub(super) fn check_label_value(text: &str, path: &Path, errors: &mut Errors) {
    if !text.is_empty() && !is_label_text(text) {
        errors.invalid(path, text, LABEL_VALUE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for good in ["2026-05-01T12:00:00Z", "2026-05-01T12:00:00.123+02:00", "2026-05-01T12:00:00-11:30"] {
            assert!(is_rfc3339(good), "{good}");
        }
        for bad in [
            "",
            "now",
            "2026-05-01",
            "2026-05-01 12:00:00Z",
            "2026-05-01T12:00:00",
            "2026-05-01T12:00Z",
            "2026-13-01T12:00:00Z",
            "2026-05-01T12:00:00.Z",
            "2026-05-01T12:00:00+0200",
            "2026-05-01T12:00:00Z[UTC]",
            "2026-02-30T12:00:00Z",
            "2026-05-01T12:00:00ö",
        ] {
            assert!(!is_rfc3339(bad), "{bad}");
        }
    }

    #[test]
    fn names() {
        for good in ["a", "a-b", "0", &"a".repeat(63)] {
            assert!(is_dns_label(good), "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a.b", "ä", &"a".repeat(64)] {
            assert!(!is_dns_label(bad), "{bad}");
        }
        assert!(
            is_object_name("a.b-c.d")
                && !is_object_name("a..b")
                && !is_object_name("a/b")
                && !is_object_name("")
        );
        assert!(is_env_name("A_b.c-1") && !is_env_name("1A") && !is_env_name("..") && !is_env_name("A=B"));
        assert!(is_qualified_name("app") && is_qualified_name("example.com/App_1"));
        assert!(!is_qualified_name("a/b/c") && !is_qualified_name("/a") && !is_qualified_name("a b"));
    }
}
