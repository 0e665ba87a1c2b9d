//! Arithmetic and concatenation. Every operation is checked: what would overflow is an error.

use std::sync::Arc;

use super::eval::{Budget, EvalError};
use super::value::{List, Val, equal};
use crate::schema::ListType;
use crate::schema::regexp::Pattern;

type Evaluated<'a> = Result<Val<'a>, EvalError>;

/// What matching a text against a pattern costs: the lengths of both count, and the work that the
/// pattern is at its worst. The worst is rare, so it is charged at a fraction of what it would take.
pub(super) fn match_cost(text: &str, pattern: &Pattern) -> u64 {
    const WORST: u64 = 2_048;
    (text.len() as u64 / 10 + 1) * (pattern.source().len() as u64 / 4 + 1) + pattern.work(text) / WORST
}

fn overflow(what: &str) -> EvalError {
    EvalError::failed(format!("{what} overflow"))
}

/// `-a`
pub(super) fn negate(value: Val<'_>) -> Evaluated<'_> {
    match value {
        Val::Int(value) => value.checked_neg().map(Val::Int).ok_or_else(|| overflow("integer")),
        Val::Double(value) => Ok(Val::Double(-value)),
        other => Err(EvalError::no_overload("-_", &[other])),
    }
}

/// `a + b`
pub(super) fn add<'a>(left: &Val<'a>, right: &Val<'a>, budget: &mut Budget) -> Evaluated<'a> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => a.checked_add(*b).map(Val::Int).ok_or_else(|| overflow("integer")),
        (Val::Uint(a), Val::Uint(b)) => {
            a.checked_add(*b).map(Val::Uint).ok_or_else(|| overflow("unsigned integer"))
        }
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::Str(a), Val::Str(b)) => {
            budget.charge_bytes(a.len() + b.len())?;
            Ok(Val::text([&**a, &**b].concat()))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            budget.charge_bytes(a.len() + b.len())?;
            Ok(Val::Bytes([&**a, &**b].concat().into()))
        }
        (Val::List(a), Val::List(b)) => add_lists(a, b, budget),
        (Val::Duration(a), Val::Duration(b)) => {
            a.checked_add(*b).map(Val::Duration).ok_or_else(|| overflow("duration"))
        }
        (Val::Timestamp(time), Val::Duration(by)) | (Val::Duration(by), Val::Timestamp(time)) => {
            time.checked_add(*by).map(Val::Timestamp).map_err(|_| overflow("timestamp"))
        }
        _ => Err(EvalError::no_overload("_+_", &[left.clone(), right.clone()])),
    }
}

/// Lists add as their type says: plain ones are joined, sets united, keyed ones overlaid by key.
fn add_lists<'a>(a: &List<'a>, b: &List<'a>, budget: &mut Budget) -> Evaluated<'a> {
    budget.charge((a.len() + b.len()) as u64)?;
    let mut made: Vec<Val<'a>> = a.iter().collect();
    for entry in b.iter() {
        let place = match a.list_type() {
            ListType::Atomic => None,
            ListType::Set => find(&made, budget, |earlier, budget| equal(earlier, &entry, budget))?,
            ListType::Map(keys) => {
                find(&made, budget, |earlier, budget| same_keys(keys, earlier, &entry, budget))?
            }
        };
        match place {
            Some(at) => made[at] = entry,
            None => made.push(entry),
        }
    }
    Ok(Val::List(List::Own(Arc::new(made))))
}

fn find<'a>(
    entries: &[Val<'a>],
    budget: &mut Budget,
    mut same: impl FnMut(&Val<'a>, &mut Budget) -> Result<bool, EvalError>,
) -> Result<Option<usize>, EvalError> {
    for (at, entry) in entries.iter().enumerate() {
        if same(entry, budget)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn same_keys(keys: &[String], a: &Val<'_>, b: &Val<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    let (Val::Map(a), Val::Map(b)) = (a, b) else { return Ok(false) };
    for key in keys {
        let same = match (a.get_str(key), b.get_str(key)) {
            (Some(a), Some(b)) => equal(&a, &b, budget)?,
            (a, b) => a.is_none() && b.is_none(),
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `a - b`
pub(super) fn subtract<'a>(left: &Val<'a>, right: &Val<'a>) -> Evaluated<'a> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => a.checked_sub(*b).map(Val::Int).ok_or_else(|| overflow("integer")),
        (Val::Uint(a), Val::Uint(b)) => {
            a.checked_sub(*b).map(Val::Uint).ok_or_else(|| overflow("unsigned integer"))
        }
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a - b)),
        (Val::Duration(a), Val::Duration(b)) => {
            a.checked_sub(*b).map(Val::Duration).ok_or_else(|| overflow("duration"))
        }
        (Val::Timestamp(a), Val::Timestamp(b)) => Ok(Val::Duration(a.duration_since(*b))),
        (Val::Timestamp(time), Val::Duration(by)) => {
            time.checked_sub(*by).map(Val::Timestamp).map_err(|_| overflow("timestamp"))
        }
        _ => Err(EvalError::no_overload("_-_", &[left.clone(), right.clone()])),
    }
}

/// `a * b`
pub(super) fn multiply<'a>(left: &Val<'a>, right: &Val<'a>) -> Evaluated<'a> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => a.checked_mul(*b).map(Val::Int).ok_or_else(|| overflow("integer")),
        (Val::Uint(a), Val::Uint(b)) => {
            a.checked_mul(*b).map(Val::Uint).ok_or_else(|| overflow("unsigned integer"))
        }
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a * b)),
        _ => Err(EvalError::no_overload("_*_", &[left.clone(), right.clone()])),
    }
}

/// `a / b`
pub(super) fn divide<'a>(left: &Val<'a>, right: &Val<'a>) -> Evaluated<'a> {
    match (left, right) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => {
            Err(EvalError::failed("division by zero"))
        }
        (Val::Int(a), Val::Int(b)) => a.checked_div(*b).map(Val::Int).ok_or_else(|| overflow("integer")),
        (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(a / b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a / b)),
        _ => Err(EvalError::no_overload("_/_", &[left.clone(), right.clone()])),
    }
}

/// `a % b`
pub(super) fn modulo<'a>(left: &Val<'a>, right: &Val<'a>) -> Evaluated<'a> {
    match (left, right) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => {
            Err(EvalError::failed("modulus by zero"))
        }
        (Val::Int(a), Val::Int(b)) => a.checked_rem(*b).map(Val::Int).ok_or_else(|| overflow("integer")),
        (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(a % b)),
        _ => Err(EvalError::no_overload("_%_", &[left.clone(), right.clone()])),
    }
}
