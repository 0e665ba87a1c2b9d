//! From a parsed expression to the form that is evaluated.
//!
//! Everything that can be found out beforehand is: unknown names and functions, fields that the schema
//! does not have, bad constant patterns, nesting beyond the bound.

use std::sync::Arc;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::functions;
use super::node::{Field, Node, Operator};
use super::types::{Known, Scalar};
use super::value::Val;
use crate::schema::regexp::Pattern;

mod escape;
mod macros;

/// How deep an expression may nest; evaluation takes one stack frame a level.
const MAX_DEPTH: usize = 100;

/// Something wrong with an expression: where (the parser's node number) and what.
#[derive(Debug)]
pub(super) struct Fault {
    /// The number of the node.
    pub(super) id: u64,
    /// In words.
    pub(super) words: String,
}

type Lowered<'s> = Result<(Node, Known<'s>), Fault>;

/// Turns parsed nodes into nodes that can be evaluated.
pub(super) struct Lowering<'s> {
    /// Names in scope, innermost last.
    scope: Vec<(String, usize, Known<'s>)>,
    /// For each slot ever given out, whether something reads it.
    used: Vec<bool>,
    /// Whether the first variable is a whole object, whose metadata is mostly hidden.
    root: bool,
    depth: usize,
}

impl<'s> Lowering<'s> {
    /// A lowering of expressions over these variables, which take the first slots.
    pub(super) fn new(variables: &[(&str, Known<'s>)], root: bool) -> Self {
        let scope = variables.iter().enumerate();
        let scope = scope.map(|(slot, (name, known))| ((*name).to_owned(), slot, known.clone()));
        Self { scope: scope.collect(), used: vec![false; variables.len()], root, depth: 0 }
    }

    /// For each slot, whether something reads it.
    pub(super) fn into_used(self) -> Vec<bool> {
        self.used
    }

    /// Lowers one node and those below it.
    pub(super) fn node(&mut self, expr: &IdedExpr) -> Lowered<'s> {
        if self.depth >= MAX_DEPTH {
            return Err(fault(expr, format!("expression nests deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let lowered = self.lower(expr);
        self.depth -= 1;
        lowered
    }

    fn lower(&mut self, expr: &IdedExpr) -> Lowered<'s> {
        match &expr.expr {
            Expr::Literal(literal) => Ok(constant(literal)),
            Expr::Ident(name) => self.identifier(expr, name),
            Expr::Select(select) => {
                let (base, known) = self.node(&select.operand)?;
                let (field, selected) = self.field(expr, &known, &select.operand, &select.field)?;
                Ok(match select.test {
                    true => (Node::Has(Box::new(base), field), Known::Scalar(Scalar::Bool)),
                    false => (Node::Select(Box::new(base), field), selected),
                })
            }
            Expr::List(list) => {
                let mut entries = Vec::with_capacity(list.elements.len());
                let mut common: Option<Known<'s>> = None;
                for (at, element) in list.elements.iter().enumerate() {
                    let (node, known) = self.node(element)?;
                    let optional = list.optional_indices.contains(&at);
                    entries.push((node, optional));
                    common = Some(match (common, known) {
                        (None, known) if !optional => known,
                        (Some(Known::Scalar(a)), Known::Scalar(b)) if a == b => Known::Scalar(a),
                        _ => Known::Dyn,
                    });
                }
                Ok((Node::List(entries), Known::List(Box::new(common.unwrap_or(Known::Dyn)))))
            }
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err(fault(expr, "unsupported map entry"));
                    };
                    entries.push((self.node(&entry.key)?.0, self.node(&entry.value)?.0, entry.optional));
                }
                Ok((Node::Map(entries), Known::Map))
            }
            Expr::Call(call) => self.call(expr, call),
            Expr::Struct(made) => Err(fault(expr, format!("undeclared reference to '{}'", made.type_name))),
            Expr::Comprehension(_) | Expr::Unspecified => Err(fault(expr, "unsupported expression")),
        }
    }

    fn identifier(&mut self, expr: &IdedExpr, name: &str) -> Lowered<'s> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, slot, known)) = self.scope.iter().rev().find(|(known, ..)| known == name) {
            self.used[*slot] = true;
            return Ok((Node::Slot(*slot), known.clone()));
        }
        const TYPES: [&str; 12] = [
            "bool",
            "int",
            "uint",
            "double",
            "string",
            "bytes",
            "list",
            "map",
            "null_type",
            "type",
            "optional_type",
            "dyn",
        ];
        match TYPES.iter().find(|known| **known == name) {
            Some(name) => Ok((Node::Const(Val::Type(name)), Known::Dyn)),
            None => Err(fault(expr, format!("undeclared reference to '{name}' (in container '')"))),
        }
    }

    fn field(
        &self,
        expr: &IdedExpr,
        known: &Known<'s>,
        operand: &IdedExpr,
        name: &str,
    ) -> Result<(Field, Known<'s>), Fault> {
        let unescaped = escape::unescape(name);
        let root =
            self.root && matches!(&operand.expr, Expr::Ident(name) if name == "self" || name == "oldSelf");
        let selected = match &unescaped {
            Some(plain) => known.field(plain, root).or_else(|| known.field(name, root)),
            None => known.field(name, root),
        };
        match selected {
            Some(selected) => Ok((Field { name: name.to_owned(), unescaped }, selected)),
            None => Err(match known {
                Known::Schema(_) | Known::Metadata(_) => fault(expr, format!("undefined field '{name}'")),
                other => fault(expr, format!("type '{}' does not support field selection", other.name())),
            }),
        }
    }

    fn call(&mut self, expr: &IdedExpr, call: &CallExpr) -> Lowered<'s> {
        if let Some(target) = &call.target {
            if let Some(lowered) = self.namespaced(expr, target, call)? {
                return Ok(lowered);
            }
            if let Some(lowered) = self.member_macro(expr, target, call)? {
                return Ok(lowered);
            }
            let mut args = vec![self.node(target)?];
            for arg in &call.args {
                args.push(self.node(arg)?);
            }
            return self.function(expr, &call.func_name, true, args);
        }
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("has", [arg]) => {
                let Expr::Select(select) = &arg.expr else {
                    return Err(fault(expr, "invalid argument to has() macro"));
                };
                let (base, known) = self.node(&select.operand)?;
                let (field, _) = self.field(arg, &known, &select.operand, &select.field)?;
                Ok((Node::Has(Box::new(base), field), Known::Scalar(Scalar::Bool)))
            }
            (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => self.junction(call),
            (operators::LOGICAL_NOT, [arg]) => {
                let node = self.boolean(arg)?;
                Ok((Node::Not(Box::new(node)), Known::Scalar(Scalar::Bool)))
            }
            (operators::NEGATE, [arg]) => {
                let (node, known) = self.node(arg)?;
                Ok((Node::Negate(Box::new(node)), known))
            }
            (operators::CONDITIONAL, [condition, yes, no]) => {
                let condition = self.boolean(condition)?;
                let ((yes, known), (no, other)) = (self.node(yes)?, self.node(no)?);
                let known = match (known, other) {
                    (Known::Scalar(a), Known::Scalar(b)) if a == b => Known::Scalar(a),
                    _ => Known::Dyn,
                };
                Ok((Node::Choose(Box::new([condition, yes, no])), known))
            }
            (operators::INDEX, [base, index]) => {
                let ((base, known), (index, _)) = (self.node(base)?, self.node(index)?);
                Ok((Node::Index(Box::new((base, index))), known.entry()))
            }
            (operators::OPT_INDEX, [base, index]) => {
                let ((base, known), (index, _)) = (self.node(base)?, self.node(index)?);
                Ok((Node::OptIndex(Box::new((base, index))), Known::Optional(Box::new(known.entry()))))
            }
            (operators::OPT_SELECT, [base, name]) => {
                let Expr::Literal(LiteralValue::String(name)) = &name.expr else {
                    return Err(fault(expr, "unsupported optional field selection"));
                };
                let (node, known) = self.node(base)?;
                let (field, selected) = self.field(expr, &known, base, name.inner())?;
                let selected = match selected {
                    already @ Known::Optional(_) => already,
                    plain => Known::Optional(Box::new(plain)),
                };
                Ok((Node::OptSelect(Box::new(node), field), selected))
            }
            (name, [left, right]) if binary(name).is_some() => self.binary(expr, name, left, right),
            (name, args) => {
                let args = args.iter().map(|arg| self.node(arg)).collect::<Result<Vec<_>, _>>()?;
                self.function(expr, name.strip_prefix('.').unwrap_or(name), false, args)
            }
        }
    }

    fn boolean(&mut self, expr: &IdedExpr) -> Result<Node, Fault> {
        let (node, known) = self.node(expr)?;
        match known.may_be(Scalar::Bool) {
            true => Ok(node),
            false => Err(fault(expr, format!("expected type 'bool' but found '{}'", known.name()))),
        }
    }

    /// `&&` and `||`; chains are flattened, so that a long one does not nest.
    fn junction(&mut self, call: &CallExpr) -> Lowered<'s> {
        let mut terms = Vec::new();
        let mut pending: Vec<&IdedExpr> = call.args.iter().rev().collect();
        while let Some(term) = pending.pop() {
            match &term.expr {
                Expr::Call(inner) if inner.target.is_none() && inner.func_name == call.func_name => {
                    pending.extend(inner.args.iter().rev());
                }
                _ => terms.push(self.boolean(term)?),
            }
        }
        let node = if call.func_name == operators::LOGICAL_AND { Node::And(terms) } else { Node::Or(terms) };
        Ok((node, Known::Scalar(Scalar::Bool)))
    }

    fn binary(&mut self, expr: &IdedExpr, name: &str, left: &IdedExpr, right: &IdedExpr) -> Lowered<'s> {
        let ((left, a), (right, b)) = (self.node(left)?, self.node(right)?);
        let operator = binary(name).ok_or_else(|| fault(expr, format!("unknown operator {name}")))?;
        let known = match operator {
            Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Modulo => {
                a.arithmetic(&b)
            }
            Operator::In => b.entry().comparable(&a).then_some(Known::Scalar(Scalar::Bool)),
            _ => a.comparable(&b).then_some(Known::Scalar(Scalar::Bool)),
        };
        match known {
            Some(known) => Ok((Node::Binary(operator, Box::new((left, right))), known)),
            None => Err(fault(
                expr,
                format!("found no matching overload for '{name}' applied to '({}, {})'", a.name(), b.name()),
            )),
        }
    }

    fn function(
        &mut self,
        expr: &IdedExpr,
        name: &str,
        member: bool,
        args: Vec<(Node, Known<'s>)>,
    ) -> Lowered<'s> {
        let Some(definition) = functions::find(name, member, args.len()) else {
            return Err(fault(
                expr,
                match functions::exists(name, member) {
                    true => format!("found no matching overload for '{name}' with {} arguments", args.len()),
                    false => format!("undeclared reference to '{name}' (in container '')"),
                },
            ));
        };
        let known = match (name, &args[..]) {
            ("value", [(_, Known::Optional(inner))]) => (**inner).clone(),
            ("optional.of", [(_, known)]) => Known::Optional(Box::new(known.clone())),
            _ => Known::returned(definition.returns),
        };
        let mut nodes: Vec<Node> = args.into_iter().map(|(node, _)| node).collect();
        // A pattern that is known now is compiled now; compiling takes longer than most matching.
        if matches!(name, "matches" | "find" | "findAll")
            && let Some(Node::Const(pattern)) = nodes.get_mut(1)
            && let Val::Str(text) = pattern
        {
            let regex = Pattern::compile(text).map_err(|words| fault(expr, words))?;
            *pattern = Val::Pattern(Arc::new(regex));
        }
        Ok((Node::Call(definition.function, nodes), known))
    }
}

fn fault(expr: &IdedExpr, words: impl Into<String>) -> Fault {
    Fault { id: expr.id, words: words.into() }
}

fn constant<'s>(literal: &LiteralValue) -> (Node, Known<'s>) {
    let (value, scalar) = match literal {
        LiteralValue::Null => return (Node::Const(Val::Null), Known::Dyn),
        LiteralValue::Boolean(value) => (Val::Bool(*value.inner()), Scalar::Bool),
        LiteralValue::Bytes(value) => (Val::Bytes(value.inner().into()), Scalar::Bytes),
        LiteralValue::Double(value) => (Val::Double(*value.inner()), Scalar::Double),
        LiteralValue::Int(value) => (Val::Int(*value.inner()), Scalar::Int),
        LiteralValue::String(value) => (Val::text(value.inner()), Scalar::String),
        LiteralValue::UInt(value) => (Val::Uint(*value.inner()), Scalar::Uint),
    };
    (Node::Const(value), Known::Scalar(scalar))
}

fn binary(name: &str) -> Option<Operator> {
    Some(match name {
        operators::ADD => Operator::Add,
        operators::SUBSTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Modulo,
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::NotEqual,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::LessEqual,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::GreaterEqual,
        operators::IN => Operator::In,
        _ => return None,
    })
}
