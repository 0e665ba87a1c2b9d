//! Kubernetes quantities: the wire form, and exact arithmetic on it.
//!
//! [`Quantity`] is what objects carry: an integer or a string, kept as it came. [`Amount`] is the number that
//! it stands for, in integer billionths, so that sums and comparisons are exact. No floats anywhere.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
const MEBIBYTE: i128 = 1024 * 1024;

/// An integer or a string, kept as it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// An integer.
    Int(i64),
    /// A string.
    String(String),
}

impl Default for IntOrString {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::String(text) => text.fmt(f),
        }
    }
}

impl JsonSchema for IntOrString {
    fn schema_name() -> Cow<'static, str> {
        "IntOrString".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "x-kubernetes-int-or-string": true
        })
    }
}

/// An amount such as `2`, `500m` or `2Gi`, kept as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantity(pub IntOrString);

impl Quantity {
    /// The number that the quantity stands for.
    ///
    /// # Errors
    ///
    /// If it is not a quantity, or too large to be one.
    pub fn amount(&self) -> Result<Amount, ParseQuantityError> {
        match &self.0 {
            IntOrString::Int(number) => Ok(Amount::from_units(*number)),
            IntOrString::String(text) => Amount::parse(text),
        }
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(IntOrString::String(text.to_owned()))
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Self(IntOrString::Int(number))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = IntOrString::json_schema(generator);
        let pattern = concat!(
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))",
            r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
        );
        schema.insert("pattern".to_owned(), pattern.into());
        schema
    }
}

/// Why a string is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseQuantityError {
    /// It does not have the form of a quantity.
    #[error("{0:?} is not a quantity such as 2, 500m or 2Gi")]
    Malformed(String),
    /// It is larger than any amount that can be counted.
    #[error("{0:?} is too large")]
    TooLarge(String),
}

/// An exact number of billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i128);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// A whole number.
    pub const fn from_units(units: i64) -> Self {
        // Lossless: an i64 times 10^9 is below 2^94.
        Self(units as i128 * NANOS_PER_UNIT)
    }

    /// Reads a quantity. What is finer than a billionth is rounded away from zero, as Kubernetes does.
    ///
    /// # Errors
    ///
    /// If `text` is not a quantity, or too large to be one.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        let malformed = || ParseQuantityError::Malformed(text.to_owned());
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(malformed());
        }
        let scale = Scale::parse(suffix).ok_or_else(malformed)?;
        let nanos =
            scale.nanos(whole, fraction).ok_or_else(|| ParseQuantityError::TooLarge(text.to_owned()))?;
        Ok(Self(if negative { -nanos } else { nanos }))
    }

    /// The number in billionths.
    pub const fn nanos(self) -> i128 {
        self.0
    }

    /// The number in thousandths, rounded up: millicores of a CPU quantity. `None` if it does not fit.
    pub fn millis_ceil(self) -> Option<i64> {
        ceil_div(self.0, NANOS_PER_MILLI)
    }

    /// The whole number, rounded up: bytes of a memory quantity. `None` if it does not fit.
    pub fn units_ceil(self) -> Option<i64> {
        ceil_div(self.0, NANOS_PER_UNIT)
    }

    /// The number in units of 1024², rounded up: MiB of a memory quantity. `None` if it does not fit.
    pub fn mebi_ceil(self) -> Option<i64> {
        ceil_div(self.0, NANOS_PER_UNIT * MEBIBYTE)
    }

    /// Whether this is a whole multiple of `step`. Never true for a step of zero.
    pub const fn is_multiple_of(self, step: Self) -> bool {
        step.0 != 0 && self.0 % step.0 == 0
    }

    /// The sum. `None` if it does not fit.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
}

/// Rounds towards positive infinity.
fn ceil_div(value: i128, by: i128) -> Option<i64> {
    let quotient = value.div_euclid(by);
    let rounded_up = if value.rem_euclid(by) == 0 { quotient } else { quotient + 1 };
    i64::try_from(rounded_up).ok()
}

/// What the suffix of a quantity multiplies its number by.
enum Scale {
    /// A power of ten.
    Decimal(i64),
    /// A power of two.
    Binary(u32),
}

impl Scale {
    fn parse(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            _ => {
                let exponent = suffix.strip_prefix(['e', 'E'])?;
                let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                // An exponent beyond i64 saturates: it is as far out of range as any other.
                let size = digits.parse::<i64>().unwrap_or(i64::MAX);
                Self::Decimal(if exponent.starts_with('-') { -size } else { size })
            }
        })
    }

    /// `whole.fraction` under this scale in billionths, rounded up. `None` if it does not fit.
    fn nanos(&self, whole: &str, fraction: &str) -> Option<i128> {
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        match *self {
            Self::Binary(power) => multiply(whole, fraction, NANOS_PER_UNIT.checked_shl(power)?),
            Self::Decimal(_) if whole.is_empty() && fraction.is_empty() => Some(0),
            Self::Decimal(power) if power < -9 => {
                // The last digits of the whole part are finer than a billionth: only that they are there counts.
                let finer = usize::try_from(power.unsigned_abs() - 9).unwrap_or(usize::MAX);
                let (head, tail) = whole.split_at(whole.len().saturating_sub(finer));
                let up = tail.bytes().chain(fraction.bytes()).any(|digit| digit != b'0');
                parse_digits(head)?.checked_add(i128::from(up))
            }
            Self::Decimal(power) => {
                let power = u32::try_from(power.checked_add(9)?).ok()?;
                multiply(whole, fraction, 10_i128.checked_pow(power)?)
            }
        }
    }
}

/// `whole.fraction` × `factor`, rounded up. `None` if it does not fit.
fn multiply(whole: &str, fraction: &str, factor: i128) -> Option<i128> {
    // Horner's rule from the last digit on: dividing by ten and cutting off at each step gives the same whole
    // number as doing it once at the end, so any number of digits is exact.
    let mut floor = 0_i128;
    let mut exact = true;
    for digit in fraction.bytes().rev() {
        let sum = factor.checked_mul(i128::from(digit - b'0'))?.checked_add(floor)?;
        floor = sum / 10;
        exact &= sum % 10 == 0;
    }
    parse_digits(whole)?.checked_mul(factor)?.checked_add(floor)?.checked_add(i128::from(!exact))
}

/// A number in plain digits; none at all is zero. `None` if it does not fit.
fn parse_digits(digits: &str) -> Option<i128> {
    if digits.is_empty() { Some(0) } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests;
