//! The formats of strings and numbers that are checked; any other `format` is a hint and ignored.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use jiff::SignedDuration;
use serde_json::Number;

/// A `format` that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the format of the same name")]
pub enum Format {
    Int32,
    Int64,
    DateTime,
    Date,
    Duration,
    Byte,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uri,
    Email,
    Hostname,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    BsonObjectId,
    HexColor,
    RgbColor,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    K8sShortName,
    K8sLongName,
    /// A quantity of a built-in kind, as text or number; no schema can name it.
    Quantity,
}

/// Every format under its name. A format may have two names; the first is the one that is shown.
const NAMES: &[(&str, Format)] = &[
    ("int32", Format::Int32),
    ("int64", Format::Int64),
    ("date-time", Format::DateTime),
    ("datetime", Format::DateTime),
    ("date", Format::Date),
    ("duration", Format::Duration),
    ("byte", Format::Byte),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("cidr", Format::Cidr),
    ("mac", Format::Mac),
    ("uri", Format::Uri),
    ("email", Format::Email),
    ("hostname", Format::Hostname),
    ("uuid", Format::Uuid),
    ("uuid3", Format::Uuid3),
    ("uuid4", Format::Uuid4),
    ("uuid5", Format::Uuid5),
    ("bsonobjectid", Format::BsonObjectId),
    ("hexcolor", Format::HexColor),
    ("rgbcolor", Format::RgbColor),
    ("isbn", Format::Isbn),
    ("isbn10", Format::Isbn10),
    ("isbn13", Format::Isbn13),
    ("creditcard", Format::CreditCard),
    ("ssn", Format::Ssn),
    ("k8s-short-name", Format::K8sShortName),
    ("k8s-long-name", Format::K8sLongName),
];

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES.iter().find(|(_, format)| format == self).map_or("quantity", |(name, _)| name))
    }
}

impl Format {
    /// The format called `name`, if it is one that is checked.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|&(_, format)| format)
    }

    /// Whether a number fits; formats of strings take any number.
    pub fn fits(self, number: &Number) -> bool {
        let whole = || {
            let exact = number.as_i64();
            // 1e3 and 5.0 are whole too; 2^63 itself is the first double beyond an i64.
            exact.or_else(|| {
                let float = number.as_f64()?;
                (float.fract() == 0.0 && (-9.3e18..9.223_372_036_854_775e18).contains(&float))
                    .then_some(float as i64)
            })
        };
        match self {
            Self::Int32 => whole().is_some_and(|n| i32::try_from(n).is_ok()),
            Self::Int64 => whole().is_some(),
            _ => true,
        }
    }

    /// Whether a text has this format; formats of numbers take any text.
    pub fn matches(self, text: &str) -> bool {
        match self {
            Self::Int32 | Self::Int64 => true,
            Self::DateTime => date_time(text).is_some(),
            Self::Date => date(text).is_some(),
            Self::Duration => duration(text).is_some(),
            Self::Byte => byte(text).is_some(),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Mac => is_mac(text),
            Self::Uri => crate::schema::expr::url::Url::parse(text).is_some(),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Uuid => is_uuid(text, None),
            Self::Uuid3 => is_uuid(text, Some(b'3')),
            Self::Uuid4 => is_uuid(text, Some(b'4')),
            Self::Uuid5 => is_uuid(text, Some(b'5')),
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
            }
            Self::RgbColor => is_rgb(text),
            Self::Isbn => is_isbn10(text) || is_isbn13(text),
            Self::Isbn10 => is_isbn10(text),
            Self::Isbn13 => is_isbn13(text),
            Self::CreditCard => is_credit_card(text),
            Self::Ssn => is_ssn(text),
            Self::K8sShortName => is_dns_label(text),
            Self::K8sLongName => is_dns_subdomain(text),
            Self::Quantity => crate::schema::expr::quantity::Quantity::parse(text).is_some(),
        }
    }
}

/// An RFC 3339 time.
pub fn date_time(text: &str) -> Option<jiff::Timestamp> {
    let bytes = text.as_bytes();
    // The parser takes more than RFC 3339 does (blanks for `T`, time zone names), so the shape is
    // checked first.
    let shaped = bytes.len() >= 20
        && matches!(bytes[10], b'T' | b't')
        && bytes[13] == b':'
        && bytes[16] == b':'
        && bytes.iter().all(|b| b.is_ascii_digit() || b"-:.+TtZz".contains(b));
    shaped.then(|| text.parse().ok()).flatten()
}

/// An RFC 3339 date, as the midnight in UTC that begins it.
pub fn date(text: &str) -> Option<jiff::Timestamp> {
    let shaped = text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let date: jiff::civil::Date = shaped.then(|| text.parse().ok()).flatten()?;
    date.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// Standard base64 with padding; line breaks are skipped.
pub fn byte(text: &str) -> Option<Vec<u8>> {
    let engine = &base64::engine::general_purpose::STANDARD;
    if text.contains(['\n', '\r']) {
        return engine.decode(text.replace(['\n', '\r'], "")).ok();
    }
    engine.decode(text).ok()
}

/// A duration such as `1h30m`, `1.5s` or `2 days`.
pub fn duration(text: &str) -> Option<SignedDuration> {
    go_duration(text).or_else(|| worded_duration(text))
}

/// A duration such as `-1h30m` or `300ms`: a sign, then numbers each with a unit; or `0`.
pub fn go_duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, after) =
            after.split_at(after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len()));
        nanos = nanos.checked_add(scaled(number, unit_nanos(unit, false)?)?)?;
        rest = after;
    }
    from_nanos(if negative { -nanos } else { nanos })
}

/// One number with a unit in words: `2 days`, `3 weeks`.
fn worded_duration(text: &str) -> Option<SignedDuration> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    from_nanos(scaled(number, unit_nanos(unit.trim(), true)?)?)
}

fn from_nanos(nanos: i128) -> Option<SignedDuration> {
    i64::try_from(nanos).ok().map(SignedDuration::from_nanos)
}

fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || whole.len() > 19 || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits = &fraction[..fraction.len().min(18)];
    let part: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    whole.checked_mul(unit)?.checked_add(part.checked_mul(unit)? / 10_i128.pow(digits.len() as u32))
}

fn unit_nanos(unit: &str, words: bool) -> Option<i128> {
    const SECOND: i128 = 1_000_000_000;
    let short = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3_600 * SECOND,
        _ => 0,
    };
    if short != 0 {
        return Some(short);
    }
    if !words {
        return None;
    }
    Some(match unit.to_ascii_lowercase().trim_end_matches('s') {
        "nano" | "nanosecond" => 1,
        "micro" | "microsecond" => 1_000,
        "milli" | "millisecond" | "msec" => 1_000_000,
        "sec" | "second" => SECOND,
        "min" | "minute" => 60 * SECOND,
        "hr" | "hour" => 3_600 * SECOND,
        "d" | "day" => 86_400 * SECOND,
        "w" | "wk" | "week" => 7 * 86_400 * SECOND,
        _ => return None,
    })
}

fn is_cidr(text: &str) -> bool {
    crate::schema::expr::net::Cidr::parse(text).is_some()
}

fn is_mac(text: &str) -> bool {
    let separated = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.splitn(21, separator).collect();
        counts.contains(&parts.len())
            && parts.iter().all(|part| part.len() == width && part.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    separated(':', 2, &[6, 8, 20]) || separated('-', 2, &[6, 8, 20]) || separated('.', 4, &[3, 4, 10])
}

fn is_email(text: &str) -> bool {
    // An address of RFC 5322, with a display name or without.
    let address = match text.rsplit_once('<') {
        Some((_, address)) => match address.trim_end().strip_suffix('>') {
            Some(address) => address,
            None => return false,
        },
        None => text.trim(),
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |part: &str, extra: &[u8]| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.contains("..")
            && part.bytes().all(|b| !b.is_ascii() || b.is_ascii_alphanumeric() || extra.contains(&b))
    };
    atom(local, b"!#$%&'*+-/=?^_`{|}~.") && atom(domain, b"!#$%&'*+-/=?^_`{|}~.")
}

fn is_hostname(text: &str) -> bool {
    // RFC 1034 names; digits may come first (RFC 1123) and labels of other scripts are letters.
    let label = |label: &str| {
        let inner = |c: char| c.is_alphanumeric() || c == '-';
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 255 && text.split('.').all(label)
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|&b| b != b'-').collect();
    let dashes_right = match text.len() {
        32 => !text.contains('-'),
        36 => [8, 13, 18, 23].iter().all(|&at| text.as_bytes()[at] == b'-'),
        _ => false,
    };
    dashes_right
        && digits.len() == 32
        && digits.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|version| {
            digits[12] == version && (version == b'3' || b"89abAB".contains(&digits[16]))
        })
}

fn is_rgb(text: &str) -> bool {
    let inside = text.strip_prefix("rgb(").and_then(|t| t.strip_suffix(')'));
    inside.is_some_and(|inside| {
        let mut count = 0;
        inside.splitn(5, ',').all(|part| {
            count += 1;
            let part = part.trim();
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && part.parse::<u8>().is_ok()
        }) && count == 3
    })
}

fn plain_digits(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b' ' | b'-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = plain_digits(text);
    let value = |(at, &b): (usize, &u8)| match b {
        b'0'..=b'9' => Some((at as u32 + 1) * u32::from(b - b'0')),
        b'X' if at == 9 => Some(100),
        _ => None,
    };
    digits.len() == 10
        && digits.iter().enumerate().map(value).sum::<Option<u32>>().is_some_and(|sum| sum % 11 == 0)
}

fn is_isbn13(text: &str) -> bool {
    let digits = plain_digits(text);
    let weigh = |(at, &b): (usize, &u8)| u32::from(b - b'0') * if at % 2 == 0 { 1 } else { 3 };
    digits.len() == 13
        && (digits.starts_with(b"978") || digits.starts_with(b"979"))
        && digits.iter().all(u8::is_ascii_digit)
        && digits.iter().enumerate().map(weigh).sum::<u32>() % 10 == 0
}

fn is_credit_card(text: &str) -> bool {
    let digits = plain_digits(text);
    let doubled = |(at, &b): (usize, &u8)| {
        let digit = u32::from(b - b'0');
        match (at % 2, digit * 2) {
            (0, _) => digit,
            (_, twice) if twice > 9 => twice - 9,
            (_, twice) => twice,
        }
    };
    (13..=16).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
        && digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}

fn is_ssn(text: &str) -> bool {
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    let separator = |b: Option<&u8>| matches!(b, Some(b'-' | b' '));
    match text.len() {
        9 => digits(text, 9),
        11 if text.is_ascii() => {
            let bytes = text.as_bytes();
            digits(&text[..3], 3)
                && separator(bytes.get(3))
                && digits(&text[4..6], 2)
                && separator(bytes.get(6))
                && digits(&text[7..], 4)
        }
        _ => false,
    }
}

/// A DNS-1123 label: what most names of objects must be.
pub fn is_dns_label(text: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(|&b| alphanumeric(b) || b == b'-')
        && bytes.first().is_some_and(|&b| alphanumeric(b))
        && bytes.last().is_some_and(|&b| alphanumeric(b))
}

/// A DNS-1123 subdomain: labels joined by dots, at most 253 bytes.
pub fn is_dns_subdomain(text: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|&b| alphanumeric(b))
            && bytes.last().is_some_and(|&b| alphanumeric(b))
            && bytes.iter().all(|&b| alphanumeric(b) || b == b'-')
    };
    text.len() <= 253 && text.split('.').all(part)
}
