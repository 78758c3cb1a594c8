//! Imports XState v5 configs (JSON). XState's rules (descriptor order, `reenter`, ids of
//! invocations and done events, the key order of JavaScript) are translated; nothing is emulated at
//! run time.
//!
//! A JSON config contains names where a program has functions. The importing charter must declare
//! each of these names. `docs/xstate.md` lists the intended deviations from XState.

mod action;
mod events;
mod invoke;
mod names;
mod state;
mod states;
mod transition;

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_kernel::Definition;
use charter_kernel::definition::{Chart, StateKind, Template};
use indexmap::IndexMap;

use self::names::Missing;
use self::states::StateIndex;
use super::charter_id;
use charter_format::import::{DocumentBuilder, Import};
use charter_format::source::{self, Entry, Node, Span, Syntax, Value};
use charter_format::{Diagnostic, Diagnostics, Document, codes};

/// Imports an XState v5 config. `name` (usually a path) is used in messages. `around` declares the
/// names that the config uses (guards, actions, actors or machines, delays) and decides whether the
/// charter is strict; `Definition::default()` declares no names and is not strict.
///
/// # Errors
/// Returns diagnostics if the JSON or the config is invalid, a name is not declared, or a feature
/// is not supported.
pub fn xstate(source: &str, name: &str, around: &Definition) -> Result<Document, Diagnostics> {
    config(source, name, around, None)
}

/// Like [`xstate`], for a charter that imports the config (`import`). Otherwise a charter embedded
/// in an exported config replaces `around`; an importing charter has its own roles and guards.
pub(crate) fn config(
    source: &str,
    name: &str,
    around: &Definition,
    import: Option<&Import<'_>>,
) -> Result<Document, Diagnostics> {
    let source: Arc<str> = source.into();
    let mut cx = DocumentBuilder::new(&source);
    let root = match source::parse(&source, name, Syntax::Json) {
        Ok(parsed) => parsed.root,
        Err(problem) => {
            let is_xml = source.trim_start_matches('\u{feff}').trim_start().starts_with('<');
            cx.report(match is_xml {
                true => Diagnostic::error(codes::SYNTAX, problem.span, "expected an XState config, found XML")
                    .help("an SCXML document is XML: import it with `format: scxml`, or name the file `.scxml`"),
                false => problem,
            });
            let empty = Node { span: Span::new(0, source.len()), value: Value::Null };
            return cx.finish(Definition::default(), name, Arc::clone(&source), empty);
        }
    };
    if let Some(problem) = not_a_config(&root) {
        cx.report(problem);
        return cx.finish(Definition::default(), name, Arc::clone(&source), root);
    }
    let (embedded, exported);
    let around = match crate::export::xstate::embedded(&root).filter(|_| import.is_none()) {
        Some((definition, true)) => {
            return cx.finish(definition, name, Arc::clone(&source), root);
        }
        // The config was edited after the export: use its chart, and the rest of the embedded
        // charter.
        Some((definition, false)) => {
            (embedded, exported) = (definition, true);
            &embedded
        }
        None => {
            exported = false;
            around
        }
    };
    let id = root.get("id").and_then(Node::text).unwrap_or("(machine)");
    let states = StateIndex::new(id, &root, &mut cx);
    let mut definition = Definition { charter: 1, ..around.clone() };
    if definition.id.is_empty() {
        definition.id = charter_id(if id == "(machine)" { name } else { id });
    }
    if definition.version.is_empty() {
        definition.version = root.get("version").and_then(Node::text).unwrap_or_default().to_owned();
    }
    let mut reader = XstateReader {
        cx,
        states,
        definition,
        missing: IndexMap::new(),
        stays: false,
        settles: false,
        exported,
        bound: BTreeMap::new(),
    };
    let chart = reader.chart(&root);
    reader.remove_unbound();
    reader.report_missing(name, import);
    let XstateReader { cx, mut definition, .. } = reader;
    let (input, context_schema) = (around.root.input.clone(), around.root.context_schema.clone());
    definition.root = Chart { input, context_schema, ..chart };
    if exported {
        keep_computed(&mut definition.root, &around.root);
    } else {
        // The context and output of the importing charter override those of the config.
        definition.root.context.extend(around.root.context.clone());
        if around.root.output.is_some() {
            definition.root.output.clone_from(&around.root.output);
        }
    }
    cx.finish(definition, name, Arc::clone(&source), root)
}

/// Keeps what an export could not write into the config: computed variables, whose values in the
/// config are `null`, a computed output, and whether eventless transitions settle.
fn keep_computed(edited: &mut Chart, exported: &Chart) {
    for (name, value) in &mut edited.context {
        let computed = exported.context.get(name).filter(|value| !matches!(value, Template::Literal(_)));
        if let (Template::Literal(serde_json::Value::Null), Some(computed)) = (&*value, computed) {
            value.clone_from(computed);
        }
    }
    if edited.output.is_none() {
        edited.output.clone_from(&exported.output);
    }
    edited.settles = exported.settles;
}

/// Recognizes JSON that was written from a machine instead of a config of XState 5.
fn not_a_config(root: &Node) -> Option<Diagnostic> {
    // XState 6 writes functions as `{"@code": ..., "@lang": ...}`.
    let mut stack = vec![root];
    while let Some(node) = stack.pop() {
        if let Some(code) = node.entry("@code") {
            let message =
                "this is a machine of XState 6, which contains program code; only configs of XState 5 can be imported";
            let help =
                "replace each function by a name, declare the name in the charter, and write transitions as objects";
            return Some(Diagnostic::error(codes::NOT_SUPPORTED, code.key.span, message).help(help));
        }
        let below = match &node.value {
            Value::Map(entries) => entries.iter().map(|entry| &entry.value).collect(),
            Value::List(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        stack.extend(below.into_iter().rev());
    }
    // The definition of a machine has the transitions twice, but neither `always` nor `after`.
    let transitions = root.entry("transitions").filter(|_| root.get("key").is_some() && root.get("order").is_some())?;
    let message = "this is the definition of a machine, which lacks `always` and `after`, not its config";
    let help = "write `JSON.stringify(machine.config)` instead of `JSON.stringify(machine)`";
    Some(Diagnostic::error(codes::NOT_SUPPORTED, transitions.key.span, message).help(help))
}

/// Keys of XState 4 and how to replace them.
const OF_VERSION_4: [(&str, &str); 8] = [
    ("cond", "write `guard`"),
    ("in", "write `guard: {type: stateIn, stateValue}`"),
    ("internal", "remove it; write `reenter: true` for an external transition"),
    ("activities", "write `invoke`"),
    ("autoForward", "let the machine send events to the actor"),
    ("data", "write `output` in a final state, or `input` in an invocation"),
    ("forward", "let the machine send events to the actor"),
    ("delimiter", "the delimiter is `.`"),
];

/// Reads a config.
struct XstateReader<'s> {
    cx: DocumentBuilder<'s>,
    states: StateIndex,
    /// The resulting charter, whose declarations are used to resolve names.
    definition: Definition,
    /// The names that the charter does not declare, with the place of their first use.
    missing: IndexMap<Missing, Span>,
    /// Whether one of the transitions read since this was reset may leave the same states active.
    stays: bool,
    /// Whether this holds for an eventless transition; then it matters that the chart settles.
    settles: bool,
    /// Whether the config is an edited export of a charter.
    exported: bool,
    /// Guards and actions, by kind and name, and whether the config uses them without `params`.
    bound: BTreeMap<(&'static str, String), bool>,
}

impl XstateReader<'_> {
    /// Whether a declared guard or action reads `params`, so that each use with `params` needs a
    /// declaration of its own.
    fn reads_params(&mut self, kind: &'static str, name: &str, with_params: bool) -> bool {
        let text = match kind {
            "guard" => self.definition.guards.get(name).map(serde_json::to_string),
            _ => self.definition.actions.get(name).map(serde_json::to_string),
        };
        let reads = text.and_then(Result::ok).is_some_and(|text| text.contains("params"));
        if reads {
            *self.bound.entry((kind, name.to_owned())).or_default() |= !with_params;
        }
        reads && with_params
    }

    /// Removes declarations that read `params` and are only used with them: on their own, they have
    /// an unknown name.
    fn remove_unbound(&mut self) {
        for ((kind, name), _) in std::mem::take(&mut self.bound).into_iter().filter(|(_, plain)| !plain) {
            match kind {
                "guard" => drop(self.definition.guards.shift_remove(&name)),
                _ => drop(self.definition.actions.shift_remove(&name)),
            }
        }
    }

    fn chart(&mut self, root: &Node) -> Chart {
        let above = self.cx.enter("root");
        let mut chart = Chart::default();
        if let Some(context) = root.entry("context") {
            match &context.value.value {
                Value::Map(_) => {
                    for entry in ordered(&context.value) {
                        chart.context.insert(entry.key.text.clone(), Template::Literal(entry.value.json()));
                    }
                }
                _ => self.refuse(codes::TYPE, context.value.span, "`context` must be an object", None),
            }
        }
        let above_state = self.cx.enter("state");
        self.cx.mark(root.span);
        chart.state = self.state(root, 0);
        // In XState, the output of the machine is the output of its root state.
        chart.output = chart.state.output.take();
        if !self.exported {
            self.unused_outputs(root, &mut chart);
        }
        chart.settles = self.settles;
        self.cx.leave(above_state);
        self.cx.leave(above);
        chart
    }

    /// Drops the outputs of top-level final states. In XState they are data of an event that only a
    /// function for the output of the machine can read.
    fn unused_outputs(&mut self, root: &Node, chart: &mut Chart) {
        for config in root.get("states").into_iter().flat_map(Node::entries) {
            let state = chart.state.states.get_mut(&config.key.text).filter(|state| state.kind == StateKind::Final);
            let Some((state, entry)) = state.zip(config.value.entry("output")) else {
                continue;
            };
            state.output = None;
            let message = "the `output` of a top-level final state is not the output of the machine; it is ignored";
            let help = "write `output` at the root of the config, or in the importing charter";
            self.cx.report(Diagnostic::warning(codes::CONFLICT, entry.key.span, message).help(help));
        }
    }

    fn refuse(&mut self, code: &'static str, span: Span, message: impl Into<String>, help: Option<&str>) {
        let mut problem = Diagnostic::error(code, span, message);
        problem.help = help.map(str::to_owned);
        self.cx.report(problem);
    }

    fn inside<T>(&mut self, key: &str, span: Span, f: impl FnOnce(&mut Self) -> T) -> T {
        let above = self.cx.enter(key);
        self.cx.mark(span);
        let answer = f(self);
        self.cx.leave(above);
        answer
    }

    /// Reports unknown keys.
    fn only(&mut self, node: &Node, what: &str, known: &[&str]) {
        for entry in node.entries() {
            let key = entry.key.text.as_str();
            if let Some((_, now)) = OF_VERSION_4.iter().find(|(old, _)| *old == key && !known.contains(old)) {
                // XState 5 ignores these keys silently, so a condition would be lost.
                let message = format!("`{key}` is an XState 4 key, which {what} of XState 5 does not have");
                self.refuse(codes::NOT_SUPPORTED, entry.key.span, message, Some(now));
            } else if !known.contains(&key) {
                let mut problem = Diagnostic::warning(
                    codes::UNKNOWN_KEY,
                    entry.key.span,
                    format!("{what} has no key `{key}`; it is ignored"),
                );
                problem.help =
                    charter_expr::nearest(key, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
                self.cx.report(problem);
            }
        }
    }

    /// Refuses `null`, which is ambiguous: it can mean nothing, or a function that JSON cannot
    /// represent.
    fn null(&mut self, span: Span, what: &str) {
        let help = "JSON cannot hold functions: write a name and declare it in the charter, or remove the key";
        self.refuse(codes::VALUE, span, format!("{what} is `null`"), Some(help));
    }

    /// Refuses a value that names nothing: `null`, or another one, which is not `expected`.
    fn unnamed(&mut self, node: &Node, what: &str, expected: &str, help: &str) {
        match node.value {
            Value::Null => self.null(node.span, what),
            _ => self.refuse(codes::TYPE, node.span, format!("{what} is {expected}"), Some(help)),
        }
    }
}

/// Returns the entries of an object in the order of JavaScript: array indices first, in ascending
/// order.
fn ordered(node: &Node) -> Vec<&Entry> {
    let index = |entry: &Entry| {
        let text = entry.key.text.as_str();
        let plain =
            text == "0" || (!text.starts_with('0') && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
        text.parse::<u32>().ok().filter(|n| plain && *n < u32::MAX)
    };
    let mut entries: Vec<&Entry> = node.entries().iter().collect();
    entries.sort_by_key(|entry| index(entry).map_or((1, 0), |n| (0, n)));
    entries
}
