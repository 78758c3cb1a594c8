//! A compiled expression, in which names are resolved to slots and constants to values.

use std::sync::Arc;

use crate::ast::{Ast, BinaryOp, MacroName};
use crate::compile;
use crate::error::{CompileError, EvalError};
use crate::eval::Evaluation;
use crate::functions::Function;
use crate::path::Path;
use crate::pattern::Pattern;
use crate::{Duration, Env, ExprTimestamp, Fuel, FunctionId, RootId, Scope, Span, TypeName, Value};

/// A compiled expression. It is `Send` and `Sync`, holds no data, and can be evaluated any number
/// of times.
#[derive(Clone, Debug)]
pub struct Program {
    source: String,
    root: Op,
    reads: Vec<Path>,
}

/// A node with its position.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) span: Span,
    pub(crate) code: Code,
}

/// The operations. Chains are flat, as in the syntax tree.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Constant(Constant),
    Root(RootId, Arc<str>),
    /// A macro variable, counted from the outermost.
    Local(usize, Arc<str>),
    /// A root followed only by fields, the most common way to read data.
    Fields(Box<Fields>),
    /// An unknown name (lenient programs only).
    Unbound(Arc<str>),
    List(Box<[Op]>),
    Map(Box<[(Op, Op)]>),
    Links(Box<Op>, Box<[Step]>),
    /// Whether the operand has the field.
    Has(Box<Op>, Arc<str>),
    Bind(Box<Op>, Box<Op>),
    Not(usize, Box<Op>),
    Negate(usize, Box<Op>),
    Chain(Box<Op>, Box<[(BinaryOp, Op)]>),
    /// `x in [constants]`
    InConstants(Box<Op>, Box<[Constant]>),
    And(Box<[Op]>),
    Or(Box<[Op]>),
    Conditional(Box<[(Op, Op)]>, Box<Op>),
    Call(Function, Box<[Op]>),
    HostCall(FunctionId, Box<[Op]>),
    /// An unknown function (lenient programs only).
    UnknownCall(Arc<str>),
    Matches(Box<Op>, Box<Pattern>),
}

/// A root and the fields read from it.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    pub(crate) root: RootId,
    /// The name of the root, for messages.
    pub(crate) name: Arc<str>,
    pub(crate) steps: Box<[FieldStep]>,
}

/// A field read directly from a root.
#[derive(Clone, Debug)]
pub(crate) struct FieldStep {
    pub(crate) name: Box<str>,
    pub(crate) span: Span,
}

/// One link of a chain.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) span: Span,
    pub(crate) kind: StepKind,
}

#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    Field(Arc<str>),
    Index(Op),
    /// A library function with the arguments after the receiver.
    Method(Function, Box<[Op]>),
    /// `.matches('constant')`
    Matches(Box<Pattern>),
    UnknownMethod(Arc<str>),
    Macro(Box<MacroStep>),
}

#[derive(Clone, Debug)]
pub(crate) struct MacroStep {
    pub(crate) name: MacroName,
    pub(crate) two_vars: bool,
    pub(crate) condition: Option<Op>,
    pub(crate) body: Op,
}

/// A value known at compile time.
#[derive(Clone, Debug)]
pub(crate) enum Constant {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    Timestamp(ExprTimestamp),
    Duration(Duration),
    Type(TypeName),
}

impl Constant {
    #[inline]
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Constant::Null => Value::Null,
            Constant::Bool(b) => Value::Bool(*b),
            Constant::Int(i) => Value::Int(*i),
            Constant::Uint(u) => Value::Uint(*u),
            Constant::Double(d) => Value::Double(*d),
            Constant::String(s) => Value::str(s),
            Constant::Bytes(b) => Value::Bytes(crate::Bytes::Borrowed(b)),
            Constant::Timestamp(t) => Value::Timestamp(*t),
            Constant::Duration(d) => Value::Duration(*d),
            Constant::Type(t) => Value::Type(*t),
        }
    }
}

/// What a program can be compiled from: text or a parsed tree.
pub trait Source {
    /// Returns the syntax tree.
    fn ast(self) -> Result<Ast, CompileError>;
}

impl Source for &str {
    fn ast(self) -> Result<Ast, CompileError> {
        Ok(crate::parse(self)?)
    }
}

impl Source for &String {
    fn ast(self) -> Result<Ast, CompileError> {
        Ok(crate::parse(self)?)
    }
}

impl Source for Ast {
    fn ast(self) -> Result<Ast, CompileError> {
        Ok(self)
    }
}

impl Source for &Ast {
    fn ast(self) -> Result<Ast, CompileError> {
        Ok(self.clone())
    }
}

impl Program {
    /// Compiles an expression. A name that `env` does not declare is an error.
    pub fn compile(source: impl Source, env: &Env) -> Result<Program, CompileError> {
        let ast = source.ast()?;
        compile::program(&ast, env, false)
    }

    /// Compiles an expression in which a name that `env` does not declare is an error only when it
    /// is evaluated, so that `unknown || true` is true. This is cel-spec's "disable check"; imports
    /// of SCXML need it.
    pub fn compile_lenient(source: impl Source, env: &Env) -> Result<Program, CompileError> {
        let ast = source.ast()?;
        compile::program(&ast, env, true)
    }

    pub(crate) fn new(source: String, root: Op, reads: Vec<Path>) -> Program {
        Program { source, root, reads }
    }

    /// Evaluates the program. The result may borrow from the data and from the program.
    ///
    /// Errors are returned as [`EvalError`]. The fuel that was used is deducted from `fuel` in any
    /// case.
    pub fn eval<'a>(&'a self, scope: &dyn Scope<'a>, fuel: &mut Fuel) -> Result<Value<'a>, EvalError> {
        Evaluation::new(scope, fuel).eval(&self.root)
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The paths that the program reads: the longest static paths from its roots, in source order.
    pub fn reads(&self) -> &[Path] {
        &self.reads
    }
}
