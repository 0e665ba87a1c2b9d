//! The expression language of rules and match conditions.
//!
//! Parsing is the `cel` crate's; what is parsed is checked and turned into a form of our own
//! (`lower`), which is evaluated here (`eval`). Evaluating it ourselves is what makes it safe to run
//! rules that users wrote on objects that users wrote: work and memory are charged to a budget as they
//! are spent, objects are borrowed and not converted, and values have the types that their schema gives
//! them. The `cel` interpreter has no place to hang a budget on.
//!
//! # Bounds
//! An expression is at most [`MAX_SOURCE`] bytes and 100 levels deep; one evaluation spends at most
//! [`RULE_BUDGET`] units.

use cel::Env;
use cel::common::ast::SourceInfo;
use serde_json::Value;

mod eval;
mod functions;
mod lower;
pub mod net;
mod node;
mod operators;
pub mod quantity;
pub mod semver;
mod types;
pub mod url;
mod value;

pub use eval::{Budget, EvalError};
pub use types::{Known, Scalar};
pub use value::{List, Map, Text, Val};

/// The longest expression that is parsed.
pub const MAX_SOURCE: usize = 16 << 10;
/// What one evaluation may spend: some tens of milliseconds.
pub const RULE_BUDGET: u64 = 1_000_000;
/// The stack that parsing gets. The parser recurses along chains (`a.b.c`, `a + b + c`), whose length
/// only [`MAX_SOURCE`] bounds; pages that it does not reach are never touched.
const PARSE_STACK: usize = 64 << 20;

/// An expression that cannot be compiled, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompileError(String);

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Program {
    root: node::Node,
    /// The variables that may be given, each in the slot of its place.
    variables: Vec<String>,
    /// For each slot, whether the expression reads it. Slots after the variables are those of loops.
    used: Vec<bool>,
}

impl Program {
    /// Compiles an expression over variables of unknown type.
    ///
    /// # Errors
    /// The expression does not parse, or uses a name or function that does not exist.
    pub fn compile(source: &str, allowed_vars: &[&str]) -> Result<Self, CompileError> {
        let variables: Vec<_> = allowed_vars.iter().map(|name| (*name, Known::Dyn)).collect();
        Self::compile_typed(source, &variables, Scalar::Bool, false)
    }

    /// Compiles an expression over typed variables that must come to a value of type `wanted`.
    ///
    /// `root` says that `self` is a whole object, of whose metadata only the name is seen.
    ///
    /// # Errors
    /// The expression does not parse, uses a name, field or function that does not exist, or can be
    /// seen to apply an operator to the wrong types or to come to another type.
    pub fn compile_typed(
        source: &str,
        variables: &[(&str, Known<'_>)],
        wanted: Scalar,
        root: bool,
    ) -> Result<Self, CompileError> {
        if source.len() > MAX_SOURCE {
            return Err(CompileError(format!("expression is longer than {MAX_SOURCE} bytes")));
        }
        // On a thread of its own for its stack. That also turns a panic of the parser into an error:
        // the thread shares nothing with this one but what it reads.
        let parsed = std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size(PARSE_STACK)
                .spawn_scoped(scope, || parse(source, variables, wanted, root))
                .map_err(|error| CompileError(format!("cannot compile expression: {error}")))?
                .join()
                .map_err(|_| CompileError("expression cannot be parsed".to_owned()))
        });
        parsed?
    }

    /// Whether the expression reads the variable `name`.
    pub fn uses(&self, name: &str) -> bool {
        self.variables.iter().zip(&self.used).any(|(known, used)| *used && known == name)
    }

    /// Evaluates with these variables, which are objects without a schema.
    ///
    /// # Errors
    /// See [`EvalError`]; also if the expression comes to something other than true or false.
    pub fn eval_bool(&self, vars: &[(&str, &Value)]) -> Result<bool, EvalError> {
        let vars: Vec<_> = vars.iter().map(|(name, value)| (*name, Val::from_json(value, None))).collect();
        match self.eval(&vars, &mut Budget::new(RULE_BUDGET))? {
            Val::Bool(value) => Ok(value),
            other => Err(EvalError::no_overload("bool", &[other])),
        }
    }

    /// Evaluates with these variables, within a budget.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn eval<'a>(&'a self, vars: &[(&str, Val<'a>)], budget: &mut Budget) -> Result<Val<'a>, EvalError> {
        let mut slots = vec![Val::Null; self.used.len()];
        for (slot, name) in self.variables.iter().enumerate().filter(|(slot, _)| self.used[*slot]) {
            let given = vars.iter().find(|(given, _)| given == name);
            slots[slot] = given.ok_or_else(|| EvalError::NoVariable(name.clone()))?.1.clone();
        }
        eval::Evaluation::new(slots, budget).node(&self.root)
    }
}

fn parse(
    source: &str,
    variables: &[(&str, Known<'_>)],
    wanted: Scalar,
    root: bool,
) -> Result<Program, CompileError> {
    // An environment without macros leaves `all(x, …)` and its like as calls; `lower` makes loops of them.
    let parser = Env::default().parser().enable_optional_syntax(true).enable_ident_escape_syntax(true);
    let (expr, info) =
        parser.parse_with_source_info(source).map_err(|errors| CompileError(errors.to_string()))?;
    let mut lowering = lower::Lowering::new(variables, root);
    let (node, known) = lowering.node(&expr).map_err(|fault| located(&fault, &info, source))?;
    if !known.may_be(wanted) {
        return Err(CompileError(format!("must evaluate to {}", wanted.name())));
    }
    let variables = variables.iter().map(|(name, _)| (*name).to_owned()).collect();
    Ok(Program { root: node, variables, used: lowering.into_used() })
}

/// A fault with its place, shown under the line that it is in.
fn located(fault: &lower::Fault, info: &SourceInfo, source: &str) -> CompileError {
    let Some((offset, _)) = info.offset_for(fault.id) else {
        return CompileError(format!("ERROR: <input>: {}", fault.words));
    };
    let before: String = source.chars().take(offset as usize).collect();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
    let text = source.lines().nth(line).unwrap_or_default();
    CompileError(format!(
        "ERROR: <input>:{}:{}: {}\n | {text}\n | {}^",
        line + 1,
        column + 1,
        fault.words,
        ".".repeat(column.min(MAX_SOURCE))
    ))
}

#[cfg(test)]
mod tests;
