//! Reads charters from YAML and JSON into the kernel's core form, and says what is wrong with them where they are wrong.
//!
//! ```
//! use charter_format::{ReadOptions, read};
//!
//! let source = "
//! charter: 1
//! id: door
//! states:
//!   closed: {on: {OPEN: opened}}
//!   opened: {on: {CLOSE: closed}}
//! ";
//! let document = read(source, "door.yaml", &ReadOptions::default())?;
//! assert_eq!(document.definition.root.state.states.len(), 2);
//!
//! let errors = read(&source.replace("states", "sates"), "door.yaml", &ReadOptions::default()).unwrap_err();
//! assert_eq!(errors.list[0].help.as_deref(), Some("did you mean `states`?"));
//! # Ok::<(), charter_format::Diagnostics>(())
//! ```
//!
//! The library knows no terminal and no environment; one function, [`read_file`], touches the file system.
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
// An error ends the reading; what it weighs does not matter.
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
