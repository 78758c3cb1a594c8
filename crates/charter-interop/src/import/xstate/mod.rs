//! Imports XState v5 configs (JSON). XState's rules (descriptor order, `reenter`, ids of
//! invocations and done events, the key order of JavaScript) are translated; nothing is emulated at
//! run time.
//!
//! A JSON config contains names where a program has functions. The importing charter must declare
//! each of these names. `docs/xstate.md` lists the intended deviations from XState.

mod action;
mod events;
mod invoke;
mod state;
mod states;
mod transition;

use std::sync::Arc;

use charter_kernel::Definition;
use charter_kernel::definition::{Chart, Template};

use self::states::StateIndex;
use super::charter_id;
use charter_format::import::DocumentBuilder;
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
    config(source, name, around, true)
}

/// Like [`xstate`], but `use_embedded` decides whether the charter embedded in an exported config
/// replaces `around`. It must not do so if a charter imports the config, because that charter has
/// its own roles and guards.
pub(crate) fn config(
    source: &str,
    name: &str,
    around: &Definition,
    use_embedded: bool,
) -> Result<Document, Diagnostics> {
    let source: Arc<str> = source.into();
    let mut cx = DocumentBuilder::new(&source);
    let root = match source::parse(&source, name, Syntax::Json) {
        Ok(parsed) => parsed.root,
        Err(problem) => {
            cx.report(problem);
            let empty = Node { span: Span::new(0, source.len()), value: Value::Null };
            return cx.finish(Definition::default(), name, Arc::clone(&source), empty);
        }
    };
    let embedded;
    let around = match crate::export::xstate::embedded(&root).filter(|_| use_embedded) {
        Some((definition, true)) => {
            return cx.finish(definition, name, Arc::clone(&source), root);
        }
        // The config was edited after the export: use its chart, and the rest of the embedded
        // charter.
        Some((mut definition, false)) => {
            definition.root.context = Default::default();
            embedded = definition;
            &embedded
        }
        None => around,
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
    let mut reader = XstateReader { cx, states, definition };
    let chart = reader.chart(&root);
    let XstateReader { cx, mut definition, .. } = reader;
    definition.root =
        Chart { input: around.root.input.clone(), context_schema: around.root.context_schema.clone(), ..chart };
    // The context and output of the importing charter override those of the config.
    definition.root.context.extend(around.root.context.clone());
    if around.root.output.is_some() {
        definition.root.output.clone_from(&around.root.output);
    }
    cx.finish(definition, name, Arc::clone(&source), root)
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
}

impl XstateReader<'_> {
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
        self.cx.leave(above_state);
        self.cx.leave(above);
        chart
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

    /// Checks that the charter declares a name.
    fn declared(&mut self, what: &str, name: &str, span: Span) -> bool {
        let d = &self.definition;
        let known = match what {
            "guard" => d.guards.contains_key(name),
            "action" => d.actions.contains_key(name),
            "delay" => d.delays.contains_key(name),
            _ => d.actors.contains_key(name) || d.machines.contains_key(name),
        };
        if known {
            return true;
        }
        let (known, place): (Vec<&String>, &str) = match what {
            "guard" => (d.guards.keys().collect(), "guards"),
            "action" => (d.actions.keys().collect(), "actions"),
            "delay" => (d.delays.keys().collect(), "delays"),
            _ => (d.actors.keys().chain(d.machines.keys()).collect(), "actors"),
        };
        let mut problem = Diagnostic::error(codes::UNDEFINED, span, format!("undefined {what} `{name}`"));
        problem.help = Some(match charter_expr::nearest(name, known.iter().map(|k| k.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "declare it under `{place}` of the importing charter; a JSON config has names instead of functions"
            ),
        });
        self.cx.report(problem);
        false
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
