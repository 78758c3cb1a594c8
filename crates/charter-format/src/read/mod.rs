//! From a source text to the core form: parse, compare with the grammar, read, resolve names.

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

use std::path::Path;
use std::sync::Arc;

use self::context::Context;

use charter_kernel::{Definition, Problem};

use self::places::Places;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, Sink, codes};
use crate::grammar::{Form, check, table};
use crate::import::{Files, NoImporter, StatechartImporter, no_files};
use crate::source::{self, Node, Span, Syntax, Value};

/// Versions of the language that this program knows.
const VERSIONS: [i64; 1] = [1];

/// How to read. `ReadOptions::default()` is right for charters that stand alone; a charter with
/// `statechart: {import, format}` needs `files` and an `importer`.
#[derive(Clone, Copy)]
pub struct ReadOptions<'o> {
    /// How the text is written.
    pub syntax: Syntax,
    /// The files that the charter names.
    pub files: &'o Files<'o>,
    /// Reads statecharts in other languages.
    pub importer: &'o dyn StatechartImporter,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        ReadOptions { syntax: Syntax::default(), files: &no_files, importer: &NoImporter }
    }
}

/// A charter that has been read, and where each part of it was written.
#[derive(Debug, Clone)]
pub struct Document {
    /// The charter in its core form.
    pub definition: Definition,
    /// Name of the source, for people.
    pub name: String,
    /// The source text.
    pub source: Arc<str>,
    /// What is legal, but probably not what was meant.
    pub warnings: Vec<Diagnostic>,
    root: Arc<Node>,
    places: Places,
    /// The document that the statechart was taken from.
    elsewhere: Option<Arc<Document>>,
}

/// Reads a charter from YAML or JSON. `name` (usually a path) is for messages; `.json` at its end makes the text JSON.
///
/// Limits: 16 MiB of text, 1,000,000 values (what aliases stand for counted), 128 lists and objects inside each other.
///
/// # Errors
/// Everything that is wrong with the text, in its order, at most [`Diagnostics::MOST`]. A syntax error is always alone.
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
    // A charter of another version would be compared with the wrong grammar.
    let version = check_version(&root, &mut cx.sink);
    if !version {
        return Err(fail(cx.sink, Some(&root)));
    }
    check::check(&root, &Form::Object(&table::CHARTER), &mut cx.sink);
    let mut definition = charter::charter(&mut cx, &root);
    let elsewhere = match root.entry("statechart").filter(|_| cx.sink.errors == 0) {
        Some(entry) => statechart::take(&mut cx, &root, entry, &mut definition, options),
        None => None,
    };
    names::resolve(&mut cx, &definition, &root);
    if cx.sink.errors > 0 {
        return Err(fail(cx.sink, Some(&root)));
    }
    let places = std::mem::take(&mut cx.places);
    let (warnings, _) = cx.sink.finish(&source, Some(&root));
    Ok(Document { definition, name: name.to_owned(), source, warnings, root: Arc::new(root), places, elsewhere })
}

/// Reads any JSON or YAML text into a value, with the same rules and limits as a charter (no duplicate keys, no tags, `010` is the
/// integer 10). For files that belong to a charter; `name` is for messages.
///
/// # Errors
/// The first thing that is wrong with the text.
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

/// Reads a charter from a file. The files that it names are found relative to it; `options.files` is
/// not used. The only function of this crate that reads from the file system.
///
/// # Errors
/// As [`read`]; also when the file cannot be read or is no UTF-8.
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

/// Whether the document may be compared with the grammar of this version.
fn check_version(root: &Node, sink: &mut Sink) -> bool {
    let Some(entry) = root.entry("charter") else {
        return true;
    };
    match &entry.value.value {
        Value::Int(version) if !VERSIONS.contains(version) => {
            let known = VERSIONS.map(|version| format!("`{version}`")).join(", ");
            let message = format!("version {version} of the charter language is not known");
            sink.push(
                Diagnostic::error(codes::LANGUAGE_VERSION, entry.value.span, message)
                    .help(format!("this program knows {known}")),
            );
            false
        }
        // Anything but a number is reported by the grammar.
        _ => true,
    }
}

/// What an importer has read, as a document like any other.
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
    Ok(Document { definition, name, source, warnings: list, root: Arc::new(root), places, elsewhere: None })
}

impl Document {
    /// Where the part of the core form at a JSON pointer was written, if that is not this document but the file that its `statechart`
    /// names: `fred.json:26:12 (path)`, for people.
    #[must_use]
    pub fn elsewhere(&self, pointer: &str) -> Option<String> {
        let other = self.elsewhere.as_ref()?;
        let below = pointer.strip_prefix("/root/state")?;
        if !(below.is_empty() || below.starts_with('/')) {
            return None;
        }
        let span = other.span(pointer);
        let at = other.diagnostic(Severity::Error, "", span, String::new(), None);
        Some(statechart::place(&other.name, &at))
    }

    /// Where the part of the core form at a JSON pointer was written; of its nearest ancestor, if it has no place of its own.
    #[must_use]
    pub fn span(&self, pointer: &str) -> Span {
        self.places.find(pointer).span(&self.source)
    }

    /// Where bytes of the text at a JSON pointer were written (quotes and escapes are taken care of). If the part of the core form
    /// there is no text of its own in the source, the whole place.
    #[must_use]
    pub fn span_within(&self, pointer: &str, bytes: (usize, usize)) -> Span {
        self.places.find(pointer).part(bytes.0, bytes.1, &self.source)
    }

    /// A problem that the kernel found in the definition, as a diagnostic in the source.
    #[must_use]
    pub fn diagnose(&self, problem: &Problem) -> Diagnostic {
        let span = problem.span.map_or_else(|| self.span(&problem.at), |bytes| self.span_within(&problem.at, bytes));
        self.diagnostic(
            Severity::Error,
            problem.code,
            span,
            match self.elsewhere(&problem.at) {
                Some(place) => format!("{place}: {}", problem.message),
                None => problem.message.clone(),
            },
            problem.help.clone(),
        )
    }

    /// A diagnostic about a place in this document, for checks of others (lints, say).
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

    /// Every pointer that has a place of its own (those below share that of their nearest ancestor).
    pub fn pointers(&self) -> impl Iterator<Item = String> {
        self.places.pointers()
    }
}
