//! Quantities such as `100m`, `1.5Gi` or `2e3`, kept exactly.
//!
//! As in Kubernetes, a quantity has no more than nine decimal places (finer ones are rounded away from
//! zero) and is no larger than 2^63 - 1 (larger ones are cut to it).

use std::cmp::Ordering;

/// The number of nanos in one.
const NANO: i128 = 1_000_000_000;
/// The largest quantity, in nanos.
const MAX: i128 = i64::MAX as i128 * NANO;

/// An exact quantity, in nanos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

impl Quantity {
    /// Parses a quantity; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (base, exponent) = scale(suffix)?;
        let nanos = value(whole, fraction, base, exponent);
        Some(Self(if negative { -nanos } else { nanos }))
    }

    /// A whole number.
    pub fn whole(value: i64) -> Self {
        Self(i128::from(value) * NANO)
    }

    /// The sum.
    pub fn plus(self, other: Self) -> Self {
        Self((self.0 + other.0).clamp(-MAX, MAX))
    }

    /// The difference.
    pub fn minus(self, other: Self) -> Self {
        Self((self.0 - other.0).clamp(-MAX, MAX))
    }

    /// -1, 0 or 1.
    pub fn sign(self) -> i64 {
        self.0.signum() as i64
    }

    /// The value, if it is whole.
    pub fn as_integer(self) -> Option<i64> {
        if self.0 % NANO == 0 { i64::try_from(self.0 / NANO).ok() } else { None }
    }

    /// The value as near as a float comes to it.
    pub fn as_float(self) -> f64 {
        self.0 as f64 / NANO as f64
    }

    /// -1, 0 or 1 as this quantity is smaller than, equal to or larger than the other.
    pub fn compare(self, other: Self) -> i64 {
        match self.cmp(&other) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }
}

/// The base and exponent that a suffix stands for.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (10, 0),
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        "Ki" => (2, 10),
        "Mi" => (2, 20),
        "Gi" => (2, 30),
        "Ti" => (2, 40),
        "Pi" => (2, 50),
        "Ei" => (2, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            // Farther out, everything is nothing or the largest; 400 is far enough for both.
            let magnitude: i32 = digits.parse().unwrap_or(400).min(400);
            (10, if exponent.starts_with('-') { -magnitude } else { magnitude })
        }
    })
}

/// The nanos of `whole.fraction * base^exponent`, rounded up and cut to the largest quantity.
fn value(whole: &str, fraction: &str, base: i128, exponent: i32) -> i128 {
    // Digits are taken one by one while they can still matter; `power` is that of ten of the last digit
    // taken, in nanos.
    let mut digits: i128 = 0;
    let mut power: i32 = 9;
    let mut rest_nonzero = false;
    // Binary suffixes multiply by up to 2^60 afterwards and need that much room.
    let enough = if base == 10 { i128::MAX / 100 } else { i128::MAX / (1 << 68) };
    for (after_point, b) in whole.bytes().map(|b| (false, b)).chain(fraction.bytes().map(|b| (true, b))) {
        let digit = i128::from(b - b'0');
        if digits < enough {
            digits = digits * 10 + digit;
            power -= i32::from(after_point);
        } else {
            rest_nonzero |= digit != 0;
            power += i32::from(!after_point);
        }
    }
    if digits == 0 {
        return 0;
    }
    if base == 10 {
        power += exponent;
    } else {
        digits = match digits.checked_mul(1 << exponent) {
            Some(scaled) => scaled,
            None => return MAX,
        };
    }
    let mut nanos = digits;
    for _ in 0..power.max(0) {
        nanos = match nanos.checked_mul(10) {
            Some(scaled) => scaled,
            None => return MAX,
        };
    }
    for _ in power.min(0)..0 {
        rest_nonzero |= nanos % 10 != 0;
        nanos /= 10;
    }
    (nanos + i128::from(rest_nonzero)).min(MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        for (text, nanos) in [
            ("0", 0),
            ("1", NANO),
            ("100m", NANO / 10),
            ("1.5Gi", 1_610_612_736 * NANO),
            ("-2k", -2_000 * NANO),
            ("2e3", 2_000 * NANO),
            ("2E-3", 2_000_000),
            ("1E", 1_000_000_000_000_000_000 * NANO),
            (".5", NANO / 2),
            ("5.", 5 * NANO),
            ("1n", 1),
            ("0.1n", 1),
            ("1e400", MAX),
            ("10Ei", MAX),
            ("1e-400", 1),
            ("99999999999999999999999999999999999999999999", MAX),
        ] {
            assert_eq!(Quantity::parse(text), Some(Quantity(nanos)), "{text}");
        }
        for text in ["", "-", "1.2.3", "1x", "Ki", "1 Ki", "1e", "1e+", ".", "½", "1µ"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
        assert_eq!(Quantity::parse("1Ki"), Quantity::parse("1024"));
        assert_eq!(Quantity::whole(3).as_integer(), Some(3));
        assert_eq!(Quantity::parse("1500m").and_then(Quantity::as_integer), None);
    }
}
