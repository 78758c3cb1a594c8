#![doc = include_str!("../README.md")]
// Reading stops at an error, so the size of the error does not matter.
#![allow(clippy::result_large_err)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod diagnostic;
mod grammar;
pub mod import;
pub mod ordered;
mod read;
pub mod scenario;
mod schema;
pub mod source;
mod write;

pub use diagnostic::{Diagnostic, Diagnostics, Note, Severity, SourceFile, codes};
pub use read::delay::is_delay_name;
pub use read::{Document, ReadOptions, read, read_file, value};
pub use schema::{json_schema, scenario_json_schema};
pub use source::{Span, Syntax};
pub use write::{Unrepresentable, json};
