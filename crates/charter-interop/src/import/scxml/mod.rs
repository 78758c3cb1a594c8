//! SCXML (W3C REC 2015-09-01) into the core form: the data models `cel` and `null`, invoked documents as entries of `machines`.
//!
//! What only shows when a document runs (an expression that cannot be read, a variable that nobody declared, a place that cannot be
//! assigned to) is `error.execution` then, as the REC says, and not an error here. What is refused here is what is no SCXML, and what
//! this program does not do: other data models and the HTTP event processor.

mod action;
mod chart;
mod data;
mod expression;
mod invoke;
mod send;
mod transition;
pub(crate) mod xml;

use std::collections::VecDeque;
use std::sync::Arc;

use charter_kernel::Definition;
use charter_kernel::definition::Chart;
use indexmap::IndexMap;
use roxmltree::Node;
use rustc_hash::{FxHashMap, FxHashSet};

use self::expression::{Model, Names};
use super::charter_id;
use crate::export::Embedded;
use charter_format::import::{DocumentBuilder, Files};
use charter_format::source::{Node as Tree, Span, Value};
use charter_format::{Diagnostic, Diagnostics, Document, codes};

/// What to do with an export that was edited and said more than SCXML can.
const EDITED: &str = "edit the charter and export it again; or remove what SCXML has no word for, and take the states into a charter that says it";

/// Files that one document may take in.
const MAX_FILES: usize = 100;

/// Reads an SCXML document. `name` (usually a path) is for messages; `files` gives the documents and values it names with `src`.
///
/// Limits: 16 MiB of text, 128 elements inside each other, 100 files; no document types and no entities.
///
/// # Errors
/// What is no SCXML, or is not done by this program, each with its place and the reason.
pub fn scxml(source: &str, name: &str, files: &Files<'_>) -> Result<Document, Diagnostics> {
    let source: Arc<str> = source.into();
    let whole = Tree { span: Span::new(0, source.len()), value: Value::Null };
    let mut cx = DocumentBuilder::new(&source);
    let tree = match xml::parse(&source) {
        Ok(tree) => tree,
        Err(problem) => {
            cx.report(problem);
            return cx.finish(Definition::default(), name, Arc::clone(&source), whole);
        }
    };
    match crate::export::embedded_scxml(&source) {
        Embedded::Unchanged(definition) => return cx.finish(*definition, name, Arc::clone(&source), whole),
        Embedded::Edited => cx.report(
            Diagnostic::warning(codes::AMBIGUOUS, xml::tag(tree.root_element()), "this export of a charter was edited: it is read as plain SCXML")
                .help("its roles, ledger, interlocks and events are not taken over; take the states into a charter with `statechart: {import: ...}`"),
        ),
        Embedded::Nothing => {}
    }
    let mut shared = Shared::new(files);
    let scxml = tree.root_element();
    let title = scxml.attribute("name").map(str::to_owned);
    let mut reader = Reader::new(cx, &mut shared);
    let mut definition = Definition { charter: 1, strict: false, title, ..Definition::default() };
    definition.id = charter_id(definition.title.as_deref().unwrap_or(name));
    definition.root = reader.at("root", scxml, |reader| reader.chart(scxml));
    reader.machines();
    let cx = reader.cx;
    definition.machines = shared.machines;
    cx.finish(definition, name, Arc::clone(&source), whole)
}

/// What the files of one document share.
struct Shared<'r> {
    files: &'r Files<'r>,
    machines: IndexMap<String, Chart>,
    /// Names of machines that are given away.
    taken: FxHashSet<String>,
    by_file: FxHashMap<String, Result<String, String>>,
    /// Counts the invocations without an id, so that no two of a run share one.
    invocations: u32,
}

impl<'r> Shared<'r> {
    fn new(files: &'r Files<'r>) -> Self {
        let taken = FxHashSet::from_iter(["root".to_owned()]);
        Shared { files, machines: IndexMap::new(), taken, by_file: FxHashMap::default(), invocations: 0 }
    }

    /// A name for a machine that no other has.
    fn machine_name(&mut self, wanted: &str) -> String {
        let wanted = if wanted.is_empty() { "machine" } else { wanted };
        let mut name = wanted.to_owned();
        let mut number = 2u32;
        while !self.taken.insert(name.clone()) {
            name = format!("{wanted}-{number}");
            number = number.saturating_add(1);
        }
        name
    }

    /// The text of a file; `file:` in front of its name says nothing more.
    fn text(&self, file: &str) -> Result<String, String> {
        let path = file.strip_prefix("file://").or_else(|| file.strip_prefix("file:")).unwrap_or(file);
        (self.files)(path).map_err(|e| e.to_string())
    }

    /// The machine that a file describes. It is read once, so a document may even invoke itself.
    fn machine_of_file(&mut self, file: &str) -> Result<String, String> {
        if let Some(known) = self.by_file.get(file) {
            return known.clone();
        }
        if self.by_file.len() >= MAX_FILES {
            return Err(format!("a document may take in {MAX_FILES} files"));
        }
        let name = self.machine_name(&charter_id(file.trim_start_matches("file:")));
        self.by_file.insert(file.to_owned(), Ok(name.clone()));
        let result = self.text(file).and_then(|text| self.machine_of_text(&text, &name)).map(|()| name);
        self.by_file.insert(file.to_owned(), result.clone());
        result
    }

    /// Reads a document into `machines`.
    fn machine_of_text(&mut self, text: &str, name: &str) -> Result<(), String> {
        let tree = xml::parse(text).map_err(|problem| problem.message)?;
        let mut reader = Reader::new(DocumentBuilder::new(text), self);
        // Its place is kept before those of the documents inside it.
        reader.shared.machines.insert(name.to_owned(), Chart::default());
        let chart = reader.chart(tree.root_element());
        reader.machines();
        let list = reader.cx.into_diagnostics();
        if let Some(problem) = list.iter().find(|item| item.severity == charter_format::Severity::Error) {
            return Err(format!("line {}, column {}: {}", problem.line, problem.column, problem.message));
        }
        self.machines.insert(name.to_owned(), chart);
        Ok(())
    }
}

/// Reads one file.
struct Reader<'x, 'r, 'd, 'i> {
    cx: DocumentBuilder<'d>,
    shared: &'x mut Shared<'r>,
    /// Documents inside this one, read when the one around them is done.
    pending: VecDeque<(Node<'d, 'i>, String)>,
    /// Of the chart that is being read.
    names: Names,
    late: bool,
    keys: FxHashMap<roxmltree::NodeId, String>,
    ids: FxHashSet<&'d str>,
    /// How many `<foreach>` stand around.
    loops: usize,
    document: Option<Node<'d, 'i>>,
}

impl<'x, 'r, 'd, 'i> Reader<'x, 'r, 'd, 'i> {
    fn new(cx: DocumentBuilder<'d>, shared: &'x mut Shared<'r>) -> Self {
        Reader {
            cx,
            shared,
            pending: VecDeque::new(),
            names: Names::new(Model::Cel, []),
            late: false,
            keys: FxHashMap::default(),
            ids: FxHashSet::default(),
            loops: 0,
            document: None,
        }
    }

    /// Reads the documents inside.
    fn machines(&mut self) {
        while let Some((scxml, name)) = self.pending.pop_front() {
            // What its invocation passes is known to `invoke`; here the document stands for itself.
            self.shared.machines.insert(name.clone(), Chart::default());
            let chart = self.inside("machines", |reader| reader.at(&name, scxml, |reader| reader.chart(scxml)));
            self.shared.machines.insert(name, chart);
        }
    }

    /// Reads something one step further down in the core form, marked with its element.
    fn at<T>(&mut self, key: &str, node: Node<'d, 'i>, f: impl FnOnce(&mut Self) -> T) -> T {
        let span = xml::tag(node);
        self.inside(key, |reader| {
            reader.cx.mark(span);
            f(reader)
        })
    }

    /// The same, marked with an attribute.
    fn at_span<T>(&mut self, key: &str, span: Span, f: impl FnOnce(&mut Self) -> T) -> T {
        self.inside(key, |reader| {
            reader.cx.mark(span);
            f(reader)
        })
    }

    fn inside<T>(&mut self, key: &str, f: impl FnOnce(&mut Self) -> T) -> T {
        let above = self.cx.enter(key);
        let answer = f(self);
        self.cx.leave(above);
        answer
    }

    fn refuse(&mut self, code: &'static str, span: Span, message: impl Into<String>, help: Option<&str>) {
        let mut problem = Diagnostic::error(code, span, message);
        problem.help = help.map(str::to_owned);
        self.cx.report(problem);
    }

    fn warn(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.cx.report(Diagnostic::warning(code, span, message));
    }

    /// Says which attributes mean nothing.
    fn only(&mut self, node: Node<'d, 'i>, known: &[&str]) {
        for attribute in node.attributes() {
            let foreign = attribute.namespace().is_some();
            if attribute.namespace() == Some(xml::CHARTER) {
                let range = attribute.range();
                let message = format!("`charter:{}` is lost in an export that was edited", attribute.name());
                self.refuse(codes::NOT_SUPPORTED, Span::new(range.start, range.end), message, Some(EDITED));
            }
            if !foreign && !known.contains(&attribute.name()) {
                let range = attribute.range();
                let mut problem = Diagnostic::warning(
                    codes::UNKNOWN_KEY,
                    Span::new(range.start, range.end),
                    format!("`<{}>` has no attribute `{}`; it is ignored", node.tag_name().name(), attribute.name()),
                );
                let near = charter_expr::nearest(attribute.name(), known.iter().copied());
                problem.help = near.map(|near| format!("did you mean `{near}`?"));
                self.cx.report(problem);
            }
        }
    }

    /// An element that does not belong where it stands.
    fn stray(&mut self, node: Node<'d, 'i>, parent: &str) {
        let name = node.tag_name().name();
        if xml::is_scxml(node) {
            self.refuse(
                codes::UNKNOWN_KEY,
                xml::tag(node),
                format!("`<{name}>` does not belong into `<{parent}>`"),
                None,
            );
        } else if node.tag_name().namespace() != Some(xml::CHARTER) {
            self.warn(codes::UNKNOWN_KEY, xml::tag(node), format!("`<{name}>` is of another namespace; it is ignored"));
        }
    }

    /// A required attribute.
    fn needed(&mut self, node: Node<'d, 'i>, name: &str) -> Option<xml::Attribute<'d>> {
        let found = xml::attribute(node, name).filter(|a| !a.value.trim().is_empty());
        if found.is_none() {
            let message = format!("`<{}>` needs the attribute `{name}`", node.tag_name().name());
            self.refuse(codes::MISSING_KEY, xml::tag(node), message, None);
        }
        found
    }

    /// Of two attributes at most one may be there.
    fn either(&mut self, node: Node<'d, 'i>, one: &str, other: &str) {
        if let (Some(_), Some(second)) = (xml::attribute(node, one), xml::attribute(node, other)) {
            let message = format!("`{one}` and `{other}` exclude each other");
            self.refuse(codes::CONFLICT, second.span, message, None);
        }
    }
}
