//! The syntax tree. Chains of operators are flat, so the depth of the tree depends on how deeply
//! the source is nested, not on how long it is.

use std::fmt;
use std::sync::Arc;

use crate::Span;

/// A parsed expression with its source text.
#[derive(Clone, Debug)]
pub struct Ast {
    source: String,
    root: Node,
}

/// A node and its position in the source. Nodes are compared without their positions.
#[derive(Clone, Debug)]
pub struct Node {
    /// The position in the source.
    pub span: Span,
    /// The kind of the node.
    pub kind: Kind,
}

/// A literal.
#[derive(Clone)]
pub enum Literal {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// `-1`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `1.5`
    Double(f64),
    /// `'text'`
    String(Arc<str>),
    /// `b'bytes'`
    Bytes(Arc<[u8]>),
}

/// The kinds of nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A literal, with the sign of a number.
    Literal(Literal),
    /// A name. With a leading dot (`absolute`), it does not refer to variables of macros.
    Ident {
        /// The name, without a dot.
        name: Arc<str>,
        /// Whether the name is written with a leading dot: `.name`.
        absolute: bool,
    },
    /// `[a, b]`
    List(Vec<Node>),
    /// `{k: v}`
    Map(Vec<(Node, Node)>),
    /// `f(a, b)`
    Call {
        /// The function, without a dot.
        function: Arc<str>,
        /// Its arguments.
        args: Vec<Node>,
    },
    /// `has(a.b)`; the operand is a [`Kind::Postfix`] whose last link is a field.
    Has(Box<Node>),
    /// `cel.bind(name, value, body)`
    Bind {
        /// The variable.
        name: Arc<str>,
        /// Its value.
        value: Box<Node>,
        /// The expression that can read the variable.
        body: Box<Node>,
    },
    /// `base.field[index].method(args)`
    Postfix {
        /// The base of the chain.
        base: Box<Node>,
        /// The links of the chain, in order; never empty.
        links: Vec<Link>,
    },
    /// `!!a`, `--a`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// How many times the operator is repeated.
        count: usize,
        /// The operand.
        operand: Box<Node>,
    },
    /// Operators of one precedence, left to right: `a + b - c`, `a * b / c`, `a < b == c`.
    Chain {
        /// The leftmost operand.
        first: Box<Node>,
        /// The operators with their right operands; never empty.
        rest: Vec<(BinaryOp, Node)>,
    },
    /// `a && b && c`
    And(Vec<Node>),
    /// `a || b || c`
    Or(Vec<Node>),
    /// `a ? b : c ? d : e`
    Conditional {
        /// Conditions with their results; never empty.
        arms: Vec<(Node, Node)>,
        /// The last result.
        otherwise: Box<Node>,
    },
}

/// One link of a [`Kind::Postfix`] chain.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its position, from the dot or bracket to the end.
    pub span: Span,
    /// The kind of the link.
    pub kind: LinkKind,
}

/// The kinds of links.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkKind {
    /// `.name`
    Field(Arc<str>),
    /// `[index]`
    Index(Node),
    /// `.name(args)`
    Method {
        /// The function's name.
        name: Arc<str>,
        /// Its arguments, without the receiver.
        args: Vec<Node>,
    },
    /// `.all(x, ...)` and the other macros
    Macro {
        /// The macro.
        name: MacroName,
        /// The variables: one or two.
        vars: Vec<Arc<str>>,
        /// A condition before the last argument: `map(x, condition, x)`.
        condition: Option<Box<Node>>,
        /// The predicate or the result.
        body: Box<Node>,
    },
}

/// The macros that iterate over a list or a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacroName {
    /// `all`
    All,
    /// `exists`
    Exists,
    /// `exists_one`, also written `existsOne`
    ExistsOne,
    /// `map`
    Map,
    /// `filter`
    Filter,
    /// `transformList`
    TransformList,
    /// `transformMap`
    TransformMap,
    /// `transformMapEntry`
    TransformMapEntry,
}

impl MacroName {
    /// The name in source text.
    pub const fn name(self, vars: usize) -> &'static str {
        match self {
            MacroName::All => "all",
            MacroName::Exists => "exists",
            MacroName::ExistsOne if vars > 1 => "existsOne",
            MacroName::ExistsOne => "exists_one",
            MacroName::Map => "map",
            MacroName::Filter => "filter",
            MacroName::TransformList => "transformList",
            MacroName::TransformMap => "transformMap",
            MacroName::TransformMapEntry => "transformMapEntry",
        }
    }
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `-`
    Negate,
}

/// Infix operators, except `&&` and `||`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names of the operators; `symbol` shows how they are written
pub enum BinaryOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

impl BinaryOp {
    /// The name in source text.
    pub const fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::In => "in",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
        }
    }

    /// The precedence; a higher one binds tighter: 1 relations, 2 sums, 3 products.
    pub(crate) const fn level(self) -> u8 {
        match self {
            BinaryOp::Add | BinaryOp::Sub => 2,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 3,
            _ => 1,
        }
    }
}

impl Ast {
    pub(crate) fn new(source: String, root: Node) -> Ast {
        Ast { source, root }
    }

    /// The text from which the expression was parsed; spans are byte offsets into it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The whole expression.
    pub fn root(&self) -> &Node {
        &self.root
    }
}

impl PartialEq for Ast {
    /// Compares the trees; the source text does not matter.
    fn eq(&self, other: &Ast) -> bool {
        self.root == other.root
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.kind == other.kind
    }
}

impl PartialEq for Link {
    fn eq(&self, other: &Link) -> bool {
        self.kind == other.kind
    }
}

impl PartialEq for Literal {
    /// Compares doubles by their bits, so that a tree with NaN equals itself.
    fn eq(&self, other: &Literal) -> bool {
        match (self, other) {
            (Literal::Null, Literal::Null) => true,
            (Literal::Bool(a), Literal::Bool(b)) => a == b,
            (Literal::Int(a), Literal::Int(b)) => a == b,
            (Literal::Uint(a), Literal::Uint(b)) => a == b,
            (Literal::Double(a), Literal::Double(b)) => a.to_bits() == b.to_bits(),
            (Literal::String(a), Literal::String(b)) => a == b,
            (Literal::Bytes(a), Literal::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("null"),
            Literal::Bool(b) => write!(f, "{b}"),
            Literal::Int(i) => write!(f, "{i}"),
            Literal::Uint(u) => write!(f, "{u}u"),
            Literal::Double(d) => write!(f, "{d:?}"),
            Literal::String(s) => write!(f, "{s:?}"),
            Literal::Bytes(b) => write!(f, "b\"{}\"", b.escape_ascii()),
        }
    }
}

/// Passes the children of a node to `each` in order of evaluation, each with the variables that are
/// in scope for it in addition to those of its parent.
pub(crate) fn children<'n>(node: &'n Node, each: &mut dyn FnMut(&'n Node, &'n [Arc<str>])) {
    match &node.kind {
        Kind::Literal(_) | Kind::Ident { .. } => {}
        Kind::List(items) | Kind::And(items) | Kind::Or(items) | Kind::Call { args: items, .. } => {
            items.iter().for_each(|n| each(n, &[]));
        }
        Kind::Map(entries) => {
            for (key, value) in entries {
                each(key, &[]);
                each(value, &[]);
            }
        }
        Kind::Has(operand) | Kind::Unary { operand, .. } => each(operand, &[]),
        Kind::Bind { name, value, body } => {
            each(value, &[]);
            each(body, std::slice::from_ref(name));
        }
        Kind::Postfix { base, links } => {
            each(base, &[]);
            for link in links {
                match &link.kind {
                    LinkKind::Field(_) => {}
                    LinkKind::Index(index) => each(index, &[]),
                    LinkKind::Method { args, .. } => args.iter().for_each(|n| each(n, &[])),
                    LinkKind::Macro { vars, condition, body, .. } => {
                        if let Some(condition) = condition {
                            each(condition, vars);
                        }
                        each(body, vars);
                    }
                }
            }
        }
        Kind::Chain { first, rest } => {
            each(first, &[]);
            rest.iter().for_each(|(_, n)| each(n, &[]));
        }
        Kind::Conditional { arms, otherwise } => {
            for (condition, result) in arms {
                each(condition, &[]);
                each(result, &[]);
            }
            each(otherwise, &[]);
        }
    }
}
