//! `'…%s…'.format([…])`.

use super::Evaluated;
use super::standard::plain_text;
use crate::schema::expr::eval::{Budget, EvalError};
use crate::schema::expr::value::{Map, Val};

/// Puts the entries of a list into a text at its `%s`, `%d`, `%f`, `%e`, `%b`, `%o`, `%x` and `%X`.
pub(super) fn format_text<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let [Val::Str(pattern), Val::List(list)] = args else {
        return Err(EvalError::no_overload("format", args));
    };
    let mut made = String::new();
    let mut entries = list.iter().enumerate();
    let mut rest: &str = pattern;
    while let Some((before, after)) = rest.split_once('%') {
        budget.charge_bytes(before.len())?;
        made.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            made.push('%');
            rest = after;
            continue;
        }
        let (precision, after) = precision(after)?;
        let clause = after.chars().next().ok_or_else(|| EvalError::failed("unexpected end of string"))?;
        rest = &after[clause.len_utf8()..];
        let (at, entry) =
            entries.next().ok_or_else(|| EvalError::failed(format!("index {} out of range", list.len())))?;
        let shown = show(clause, precision, &entry, budget)?.ok_or_else(|| {
            EvalError::failed(format!("could not format argument {at} with %{clause}: {}", entry.type_name()))
        })?;
        budget.charge_bytes(shown.len())?;
        made.push_str(&shown);
    }
    budget.charge_bytes(rest.len())?;
    made.push_str(rest);
    Ok(Val::text(made))
}

/// `.3` before a clause.
fn precision(text: &str) -> Result<(usize, &str), EvalError> {
    const DEFAULT: usize = 6;
    let Some(after) = text.strip_prefix('.') else { return Ok((DEFAULT, text)) };
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    let digits: usize = if end == 0 { DEFAULT } else { after[..end].parse().unwrap_or(usize::MAX) };
    if digits > 100 {
        return Err(EvalError::failed("precision out of range"));
    }
    Ok((digits, &after[end..]))
}

fn show(
    clause: char,
    precision: usize,
    value: &Val<'_>,
    budget: &mut Budget,
) -> Result<Option<String>, EvalError> {
    Ok(match (clause, value) {
        ('s', value) => Some(plain(value, budget)?),
        ('d', Val::Int(value)) => Some(value.to_string()),
        ('d', Val::Uint(value)) => Some(value.to_string()),
        ('f', Val::Double(value)) => Some(format!("{value:.precision$}")),
        ('e', Val::Double(value)) => {
            let text = format!("{value:.precision$e}");
            text.split_once('e').map(|(mantissa, exponent)| {
                let (sign, digits) = match exponent.strip_prefix('-') {
                    Some(digits) => ('-', digits),
                    None => ('+', exponent),
                };
                format!("{mantissa}e{sign}{digits:0>2}")
            })
        }
        ('b', Val::Bool(value)) => Some(u8::from(*value).to_string()),
        ('b', Val::Int(value)) => Some(signed(*value, |n| format!("{n:b}"))),
        ('b', Val::Uint(value)) => Some(format!("{value:b}")),
        ('o', Val::Int(value)) => Some(signed(*value, |n| format!("{n:o}"))),
        ('o', Val::Uint(value)) => Some(format!("{value:o}")),
        ('x', Val::Int(value)) => Some(signed(*value, |n| format!("{n:x}"))),
        ('X', Val::Int(value)) => Some(signed(*value, |n| format!("{n:X}"))),
        ('x', Val::Uint(value)) => Some(format!("{value:x}")),
        ('X', Val::Uint(value)) => Some(format!("{value:X}")),
        ('x' | 'X', Val::Str(text)) => Some(hex(text.as_bytes(), clause)),
        ('x' | 'X', Val::Bytes(bytes)) => Some(hex(bytes, clause)),
        _ => None,
    })
}

fn signed(value: i64, show: impl Fn(u64) -> String) -> String {
    format!("{}{}", if value < 0 { "-" } else { "" }, show(value.unsigned_abs()))
}

fn hex(bytes: &[u8], clause: char) -> String {
    bytes.iter().map(|b| if clause == 'x' { format!("{b:02x}") } else { format!("{b:02X}") }).collect()
}

/// A value in `%s`. The recursion is bounded by the nesting of JSON and of the expression.
fn plain(value: &Val<'_>, budget: &mut Budget) -> Result<String, EvalError> {
    budget.charge(1)?;
    Ok(match value {
        Val::Null => "null".to_owned(),
        Val::Type(name) => (*name).to_owned(),
        Val::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Val::List(list) => {
            let entries: Result<Vec<String>, EvalError> = list.iter().map(|e| plain(&e, budget)).collect();
            format!("[{}]", entries?.join(", "))
        }
        Val::Map(map) => plain_map(map, budget)?,
        other => match plain_text(other) {
            Some(text) => {
                budget.charge_bytes(text.len())?;
                text
            }
            None => return Err(EvalError::failed(format!("could not show a {}", other.type_name()))),
        },
    })
}

fn plain_map(map: &Map<'_>, budget: &mut Budget) -> Result<String, EvalError> {
    let mut entries = Vec::with_capacity(map.len());
    for (key, value) in map.entries() {
        entries.push(format!("{}: {}", plain(&key, budget)?, plain(&value, budget)?));
    }
    entries.sort();
    Ok(format!("{{{}}}", entries.join(", ")))
}
