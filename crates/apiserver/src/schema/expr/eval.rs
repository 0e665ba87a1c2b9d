//! Evaluation, within a budget.
//!
//! # Guarantees
//! - Work is bounded: every node visited, every entry looped over and every few bytes of text read or
//!   made are charged to a [`Budget`], and evaluation stops when it is used up. Text and lists are
//!   charged before they are made, so memory is bounded by the same number.
//! - The stack is bounded: the nesting of an expression is bounded when it is compiled.
//! - Nothing panics: arithmetic is checked, and indexes are looked up. So evaluation needs no
//!   unwinding guard.

use std::cmp::Ordering;
use std::sync::Arc;

use super::node::{Field, Node, Operator};
use super::operators;
use super::value::{Map, Text, Val, compare, equal};

mod loops;

/// Why an evaluation has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The budget is used up; nothing more may be evaluated with it.
    #[error("operation cancelled: actual cost limit exceeded")]
    OverBudget,
    /// An object has no such field, or a map no such key.
    #[error("no such key: {0}")]
    NoSuchKey(String),
    /// No operator or function takes values of these types.
    #[error("no such overload: {0}")]
    NoOverload(String),
    /// A variable that the expression uses was not given.
    #[error("no such attribute: {0}")]
    NoVariable(String),
    /// Anything else, in words.
    #[error("{0}")]
    Failed(String),
}

impl EvalError {
    /// A failure in words.
    pub fn failed(words: impl Into<String>) -> Self {
        Self::Failed(words.into())
    }

    /// No operator or function `name` takes `args`.
    pub fn no_overload(name: &str, args: &[Val<'_>]) -> Self {
        let types: Vec<&str> = args.iter().map(Val::type_name).collect();
        Self::NoOverload(format!("{name}({})", types.join(", ")))
    }
}

/// How much work may still be done.
#[derive(Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of `units`; a unit is worth some ten nanoseconds.
    pub fn new(units: u64) -> Self {
        Self { left: units }
    }

    /// What is left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Takes `units` off.
    ///
    /// # Errors
    /// [`EvalError::OverBudget`] if there are not that many left.
    pub fn charge(&mut self, units: u64) -> Result<(), EvalError> {
        match self.left.checked_sub(units) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(EvalError::OverBudget)
            }
        }
    }

    /// Charges for reading or making `bytes` bytes of text.
    ///
    /// # Errors
    /// [`EvalError::OverBudget`] if the budget does not cover it.
    pub fn charge_bytes(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.charge(bytes as u64 / 10 + 1)
    }
}

/// One evaluation.
pub(super) struct Evaluation<'a, 'b> {
    slots: Vec<Val<'a>>,
    budget: &'b mut Budget,
}

type Evaluated<'a> = Result<Val<'a>, EvalError>;

impl<'a, 'b> Evaluation<'a, 'b> {
    /// An evaluation that starts with these values in its slots.
    pub(super) fn new(slots: Vec<Val<'a>>, budget: &'b mut Budget) -> Self {
        Self { slots, budget }
    }

    /// The value of `node`.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub(super) fn node(&mut self, node: &'a Node) -> Evaluated<'a> {
        self.budget.charge(1)?;
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Slot(slot) => Ok(self.slots[*slot].clone()),
            Node::Select(base, field) => {
                let base = self.node(base)?;
                self.select(&base, field)
            }
            Node::Has(base, field) => self.has(base, field),
            Node::OptSelect(base, field) => {
                let base = self.node(base)?;
                self.optional_select(&base, field)
            }
            Node::Index(parts) => {
                let (base, index) = (self.node(&parts.0)?, self.node(&parts.1)?);
                match &base {
                    Val::Optional(_) => self.optional_index(&base, &index),
                    _ => self.index(&base, &index)?.ok_or_else(|| missing(&base, &index)),
                }
            }
            Node::OptIndex(parts) => {
                let (base, index) = (self.node(&parts.0)?, self.node(&parts.1)?);
                self.optional_index(&base, &index)
            }
            Node::And(terms) => self.junction(terms, false),
            Node::Or(terms) => self.junction(terms, true),
            Node::Not(term) => match self.node(term)? {
                Val::Bool(value) => Ok(Val::Bool(!value)),
                other => Err(EvalError::no_overload("!_", &[other])),
            },
            Node::Negate(term) => operators::negate(self.node(term)?),
            Node::Choose(parts) => match self.node(&parts[0])? {
                Val::Bool(true) => self.node(&parts[1]),
                Val::Bool(false) => self.node(&parts[2]),
                other => Err(EvalError::no_overload("_?_:_", &[other])),
            },
            Node::Binary(operator, parts) => {
                let (left, right) = (self.node(&parts.0)?, self.node(&parts.1)?);
                self.binary(*operator, &left, &right)
            }
            Node::List(entries) => self.list(entries),
            Node::Map(entries) => self.map(entries),
            Node::Loop(body) => self.run_loop(body),
            Node::Bind(slot, parts) => {
                self.slots[*slot] = self.node(&parts.0)?;
                self.node(&parts.1)
            }
            Node::OptMap { slot, flat, parts } => match self.node(&parts.0)? {
                Val::Optional(None) => Ok(Val::Optional(None)),
                Val::Optional(Some(value)) => {
                    self.slots[*slot] = (*value).clone();
                    let mapped = self.node(&parts.1)?;
                    Ok(if *flat { mapped } else { Val::some(mapped) })
                }
                other => Err(EvalError::no_overload("optMap", &[other])),
            },
            Node::OrElse { value, parts } => match self.node(&parts.0)? {
                Val::Optional(Some(inner)) if *value => Ok((*inner).clone()),
                Val::Optional(None) => self.node(&parts.1),
                present @ Val::Optional(_) => Ok(present),
                other => Err(EvalError::no_overload(if *value { "orValue" } else { "or" }, &[other])),
            },
            Node::Call(function, args) => {
                let args = args.iter().map(|arg| self.node(arg)).collect::<Result<Vec<_>, _>>()?;
                function(&args, self.budget)
            }
        }
    }

    fn select(&mut self, base: &Val<'a>, field: &Field) -> Evaluated<'a> {
        match base {
            Val::Map(map) => lookup(map, field).ok_or_else(|| EvalError::NoSuchKey(field.name.clone())),
            Val::Optional(_) => self.optional_select(base, field),
            _ => Err(EvalError::no_overload(&format!("_.{}", field.name), std::slice::from_ref(base))),
        }
    }

    fn has(&mut self, base: &'a Node, field: &Field) -> Evaluated<'a> {
        match self.node(base)? {
            Val::Map(map) => Ok(Val::Bool(lookup(&map, field).is_some())),
            Val::Optional(Some(inner)) => match &*inner {
                Val::Map(map) => Ok(Val::Bool(lookup(map, field).is_some())),
                other => Err(EvalError::no_overload("has", std::slice::from_ref(other))),
            },
            Val::Optional(None) => Ok(Val::Bool(false)),
            other => Err(EvalError::no_overload("has", &[other])),
        }
    }

    fn optional_select(&mut self, base: &Val<'a>, field: &Field) -> Evaluated<'a> {
        match base {
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => self.optional_select(&inner.clone(), field),
            Val::Map(map) => Ok(Val::Optional(lookup(map, field).map(Arc::new))),
            _ => Err(EvalError::no_overload(&format!("_.?{}", field.name), std::slice::from_ref(base))),
        }
    }

    fn optional_index(&mut self, base: &Val<'a>, index: &Val<'a>) -> Evaluated<'a> {
        match base {
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => self.optional_index(&inner.clone(), index),
            _ => Ok(Val::Optional(self.index(base, index)?.map(Arc::new))),
        }
    }

    fn index(&mut self, base: &Val<'a>, index: &Val<'a>) -> Result<Option<Val<'a>>, EvalError> {
        match (base, index) {
            (Val::List(list), Val::Int(at)) => Ok(usize::try_from(*at).ok().and_then(|at| list.get(at))),
            (Val::List(list), Val::Uint(at)) => Ok(usize::try_from(*at).ok().and_then(|at| list.get(at))),
            (Val::List(list), Val::Double(at)) if at.fract() == 0.0 && *at >= 0.0 => {
                Ok(list.get(*at as usize))
            }
            (Val::Map(map), key) => map.get(key, self.budget),
            _ => Err(EvalError::no_overload("_[_]", &[base.clone(), index.clone()])),
        }
    }

    /// `&&` and `||`: the first term that decides wins, even over a term that fails.
    fn junction(&mut self, terms: &'a [Node], deciding: bool) -> Evaluated<'a> {
        let mut failure = None;
        for term in terms {
            match self.node(term) {
                Ok(Val::Bool(value)) if value == deciding => return Ok(Val::Bool(deciding)),
                Ok(Val::Bool(_)) => {}
                Ok(other) => {
                    failure.get_or_insert(EvalError::no_overload(
                        if deciding { "_||_" } else { "_&&_" },
                        &[other],
                    ));
                }
                Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(Val::Bool(!deciding)), Err)
    }

    fn binary(&mut self, operator: Operator, left: &Val<'a>, right: &Val<'a>) -> Evaluated<'a> {
        let ordered = |ordering: Option<Ordering>, accepted: &[Ordering], name: &str| match ordering {
            Some(ordering) => Ok(Val::Bool(accepted.contains(&ordering))),
            // Two numbers without an order: one is not a number.
            None if is_number(left) && is_number(right) => Ok(Val::Bool(false)),
            None => Err(EvalError::no_overload(name, &[left.clone(), right.clone()])),
        };
        match operator {
            Operator::Equal => Ok(Val::Bool(equal(left, right, self.budget)?)),
            Operator::NotEqual => Ok(Val::Bool(!equal(left, right, self.budget)?)),
            Operator::Less => ordered(compare(left, right, self.budget)?, &[Ordering::Less], "_<_"),
            Operator::LessEqual => {
                ordered(compare(left, right, self.budget)?, &[Ordering::Less, Ordering::Equal], "_<=_")
            }
            Operator::Greater => ordered(compare(left, right, self.budget)?, &[Ordering::Greater], "_>_"),
            Operator::GreaterEqual => {
                ordered(compare(left, right, self.budget)?, &[Ordering::Greater, Ordering::Equal], "_>=_")
            }
            Operator::In => self.is_in(left, right),
            Operator::Add => operators::add(left, right, self.budget),
            Operator::Subtract => operators::subtract(left, right),
            Operator::Multiply => operators::multiply(left, right),
            Operator::Divide => operators::divide(left, right),
            Operator::Modulo => operators::modulo(left, right),
        }
    }

    fn is_in(&mut self, needle: &Val<'a>, haystack: &Val<'a>) -> Evaluated<'a> {
        match haystack {
            Val::List(list) => {
                for entry in list.iter() {
                    if equal(needle, &entry, self.budget)? {
                        return Ok(Val::Bool(true));
                    }
                }
                Ok(Val::Bool(false))
            }
            Val::Map(map) => Ok(Val::Bool(map.get(needle, self.budget)?.is_some())),
            _ => Err(EvalError::no_overload("@in", &[needle.clone(), haystack.clone()])),
        }
    }

    fn list(&mut self, entries: &'a [(Node, bool)]) -> Evaluated<'a> {
        let mut made = Vec::with_capacity(entries.len());
        for (entry, optional) in entries {
            match (self.node(entry)?, optional) {
                (value, false) => made.push(value),
                (Val::Optional(Some(value)), true) => made.push((*value).clone()),
                (Val::Optional(None), true) => {}
                (other, true) => return Err(EvalError::no_overload("[?_]", &[other])),
            }
        }
        Ok(Val::list(made))
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Evaluated<'a> {
        let mut made: Vec<(Val<'a>, Val<'a>)> = Vec::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.node(key)?;
            if !matches!(key, Val::Str(_) | Val::Int(_) | Val::Uint(_) | Val::Bool(_)) {
                return Err(EvalError::failed("unsupported key type"));
            }
            for (earlier, _) in &made {
                if equal(earlier, &key, self.budget)? {
                    return Err(EvalError::failed("Failed with repeated key"));
                }
            }
            match (self.node(value)?, optional) {
                (value, false) => made.push((key, value)),
                (Val::Optional(Some(value)), true) => made.push((key, (*value).clone())),
                (Val::Optional(None), true) => {}
                (other, true) => return Err(EvalError::no_overload("{?_:_}", &[other])),
            }
        }
        Ok(Val::Map(Map::Own(Arc::new(made))))
    }
}

/// The value of a field. The escaped form is meant where the object has the field that it stands for.
fn lookup<'a>(map: &Map<'a>, field: &Field) -> Option<Val<'a>> {
    match &field.unescaped {
        Some(unescaped) => map.get_str(unescaped).or_else(|| map.get_str(&field.name)),
        None => map.get_str(&field.name),
    }
}

fn is_number(value: &Val<'_>) -> bool {
    matches!(value, Val::Int(_) | Val::Uint(_) | Val::Double(_))
}

fn missing(base: &Val<'_>, index: &Val<'_>) -> EvalError {
    match (base, index) {
        (Val::List(_), index) => EvalError::failed(format!("index out of bounds: {}", shown(index))),
        (_, index) => EvalError::NoSuchKey(shown(index)),
    }
}

fn shown(value: &Val<'_>) -> String {
    match value {
        Val::Str(Text::Ref(text)) => (*text).to_owned(),
        Val::Str(Text::Own(text)) => text.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        other => other.type_name().to_owned(),
    }
}
