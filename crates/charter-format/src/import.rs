//! For crates that read statecharts written in another language: the importer that a charter with
//! `statechart: {import, format}` calls, and the builder with which an importer makes a
//! [`Document`].

use std::io;
use std::sync::Arc;

use charter_kernel::Definition;

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::read::context::Context;
use crate::read::{Document, finished};
use crate::source::{Node, Span};

/// Returns the text of a file that a document names. The library itself reads no files.
pub type Files<'f> = dyn Fn(&str) -> io::Result<String> + 'f;

/// For documents that refer to no other files.
///
/// # Errors
/// Always.
pub fn no_files(_: &str) -> io::Result<String> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this document may not name other files"))
}

/// The formats that `statechart: {import, format}` can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportFormat {
    /// An XState v5 config in JSON.
    Xstate,
    /// An SCXML document.
    Scxml,
}

impl ImportFormat {
    /// As a charter names it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ImportFormat::Xstate => "xstate",
            ImportFormat::Scxml => "scxml",
        }
    }
}

/// A file to import into a charter.
#[derive(Clone, Copy)]
pub struct Import<'i> {
    /// The format that the charter names.
    pub format: ImportFormat,
    /// The text of the file.
    pub source: &'i str,
    /// The name of the file, for messages.
    pub name: &'i str,
    /// The charter without its statechart.
    pub charter: &'i Definition,
    /// The files that the file itself names.
    pub files: &'i Files<'i>,
}

/// Reads the statechart of a charter from a file in another language. `charter-interop` has one for
/// XState and SCXML.
pub trait StatechartImporter {
    /// Returns the charter completed by the states of the file, with places in that file.
    ///
    /// # Errors
    /// Everything that is wrong with the file.
    fn import(&self, import: Import<'_>) -> Result<Document, Diagnostics>;
}

/// Imports nothing: a charter with `statechart: {import, format}` is an error.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoImporter;

impl StatechartImporter for NoImporter {
    fn import(&self, import: Import<'_>) -> Result<Document, Diagnostics> {
        let message = format!("`{}` statecharts cannot be imported here", import.format.as_str());
        let problem = Diagnostic::error(codes::NOT_SUPPORTED, Span::default(), message);
        let (name, source) = (import.name.to_owned(), Arc::from(import.source));
        Err(Diagnostics { name, source, list: vec![problem], omitted: 0 })
    }
}

/// Collects the diagnostics of a source text and the place of each part of the definition built
/// from it.
///
/// The builder is positioned at a part of the definition; [`enter`](Self::enter) and
/// [`leave`](Self::leave) move it, [`mark`](Self::mark) records where that part was written.
pub struct DocumentBuilder<'s> {
    cx: Context<'s>,
}

/// A part of the definition, to return to.
#[derive(Debug, Clone, Copy)]
pub struct Position(crate::read::places::Part);

impl<'s> DocumentBuilder<'s> {
    /// Starts at the root of the definition.
    #[must_use]
    pub fn new(source: &'s str) -> Self {
        DocumentBuilder { cx: Context::new(source) }
    }

    /// The source text.
    #[must_use]
    pub fn source(&self) -> &'s str {
        self.cx.source
    }

    /// Adds a diagnostic. An error means that there will be no document.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.cx.report(diagnostic);
    }

    /// Moves to the part at a key (or index) of the current one; returns the position to
    /// [`leave`](Self::leave) to.
    pub fn enter(&mut self, key: &str) -> Position {
        Position(self.cx.down(key))
    }

    /// Moves back.
    pub fn leave(&mut self, position: Position) {
        self.cx.up(position.0);
    }

    /// Records that the current part was written at `span`.
    pub fn mark(&mut self, span: Span) {
        self.cx.mark(span);
    }

    /// Builds the document of this definition. `root` is the source as a tree, for the paths in
    /// messages; pass a single node for a source that has no tree.
    ///
    /// # Errors
    /// The reported diagnostics, if there is an error among them.
    pub fn finish(
        self,
        definition: Definition,
        name: &str,
        source: Arc<str>,
        root: Node,
    ) -> Result<Document, Diagnostics> {
        finished(self.cx, definition, name, source, root)
    }

    /// The reported diagnostics alone, with line and column.
    #[must_use]
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        let source = self.cx.source;
        self.cx.sink.finish(source, None).0
    }
}
