//! Errors of parsing, compiling and evaluating, with their positions.

use std::borrow::Cow;
use std::fmt;

use crate::{EvalDetail, Span};

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The position in the source.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// How to fix it, if known.
    pub help: Option<String>,
}

/// Why an expression does not compile: a syntax error or an unknown name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The position in the source.
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

/// The kind of a run-time error. Its [`code`](ErrorKind::code) is stable, because records and
/// refusals contain it.
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
    /// The fuel is exhausted. This is the only error that `||`, `&&` and macros never absorb.
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

/// A failed evaluation. Its size is one pointer, because it is part of the result of every step.
#[derive(Clone, PartialEq, Eq)]
pub struct EvalError(Box<Inner>);

/// The content of an error: data from which the message is rendered, or the message itself.
#[derive(Clone, PartialEq, Eq)]
enum About {
    Detail(EvalDetail),
    Message(Cow<'static, str>, Option<Cow<'static, str>>),
}

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    about: About,
    span: Option<Span>,
    expression: Option<Box<str>>,
}

impl EvalError {
    /// Creates an error without a position; the evaluator adds the position of the call.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> EvalError {
        EvalError::about(kind, About::Message(message.into(), None))
    }

    /// Creates an error whose kind is not the usual one for `detail`.
    pub fn with_detail(kind: ErrorKind, detail: EvalDetail) -> EvalError {
        EvalError::about(kind, About::Detail(detail))
    }

    fn about(kind: ErrorKind, about: About) -> EvalError {
        EvalError(Box::new(Inner { kind, about, span: None, expression: None }))
    }

    /// Sets the position, unless a more precise one is known.
    #[must_use]
    pub fn at(mut self, span: Span) -> EvalError {
        self.0.span.get_or_insert(span);
        self
    }

    /// The kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message: one sentence without a period.
    pub fn message(&self) -> Cow<'_, str> {
        match &self.0.about {
            About::Detail(detail) => detail.message().into(),
            About::Message(message, _) => Cow::Borrowed(message),
        }
    }

    /// How to fix it, if known.
    pub fn help(&self) -> Option<&str> {
        match &self.0.about {
            About::Detail(detail) => detail.help(),
            About::Message(_, help) => help.as_deref(),
        }
    }

    /// The details, as data; `None` if the kind says everything, or if a function of the host
    /// failed.
    pub fn detail(&self) -> Option<&EvalDetail> {
        match &self.0.about {
            About::Detail(detail) => Some(detail),
            About::Message(..) => None,
        }
    }

    /// The position in the source.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// Sets the expression that failed, unless it is already set.
    pub fn in_expression(&mut self, source: &str) {
        self.0.expression.get_or_insert_with(|| source.into());
    }

    /// The expression that failed, if it was set with [`EvalError::in_expression`].
    pub fn expression(&self) -> Option<&str> {
        self.0.expression.as_deref()
    }

    /// The part of the expression that failed, if known.
    pub fn part(&self) -> Option<&str> {
        let span = self.0.span?;
        self.expression()?.get(span.start..span.end)
    }

    /// Whether `||`, `&&` and macros may continue and let another operand decide.
    pub(crate) fn is_absorbable(&self) -> bool {
        self.0.kind != ErrorKind::OutOfFuel
    }

    /// Creates the error of an evaluation that has used up its fuel.
    #[must_use]
    pub fn out_of_fuel() -> EvalError {
        let help = "make it read less data, or raise `limits.expression`";
        EvalError::about(
            ErrorKind::OutOfFuel,
            About::Message("the expression exceeds its fuel".into(), Some(help.into())),
        )
    }

    pub(crate) fn too_deep() -> EvalError {
        EvalError::new(ErrorKind::TooDeep, "the data is nested too deeply")
    }
}

impl fmt::Debug for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvalError")
            .field("kind", &self.0.kind)
            .field("message", &self.message())
            .field("help", &self.help())
            .field("span", &self.0.span)
            .finish()
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, &self.message(), self.help())
    }
}

impl std::error::Error for EvalError {}

impl From<EvalDetail> for EvalError {
    fn from(detail: EvalDetail) -> EvalError {
        EvalError::about(kind_of(&detail), About::Detail(detail))
    }
}

/// The usual kind of an error with these details.
fn kind_of(detail: &EvalDetail) -> ErrorKind {
    match detail {
        EvalDetail::OutOfRange { .. } | EvalDetail::Overflow { .. } => ErrorKind::Overflow,
        EvalDetail::ByZero { .. } => ErrorKind::DivideByZero,
        EvalDetail::Arguments { .. }
        | EvalDetail::Operands { .. }
        | EvalDetail::Needs { .. }
        | EvalDetail::FieldOf { .. }
        | EvalDetail::IndexOf { .. }
        | EvalDetail::KeyType { .. } => ErrorKind::NoSuchOverload,
        EvalDetail::NoField { .. } => ErrorKind::NoSuchField,
        EvalDetail::NoKey { .. } => ErrorKind::NoSuchKey,
        EvalDetail::Index { .. }
        | EvalDetail::Position { .. }
        | EvalDetail::Substring { .. }
        | EvalDetail::FormatValues { .. } => ErrorKind::IndexOutOfRange,
        EvalDetail::RepeatedKey { .. } => ErrorKind::RepeatedKey,
        EvalDetail::NotJson { .. } | EvalDetail::RepeatedName { .. } => ErrorKind::NotJson,
        EvalDetail::LargeJson { .. } => ErrorKind::TooLarge,
        EvalDetail::Unbound { .. } | EvalDetail::NoFunction { .. } => ErrorKind::Unbound,
        EvalDetail::NotA { .. }
        | EvalDetail::NotADelay { .. }
        | EvalDetail::NotATime { .. }
        | EvalDetail::NotAnIndex { .. }
        | EvalDetail::LargePattern { .. }
        | EvalDetail::FormatEnds
        | EvalDetail::FormatPrecision { .. }
        | EvalDetail::FormatClause { .. }
        | EvalDetail::FormatType { .. }
        | EvalDetail::Shift { .. }
        | EvalDetail::NoNumbers
        | EvalDetail::NotUtf8
        | EvalDetail::NoState { .. } => ErrorKind::InvalidArgument,
    }
}
