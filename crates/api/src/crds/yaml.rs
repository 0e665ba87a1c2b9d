//! Writes JSON values as YAML in block style, for files that people read and review.
//!
//! # Guarantees
//!
//! Keys are sorted, a scalar is never folded, and a string is quoted whenever any YAML 1.1 or 1.2 reader might
//! take it for something else. The same value gives the same text.

use serde_json::{Number, Value};

/// The value as a YAML document.
pub(super) fn render(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => write_block(value, 0, &mut out),
        Value::Array(elements) if !elements.is_empty() => write_block(value, 0, &mut out),
        scalar => {
            out.push_str(&inline(scalar));
            out.push('\n');
        }
    }
    out
}

/// Writes a map or list that has entries, each on a line of its own. The cursor is at the start of the first.
fn write_block(value: &Value, indent: usize, out: &mut String) {
    let padding = " ".repeat(indent);
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| key.as_str());
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push_str(&padding);
                }
                out.push_str(&string(key));
                out.push(':');
                write_member(member, indent, out);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push_str(&padding);
                }
                out.push_str("- ");
                if is_block(element) {
                    write_block(element, indent + 2, out);
                } else {
                    out.push_str(&inline(element));
                    out.push('\n');
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push_str(&inline(value)),
    }
}

/// Writes what follows a key and its colon.
fn write_member(member: &Value, indent: usize, out: &mut String) {
    if !is_block(member) {
        out.push(' ');
        out.push_str(&inline(member));
        out.push('\n');
        return;
    }
    // A list stands right below its key, a map one step further in.
    let below = if member.is_array() { indent } else { indent + 2 };
    out.push('\n');
    out.push_str(&" ".repeat(below));
    write_block(member, below, out);
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A value that fits on the line.
fn inline(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => self::number(number),
        Value::String(text) => string(text),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

/// A whole number without a fraction, however it is held: limits in a schema are floats.
fn number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => format!("{float:.0}"),
        _ => number.to_string(),
    }
}

fn string(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else if text
        .chars()
        .any(|c| c.is_control() || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}'))
    {
        // JSON's escapes are a subset of those of a double-quoted YAML scalar.
        Value::from(text).to_string()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// Whether a string reads as itself without quotes.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", ".nan"];
    let starts_well =
        text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '^' | '.' | '(' | '$' | '/'));
    let number_like =
        text.starts_with('.') && text[1..].starts_with(|c: char| c.is_ascii_digit() || c == 'i' || c == 'I');
    starts_well
        && !number_like
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(|c| c.is_ascii_graphic() || c == ' ')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn block_style() {
        let value = json!({
            "b": {"c": [1, {"d": "x", "e": [true, []]}, [1, 2]], "f": {}},
            "a": "text",
            "g": [["x"]],
        });
        let expected = "a: text\nb:\n  c:\n  - 1\n  - d: x\n    e:\n    - true\n    - []\n  - - 1\n    - 2\n  f: {}\ng:\n- - x\n";
        assert_eq!(render(&value), expected);
    }

    #[test]
    fn strings_that_look_like_something_else_are_quoted() {
        for text in [
            "True", "no", "1", "1e3", "", "~", "null", "- a", "a: b", "a #b", "'", "*", ".5", ".inf", "0x1f",
            "a:",
        ] {
            assert!(string(text).starts_with('\''), "{text}: {}", string(text));
        }
        assert_eq!(string("it's: so"), "'it''s: so'");
        assert_eq!(string("two\nlines"), r#""two\nlines""#);
        assert_eq!(string(r"^[a-z]([-a-z0-9]*)?(\.x)*$"), r"^[a-z]([-a-z0-9]*)?(\.x)*$");
        assert_eq!(
            string(".status.conditions[?(@.type==\"Ready\")].status"),
            ".status.conditions[?(@.type==\"Ready\")].status"
        );
    }

    #[test]
    fn whole_floats_are_whole() {
        assert_eq!(render(&json!({"maximum": 65535.0, "minimum": 0.5})), "maximum: 65535\nminimum: 0.5\n");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~]{0,12}".prop_map(Value::from),
            "(\\n|\\t|[a-z:#' -]|é|\u{2028}){0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ -~]{1,6}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_it_was(value in any_json()) {
            let text = render(&value);
            let read: Value = serde_saphyr::from_str(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            prop_assert_eq!(read, value, "{}", text);
        }
    }
}
