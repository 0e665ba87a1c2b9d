//! The relaxed JSONPath of printer columns and `kubectl`: parsed once, then asked many times.
//!
//! Understood are fields (`.a.b`, `.a\.b`, `['a.b']`), list positions (`[0]`, `[-1]`, `[1:3]`, `[0:6:2]`),
//! `[*]` and `.*`, unions (`['a','b']`, `[0,2]`), filters (`[?(@.type=="Ready")]`, `[?(@.ready)]`) and
//! descent (`..name`). Text that arrives from users can be neither too deep nor too costly: length, nesting
//! and the number of values visited are bounded, and nothing here panics.

mod parse;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use serde_json::Value;

/// The most values one search may visit; a path that wants more finds nothing. Far above what a column of
/// an object of the largest admissible size needs, and low enough to be over in milliseconds.
const MAX_VISITED: usize = 100_000;

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid JSONPath at byte {at}: {why}")]
pub struct ParseError {
    /// Where in the text.
    pub at: usize,
    /// What is wrong there.
    pub why: &'static str,
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// The member of this name.
    Field(String),
    /// All members of an object or entries of a list.
    Wildcard,
    /// One entry of a list; negative counts from the end.
    Index(i64),
    /// A part of a list.
    Slice { start: Option<i64>, end: Option<i64>, step: Option<i64> },
    /// What each alternative finds, one after the other.
    Union(Vec<Step>),
    /// The entries of a list for which this holds.
    Filter(Box<Filter>),
    /// The value and everything below it.
    Descend,
}

#[derive(Clone, Debug, PartialEq)]
enum Filter {
    /// The operand finds something.
    Exists(Operand),
    /// Both operands are one value each and compare so.
    Compare(Operand, Operator, Operand),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    /// A path from the entry (`@`) under test.
    Here(Vec<Step>),
    /// A path from the root (`$`).
    Root(Vec<Step>),
    Literal(Value),
}

/// The path does not fit the value (a list position out of bounds, a filter on an object) or costs too much.
struct Unfit;

struct Search<'a> {
    root: &'a Value,
    left: usize,
}

impl JsonPath {
    /// Reads a path; surrounding braces, a leading `$` and a missing first dot are accepted.
    ///
    /// # Errors
    /// The text is not a path of the supported form, or is too long or too deeply nested.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::parse(text).map(|steps| Self { steps })
    }

    /// All values at the path, in order. Missing members are skipped; when the path does not fit the value
    /// at all, such as a list position out of bounds, nothing is found.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut search = Search { root: value, left: MAX_VISITED };
        search.walk(&self.steps, vec![value]).unwrap_or_default()
    }

    /// The names along the path, when it is made of plain fields only.
    pub fn plain_fields(&self) -> Option<Vec<String>> {
        self.steps
            .iter()
            .map(|step| match step {
                Step::Field(name) => Some(name.clone()),
                _ => None,
            })
            .collect()
    }
}

impl<'a> Search<'a> {
    fn walk(&mut self, steps: &[Step], from: Vec<&'a Value>) -> Result<Vec<&'a Value>, Unfit> {
        steps.iter().try_fold(from, |values, step| {
            let mut found = Vec::new();
            for value in values {
                self.step(step, value, &mut found)?;
            }
            Ok(found)
        })
    }

    fn visit(&mut self) -> Result<(), Unfit> {
        self.left = self.left.checked_sub(1).ok_or(Unfit)?;
        Ok(())
    }

    fn step(&mut self, step: &Step, value: &'a Value, found: &mut Vec<&'a Value>) -> Result<(), Unfit> {
        self.visit()?;
        if value.is_null() {
            return Ok(());
        }
        match step {
            Step::Field(name) => found.extend(value.get(name.as_str())),
            Step::Wildcard => children(value, |child| {
                self.visit()?;
                found.push(child);
                Ok(())
            })?,
            Step::Index(index) => {
                let list = value.as_array().ok_or(Unfit)?;
                let at = from_end(*index, list.len()).ok_or(Unfit)?;
                found.push(list.get(at).ok_or(Unfit)?);
            }
            Step::Slice { start, end, step } => {
                let list = value.as_array().ok_or(Unfit)?;
                let start = start.map_or(Some(0), |at| from_end(at, list.len())).ok_or(Unfit)?;
                let end = end.map_or(Some(list.len()), |at| from_end(at, list.len())).ok_or(Unfit)?;
                let stride = usize::try_from(step.unwrap_or(1)).ok().filter(|step| *step > 0).ok_or(Unfit)?;
                if start != end {
                    for entry in list.get(start..end).ok_or(Unfit)?.iter().step_by(stride) {
                        self.visit()?;
                        found.push(entry);
                    }
                }
            }
            Step::Union(alternatives) => {
                for alternative in alternatives {
                    self.step(alternative, value, found)?;
                }
            }
            Step::Filter(filter) => {
                for entry in value.as_array().ok_or(Unfit)? {
                    self.visit()?;
                    if self.holds(filter, entry)? {
                        found.push(entry);
                    }
                }
            }
            Step::Descend => {
                // An explicit stack: depth is the object's, not the thread's. Children go on reversed, so
                // that they come off in order.
                let mut pending = vec![value];
                while let Some(next) = pending.pop() {
                    self.visit()?;
                    found.push(next);
                    let first = pending.len();
                    children(next, |child| {
                        pending.push(child);
                        Ok(())
                    })?;
                    pending[first..].reverse();
                }
            }
        }
        Ok(())
    }

    fn holds(&mut self, filter: &Filter, entry: &'a Value) -> Result<bool, Unfit> {
        match filter {
            Filter::Exists(operand) => match operand {
                Operand::Literal(_) => Ok(true),
                Operand::Here(steps) => Ok(!self.walk(steps, vec![entry])?.is_empty()),
                Operand::Root(steps) => Ok(!self.walk(steps, vec![self.root])?.is_empty()),
            },
            Filter::Compare(left, operator, right) => {
                let Some(left) = self.operand(left, entry)? else { return Ok(false) };
                let Some(right) = self.operand(right, entry)? else { return Ok(false) };
                Ok(operator.holds(left.as_ref(), right.as_ref()))
            }
        }
    }

    /// The one value of an operand; `None` when there is none. More than one cannot be compared.
    fn operand<'b>(
        &mut self,
        operand: &'b Operand,
        entry: &'a Value,
    ) -> Result<Option<Found<'a, 'b>>, Unfit> {
        let found = match operand {
            Operand::Literal(value) => return Ok(Some(Found::Literal(value))),
            Operand::Here(steps) => self.walk(steps, vec![entry])?,
            Operand::Root(steps) => self.walk(steps, vec![self.root])?,
        };
        match found[..] {
            [] => Ok(None),
            [one] => Ok(Some(Found::Value(one))),
            _ => Err(Unfit),
        }
    }
}

enum Found<'a, 'b> {
    Value(&'a Value),
    Literal(&'b Value),
}

impl Found<'_, '_> {
    fn as_ref(&self) -> &Value {
        match self {
            Found::Value(value) => value,
            Found::Literal(value) => value,
        }
    }
}

impl Operator {
    /// Whether two scalars compare so; values of different kinds never do, not even as unequal.
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => left.cmp(right),
            (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => left.cmp(&right),
                _ => match left.as_f64().partial_cmp(&right.as_f64()) {
                    Some(order) => order,
                    None => return false,
                },
            },
            (Value::Bool(left), Value::Bool(right)) => match self {
                Operator::Equal | Operator::NotEqual => left.cmp(right),
                _ => return false,
            },
            _ => return false,
        };
        match self {
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual => order != Ordering::Equal,
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => order != Ordering::Greater,
            Operator::Greater => order == Ordering::Greater,
            Operator::GreaterOrEqual => order != Ordering::Less,
        }
    }
}

fn children<'a>(value: &'a Value, mut each: impl FnMut(&'a Value) -> Result<(), Unfit>) -> Result<(), Unfit> {
    match value {
        Value::Array(entries) => entries.iter().try_for_each(each),
        Value::Object(members) => members.values().try_for_each(&mut each),
        _ => Ok(()),
    }
}

/// A position counted from the end when negative; `None` when it lies before the first entry.
fn from_end(position: i64, len: usize) -> Option<usize> {
    match usize::try_from(position) {
        Ok(position) => Some(position),
        Err(_) => len.checked_sub(usize::try_from(position.unsigned_abs()).ok()?),
    }
}
