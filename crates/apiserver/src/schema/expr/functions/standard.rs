//! Conversions, sizes and optionals.

use std::sync::Arc;

use super::Returns::{Anything, Bool, Bytes, Double, Int, Optional, String as Str, Uint};
use super::{Definition, Evaluated, global, member};
use crate::schema::expr::eval::{Budget, EvalError};
use crate::schema::expr::operators::match_cost;
use crate::schema::expr::value::Val;
use crate::schema::regexp::Pattern;

pub(super) const TABLE: &[Definition] = &[
    global("size", 1, Int, size),
    member("size", 1, Int, size),
    global("int", 1, Int, int),
    global("uint", 1, Uint, uint),
    global("double", 1, Double, double),
    global("string", 1, Str, string),
    global("bytes", 1, Bytes, bytes),
    global("bool", 1, Bool, bool),
    global("dyn", 1, Anything, |args, _| Ok(args[0].clone())),
    global("type", 1, Anything, |args, _| Ok(Val::Type(args[0].type_name()))),
    global("matches", 2, Bool, matches),
    member("matches", 2, Bool, matches),
    global("optional.of", 1, Optional, |args, _| Ok(Val::some(args[0].clone()))),
    global("optional.none", 0, Optional, |_, _| Ok(Val::Optional(None))),
    global("optional.ofNonZeroValue", 1, Optional, |args, _| {
        Ok(if args[0].is_zero() { Val::Optional(None) } else { Val::some(args[0].clone()) })
    }),
    member("hasValue", 1, Bool, |args, _| match &args[0] {
        Val::Optional(value) => Ok(Val::Bool(value.is_some())),
        _ => Err(EvalError::no_overload("hasValue", args)),
    }),
    member("value", 1, Anything, |args, _| match &args[0] {
        Val::Optional(Some(value)) => Ok((**value).clone()),
        Val::Optional(None) => Err(EvalError::failed("optional.none() dereference")),
        _ => Err(EvalError::no_overload("value", args)),
    }),
];

fn size<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let size = match &args[0] {
        Val::Str(text) => {
            budget.charge_bytes(text.len())?;
            text.chars().count()
        }
        Val::Bytes(bytes) => bytes.len(),
        Val::List(list) => list.len(),
        Val::Map(map) => map.len(),
        _ => return Err(EvalError::no_overload("size", args)),
    };
    Ok(Val::Int(size as i64))
}

fn bad(what: &str) -> EvalError {
    EvalError::failed(format!("type conversion error to '{what}'"))
}

fn int<'a>(args: &[Val<'a>], _: &mut Budget) -> Evaluated<'a> {
    let value = match &args[0] {
        Val::Int(value) => Some(*value),
        Val::Uint(value) => i64::try_from(*value).ok(),
        // The bounds themselves are not exact as doubles, so they are outside.
        Val::Double(value) => (value.abs() < 9_223_372_036_854_775_808.0).then_some(*value as i64),
        Val::Str(text) => text.parse().ok(),
        Val::Timestamp(time) => Some(time.as_second()),
        Val::Duration(duration) => i64::try_from(duration.as_nanos()).ok(),
        _ => return Err(EvalError::no_overload("int", args)),
    };
    value.map(Val::Int).ok_or_else(|| bad("int"))
}

fn uint<'a>(args: &[Val<'a>], _: &mut Budget) -> Evaluated<'a> {
    let value = match &args[0] {
        Val::Uint(value) => Some(*value),
        Val::Int(value) => u64::try_from(*value).ok(),
        Val::Double(value) => {
            (*value >= 0.0 && *value < 18_446_744_073_709_551_616.0).then_some(*value as u64)
        }
        Val::Str(text) => text.parse().ok(),
        _ => return Err(EvalError::no_overload("uint", args)),
    };
    value.map(Val::Uint).ok_or_else(|| bad("uint"))
}

fn double<'a>(args: &[Val<'a>], _: &mut Budget) -> Evaluated<'a> {
    let value = match &args[0] {
        Val::Double(value) => Some(*value),
        Val::Int(value) => Some(*value as f64),
        Val::Uint(value) => Some(*value as f64),
        Val::Str(text) => text.parse().ok(),
        _ => return Err(EvalError::no_overload("double", args)),
    };
    value.map(Val::Double).ok_or_else(|| bad("double"))
}

fn string<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    Ok(match &args[0] {
        text @ Val::Str(_) => text.clone(),
        Val::Bytes(bytes) => {
            budget.charge_bytes(bytes.len())?;
            let text = std::str::from_utf8(bytes).map_err(|_| EvalError::failed("invalid UTF-8 in bytes"))?;
            Val::text(text)
        }
        other => match plain_text(other) {
            Some(text) => Val::text(text),
            None => return Err(EvalError::no_overload("string", args)),
        },
    })
}

/// A scalar as `string()` shows it.
pub(super) fn plain_text(value: &Val<'_>) -> Option<String> {
    Some(match value {
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        Val::Double(value) => value.to_string(),
        Val::Str(text) => text.to_string(),
        Val::Timestamp(time) => time.to_string(),
        Val::Duration(duration) => {
            let text = format!("{}.{:09}", duration.as_secs().unsigned_abs(), duration.subsec_nanos().abs());
            let sign = if duration.is_negative() { "-" } else { "" };
            format!("{sign}{}s", text.trim_end_matches('0').trim_end_matches('.'))
        }
        Val::Ip(ip) => ip.to_string(),
        Val::Cidr(cidr) => cidr.to_string(),
        _ => return None,
    })
}

fn bytes<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    match &args[0] {
        bytes @ Val::Bytes(_) => Ok(bytes.clone()),
        Val::Str(text) => {
            budget.charge_bytes(text.len())?;
            Ok(Val::Bytes(text.as_bytes().into()))
        }
        _ => Err(EvalError::no_overload("bytes", args)),
    }
}

fn bool<'a>(args: &[Val<'a>], _: &mut Budget) -> Evaluated<'a> {
    match &args[0] {
        Val::Bool(value) => Ok(Val::Bool(*value)),
        Val::Str(text) => match &**text {
            "1" | "t" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => Err(bad("bool")),
        },
        _ => Err(EvalError::no_overload("bool", args)),
    }
}

fn matches<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    with_pattern("matches", args, budget, |text, pattern, _| Ok(Val::Bool(pattern.is_match(text))))
}

/// Calls `function` with a text and the pattern that is the second argument, charging for one match.
///
/// A pattern that is not constant is compiled each time. That takes microseconds, and more for large
/// ones, and is charged so.
pub(super) fn with_pattern<'a>(
    name: &str,
    args: &[Val<'a>],
    budget: &mut Budget,
    function: impl FnOnce(&str, &Pattern, &mut Budget) -> Evaluated<'a>,
) -> Evaluated<'a> {
    const LARGEST: usize = 64 << 10;
    let (text, pattern) = match args {
        [Val::Str(text), Val::Pattern(pattern), ..] => (text, Arc::clone(pattern)),
        [Val::Str(text), Val::Str(source), ..] => {
            budget.charge(1_000 + 100 * source.len() as u64)?;
            let pattern = Pattern::compile_within(source, LARGEST).map_err(EvalError::Failed)?;
            budget.charge(pattern.size() as u64 / 2)?;
            (text, Arc::new(pattern))
        }
        _ => return Err(EvalError::no_overload(name, args)),
    };
    budget.charge(match_cost(text, &pattern))?;
    function(text, &pattern, budget)
}
