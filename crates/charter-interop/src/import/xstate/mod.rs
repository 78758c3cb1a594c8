//! XState v5 authoring configs (JSON) into the core form. What XState means is translated (descriptor order, `reenter`, ids of
//! invocations and done events, the key order that JavaScript would see); nothing of it is emulated when the charter runs.
//!
//! A config in JSON has names where a program has functions. Each name must be declared by the charter around it: a missing one is an
//! error with its path. `docs/xstate.md` lists where a charter deviates from XState on purpose.

mod action;
mod names;
mod state;
mod transition;

use std::sync::Arc;

use charter_kernel::Definition;
use charter_kernel::definition::{Chart, Template};

use self::names::Names;
use super::charter_id;
use charter_format::import::DocumentBuilder;
use charter_format::source::{self, Entry, Node, Span, Syntax, Value};
use charter_format::{Diagnostic, Diagnostics, Document, codes};

/// Reads an XState v5 config. `name` (usually a path) is for messages. `around` declares what the config names: guards, actions,
/// actors (or machines) and delays, and says whether the charter is strict; `Definition::default()` declares nothing and is not.
///
/// # Errors
/// What is no JSON, no config, names what is not declared, or is not done by this program, each with its place and the reason.
pub fn xstate(source: &str, name: &str, around: &Definition) -> Result<Document, Diagnostics> {
    config(source, name, around, true)
}

/// The same where the charter around has the last word: what a file carries of an exported charter (`carried`: whether that counts) must
/// not replace the roles and guards of the charter that takes its states from it.
pub(crate) fn config(source: &str, name: &str, around: &Definition, carried: bool) -> Result<Document, Diagnostics> {
    let source: Arc<str> = source.into();
    let mut cx = DocumentBuilder::new(&source);
    let root = match source::parse(&source, name, Syntax::Json) {
        Ok(parsed) => parsed.root,
        Err(problem) => {
            cx.report(problem);
            let nothing = Node { span: Span::new(0, source.len()), value: Value::Null };
            return cx.finish(Definition::default(), name, Arc::clone(&source), nothing);
        }
    };
    let brought;
    let around = match crate::export::xstate::embedded(&root).filter(|_| carried) {
        Some((definition, true)) => {
            return cx.finish(definition, name, Arc::clone(&source), root);
        }
        // Edited since it was exported: the chart is what the config says, the rest is what it was.
        Some((mut definition, false)) => {
            definition.root.context = Default::default();
            brought = definition;
            &brought
        }
        None => around,
    };
    let id = root.get("id").and_then(Node::text).unwrap_or("(machine)");
    let names = Names::new(id, &root, &mut cx);
    let mut definition = Definition { charter: 1, ..around.clone() };
    if definition.id.is_empty() {
        definition.id = charter_id(if id == "(machine)" { name } else { id });
    }
    if definition.version.is_empty() {
        definition.version = root.get("version").and_then(Node::text).unwrap_or_default().to_owned();
    }
    let mut reader = Reader { cx, names, definition };
    let chart = reader.chart(&root);
    let Reader { cx, mut definition, .. } = reader;
    definition.root =
        Chart { input: around.root.input.clone(), context_schema: around.root.context_schema.clone(), ..chart };
    // What the charter around gives for the context and the output comes on top of the config's own.
    definition.root.context.extend(around.root.context.clone());
    if around.root.output.is_some() {
        definition.root.output.clone_from(&around.root.output);
    }
    cx.finish(definition, name, Arc::clone(&source), root)
}

/// Keys of XState 4 that decided something, and what they became.
const OF_VERSION_4: [(&str, &str); 8] = [
    ("cond", "write `guard`"),
    ("in", "write `guard: {type: stateIn, stateValue}`"),
    ("internal", "leave it out; write `reenter: true` where a transition was external"),
    ("activities", "write `invoke`"),
    ("autoForward", "let the machine send what the actor should know"),
    ("data", "write `output` in a final state, `input` in an invocation"),
    ("forward", "let the machine send what the actor should know"),
    ("delimiter", "the delimiter is `.`"),
];

/// Reads one config.
struct Reader<'s> {
    cx: DocumentBuilder<'s>,
    names: Names,
    /// The charter in the making; its declarations are what names are looked up in.
    definition: Definition,
}

impl Reader<'_> {
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
                _ => self.refuse(codes::TYPE, context.value.span, "`context` is an object in a config of JSON", None),
            }
        }
        let above_state = self.cx.enter("state");
        self.cx.mark(root.span);
        chart.state = self.state(root, 0);
        // The output of the machine is that of its chart.
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

    /// A name that the charter around has to declare.
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
        let mut problem = Diagnostic::error(codes::UNDEFINED, span, format!("no {what} `{name}` is supplied"));
        problem.help = Some(match charter_expr::nearest(name, known.iter().map(|k| k.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "declare it under `{place}` of the charter that takes this config in; a config of JSON has names, not functions"
            ),
        });
        self.cx.report(problem);
        false
    }

    /// Says which keys mean nothing.
    fn only(&mut self, node: &Node, what: &str, known: &[&str]) {
        for entry in node.entries() {
            let key = entry.key.text.as_str();
            if let Some((_, now)) = OF_VERSION_4.iter().find(|(old, _)| *old == key && !known.contains(old)) {
                // XState 5 goes over them: the condition, say, would be gone without a word.
                let message = format!("`{key}` is of XState 4; {what} of version 5 has none");
                self.refuse(codes::NOT_SUPPORTED, entry.key.span, message, Some(now));
            } else if !known.contains(&key) {
                let mut problem = Diagnostic::warning(
                    codes::UNKNOWN_KEY,
                    entry.key.span,
                    format!("{what} has no `{key}`; it is ignored"),
                );
                problem.help =
                    charter_expr::nearest(key, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
                self.cx.report(problem);
            }
        }
    }

    /// `null` stands where JSON could not keep a function, or where nothing was meant: nobody knows which.
    fn null(&mut self, span: Span, what: &str) {
        let help = "a function does not survive JSON: name it, and declare the name; leave out what means nothing";
        self.refuse(codes::VALUE, span, format!("{what} is `null`"), Some(help));
    }
}

/// The entries of an object in the order in which JavaScript goes through them: keys that are array indices first, by value.
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
