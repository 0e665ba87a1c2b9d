//! Lists and sets.

use std::cmp::Ordering;

use super::Returns::{Anything, Bool, List};
use super::{Definition, Evaluated, global, member};
use crate::schema::expr::eval::{Budget, EvalError};
use crate::schema::expr::operators;
use crate::schema::expr::value::{List as ListVal, Val, compare, equal};

pub(super) const TABLE: &[Definition] = &[
    member("isSorted", 1, Bool, is_sorted),
    member("sum", 1, Anything, sum),
    member("min", 1, Anything, |args, budget| extreme("min", args, budget, Ordering::Less)),
    member("max", 1, Anything, |args, budget| extreme("max", args, budget, Ordering::Greater)),
    member("flatten", 1, List, flatten),
    member("distinct", 1, List, distinct),
    member("slice", 3, List, slice),
    global("sets.contains", 2, Bool, |args, budget| {
        let [a, b] = both("sets.contains", args)?;
        Ok(Val::Bool(contains_all(a, b, budget)?))
    }),
    global("sets.equivalent", 2, Bool, |args, budget| {
        let [a, b] = both("sets.equivalent", args)?;
        Ok(Val::Bool(contains_all(a, b, budget)? && contains_all(b, a, budget)?))
    }),
    global("sets.intersects", 2, Bool, |args, budget| {
        let [a, b] = both("sets.intersects", args)?;
        for entry in b.iter() {
            if contains(a, &entry, budget)? {
                return Ok(Val::Bool(true));
            }
        }
        Ok(Val::Bool(false))
    }),
];

fn only<'l, 'a>(name: &str, args: &'l [Val<'a>]) -> Result<&'l ListVal<'a>, EvalError> {
    match args {
        [Val::List(list), ..] => Ok(list),
        _ => Err(EvalError::no_overload(name, args)),
    }
}

fn both<'l, 'a>(name: &str, args: &'l [Val<'a>]) -> Result<[&'l ListVal<'a>; 2], EvalError> {
    match args {
        [Val::List(a), Val::List(b)] => Ok([a, b]),
        _ => Err(EvalError::no_overload(name, args)),
    }
}

fn contains<'a>(list: &ListVal<'a>, wanted: &Val<'a>, budget: &mut Budget) -> Result<bool, EvalError> {
    for entry in list.iter() {
        if equal(&entry, wanted, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains_all<'a>(a: &ListVal<'a>, b: &ListVal<'a>, budget: &mut Budget) -> Result<bool, EvalError> {
    for entry in b.iter() {
        if !contains(a, &entry, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_sorted<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let list = only("isSorted", args)?;
    let mut last: Option<Val<'a>> = None;
    for entry in list.iter() {
        budget.charge(1)?;
        if let Some(last) = &last {
            match compare(last, &entry, budget)? {
                Some(Ordering::Greater) => return Ok(Val::Bool(false)),
                Some(_) => {}
                None => return Err(EvalError::no_overload("isSorted", args)),
            }
        }
        last = Some(entry);
    }
    Ok(Val::Bool(true))
}

fn sum<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let list = only("sum", args)?;
    let mut total = None;
    for entry in list.iter() {
        budget.charge(1)?;
        if !matches!(entry, Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Duration(_)) {
            return Err(EvalError::no_overload("sum", args));
        }
        total = Some(match &total {
            Some(total) => operators::add(total, &entry, budget)?,
            None => entry,
        });
    }
    Ok(total.unwrap_or(Val::Int(0)))
}

fn extreme<'a>(name: &str, args: &[Val<'a>], budget: &mut Budget, wanted: Ordering) -> Evaluated<'a> {
    let list = only(name, args)?;
    let mut best: Option<Val<'a>> = None;
    for entry in list.iter() {
        budget.charge(1)?;
        let better = match &best {
            None => true,
            Some(best) => match compare(&entry, best, budget)? {
                Some(order) => order == wanted,
                None => return Err(EvalError::no_overload(name, args)),
            },
        };
        if better {
            best = Some(entry);
        }
    }
    best.ok_or_else(|| EvalError::failed(format!("{name} called on empty list")))
}

/// `list.indexOf(x)` and `list.lastIndexOf(x)`.
pub(super) fn index_of<'a>(args: &[Val<'a>], budget: &mut Budget, last: bool) -> Evaluated<'a> {
    let [Val::List(list), wanted] = args else { return Err(EvalError::no_overload("indexOf", args)) };
    let mut found = -1;
    for (at, entry) in list.iter().enumerate() {
        if equal(&entry, wanted, budget)? {
            found = at as i64;
            if !last {
                break;
            }
        }
    }
    Ok(Val::Int(found))
}

fn flatten<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let mut made = Vec::new();
    for entry in only("flatten", args)?.iter() {
        match entry {
            Val::List(inner) => {
                budget.charge(inner.len() as u64 + 1)?;
                made.extend(inner.iter());
            }
            other => {
                budget.charge(1)?;
                made.push(other);
            }
        }
    }
    Ok(Val::list(made))
}

fn distinct<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let mut made: Vec<Val<'a>> = Vec::new();
    'entries: for entry in only("distinct", args)?.iter() {
        for earlier in &made {
            if equal(earlier, &entry, budget)? {
                continue 'entries;
            }
        }
        made.push(entry);
    }
    Ok(Val::list(made))
}

fn slice<'a>(args: &[Val<'a>], budget: &mut Budget) -> Evaluated<'a> {
    let [Val::List(list), Val::Int(start), Val::Int(end)] = args else {
        return Err(EvalError::no_overload("slice", args));
    };
    let bounds = usize::try_from(*start).ok().zip(usize::try_from(*end).ok());
    match bounds {
        Some((start, end)) if start <= end && end <= list.len() => {
            budget.charge((end - start) as u64 + 1)?;
            Ok(Val::list((start..end).filter_map(|at| list.get(at)).collect()))
        }
        _ => Err(EvalError::failed(format!("cannot slice({start}, {end}), list has size {}", list.len()))),
    }
}
