//! The form in which an expression is evaluated.
//!
//! Names are resolved to slots, functions to pointers, constant patterns to compiled ones, and macros
//! to loops, all when the expression is compiled; what can fail at run time is only what depends on
//! values.

use super::eval::{Budget, EvalError};
use super::value::Val;

/// A function: takes its arguments (receiver first) and a budget to charge.
pub(super) type Function = for<'a> fn(&[Val<'a>], &mut Budget) -> Result<Val<'a>, EvalError>;

/// A field name as the rule gives it.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// As written.
    pub(super) name: String,
    /// With `__dot__` and its like resolved, where that differs.
    pub(super) unescaped: Option<String>,
}

/// The operators that take two values of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the operator of the same name")]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
}

/// What a loop makes of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the macro of the same name")]
pub(super) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
}

/// A loop over the entries of a list or the keys of a map.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    /// What comes of it.
    pub(super) kind: LoopKind,
    /// What is looped over.
    pub(super) range: Node,
    /// Where the entry goes, or the index or key when there are two variables.
    pub(super) slot: usize,
    /// Where the entry goes when there are two variables.
    pub(super) second: Option<usize>,
    /// Which entries `map` takes.
    pub(super) filter: Option<Node>,
    /// What is computed for each.
    pub(super) body: Node,
}

/// One node of a compiled expression.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A constant.
    Const(Val<'static>),
    /// A variable.
    Slot(usize),
    /// `a.b`
    Select(Box<Node>, Field),
    /// `has(a.b)`
    Has(Box<Node>, Field),
    /// `a.?b`
    OptSelect(Box<Node>, Field),
    /// `a[b]`
    Index(Box<(Node, Node)>),
    /// `a[?b]`
    OptIndex(Box<(Node, Node)>),
    /// `a && b && …`
    And(Vec<Node>),
    /// `a || b || …`
    Or(Vec<Node>),
    /// `!a`
    Not(Box<Node>),
    /// `-a`
    Negate(Box<Node>),
    /// `a ? b : c`
    Choose(Box<[Node; 3]>),
    /// `a op b`
    Binary(Operator, Box<(Node, Node)>),
    /// `[a, ?b]`; the flag marks optional entries.
    List(Vec<(Node, bool)>),
    /// `{a: b, ?c: d}`; the flag marks optional entries.
    Map(Vec<(Node, Node, bool)>),
    /// `a.all(x, p)` and its like.
    Loop(Box<Loop>),
    /// `cel.bind(x, a, b)`
    Bind(usize, Box<(Node, Node)>),
    /// `a.optMap(x, b)`, or `a.optFlatMap(x, b)` when flat.
    OptMap {
        /// Where the value goes.
        slot: usize,
        /// Whether `b` is an optional already.
        flat: bool,
        /// `a` and `b`.
        parts: Box<(Node, Node)>,
    },
    /// `a.or(b)` and `a.orValue(b)`: `b` is looked at only if `a` is empty.
    OrElse {
        /// Whether the value itself is wanted, not an optional.
        value: bool,
        /// `a` and `b`.
        parts: Box<(Node, Node)>,
    },
    /// A call.
    Call(Function, Vec<Node>),
}
