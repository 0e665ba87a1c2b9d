//! The functions that expressions may call, found by name when an expression is compiled.
//!
//! One table entry is one function of one number of arguments; it tells apart the types of its
//! arguments itself. Functions that are given text or lists charge for their length before they work.

use super::eval::{Budget, EvalError};
use super::node::Function;
use super::value::Val;

mod format_text;
mod kubernetes;
mod lists;
mod standard;
mod strings;
mod times;

/// What a function returns, as far as it is known beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the type of the expression language of the same name")]
pub(super) enum Returns {
    Anything,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    Optional,
    List,
    Map,
    Object,
}

/// One function.
#[derive(Debug)]
pub(super) struct Definition {
    /// The name, with its namespace: `size`, `sets.contains`.
    pub(super) name: &'static str,
    /// Whether it is called on a value: `a.size()`.
    pub(super) member: bool,
    /// The number of arguments, the receiver among them.
    pub(super) args: usize,
    /// What it returns.
    pub(super) returns: Returns,
    /// The function.
    pub(super) function: Function,
}

/// The function `name` for this many arguments (the receiver among them).
pub(super) fn find(name: &str, member: bool, args: usize) -> Option<&'static Definition> {
    named(name, member).find(|definition| definition.args == args)
}

/// Whether there is a function `name` at all.
pub(super) fn exists(name: &str, member: bool) -> bool {
    named(name, member).next().is_some()
}

fn named(name: &str, member: bool) -> impl Iterator<Item = &'static Definition> {
    [standard::TABLE, strings::TABLE, lists::TABLE, times::TABLE, kubernetes::TABLE]
        .into_iter()
        .flatten()
        .filter(move |definition| definition.member == member && definition.name == name)
}

type Evaluated<'a> = Result<Val<'a>, EvalError>;

const fn global(name: &'static str, args: usize, returns: Returns, function: Function) -> Definition {
    Definition { name, member: false, args, returns, function }
}

const fn member(name: &'static str, args: usize, returns: Returns, function: Function) -> Definition {
    Definition { name, member: true, args, returns, function }
}

/// The result of `function` given a text, if the first argument is one.
fn on_text<'a>(
    name: &str,
    args: &[Val<'a>],
    budget: &mut Budget,
    function: impl FnOnce(&str) -> Evaluated<'a>,
) -> Evaluated<'a> {
    match args {
        [Val::Str(text), ..] => {
            budget.charge_bytes(text.len())?;
            function(text)
        }
        _ => Err(EvalError::no_overload(name, args)),
    }
}
