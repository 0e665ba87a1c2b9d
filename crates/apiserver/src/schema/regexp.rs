//! Regular expressions as Kubernetes users write them.
//!
//! Schemas and rules are written for RE2 syntax, which differs from that of the `regex` crate in a
//! few places that occur in practice: `\d`, `\w` and `\s` mean ASCII, a `[` inside a class is a
//! plain character, `{` is plain where it starts no repetition, and any escaped punctuation stands
//! for itself. [`compile`] rewrites those and compiles with bounded size, so that a pattern can
//! neither hang the server (matching is linear) nor fill its memory.

use regex::{Regex, RegexBuilder};

/// The most memory that one compiled pattern may take.
const SIZE_LIMIT: usize = 4 << 20;
/// The longest pattern that is looked at.
const MAX_PATTERN: usize = 16 << 10;

/// Compiles `pattern`, given in RE2 syntax.
///
/// # Errors
/// Says what is wrong with the pattern, in one line.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("pattern is longer than {MAX_PATTERN} bytes"));
    }
    RegexBuilder::new(&rewrite(pattern)).size_limit(SIZE_LIMIT).nest_limit(128).build().map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        format!("error parsing regexp: {}", last.strip_prefix("error: ").unwrap_or(last))
    })
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
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert!(regex.is_match(yes), "{pattern} must match {yes}");
            assert!(!regex.is_match(no), "{pattern} must not match {no}");
        }
    }

    #[test]
    fn bad_and_huge_patterns_are_refused() {
        for pattern in ["(", "[a", "a**b(", "(?<n", "((a{1000}){1000}){1000}", &"a".repeat(20_000)] {
            assert!(compile(pattern).is_err(), "{:.20}", pattern);
        }
    }
}
