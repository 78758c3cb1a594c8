#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unreachable,
        clippy::todo
    )
)]
// An error ends the reading; its size does not matter.
#![allow(clippy::result_large_err)]

mod diagnostic;
mod grammar;
pub mod import;
pub mod ordered;
mod read;
pub mod scenario;
mod schema;
pub mod source;
mod write;

pub use diagnostic::{Diagnostic, Diagnostics, Note, Severity, codes};
pub use read::{Document, ReadOptions, read, read_file, value};
pub use schema::json_schema;
pub use source::{Span, Syntax};
pub use write::{Unrepresentable, json};
