//! Imports SCXML (W3C REC 2015-09-01) with the data models `cel` and `null`. Invoked documents
//! become entries of `machines`.
//!
//! As the specification requires, invalid expressions, undeclared variables and invalid locations
//! are not import errors: they raise `error.execution` at run time. Import errors are invalid SCXML
//! and unsupported features, such as other data models and the HTTP event processor.

mod action;
mod chart;
mod data;
mod expression;
mod invoke;
mod send;
mod transition;
pub(crate) mod xml;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use charter_kernel::Definition;
use charter_kernel::definition::Chart;
use indexmap::IndexMap;
use roxmltree::Node;
use rustc_hash::{FxHashMap, FxHashSet};

use self::expression::{DataModel, Variables};
use super::charter_id;
use crate::export::Embedded;
use charter_format::import::{DocumentBuilder, Files};
use charter_format::source::{Node as Tree, Span, Value};
use charter_format::{Diagnostic, Diagnostics, Document, codes};

/// The help for an edited export that contains parts that SCXML cannot express.
const EDITED: &str = "edit the charter and export it again, or remove the parts in the `charter:` namespace and import the states into a charter";

/// Upper limit of files that a document can include.
const MAX_FILES: usize = 100;

/// Imports an SCXML document. `name` (usually a path) is used in messages; `files` returns the
/// documents and values that the document refers to with `src`.
///
/// Limits: 16 MiB of text, a nesting depth of 128, 100 files; document types and entities are not
/// allowed.
///
/// # Errors
/// Returns diagnostics if the document is invalid SCXML or uses unsupported features.
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
            Diagnostic::warning(codes::AMBIGUOUS, xml::tag(tree.root_element()), "this exported charter was edited and is read as plain SCXML")
                .help("its roles, ledger, interlocks and events are lost; import the states into a charter with `statechart: {import: ...}`"),
        ),
        Embedded::None => {}
    }
    let mut shared = Shared::new(files);
    let scxml = tree.root_element();
    let title = scxml.attribute("name").map(str::to_owned);
    let mut reader = ScxmlReader::new(cx, &mut shared);
    let mut definition = Definition { charter: 1, strict: false, title, ..Definition::default() };
    definition.id = charter_id(definition.title.as_deref().unwrap_or(name));
    definition.root = reader.at("root", scxml, |reader| reader.chart(scxml));
    reader.machines();
    let cx = reader.cx;
    definition.machines = shared.machines;
    cx.finish(definition, name, Arc::clone(&source), whole)
}

/// The state shared by all files of a document.
struct Shared<'r> {
    files: &'r Files<'r>,
    machines: IndexMap<String, Chart>,
    /// The names of machines that are already in use.
    taken: FxHashSet<String>,
    by_file: FxHashMap<String, Result<String, InvokeError>>,
    /// The number of invocations without an id, for unique ids.
    invocations: u32,
}

impl<'r> Shared<'r> {
    fn new(files: &'r Files<'r>) -> Self {
        let taken = FxHashSet::from_iter(["root".to_owned()]);
        Shared { files, machines: IndexMap::new(), taken, by_file: FxHashMap::default(), invocations: 0 }
    }

    /// Returns a unique name for a machine.
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

    /// Reads the text of a file; a leading `file:` is ignored.
    fn text(&self, file: &str) -> io::Result<String> {
        let path = file.strip_prefix("file://").or_else(|| file.strip_prefix("file:")).unwrap_or(file);
        (self.files)(path)
    }

    /// Returns the machine of a file. Each file is read only once, so that a document can invoke
    /// itself.
    fn machine_of_file(&mut self, file: &str) -> Result<String, InvokeError> {
        if let Some(known) = self.by_file.get(file) {
            return known.clone();
        }
        if self.by_file.len() >= MAX_FILES {
            return Err(InvokeError::TooManyFiles);
        }
        let name = self.machine_name(&charter_id(file.trim_start_matches("file:")));
        self.by_file.insert(file.to_owned(), Ok(name.clone()));
        let text = self.text(file).map_err(|error| InvokeError::Unreadable(error.to_string()));
        let result = text.and_then(|text| self.machine_of_text(&text, &name)).map(|()| name);
        self.by_file.insert(file.to_owned(), result.clone());
        result
    }

    /// Reads a document into `machines`.
    fn machine_of_text(&mut self, text: &str, name: &str) -> Result<(), InvokeError> {
        let tree = xml::parse(text).map_err(|problem| InvokeError::Unreadable(problem.message))?;
        let mut reader = ScxmlReader::new(DocumentBuilder::new(text), self);
        // Reserve its position before the positions of nested documents.
        reader.shared.machines.insert(name.to_owned(), Chart::default());
        let chart = reader.chart(tree.root_element());
        reader.machines();
        let list = reader.cx.into_diagnostics();
        if let Some(problem) = list.iter().find(|item| item.severity == charter_format::Severity::Error) {
            return Err(InvokeError::Invalid {
                line: problem.line,
                column: problem.column,
                message: problem.message.clone(),
            });
        }
        self.machines.insert(name.to_owned(), chart);
        Ok(())
    }
}

/// Why a document cannot be invoked.
///
/// The message becomes part of the imported charter, as an expression that fails at run time, so
/// changing it changes the digest of the charter.
#[derive(Debug, Clone, thiserror::Error)]
enum InvokeError {
    #[error("{0}")]
    Unreadable(String),
    #[error("a document may include at most {MAX_FILES} files")]
    TooManyFiles,
    #[error("line {line}, column {column}: {message}")]
    Invalid { line: usize, column: usize, message: String },
    #[error("none of the {0} that this can refer to is known")]
    UnknownChoice(&'static str),
    #[error("the content is not an SCXML document")]
    NotScxml,
    #[error("`<invoke>` has neither `src` nor `<content>`")]
    NoSource,
    #[error("`{file}` cannot be invoked: {cause}")]
    File { file: String, cause: Box<InvokeError> },
}

/// Reads an SCXML document.
struct ScxmlReader<'x, 'r, 'd, 'i> {
    cx: DocumentBuilder<'d>,
    shared: &'x mut Shared<'r>,
    /// Nested documents, read after this one.
    pending: VecDeque<(Node<'d, 'i>, String)>,
    /// The variables of the current chart.
    variables: Variables,
    /// Whether the data binding is late (REC 5.3.3).
    late: bool,
    keys: FxHashMap<roxmltree::NodeId, String>,
    ids: FxHashSet<&'d str>,
    /// The nesting depth of `<foreach>`.
    loops: usize,
    document: Option<Node<'d, 'i>>,
}

impl<'x, 'r, 'd, 'i> ScxmlReader<'x, 'r, 'd, 'i> {
    fn new(cx: DocumentBuilder<'d>, shared: &'x mut Shared<'r>) -> Self {
        ScxmlReader {
            cx,
            shared,
            pending: VecDeque::new(),
            variables: Variables::new(DataModel::Cel, []),
            late: false,
            keys: FxHashMap::default(),
            ids: FxHashSet::default(),
            loops: 0,
            document: None,
        }
    }

    /// Reads the nested documents.
    fn machines(&mut self) {
        while let Some((scxml, name)) = self.pending.pop_front() {
            // `invoke` has already read the input of the invocation.
            self.shared.machines.insert(name.clone(), Chart::default());
            let chart = self.inside("machines", |reader| reader.at(&name, scxml, |reader| reader.chart(scxml)));
            self.shared.machines.insert(name, chart);
        }
    }

    /// Reads the part at a key of the definition that is written as an element.
    fn at<T>(&mut self, key: &str, node: Node<'d, 'i>, f: impl FnOnce(&mut Self) -> T) -> T {
        let span = xml::tag(node);
        self.inside(key, |reader| {
            reader.cx.mark(span);
            f(reader)
        })
    }

    /// Like [`Self::at`], but for a part that is written as an attribute.
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

    /// Reports unknown attributes.
    fn only(&mut self, node: Node<'d, 'i>, known: &[&str]) {
        for attribute in node.attributes() {
            let foreign = attribute.namespace().is_some();
            if attribute.namespace() == Some(xml::CHARTER) {
                let range = attribute.range();
                let message = format!("`charter:{}` is lost in an edited export", attribute.name());
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

    /// Reports an element that is not allowed inside its parent.
    fn stray(&mut self, node: Node<'d, 'i>, parent: &str) {
        let name = node.tag_name().name();
        if xml::is_scxml(node) {
            self.refuse(codes::UNKNOWN_KEY, xml::tag(node), format!("`<{name}>` is not allowed in `<{parent}>`"), None);
        } else if node.tag_name().namespace() != Some(xml::CHARTER) {
            self.warn(codes::UNKNOWN_KEY, xml::tag(node), format!("`<{name}>` has another namespace and is ignored"));
        }
    }

    /// Returns a required attribute; reports it if it is missing.
    fn needed(&mut self, node: Node<'d, 'i>, name: &str) -> Option<xml::Attribute<'d>> {
        let found = xml::attribute(node, name).filter(|a| !a.value.trim().is_empty());
        if found.is_none() {
            let message = format!("`<{}>` requires the attribute `{name}`", node.tag_name().name());
            self.refuse(codes::MISSING_KEY, xml::tag(node), message, None);
        }
        found
    }

    /// Reports two attributes that are mutually exclusive.
    fn either(&mut self, node: Node<'d, 'i>, one: &str, other: &str) {
        if let (Some(_), Some(second)) = (xml::attribute(node, one), xml::attribute(node, other)) {
            let message = format!("`{one}` and `{other}` cannot both be set");
            self.refuse(codes::CONFLICT, second.span, message, None);
        }
    }
}
