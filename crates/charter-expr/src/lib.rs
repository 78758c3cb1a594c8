//! Charter's expression language: a typed, deterministic, fuelled CEL (Common Expression Language).
//!
//! ```
//! use charter_expr::{Env, Fuel, Program, RootId, Scope, Type, Value};
//!
//! // What names mean: here one root, `event`, of any type.
//! let mut env = Env::new();
//! let event = env.root("event", Type::Dyn);
//! let guard = Program::compile("event.confidence >= 0.85 && !event.blocked", &env).unwrap();
//!
//! // Where the values come from: JSON is borrowed, never converted.
//! struct Data<'d>(RootId, &'d serde_json::Value);
//! impl<'a> Scope<'a> for Data<'a> {
//!     fn root(&self, id: RootId) -> Option<Value<'a>> {
//!         (id == self.0).then(|| Value::from_json(self.1))
//!     }
//! }
//!
//! let data = serde_json::json!({"confidence": 0.9, "blocked": false});
//! let result = guard.eval(&Data(event, &data), &mut Fuel::default()).unwrap();
//! assert_eq!(result, Value::Bool(true));
//!
//! // A missing field is an error, not false.
//! let data = serde_json::json!({"confidence": 0.9});
//! let error = guard.eval(&Data(event, &data), &mut Fuel::default()).unwrap_err();
//! assert_eq!(error.message(), "no such field `blocked`");
//! ```
//!
//! The language is cel-spec's for JSON-like values, with its string, math, encoder, binding and two-variable macro
//! extensions; without messages, enums and optionals. What it promises beyond the specification:
//!
//! - **Deterministic.** Maps are walked in key order, time zones come from a database inside the program, and nothing
//!   here reads a clock, an environment, a file or a random number.
//! - **Bounded.** Source length, nesting and [`Fuel`] are limited; running out of fuel is an error that no operator
//!   absorbs. No input makes it panic or recurse without bound.
//! - **Typed.** [`check`] finds what certainly fails, and warns of what fails for some values, before anything runs.
//!
//! The way of an expression: [`parse`] gives an [`Ast`]; [`check`] judges it; [`Program::compile`] turns names into
//! slots; [`Program::eval`] runs it against a [`Scope`].

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unreachable,
    clippy::todo
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod ast;
pub mod calendar;
mod check;
mod compile;
mod env;
mod error;
mod eval;
mod fuel;
mod functions;
pub mod json;
mod names;
mod parse;
mod path;
pub mod pointer;
mod program;
mod reads;
pub mod schema;
mod scope;
mod span;
mod suggest;
pub mod typed;
mod types;
mod unparse;
mod value;

pub use ast::Ast;
pub use check::{Facts, Finding, Severity, check};
pub use env::{Env, FunctionId, RootId};
pub use error::{CompileError, ErrorKind, EvalError, ParseError};
pub use fuel::Fuel;
pub use parse::parse;
pub use path::{Path, Segment};
pub use program::{Program, Source};
pub use reads::Call;
pub use scope::Scope;
pub use span::Span;
pub use suggest::{did_you_mean, nearest};
pub use types::{Field, Type};
pub use value::{Bytes, DELAY_PATTERN, Duration, Key, List, Map, Object, Str, Timestamp, TypeName, Value, parse_delay};

/// The longest expression, in bytes of its text.
pub const MAX_SOURCE_LENGTH: usize = 4096;
/// How deep parentheses, brackets, braces and arguments may nest. Chains of operators do not nest.
pub const MAX_DEPTH: usize = 64;
/// How deep data may nest where it is converted or compared. What `serde_json` reads is never deeper.
pub const MAX_DATA_DEPTH: usize = 128;
/// How large the JSON of a value may be, in bytes, roughly: 16 MiB, the limit of a definition.
pub const MAX_JSON_SIZE: usize = 16 << 20;
