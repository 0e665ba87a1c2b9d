//! Semantic versions for the `semver()` function.

use std::cmp::Ordering;

/// A semantic version; build metadata is checked and dropped, as it has no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    /// Major, minor and patch.
    pub numbers: [u64; 3],
    /// The parts of the pre-release, if there is one.
    pub pre_release: Vec<String>,
}

impl Semver {
    /// Parses `1.2.3`, `1.2.3-rc.1` or `1.2.3+build`.
    ///
    /// With `lenient`, a leading `v`, missing minor and patch, and leading zeros are taken too.
    pub fn parse(text: &str, lenient: bool) -> Option<Self> {
        let text = if lenient { text.strip_prefix('v').unwrap_or(text) } else { text };
        let (text, build) = split_optional(text, '+');
        let (core, pre_release) = split_optional(text, '-');
        let identifiers = |text: Option<&str>, numbers_plain: bool| -> Option<Vec<String>> {
            let Some(text) = text else { return Some(Vec::new()) };
            let sound = |part: &str| {
                !part.is_empty()
                    && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                    && !(numbers_plain && is_number(part) && part.len() > 1 && part.starts_with('0'))
            };
            text.split('.').all(sound).then(|| text.split('.').map(str::to_owned).collect())
        };
        identifiers(build, false)?;
        let pre_release = identifiers(pre_release, true)?;
        let parts: Vec<&str> = core.split('.').collect();
        if parts.len() > 3 || (parts.len() < 3 && !lenient) {
            return None;
        }
        let mut numbers = [0; 3];
        for (number, part) in numbers.iter_mut().zip(parts) {
            if !is_number(part) || (!lenient && part.len() > 1 && part.starts_with('0')) {
                return None;
            }
            *number = part.parse().ok()?;
        }
        Some(Self { numbers, pre_release })
    }

    /// Orders two versions; a pre-release comes before its release.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => {
                    let parts = self.pre_release.iter().zip(&other.pre_release);
                    let mut orders = parts.map(|(a, b)| compare_parts(a, b));
                    let by_count = self.pre_release.len().cmp(&other.pre_release.len());
                    orders.find(|order| order.is_ne()).unwrap_or(by_count)
                }
            }
        })
    }
}

fn split_optional(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())
}

/// Numbers come before words; numbers have no leading zeros, so the longer one is larger.
fn compare_parts(a: &str, b: &str) -> Ordering {
    match (is_number(a), is_number(b)) {
        (true, true) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered() {
        let ordered =
            ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0"];
        for pair in ordered.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|text| Semver::parse(text, false).unwrap());
            assert_eq!(a.compare(&b), Ordering::Less, "{pair:?}");
        }
        for text in ["1.2", "v1.2.3", "1.02.3", "1.2.3-", "1.2.3-01", "1.2.3.4", ""] {
            assert_eq!(Semver::parse(text, false), None, "{text}");
        }
        assert_eq!(Semver::parse("v1.02", true).unwrap().numbers, [1, 2, 0]);
    }
}
