//! Text functions. Positions count code points.

use super::Returns::{Bool, Int, List, String as Str};
use super::format_text::format_text;
use super::standard::with_pattern;
use super::{Definition, Evaluated, global, member, on_text};
use crate::schema::expr::eval::{Budget, EvalError};
use crate::schema::expr::operators::match_cost;
use crate::schema::expr::value::Val;

pub(super) const TABLE: &[Definition] = &[
    member("contains", 2, Bool, |args, budget| two("contains", args, budget, |a, b| a.contains(b))),
    member("startsWith", 2, Bool, |args, budget| two("startsWith", args, budget, |a, b| a.starts_with(b))),
    member("endsWith", 2, Bool, |args, budget| two("endsWith", args, budget, |a, b| a.ends_with(b))),
    member("charAt", 2, Str, char_at),
    member("indexOf", 2, Int, index_of),
    member("indexOf", 3, Int, index_of),
    member("lastIndexOf", 2, Int, last_index_of),
    member("lastIndexOf", 3, Int, last_index_of),
    member("join", 1, Str, join),
    member("join", 2, Str, join),
    member("lowerAscii", 1, Str, |args, budget| {
        on_text("lowerAscii", args, budget, |text| Ok(Val::text(text.to_ascii_lowercase())))
    }),
    member("upperAscii", 1, Str, |args, budget| {
        on_text("upperAscii", args, budget, |text| Ok(Val::text(text.to_ascii_uppercase())))
    }),
    member("replace", 3, Str, replace),
    member("replace", 4, Str, replace),
    member("split", 2, List, split),
    member("split", 3, List, split),
    member("substring", 2, Str, substring),
    member("substring", 3, Str, substring),
    member("trim", 1, Str, |args, budget| on_text("trim", args, budget, |text| Ok(Val::text(text.trim())))),
    member("reverse", 1, Str, |args, budget| {
        on_text("reverse", args, budget, |text| Ok(Val::text(text.chars().rev().collect::<String>())))
    }),
    global("strings.quote", 1, Str, |args, budget| {
        on_text("strings.quote", args, budget, |text| Ok(Val::text(quoted(text))))
    }),
    member("format", 2, Str, format_text),
    member("find", 2, Str, find),
    member("findAll", 2, List, find_all),
    member("findAll", 3, List, find_all),
];

fn two<'a>(
    name: &str,
    args: &[Val<'a>],
    budget: &mut Budget,
    test: impl FnOnce(&str, &str) -> bool,
) -> Evaluated<'a> {
    match args {
        [Val::Str(text), Val::Str(part)] => {
            budget.charge_bytes(text.len() + part.len())?;
            Ok(Val::Bool(test(text, part)))
        }
        _ => Err(EvalError::no_overload(name, args)),
    }
}

fn out_of_range(at: i64) -> EvalError {
    EvalError::failed(format!("index out of range: {at}"))
}

/// The byte at which the code point `at` begins; the end of the text for the one past the last.
fn byte_at(text: &str, at: i64) -> Result<usize, EvalError> {
    let place = usize::try_from(at).map_err(|_| out_of_range(at))?;
    let mut starts = text.char_indices().map(|(start, _)| start).chain([text.len()]);
    starts.nth(place).ok_or_else(|| out_of_range(at))
}

fn char_at<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    on_text("charAt", args, budget, |text| match args {
        [_, Val::Int(at)] => {
            let start = byte_at(text, *at)?;
            Ok(Val::text(text[start..].chars().next().map(String::from).unwrap_or_default()))
        }
        _ => Err(EvalError::no_overload("charAt", args)),
    })
}

fn index_of<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    if let [Val::List(_), ..] = args {
        return super::lists::index_of(args, budget, false);
    }
    on_text("indexOf", args, budget, |text| {
        let (part, start) = match args {
            [_, Val::Str(part)] => (part, 0),
            [_, Val::Str(part), Val::Int(from)] => (part, byte_at(text, *from)?),
            _ => return Err(EvalError::no_overload("indexOf", args)),
        };
        let found = text[start..].find(&**part).map(|at| text[..start + at].chars().count() as i64);
        Ok(Val::Int(found.unwrap_or(-1)))
    })
}

fn last_index_of<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    if let [Val::List(_), ..] = args {
        return super::lists::index_of(args, budget, true);
    }
    on_text("lastIndexOf", args, budget, |text| {
        // A match may begin no later than `from`.
        let (part, end) = match args {
            [_, Val::Str(part)] => (part, text.len()),
            [_, Val::Str(part), Val::Int(from)] => {
                let start = byte_at(text, *from)?;
                (
                    part,
                    (start..=text.len().min(start + part.len()))
                        .rev()
                        .find(|&at| text.is_char_boundary(at))
                        .unwrap_or(start),
                )
            }
            _ => return Err(EvalError::no_overload("lastIndexOf", args)),
        };
        let found = text[..end].rfind(&**part).map(|at| text[..at].chars().count() as i64);
        Ok(Val::Int(found.unwrap_or(-1)))
    })
}

fn join<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let (list, separator) = match args {
        [Val::List(list)] => (list, ""),
        [Val::List(list), Val::Str(separator)] => (list, &**separator),
        _ => return Err(EvalError::no_overload("join", args)),
    };
    let mut made = String::new();
    for (at, entry) in list.iter().enumerate() {
        let Val::Str(text) = &entry else { return Err(EvalError::no_overload("join", args)) };
        budget.charge_bytes(text.len() + separator.len())?;
        if at > 0 {
            made.push_str(separator);
        }
        made.push_str(text);
    }
    Ok(Val::text(made))
}

fn replace<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let (text, from, to, limit) = match args {
        [Val::Str(text), Val::Str(from), Val::Str(to)] => (text, from, to, -1),
        [Val::Str(text), Val::Str(from), Val::Str(to), Val::Int(limit)] => (text, from, to, *limit),
        _ => return Err(EvalError::no_overload("replace", args)),
    };
    budget.charge_bytes(text.len())?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // What comes out can be far longer than what goes in, so it is counted before it is made.
    let count = text.matches(&**from).take(limit).count();
    budget.charge_bytes(text.len().saturating_add(count.saturating_mul(to.len())))?;
    Ok(Val::text(text.replacen(&**from, to, count)))
}

fn split<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let (text, separator, limit) = match args {
        [Val::Str(text), Val::Str(separator)] => (text, separator, -1),
        [Val::Str(text), Val::Str(separator), Val::Int(limit)] => (text, separator, *limit),
        _ => return Err(EvalError::no_overload("split", args)),
    };
    // Each part is a value of its own, which is more than its bytes.
    budget.charge(text.len() as u64 + 1)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<Val<'a>> = if separator.is_empty() {
        let mut parts = Vec::new();
        let mut rest = &**text;
        while let Some(c) = rest.chars().next().filter(|_| limit > 0) {
            let cut = if parts.len() + 1 == limit { rest.len() } else { c.len_utf8() };
            parts.push(Val::text(&rest[..cut]));
            rest = &rest[cut..];
        }
        parts
    } else {
        text.splitn(limit, &**separator).map(Val::text).collect()
    };
    Ok(Val::list(parts))
}

fn substring<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    on_text("substring", args, budget, |text| {
        let (start, end) = match args {
            [_, Val::Int(start)] => (byte_at(text, *start)?, text.len()),
            [_, Val::Int(start), Val::Int(end)] => {
                if start > end {
                    return Err(EvalError::failed(format!("invalid substring range: {start}, {end}")));
                }
                (byte_at(text, *start)?, byte_at(text, *end)?)
            }
            _ => return Err(EvalError::no_overload("substring", args)),
        };
        Ok(Val::text(&text[start..end]))
    })
}

fn quoted(text: &str) -> String {
    let mut made = String::with_capacity(text.len() + 2);
    made.push('"');
    for c in text.chars() {
        match c {
            '\x07' => made.push_str("\\a"),
            '\x08' => made.push_str("\\b"),
            '\x0c' => made.push_str("\\f"),
            '\n' => made.push_str("\\n"),
            '\r' => made.push_str("\\r"),
            '\t' => made.push_str("\\t"),
            '\x0b' => made.push_str("\\v"),
            '\\' => made.push_str("\\\\"),
            '"' => made.push_str("\\\""),
            other => made.push(other),
        }
    }
    made.push('"');
    made
}

fn find<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    with_pattern("find", args, budget, |text, pattern, _| {
        Ok(Val::text(pattern.find_all(text).next().unwrap_or_default()))
    })
}

fn find_all<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let limit = match args.get(2) {
        None => usize::MAX,
        Some(Val::Int(limit)) => usize::try_from(*limit).unwrap_or(usize::MAX),
        Some(_) => return Err(EvalError::no_overload("findAll", args)),
    };
    with_pattern("findAll", args, budget, |text, pattern, budget| {
        let mut found = Vec::new();
        for part in pattern.find_all(text).take(limit) {
            // Each search may look at the whole text.
            budget.charge(match_cost(text, pattern))?;
            found.push(Val::text(part));
        }
        Ok(Val::list(found))
    })
}
