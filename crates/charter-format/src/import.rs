//! The interface for statecharts in other languages: [`StatechartImporter`], which is called for a
//! charter with `statechart: {import, format}`, and [`DocumentBuilder`], which an importer uses to
//! build a [`Document`].

use std::io;
use std::sync::Arc;

use charter_kernel::Definition;

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::read::context::Context;
use crate::read::{Document, finished};
use crate::source::{Node, Span, Value};

/// Returns the text of a file that a document refers to. This library itself does not read files,
/// except in [`crate::read_file`].
pub type Files<'f> = dyn Fn(&str) -> io::Result<String> + 'f;

/// Refuses every file; for documents that refer to no other files.
///
/// # Errors
/// This function always returns an error.
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
    /// The name of the format in a charter.
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
    /// The name of the file, used in messages.
    pub name: &'i str,
    /// The charter without its statechart.
    pub charter: &'i Definition,
    /// Provides the files that the imported file refers to.
    pub files: &'i Files<'i>,
    /// The source text of the charter.
    pub around: &'i str,
    /// The same text as a tree.
    pub root: &'i Node,
}

/// Where a charter has the entries of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The line of the key, counted from 1.
    pub line: usize,
    /// The column of its entries, counted from 0; `None` if they are in braces.
    pub indent: Option<usize>,
}

impl Import<'_> {
    /// Finds a top-level key of the charter.
    #[must_use]
    pub fn section(&self, key: &str) -> Option<Section> {
        let entry = self.root.entry(key)?;
        let before = |offset: usize| self.around.get(..offset).unwrap_or_default();
        let column = |offset: usize| before(offset).chars().rev().take_while(|c| *c != '\n').count();
        let is_in_braces = |offset: usize| self.around.get(offset..).is_some_and(|text| text.starts_with('{'));
        let indent = match &entry.value.value {
            Value::Map(_) if is_in_braces(entry.value.span.start) => None,
            Value::Map(entries) => entries.first().map(|first| column(first.key.span.start)),
            _ => Some(column(entry.key.span.start).saturating_add(2)),
        };
        let line = before(entry.key.span.start).bytes().filter(|byte| *byte == b'\n').count().saturating_add(1);
        Some(Section { line, indent })
    }
}

/// Reads the statechart of a charter from a file in another language. `charter-interop` implements
/// it for XState and SCXML.
pub trait StatechartImporter {
    /// Returns the charter with the states of the file added. Places in the document refer to that
    /// file.
    ///
    /// # Errors
    /// The importer returns the diagnostics of the file if at least one of them is an error.
    fn import(&self, import: Import<'_>) -> Result<Document, Diagnostics>;
}

/// An importer that supports no format: a charter with `statechart: {import, format}` is an error.
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
/// The builder has a current part of the definition; [`enter`](Self::enter) and
/// [`leave`](Self::leave) change it, and [`mark`](Self::mark) records where it was written.
pub struct DocumentBuilder<'s> {
    cx: Context<'s>,
}

/// A part of the definition that [`DocumentBuilder::leave`] returns to.
#[derive(Debug, Clone, Copy)]
pub struct Position(crate::read::places::Part);

impl<'s> DocumentBuilder<'s> {
    /// Creates a builder at the root of the definition.
    #[must_use]
    pub fn new(source: &'s str) -> Self {
        DocumentBuilder { cx: Context::new(source) }
    }

    /// The source text.
    #[must_use]
    pub fn source(&self) -> &'s str {
        self.cx.source
    }

    /// Adds a diagnostic. If it is an error, [`finish`](Self::finish) returns no document.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.cx.report(diagnostic);
    }

    /// Moves to the part at a key (or index) of the current part. Returns the previous position, to
    /// pass to [`leave`](Self::leave).
    pub fn enter(&mut self, key: &str) -> Position {
        Position(self.cx.down(key))
    }

    /// Moves back to an earlier position.
    pub fn leave(&mut self, position: Position) {
        self.cx.up(position.0);
    }

    /// Records that the current part was written at `span`.
    pub fn mark(&mut self, span: Span) {
        self.cx.mark(span);
    }

    /// Builds the document of this definition. `root` is the source as a tree, which provides the
    /// paths in messages; pass a single node if the source has no tree.
    ///
    /// # Errors
    /// Returns the reported diagnostics if at least one of them is an error.
    pub fn finish(
        self,
        definition: Definition,
        name: &str,
        source: Arc<str>,
        root: Node,
    ) -> Result<Document, Diagnostics> {
        finished(self.cx, definition, name, source, root)
    }

    /// Returns only the reported diagnostics, with line and column.
    #[must_use]
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        let source = self.cx.source;
        self.cx.sink.finish(source, None).0
    }
}
