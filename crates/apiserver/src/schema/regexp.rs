//! Regular expressions as Kubernetes users write them, with a known cost.
//!
//! Schemas and rules are written for RE2 syntax, which differs from that of the `regex` crate in a
//! few places that occur in practice: `\d`, `\w` and `\s` mean ASCII, a `[` inside a class is a
//! plain character, `{` is plain where it starts no repetition, and any escaped punctuation stands
//! for itself. [`Pattern::compile`] rewrites those.
//!
//! Matching is linear in the text, but the factor is the size of the compiled pattern when it is one
//! that defeats caching, such as `(a|b)*a(a|b){5000}`: 100 microseconds a byte. So the size is bounded
//! and known, and whoever matches charges [`Pattern::work`] to a budget. Text that is ASCII, as nearly
//! all is, is matched byte by byte, which makes `.{1,253}` many times smaller.

use regex::{Regex, RegexBuilder, bytes};

/// The longest pattern that is looked at.
const MAX_PATTERN: usize = 16 << 10;
/// The sizes, in bytes, that a compiled pattern is tried to fit. The last is the most that one may take.
const SIZES: [usize; 7] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// A compiled pattern, matched anywhere in the text.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: String,
    unicode: Fitted<Regex>,
    /// For ASCII text; absent where the pattern speaks of what only Unicode has.
    ascii: Option<Fitted<bytes::Regex>>,
}

/// A compiled pattern and the size that it fits.
#[derive(Clone, Debug)]
struct Fitted<R> {
    regex: R,
    size: usize,
}

impl<R> Fitted<R> {
    fn fit<E>(max_size: usize, build: impl Fn(usize) -> Result<R, E>) -> Result<Self, E> {
        let mut sizes = SIZES.into_iter().filter(|size| *size <= max_size);
        let mut size = sizes.next().unwrap_or(SIZES[0]);
        loop {
            match (build(size), sizes.next()) {
                (Ok(regex), _) => return Ok(Self { regex, size }),
                (Err(_), Some(larger)) => size = larger,
                (Err(error), None) => return Err(error),
            }
        }
    }
}

impl Pattern {
    /// Compiles a pattern in RE2 syntax.
    ///
    /// # Errors
    /// Says what is wrong with the pattern, in one line.
    pub fn compile(source: &str) -> Result<Self, String> {
        Self::compile_within(source, SIZES[SIZES.len() - 1])
    }

    /// Compiles a pattern that takes no more than `max_size` bytes when compiled.
    ///
    /// # Errors
    /// Says what is wrong with the pattern, in one line.
    pub fn compile_within(source: &str, max_size: usize) -> Result<Self, String> {
        if source.len() > MAX_PATTERN {
            return Err(format!("error parsing regexp: longer than {MAX_PATTERN} bytes"));
        }
        let rewritten = rewrite(source);
        let unicode = Fitted::fit(max_size, |size| {
            RegexBuilder::new(&rewritten).size_limit(size).nest_limit(128).build()
        });
        let unicode = unicode.map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            format!("error parsing regexp: {}", last.strip_prefix("error: ").unwrap_or(last))
        })?;
        let ascii = Fitted::fit(max_size, |size| {
            let mut builder = bytes::RegexBuilder::new(&rewritten);
            builder.unicode(false).size_limit(size).nest_limit(128).build()
        });
        Ok(Self { source: source.to_owned(), unicode, ascii: ascii.ok() })
    }

    /// The pattern as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The size of the larger of the compiled forms.
    pub fn size(&self) -> usize {
        self.unicode.size.max(self.ascii.as_ref().map_or(0, |ascii| ascii.size))
    }

    /// How much work a match against `text` may be; a unit is a tenth of a nanosecond.
    pub fn work(&self, text: &str) -> u64 {
        let size = self.for_ascii(text).map_or(self.unicode.size, |ascii| ascii.size);
        (text.len() as u64 + 1).saturating_mul(size as u64)
    }

    /// Whether the pattern matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        match self.for_ascii(text) {
            Some(ascii) => ascii.regex.is_match(text.as_bytes()),
            None => self.unicode.regex.is_match(text),
        }
    }

    /// The parts of `text` that match, from left to right.
    pub fn find_all<'t>(&'t self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let ascii = self.for_ascii(text);
        let bytes = ascii.map(|ascii| ascii.regex.find_iter(text.as_bytes()));
        let unicode = ascii.is_none().then(|| self.unicode.regex.find_iter(text));
        // Any range of bytes of ASCII text is text.
        let bytes = bytes.into_iter().flatten().map(|found| &text[found.range()]);
        bytes.chain(unicode.into_iter().flatten().map(|found| found.as_str()))
    }

    fn for_ascii(&self, text: &str) -> Option<&Fitted<bytes::Regex>> {
        self.ascii.as_ref().filter(|_| text.is_ascii())
    }
}

fn rewrite(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    // Inside a class, `Some(at)` is the length of `out` where its contents begin.
    let mut class: Option<usize> = None;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        rest = match (c, class) {
            ('\\', _) => escape(tail, class.is_some(), &mut out),
            ('[', None) => {
                let negated = tail.strip_prefix('^');
                out.push_str(if negated.is_some() { "[^" } else { "[" });
                class = Some(out.len());
                negated.unwrap_or(tail)
            }
            ('[', Some(_)) => match tail.strip_prefix(':').and_then(|t| t.find(":]")) {
                Some(end) => {
                    let (named, after) = rest.split_at(end + 4);
                    out.push_str(named);
                    after
                }
                None => {
                    out.push_str("\\[");
                    tail
                }
            },
            (']', Some(start)) if out.len() == start => {
                out.push_str("\\]");
                tail
            }
            (']', Some(_)) => {
                class = None;
                out.push(']');
                tail
            }
            ('&' | '~', Some(_)) => {
                out.push('\\');
                out.push(c);
                tail
            }
            // `--` would be a set difference; RE2 reads the first as a range or a plain dash.
            ('-', Some(_)) if tail.starts_with('-') => {
                out.push_str("\\-");
                tail
            }
            ('{', None) if !starts_repetition(tail) => {
                out.push_str("\\{");
                tail
            }
            _ => {
                out.push(c);
                tail
            }
        };
    }
    out
}

/// Writes the escape whose text after the backslash begins `tail`; returns what follows it.
fn escape<'a>(tail: &'a str, in_class: bool, out: &mut String) -> &'a str {
    let Some(c) = tail.chars().next() else {
        out.push('\\');
        return tail;
    };
    let after = &tail[c.len_utf8()..];
    match c {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str("[\\t\\n\\f\\r ]"),
        'S' => out.push_str("[^\\t\\n\\f\\r ]"),
        'b' if !in_class => out.push_str("(?-u:\\b)"),
        'Q' if !in_class => {
            let (literal, after) = after.split_once("\\E").unwrap_or((after, ""));
            out.push_str(&regex::escape(literal));
            return after;
        }
        // The braces of `\p{Greek}` and `\x{10FFFF}` are no repetition.
        'p' | 'P' | 'x' if after.starts_with('{') => {
            let (named, after) = after.split_at(after.find('}').map_or(after.len(), |end| end + 1));
            out.extend(['\\', c]);
            out.push_str(named);
            return after;
        }
        '<' | '>' => out.push(c),
        _ => {
            out.push('\\');
            out.push(c);
        }
    }
    after
}

/// Whether `tail`, which follows a `{`, makes it a repetition: `3}`, `3,}` or `3,5}`.
fn starts_repetition(tail: &str) -> bool {
    let Some((inside, _)) = tail.split_once('}') else { return false };
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    !low.is_empty() && low.bytes().all(|b| b.is_ascii_digit()) && high.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn re2_syntax_is_understood() {
        for (pattern, yes, no) in [
            (r"^\d+$", "123", "١٢٣"),
            (r"^[\d\w-.]+$", "a-1.b", "a b"),
            (r"^[a[b]+$", "a[b", "c"),
            (r"^[]a]+$", "]a", "b"),
            (r"^[^]a]+$", "bc", "]"),
            (r"^{x}$", "{x}", "x"),
            (r"^a{2,3}$", "aaa", "a"),
            (r"^[a-z&&[aeiou]+$", "b&[", "Z"),
            (r"^[[:alpha:]_]+$", "ab_", "1"),
            (r"^\Qa.b\E$", "a.b", "axb"),
            (r"^a\<b\/c\-\_$", "a<b/c-_", "a"),
            (r"\bfoo\b", "a foo b", "afoob"),
            (r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "*.abc", "-a"),
        ] {
            let regex = Pattern::compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert!(regex.is_match(yes), "{pattern} must match {yes}");
            assert!(!regex.is_match(no), "{pattern} must not match {no}");
        }
    }

    #[test]
    fn ascii_and_other_text_match_alike() {
        for (pattern, text, found) in [
            ("^.{2}$", "ab", Some("ab")),
            ("^.{2}$", "é€", Some("é€")),
            ("[^a]", "aé", Some("é")),
            (r"\p{Lu}+", "aBCd", Some("BC")),
            (r"\W", "é", Some("é")),
            ("x", "é", None),
        ] {
            let regex = Pattern::compile(pattern).expect(pattern);
            assert_eq!(regex.find_all(text).next(), found, "{pattern} {text}");
            assert_eq!(regex.is_match(text), found.is_some());
        }
        let regex = Pattern::compile("^.{1,253}$").expect("compiles");
        assert!(regex.work("aaaa") * 16 <= regex.work("éé"));
    }

    #[test]
    fn bad_and_huge_patterns_are_refused() {
        for pattern in ["(", "[a", "a**b(", "(?<n", "((a{1000}){1000}){1000}", &"a".repeat(20_000)] {
            assert!(Pattern::compile(pattern).is_err(), "{:.20}", pattern);
        }
    }
}
