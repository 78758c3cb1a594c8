//! Turns a source text into a definition: parses it, checks it against the grammar, reads it and
//! resolves names.

mod action;
mod charter;
pub(crate) mod context;
pub(crate) mod delay;
mod names;
pub(crate) mod places;
mod state;
mod statechart;
pub(crate) mod template;
mod transition;
mod types;
mod variables;

use std::path::Path;
use std::sync::Arc;

use self::context::Context;

use charter_kernel::{Definition, Machine, Problem};

use self::places::Places;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, Sink, codes};
use crate::grammar::{Form, check, table};
use crate::import::{Files, NoImporter, StatechartImporter, no_files};
use crate::source::{self, Node, Span, Syntax};

/// The supported versions of the language.
const VERSIONS: [i64; 1] = [1];

/// Options for reading. `ReadOptions::default()` suffices for charters that refer to no other
/// files; a charter with `statechart: {import, format}` needs `files` and an `importer`.
#[derive(Clone, Copy)]
pub struct ReadOptions<'o> {
    /// The syntax of the text.
    pub syntax: Syntax,
    /// Provides the files that the charter refers to.
    pub files: &'o Files<'o>,
    /// Reads statecharts in other languages.
    pub importer: &'o dyn StatechartImporter,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        ReadOptions { syntax: Syntax::default(), files: &no_files, importer: &NoImporter }
    }
}

/// A charter and the place of each of its parts in the source.
#[derive(Debug, Clone)]
pub struct Document {
    /// The definition, the core form of the charter.
    pub definition: Definition,
    /// The name of the source, usually a path.
    pub name: String,
    /// The source text.
    pub source: Arc<str>,
    /// Warnings: legal, but probably mistakes.
    pub warnings: Vec<Diagnostic>,
    root: Arc<Node>,
    places: Places,
    /// The document that the statechart was imported from.
    imported: Option<Arc<Document>>,
}

/// Reads a charter from YAML or JSON. `name` (usually a path) is used in messages; if it ends in
/// `.json`, the text is parsed as JSON.
///
/// Limits: 16 MiB of text, 1,000,000 values including the copies made for aliases, and a nesting
/// depth of 128.
///
/// # Errors
/// Returns the errors in the text, in source order; at most [`Diagnostics::MAX`]. After a syntax
/// error, nothing else is reported.
pub fn read(source: &str, name: &str, options: &ReadOptions<'_>) -> Result<Document, Diagnostics> {
    let source: Arc<str> = Arc::from(source);
    let fail = |sink: Sink, root: Option<&Node>| {
        let (list, omitted) = sink.finish(&source, root);
        Diagnostics { name: name.to_owned(), source: Arc::clone(&source), list, omitted }
    };
    let parsed = match source::parse(&source, name, options.syntax) {
        Ok(parsed) => parsed,
        Err(problem) => {
            let mut sink = Sink::default();
            sink.push(problem);
            return Err(fail(sink, None));
        }
    };
    let root = parsed.root;
    let mut cx = context::Context::new(&source);
    for warning in parsed.warnings {
        cx.report(warning);
    }
    // This grammar applies to one version of the language only.
    let version = check_version(&root, &mut cx.sink);
    if !version {
        return Err(fail(cx.sink, Some(&root)));
    }
    check::check(&root, &Form::Object(&table::CHARTER), &mut cx.sink);
    let mut definition = charter::charter(&mut cx, &root);
    let imported = match root.entry("statechart").filter(|_| cx.sink.errors == 0) {
        Some(entry) => statechart::import(&mut cx, &root, entry, name, &mut definition, options),
        None => None,
    };
    names::resolve(&mut cx, &definition, &root);
    if cx.sink.errors > 0 {
        return Err(fail(cx.sink, Some(&root)));
    }
    let places = std::mem::take(&mut cx.places);
    let (warnings, _) = cx.sink.finish(&source, Some(&root));
    Ok(Document { definition, name: name.to_owned(), source, warnings, root: Arc::new(root), places, imported })
}

/// Reads any JSON or YAML text into a value, with the rules and limits of a charter (no duplicate
/// keys, no tags, `010` is the integer 10). Intended for files that belong to a charter; `name` is
/// used in messages.
///
/// # Errors
/// Returns the first error in the text.
pub fn value(source: &str, name: &str) -> Result<serde_json::Value, Diagnostics> {
    let source: Arc<str> = Arc::from(source);
    match source::parse(&source, name, Syntax::Auto) {
        Ok(parsed) => Ok(parsed.root.json()),
        Err(problem) => {
            let mut sink = Sink::default();
            sink.push(problem);
            let (list, omitted) = sink.finish(&source, None);
            Err(Diagnostics { name: name.to_owned(), source, list, omitted })
        }
    }
}

/// Reads a charter from a file. Paths in the charter are relative to that file; `options.files` is
/// not used. This is the only function of this crate that accesses the file system.
///
/// # Errors
/// Returns the same errors as [`read`], and an error if the file cannot be read or is not UTF-8.
pub fn read_file(path: &Path, options: &ReadOptions<'_>) -> Result<Document, Diagnostics> {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(source) => {
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            let files = |file: &str| std::fs::read_to_string(folder.join(file));
            read(&source, &name, &ReadOptions { files: &files, ..*options })
        }
        Err(error) => {
            let problem = Diagnostic::error(codes::FILE, Span::default(), format!("cannot read `{name}`: {error}"));
            Err(Diagnostics { name, source: Arc::from(""), list: vec![problem], omitted: 0 })
        }
    }
}

/// Checks that the document has a supported version.
fn check_version(root: &Node, sink: &mut Sink) -> bool {
    let Some(entry) = root.entry("charter") else {
        return true;
    };
    match entry.value.whole() {
        Some(version) if !VERSIONS.contains(&version) => {
            let known = VERSIONS.map(|version| format!("`{version}`")).join(", ");
            let message = format!("unsupported charter language version {version}");
            sink.push(
                Diagnostic::error(codes::LANGUAGE_VERSION, entry.value.span, message)
                    .help(format!("supported: {known}")),
            );
            false
        }
        // The grammar check reports a value that is not a number.
        _ => true,
    }
}

/// Builds the document of an imported file, or returns its diagnostics if there were errors.
pub(crate) fn finished(
    mut cx: Context<'_>,
    definition: Definition,
    name: &str,
    source: Arc<str>,
    root: Node,
) -> Result<Document, Diagnostics> {
    let places = std::mem::take(&mut cx.places);
    let failed = cx.sink.errors > 0;
    let (list, omitted) = cx.sink.finish(&source, Some(&root));
    let name = name.to_owned();
    if failed {
        return Err(Diagnostics { name, source, list, omitted });
    }
    Ok(Document { definition, name, source, warnings: list, root: Arc::new(root), places, imported: None })
}

impl Document {
    /// The file in which the part of the definition at a JSON pointer is written: this document, or
    /// the imported statechart.
    fn written_in(&self, pointer: &str) -> &Document {
        let of_states = || pointer.strip_prefix("/root/state").is_some_and(|b| b.is_empty() || b.starts_with('/'));
        self.imported.as_deref().filter(|_| of_states()).unwrap_or(self)
    }

    /// The span of the part of the definition at a JSON pointer, or of its nearest ancestor with a
    /// known place.
    #[must_use]
    pub fn span(&self, pointer: &str) -> Span {
        self.places.find(pointer).span(&self.source)
    }

    /// The source span of a range of bytes in the text at a JSON pointer; quotes and escapes are
    /// taken into account. The span of the whole value if it is not a string in the source.
    #[must_use]
    pub fn span_within(&self, pointer: &str, bytes: (usize, usize)) -> Span {
        self.places.find(pointer).part(bytes.0, bytes.1, &self.source)
    }

    /// Compiles the definition.
    ///
    /// # Errors
    /// The definition is invalid; its problems, in the order of the source.
    pub fn compile(&self) -> Result<Machine, Diagnostics> {
        Machine::compile(self.definition.clone()).map_err(|problems| {
            let mut list: Vec<_> = problems.iter().map(|p| self.diagnose(p)).collect();
            list.sort_by_key(|d| (d.span.start, d.span.end));
            Diagnostics { name: self.name.clone(), source: Arc::clone(&self.source), list, omitted: 0 }
        })
    }

    /// Converts a problem that the kernel found in the definition to a diagnostic of this document.
    #[must_use]
    pub fn diagnose(&self, problem: &Problem) -> Diagnostic {
        let diagnostic = Diagnostic::new(Severity::Error, problem.code, Span::default(), problem.message.clone());
        self.placed(&problem.at, problem.span, Diagnostic { help: problem.help.clone(), ..diagnostic })
    }

    /// Gives a diagnostic its place: the part of the definition at a JSON pointer, or a range of
    /// bytes in the text there.
    #[must_use]
    pub fn placed(&self, pointer: &str, bytes: Option<(usize, usize)>, mut diagnostic: Diagnostic) -> Diagnostic {
        let document = self.written_in(pointer);
        diagnostic.span = bytes.map_or_else(|| document.span(pointer), |bytes| document.span_within(pointer, bytes));
        diagnostic.locate(&document.source, Some(&document.root));
        if !std::ptr::eq(document, self) {
            diagnostic.file = Some(statechart::file(&self.name, &document.name, document.source.clone()));
        }
        diagnostic
    }

    /// Creates a diagnostic about a place in this document, for other checks such as lints.
    #[must_use]
    pub fn diagnostic(
        &self,
        severity: Severity,
        code: &'static str,
        span: Span,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(severity, code, span, message);
        diagnostic.help = help;
        diagnostic.locate(&self.source, Some(&self.root));
        diagnostic
    }

    /// The JSON pointers of all parts whose place is known.
    pub fn pointers(&self) -> impl Iterator<Item = String> {
        self.places.pointers()
    }
}
