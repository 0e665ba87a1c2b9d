//! Calls that are not plain calls: namespaced functions, and macros that bring names into scope.

use cel::common::ast::{CallExpr, Expr, IdedExpr};

use super::{Fault, Lowered, Lowering, fault};
use crate::schema::expr::functions;
use crate::schema::expr::node::{Loop, LoopKind, Node};
use crate::schema::expr::types::{Known, Scalar};

impl<'s> Lowering<'s> {
    /// `sets.contains(…)`, `optional.of(…)`, `cel.bind(…)`: a call on a name that is no variable.
    pub(super) fn namespaced(
        &mut self,
        expr: &IdedExpr,
        target: &IdedExpr,
        call: &CallExpr,
    ) -> Result<Option<(Node, Known<'s>)>, Fault> {
        let Expr::Ident(namespace) = &target.expr else { return Ok(None) };
        if self.scope.iter().any(|(name, ..)| name == namespace) {
            return Ok(None);
        }
        if (namespace.as_str(), call.func_name.as_str()) == ("cel", "bind") {
            let [name, value, body] = call.args.as_slice() else {
                return Err(fault(expr, "cel.bind() takes a name, a value and an expression"));
            };
            let (value, known) = self.node(value)?;
            let (slot, (body, result)) = self.scoped(name, known, body)?;
            return Ok(Some((Node::Bind(slot, Box::new((value, body))), result)));
        }
        let name = format!("{namespace}.{}", call.func_name);
        if !functions::exists(&name, false) {
            return Ok(None);
        }
        let args = call.args.iter().map(|arg| self.node(arg)).collect::<Result<Vec<_>, _>>()?;
        self.function(expr, &name, false, args).map(Some)
    }

    /// Lowers `body` with one more variable; returns the variable's slot too.
    fn scoped(
        &mut self,
        name: &IdedExpr,
        known: Known<'s>,
        body: &IdedExpr,
    ) -> Result<(usize, (Node, Known<'s>)), Fault> {
        let slot = self.declare(name, known)?;
        let lowered = self.node(body);
        self.scope.pop();
        Ok((slot, lowered?))
    }

    fn declare(&mut self, name: &IdedExpr, known: Known<'s>) -> Result<usize, Fault> {
        let Expr::Ident(text) = &name.expr else {
            return Err(fault(name, "argument must be a simple name"));
        };
        let slot = self.used.len();
        self.used.push(true);
        self.scope.push((text.clone(), slot, known));
        Ok(slot)
    }

    pub(super) fn member_macro(
        &mut self,
        expr: &IdedExpr,
        target: &IdedExpr,
        call: &CallExpr,
    ) -> Result<Option<(Node, Known<'s>)>, Fault> {
        let kind = match (call.func_name.as_str(), call.args.as_slice()) {
            ("all", [_, _] | [_, _, _]) => LoopKind::All,
            ("exists", [_, _] | [_, _, _]) => LoopKind::Exists,
            ("exists_one" | "existsOne", [_, _] | [_, _, _]) => LoopKind::ExistsOne,
            ("map", [_, _] | [_, _, _]) => LoopKind::Map,
            ("transformList", [_, _, _] | [_, _, _, _]) => LoopKind::Map,
            ("filter", [_, _]) => LoopKind::Filter,
            ("optMap" | "optFlatMap", [name, body]) => {
                let (base, known) = self.node(target)?;
                let inner = match known {
                    Known::Optional(inner) => *inner,
                    _ => Known::Dyn,
                };
                let flat = call.func_name == "optFlatMap";
                let (slot, (body, result)) = self.scoped(name, inner, body)?;
                let result = if flat { result } else { Known::Optional(Box::new(result)) };
                return Ok(Some((Node::OptMap { slot, flat, parts: Box::new((base, body)) }, result)));
            }
            ("or" | "orValue", [other]) => {
                let value = call.func_name == "orValue";
                let (base, known) = self.node(target)?;
                let (other, _) = self.node(other)?;
                let result = match known {
                    Known::Optional(inner) if value => *inner,
                    Known::Optional(inner) => Known::Optional(inner),
                    _ => Known::Dyn,
                };
                return Ok(Some((Node::OrElse { value, parts: Box::new((base, other)) }, result)));
            }
            _ => return Ok(None),
        };
        self.lower_loop(expr, kind, target, call).map(Some)
    }

    fn lower_loop(
        &mut self,
        expr: &IdedExpr,
        kind: LoopKind,
        target: &IdedExpr,
        call: &CallExpr,
    ) -> Lowered<'s> {
        let (range, known) = self.node(target)?;
        if matches!(known, Known::Scalar(_) | Known::Object | Known::Optional(_)) {
            let words = format!("expression of type '{}' cannot be range of a comprehension", known.name());
            return Err(fault(expr, words));
        }
        // `map` with three arguments has a filter; every other macro with three has two variables.
        let plain_map = call.func_name == "map";
        let (first, second, filter, body) = match call.args.as_slice() {
            [first, body] => (first, None, None, body),
            [first, filter, body] if plain_map => (first, None, Some(filter), body),
            [first, second, body] => (first, Some(second), None, body),
            [first, second, filter, body] => (first, Some(second), Some(filter), body),
            _ => return Err(fault(expr, "wrong number of arguments")),
        };
        let before = self.scope.len();
        let slot = self.declare(first, if second.is_some() { Known::Dyn } else { known.loop_entry() })?;
        let second = second.map(|second| self.declare(second, known.entry())).transpose()?;
        let filter = filter.map(|filter| self.boolean(filter)).transpose()?;
        let (body, result) = match kind {
            LoopKind::Map => self.node(body)?,
            _ => (self.boolean(body)?, Known::Dyn),
        };
        self.scope.truncate(before);
        let result = match kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => Known::Scalar(Scalar::Bool),
            LoopKind::Filter => Known::List(Box::new(known.loop_entry())),
            LoopKind::Map => Known::List(Box::new(result)),
        };
        Ok((Node::Loop(Box::new(Loop { kind, range, slot, second, filter, body })), result))
    }
}
