//! Diagnostics: what is wrong with a charter, where, and how to fix it.

use std::fmt;
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::source::{Node, Span};

/// The stable codes of the reader's diagnostics. Problems that the kernel finds have their own
/// codes.
pub mod codes {
    /// The text is neither YAML nor JSON.
    pub const SYNTAX: &str = "syntax";
    /// The file cannot be read or is not UTF-8.
    pub const FILE: &str = "file";
    /// The text exceeds a size limit.
    pub const TOO_LARGE: &str = "too-large";
    /// Lists and objects are nested too deeply.
    pub const TOO_DEEP: &str = "too-deep";
    /// A key that occurs twice in one object.
    pub const DUPLICATE_KEY: &str = "duplicate-key";
    /// A key that is not a string.
    pub const KEY: &str = "bad-key";
    /// An alias without an anchor, or inside the value of its own anchor.
    pub const ALIAS: &str = "bad-alias";
    /// A YAML tag.
    pub const TAG: &str = "tag";
    /// A YAML merge key.
    pub const MERGE_KEY: &str = "merge-key";
    /// More than one YAML document in a file.
    pub const SEVERAL_DOCUMENTS: &str = "several-documents";
    /// A number that JSON cannot represent, or that JSON parsers read differently.
    pub const NUMBER: &str = "bad-number";
    /// An unknown key.
    pub const UNKNOWN_KEY: &str = "unknown-key";
    /// A required key is missing.
    pub const MISSING_KEY: &str = "missing-key";
    /// A value of the wrong type.
    pub const TYPE: &str = "wrong-type";
    /// A value of the right type that is not allowed.
    pub const VALUE: &str = "bad-value";
    /// A malformed, negative or too long duration.
    pub const BAD_DELAY: &str = "bad-delay";
    /// Mutually exclusive keys are used together, or all of several alternative keys are missing.
    pub const CONFLICT: &str = "conflicting-keys";
    /// An unsupported version of the language.
    pub const LANGUAGE_VERSION: &str = "language-version";
    /// A feature of an imported document that is not supported.
    pub const NOT_SUPPORTED: &str = "not-supported";
    /// A name that is not declared.
    pub const UNDEFINED: &str = "undefined-name";
    /// A name that is declared twice with different meanings.
    pub const AMBIGUOUS: &str = "ambiguous-name";
    /// A role that no sender can have.
    pub const BAD_ROLE_NAME: &str = "bad-role-name";
    /// A literal string that looks like an expression.
    pub const MAYBE_EXPRESSION: &str = "maybe-expression";
}

/// Whether a diagnostic prevents the use of a charter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Severity {
    /// The charter cannot be used.
    Error,
    /// The charter can be used, but probably contains a mistake.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// Another place that a diagnostic refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The place.
    pub span: Span,
    /// What the diagnostic says about that place.
    pub message: String,
}

impl Note {
    /// Creates a note about a place.
    #[must_use]
    pub fn new(span: Span, message: impl Into<String>) -> Note {
        Note { span, message: message.into() }
    }
}

/// A source text and its name, usually a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// The name.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
}

/// A problem and its place.
///
/// As JSON: `{"severity","code","path","line","column","message","help"}`, and `file` if the place
/// is in another file than the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Stable kebab-case code; each has a page in `docs/codes/`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Path in the document, such as `states.review.on.APPROVE`; empty for the document as a whole.
    pub path: String,
    /// The place in the source text.
    pub span: Span,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// How to fix it.
    pub help: Option<String>,
    /// Lines to be pasted into a file, shown below the message as they are.
    pub paste: Option<String>,
    /// Related places.
    pub notes: Vec<Note>,
    /// The file of the place if it is not the document: an imported statechart.
    pub file: Option<Arc<SourceFile>>,
}

impl Diagnostic {
    /// Creates a diagnostic about a span. Long messages are cut; line, column and path are filled
    /// in when the document is finished.
    #[must_use]
    pub fn new(severity: Severity, code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity,
            code,
            message: shorten(&message.into(), 1_000),
            path: String::new(),
            span,
            line: 1,
            column: 1,
            help: None,
            paste: None,
            notes: Vec::new(),
            file: None,
        }
    }

    /// Creates an error; see [`Diagnostic::new`].
    #[must_use]
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, code, span, message)
    }

    /// Creates a warning; see [`Diagnostic::new`].
    #[must_use]
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, span, message)
    }

    /// Adds advice on how to fix the problem.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(shorten(&help.into(), 2_000));
        self
    }

    /// Adds a related place.
    #[must_use]
    pub fn note(mut self, note: Note) -> Diagnostic {
        self.notes.push(note);
        self
    }

    /// Fills in line and column from the span in a text.
    #[must_use]
    pub fn located(mut self, source: &str) -> Diagnostic {
        self.locate(source, None);
        self
    }

    /// Fills in line, column and path from the span.
    pub(crate) fn locate(&mut self, source: &str, root: Option<&Node>) {
        let before = source.get(..self.span.start).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
        self.line = before.bytes().filter(|byte| *byte == b'\n').count().saturating_add(1);
        self.column = before
            .get(line_start..)
            .unwrap_or_default()
            .trim_start_matches('\u{feff}')
            .chars()
            .count()
            .saturating_add(1);
        if let Some(root) = root {
            self.path = root.path_at(self.span.start);
        }
    }

    /// Formats the diagnostic in the style of rustc, with its source lines. `source` is the text
    /// and
    /// `name` the file name, of the document. The caller decides whether to use color: this library
    /// does not know the terminal.
    #[must_use]
    pub fn render(&self, source: &str, name: &str, color: bool) -> String {
        let (source, name) = self.file.as_ref().map_or((source, name), |file| (&file.text, &file.name));
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        // The renderer would search the whole text for each diagnostic: pass only the lines shown.
        let first = self.notes.iter().map(|note| note.span.start).fold(self.span.start, usize::min).min(source.len());
        let last = self.notes.iter().map(|note| note.span.start).fold(self.span.start, usize::max);
        let before = source.get(..first).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
        let lines = before.bytes().filter(|byte| *byte == b'\n').count();
        let end = source
            .get(last..)
            .and_then(|rest| rest.find('\n'))
            .map_or(source.len(), |length| last.saturating_add(length));
        let text = source.get(start..end).unwrap_or_default();
        let clip = |span: Span| {
            let span = span.first_line(source);
            let inside = |offset: usize| offset.saturating_sub(start).min(text.len());
            inside(span.start)..inside(span.end)
        };
        let annotation = AnnotationKind::Primary.span(clip(self.span));
        let mut snippet = Snippet::source(text).line_start(lines.saturating_add(1)).path(name).annotation(annotation);
        for note in &self.notes {
            snippet = snippet.annotation(AnnotationKind::Context.span(clip(note.span)).label(note.message.as_str()));
        }
        let mut group = level.primary_title(self.message.as_str()).id(self.code).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let message = renderer.decor_style(DecorStyle::Ascii).render(&[group]);
        match &self.paste {
            Some(lines) => format!("{message}\n\n{lines}"),
            None => message,
        }
    }
}

impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let more = usize::from(self.file.is_some()).saturating_add(usize::from(self.paste.is_some()));
        let mut out = serializer.serialize_struct("Diagnostic", more.saturating_add(7))?;
        out.serialize_field("severity", self.severity.as_str())?;
        out.serialize_field("code", self.code)?;
        out.serialize_field("path", &self.path)?;
        out.serialize_field("line", &self.line)?;
        out.serialize_field("column", &self.column)?;
        out.serialize_field("message", &self.message)?;
        out.serialize_field("help", &self.help)?;
        match &self.paste {
            Some(lines) => out.serialize_field("paste", lines)?,
            None => out.skip_field("paste")?,
        }
        match &self.file {
            Some(file) => out.serialize_field("file", &file.name)?,
            None => out.skip_field("file")?,
        }
        out.end()
    }
}

/// The errors and warnings for one source text, in source order. At least one of them is an error.
#[derive(Debug, Clone)]
pub struct Diagnostics {
    /// The name of the source, usually a path.
    pub name: String,
    /// The source text.
    pub source: Arc<str>,
    /// The diagnostics; at most [`Diagnostics::MAX`].
    pub list: Vec<Diagnostic>,
    /// The number of diagnostics beyond [`Diagnostics::MAX`], which are not in `list`.
    pub omitted: usize,
}

impl Diagnostics {
    /// Upper limit of diagnostics that are kept; the rest are only counted.
    pub const MAX: usize = 100;

    /// Formats all diagnostics in the style of rustc.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let mut text: String =
            self.list.iter().map(|item| item.render(&self.source, &self.name, color) + "\n\n").collect();
        if self.omitted > 0 {
            text.push_str(&format!("and {} more\n", self.omitted));
        }
        text
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

impl Serialize for Diagnostics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.list)
    }
}

/// Collects diagnostics up to [`Diagnostics::MAX`].
#[derive(Debug, Default)]
pub(crate) struct Sink {
    pub(crate) list: Vec<Diagnostic>,
    pub(crate) omitted: usize,
    pub(crate) errors: usize,
}

impl Sink {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors = self.errors.saturating_add(1);
        }
        if self.list.len() < Diagnostics::MAX {
            self.list.push(diagnostic);
        } else {
            self.omitted = self.omitted.saturating_add(1);
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= Diagnostics::MAX
    }

    /// Counts an error beyond the limit without creating its diagnostic.
    pub(crate) fn omit(&mut self) {
        self.errors = self.errors.saturating_add(1);
        self.omitted = self.omitted.saturating_add(1);
    }

    /// Returns the diagnostics in source order, each with its line, column and path, and the number
    /// omitted.
    pub(crate) fn finish(mut self, source: &str, root: Option<&Node>) -> (Vec<Diagnostic>, usize) {
        // Those of an imported file come last, and have their places already.
        let file = |item: &Diagnostic| item.file.as_ref().map(|file| file.name.clone());
        self.list.sort_by_cached_key(|item| (file(item), item.span.start, item.span.end));
        self.list.dedup_by(|a, b| a.file == b.file && a.span == b.span && a.message == b.message);
        for item in self.list.iter_mut().filter(|item| item.file.is_none()) {
            item.locate(source, root);
        }
        (self.list, self.omitted)
    }
}

/// Formats names in backticks, separated by commas; lists at most 40 and counts the rest.
pub(crate) fn listed<'k>(names: impl IntoIterator<Item = &'k str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let shown: Vec<String> = names.iter().take(40).map(|name| format!("`{}`", shown(name))).collect();
    let more = names.len().saturating_sub(shown.len());
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// Shortens a long name for use in a message or a path.
pub(crate) fn shown(text: &str) -> String {
    shorten(text, 80)
}

/// Cuts text after `max` characters. Messages quote the charter, and a name in it may be a megabyte
/// long.
fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}
