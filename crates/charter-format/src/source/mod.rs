//! The source text as a tree of typed nodes with their spans, the same for YAML and JSON.

mod build;
mod json;
mod offset;
mod scalar;
mod tree;
mod yaml;

pub(crate) use offset::Place;

use build::Bounds;
pub use tree::{Entry, Key, Node, Span, Style, Text, Value};

use crate::diagnostic::{Diagnostic, codes};

/// The syntax of a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Syntax {
    /// JSON if the text is JSON (or the name ends in `.json`), YAML otherwise.
    #[default]
    Auto,
    /// YAML 1.2 with the core schema.
    Yaml,
    /// JSON (RFC 8259).
    Json,
}

/// A source text as a tree.
#[derive(Debug)]
pub struct Parsed {
    /// The document.
    pub root: Node,
    /// Warnings about notation.
    pub warnings: Vec<Diagnostic>,
}

/// Parses a source text; `name` determines the syntax for [`Syntax::Auto`]. See [`crate::read`] for
/// the limits.
///
/// # Errors
/// Returns the first syntax error: text after it cannot be parsed reliably.
pub fn parse(source: &str, name: &str, syntax: Syntax) -> Result<Parsed, Diagnostic> {
    let bounds = &Bounds::default();
    if source.len() > bounds.bytes {
        let message = format!("the file has {} bytes; the limit is {}", source.len(), bounds.bytes);
        return Err(Diagnostic::error(codes::TOO_LARGE, Span::default(), message));
    }
    let is_json = || source.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    match syntax {
        Syntax::Yaml => yaml::parse(source, bounds),
        Syntax::Json => json::parse(source, bounds),
        Syntax::Auto if name.ends_with(".json") => json::parse(source, bounds),
        // A YAML flow mapping starts like JSON, so invalid JSON may still be YAML.
        Syntax::Auto if is_json() => match json::parse(source, bounds) {
            Err(error) if error.code == codes::SYNTAX => yaml::parse(source, bounds),
            answer => answer,
        },
        Syntax::Auto => yaml::parse(source, bounds),
    }
}
