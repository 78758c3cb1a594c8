//! Charters from text.

use std::borrow::Cow;

use charter_format::{Diagnostics, Document, ReadOptions, read};
use charter_kernel::{Definition, Machine};

/// The text with the lines `charter: 1` and `id: test` in front, unless it has a `charter:` key.
fn with_header(text: &str) -> Cow<'_, str> {
    if text.contains("charter:") || text.contains("\"charter\":") {
        text.into()
    } else {
        format!("charter: 1\nid: test\n{text}").into()
    }
}

/// Reads a charter. Source text without `charter:` gets the header `charter: 1`, `id: test`.
///
/// # Panics
/// The source is not a valid charter.
#[must_use]
pub fn document(text: &str) -> Document {
    read(&with_header(text), "test.yaml", &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Like [`document`], for the definition only.
///
/// # Panics
/// The source is not a valid charter.
#[must_use]
pub fn definition(text: &str) -> Definition {
    document(text).definition
}

/// Like [`definition`], with the diagnostics of an invalid text.
///
/// # Errors
/// The source is not a valid charter.
pub fn try_definition(text: &str) -> Result<Definition, Diagnostics> {
    read(&with_header(text), "test.yaml", &ReadOptions::default()).map(|document| document.definition)
}

/// Reads a charter like [`document`], and compiles it.
///
/// # Panics
/// The text is not a valid charter, or does not compile.
#[must_use]
pub fn machine(text: &str) -> Machine {
    Machine::compile(definition(text)).unwrap_or_else(|problems| panic!("{problems:#?}"))
}
