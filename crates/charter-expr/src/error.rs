//! Errors of parsing, compiling and evaluating, with their positions.

use std::borrow::Cow;
use std::fmt;

use crate::Span;

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Where.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// How to fix it, if known.
    pub help: Option<String>,
}

/// An expression does not compile: a syntax error or an unknown name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// Where.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// How to fix it, if known.
    pub help: Option<String>,
}

impl ParseError {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> ParseError {
        ParseError { span, message: message.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> ParseError {
        self.help = Some(help.into());
        self
    }
}

impl From<ParseError> for CompileError {
    fn from(e: ParseError) -> CompileError {
        CompileError { span: e.span, message: e.message, help: e.help }
    }
}

fn show(f: &mut fmt::Formatter<'_>, message: &str, help: Option<&str>) -> fmt::Result {
    f.write_str(message)?;
    match help {
        Some(help) => write!(f, " (help: {help})"),
        None => Ok(()),
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, &self.message, self.help.as_deref())
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, &self.message, self.help.as_deref())
    }
}

impl std::error::Error for ParseError {}
impl std::error::Error for CompileError {}

/// The kind of a run-time error. Stable: records and refusals keep [`ErrorKind::code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `a.b` where `a` has no `b`.
    NoSuchField,
    /// `a[k]` where the map `a` has no key `k`.
    NoSuchKey,
    /// No operator or function of that name accepts operands of these types.
    NoSuchOverload,
    /// A number, timestamp or duration out of its range.
    Overflow,
    /// Division or modulus by zero.
    DivideByZero,
    /// An index beyond the end of a list or a string.
    IndexOutOfRange,
    /// The fuel is exhausted. The only error that `||`, `&&` and macros never absorb.
    OutOfFuel,
    /// An argument of the right type with an invalid value.
    InvalidArgument,
    /// A map literal or `transformMapEntry` has a duplicate key.
    RepeatedKey,
    /// A name that has no value in this scope.
    Unbound,
    /// Data nested deeper than [`crate::MAX_DATA_DEPTH`].
    TooDeep,
    /// The value would be larger than [`crate::MAX_JSON_SIZE`] as JSON.
    TooLarge,
    /// The value has no JSON form.
    NotJson,
    /// A function of the host failed.
    Host,
}

impl ErrorKind {
    /// A short stable name for records, e.g. `no-such-field`.
    pub const fn code(self) -> &'static str {
        match self {
            ErrorKind::NoSuchField => "no-such-field",
            ErrorKind::NoSuchKey => "no-such-key",
            ErrorKind::NoSuchOverload => "no-such-overload",
            ErrorKind::Overflow => "overflow",
            ErrorKind::DivideByZero => "divide-by-zero",
            ErrorKind::IndexOutOfRange => "index-out-of-range",
            ErrorKind::OutOfFuel => "out-of-fuel",
            ErrorKind::InvalidArgument => "invalid-argument",
            ErrorKind::RepeatedKey => "repeated-key",
            ErrorKind::Unbound => "unbound",
            ErrorKind::TooDeep => "too-deep",
            ErrorKind::TooLarge => "too-large",
            ErrorKind::NotJson => "not-json",
            ErrorKind::Host => "host",
        }
    }
}

/// A failed evaluation. One pointer in size because it is part of the result of every step.
#[derive(Clone, PartialEq, Eq)]
pub struct EvalError(Box<Detail>);

#[derive(Clone, PartialEq, Eq)]
struct Detail {
    kind: ErrorKind,
    message: Cow<'static, str>,
    help: Option<Cow<'static, str>>,
    span: Option<Span>,
    expression: Option<Box<str>>,
}

impl EvalError {
    /// An error without a position; the evaluator adds that of the call.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> EvalError {
        EvalError(Box::new(Detail { kind, message: message.into(), help: None, span: None, expression: None }))
    }

    /// Adds a help text.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<Cow<'static, str>>) -> EvalError {
        self.0.help = Some(help.into());
        self
    }

    /// Sets the position, unless a more exact one is known.
    #[must_use]
    pub fn at(mut self, span: Span) -> EvalError {
        self.0.span.get_or_insert(span);
        self
    }

    /// What kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message: one sentence without a period.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// How to fix it, if known.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// Where in the source.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// Names the expression that failed, unless it is named already.
    pub fn in_expression(&mut self, source: &str) {
        self.0.expression.get_or_insert_with(|| source.into());
    }

    /// The expression that failed, if it was named with [`EvalError::in_expression`].
    pub fn expression(&self) -> Option<&str> {
        self.0.expression.as_deref()
    }

    /// The part of the expression that failed, where it is known.
    pub fn part(&self) -> Option<&str> {
        let span = self.0.span?;
        self.expression()?.get(span.start..span.end)
    }

    /// Whether `||`, `&&` and macros may continue and let another operand decide.
    pub(crate) fn is_absorbable(&self) -> bool {
        self.0.kind != ErrorKind::OutOfFuel
    }

    pub(crate) fn out_of_fuel() -> EvalError {
        EvalError::new(ErrorKind::OutOfFuel, "the expression exceeds its fuel")
            .with_help("make it read less data, or raise `limits.expression`")
    }

    pub(crate) fn overload(message: impl Into<Cow<'static, str>>) -> EvalError {
        EvalError::new(ErrorKind::NoSuchOverload, message)
    }

    pub(crate) fn argument(message: impl Into<Cow<'static, str>>) -> EvalError {
        EvalError::new(ErrorKind::InvalidArgument, message)
    }

    pub(crate) fn overflow(message: impl Into<Cow<'static, str>>) -> EvalError {
        EvalError::new(ErrorKind::Overflow, message)
    }

    pub(crate) fn too_deep() -> EvalError {
        EvalError::new(ErrorKind::TooDeep, "the data is nested too deeply")
    }
}

impl fmt::Debug for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvalError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("help", &self.0.help)
            .field("span", &self.0.span)
            .finish()
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, &self.0.message, self.0.help.as_deref())
    }
}

impl std::error::Error for EvalError {}
