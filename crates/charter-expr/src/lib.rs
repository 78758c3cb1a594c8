#![doc = include_str!("../README.md")]
//!
//! [`parse`] returns an [`Ast`]; [`check`] type-checks it; [`Program::compile`] resolves names to
//! slots; [`Program::eval`] evaluates the program with the values of a [`Scope`].
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod apply;
pub mod ast;
pub mod calendar;
mod check;
mod compile;
mod delay_error;
mod detail;
mod divisors;
mod env;
mod error;
mod eval;
mod fuel;
mod functions;
pub mod json;
mod names;
mod parse;
mod path;
mod pattern;
pub mod pointer;
mod program;
mod reads;
pub mod schema;
mod scope;
mod span;
pub mod strict_json;
mod suggest;
pub mod typed;
mod types;
mod unparse;
mod value;

pub use ast::Ast;
pub use check::{Facts, Finding, FindingKind, Severity, check};
pub use delay_error::DelayError;
pub use detail::{EvalDetail, Expected};
pub use env::{Env, FunctionId, RootId};
pub use error::{CompileError, ErrorKind, EvalError, ParseError};
pub use fuel::Fuel;
pub use parse::parse;
pub use path::{Path, Segment};
pub use pattern::{Pattern, PatternError};
pub use program::{Program, Source};
pub use reads::Call;
pub use schema::{NumberType, Numbers};
pub use scope::Scope;
pub use span::Span;
pub use suggest::{did_you_mean, nearest, nearest_within};
pub use types::{Field, Type};
pub use value::{
    Bytes, DELAY_PATTERN, Duration, ExprTimestamp, Key, List, MAX_DELAY_MS, Map, Object, Str, TypeName, Value,
    delay_ms, delay_of, parse_delay, resembles_delay,
};

/// Maximum length of the source text of an expression, in bytes.
pub const MAX_SOURCE_LENGTH: usize = 4096;
/// Maximum nesting of parentheses, brackets, braces and arguments. Chains of operators do not count
/// as nesting.
pub const MAX_DEPTH: usize = 64;
/// Maximum nesting of data that is converted or compared. Data parsed by `serde_json` is never
/// nested deeper.
pub const MAX_DATA_DEPTH: usize = 128;
/// Approximate maximum size of the JSON of a value, in bytes: 16 MiB, the limit of a definition.
pub const MAX_JSON_SIZE: usize = 16 << 20;
