//! Reads states and statecharts.

use charter_kernel::definition::{After, Chart, Delay, Initial, Invoke, On, State, StateKind};

use super::action::{block, blocks};
use super::context::{Context, Space, text};
use super::template::{delay, template, templates};
use super::transition::{initial, keyed};
use super::{delay as delays, types};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::{Entry, Key, Node, Value};

/// Reads a child state.
pub(crate) fn state(cx: &mut Context, node: &Node) -> State {
    let mut read = body(cx, node);
    head(cx, node, &mut read);
    if let Some(entry) = node.entry("output") {
        read.output = Some(cx.field("output", entry, template));
    }
    if matches!(read.kind, StateKind::Shallow | StateKind::Deep) {
        history(cx, node, &mut read);
    } else {
        for key in ["history", "target", "actions"] {
            if let Some(entry) = node.entry(key) {
                let message = format!("`{key}` is only allowed with `type: history`");
                let help = if key == "actions" {
                    "put the actions of a state under `entry` and `exit`"
                } else {
                    "add `type: history`, or remove the key"
                };
                cx.report(Diagnostic::error(codes::CONFLICT, entry.key.span, message).help(help));
            }
        }
    }
    read
}

/// Reads a machine: a chart, with the `id`, `description` and `meta` of its root state.
pub(crate) fn machine(cx: &mut Context, node: &Node, schemas: &types::Types) -> Chart {
    let mut read = chart(cx, node, schemas);
    cx.at("state", |cx| head(cx, node, &mut read.state));
    if let Some(entry) = node.get("types").and_then(|types| types.entry("context")) {
        read.context_schema = Some(cx.field("context_schema", entry, |cx, node| schemas.schema(cx, node)));
    }
    read
}

/// Reads the keys that a charter and a machine share.
pub(crate) fn chart(cx: &mut Context, node: &Node, schemas: &types::Types) -> Chart {
    let mut read = Chart::default();
    for entry in node.entries() {
        match entry.key.text.as_str() {
            "input" => read.input = Some(cx.field("input", entry, |cx, node| schemas.schema(cx, node))),
            "context" => read.context = cx.field("context", entry, templates),
            "output" => read.output = Some(cx.field("output", entry, template)),
            _ => {}
        }
    }
    read.state = cx.at("state", |cx| body(cx, node));
    read
}

/// Reads `id`, `description` and `meta`, which have a different meaning at the top of a charter.
fn head(cx: &mut Context, node: &Node, state: &mut State) {
    for entry in node.entries() {
        match entry.key.text.as_str() {
            "id" => state.id = Some(cx.field("id", entry, |_, node| text(node))),
            "description" => state.description = Some(text(&entry.value)),
            "meta" => state.meta = entry.value.json(),
            _ => {}
        }
    }
}

/// Reads the keys of every state, including the root of a chart.
fn body(cx: &mut Context, node: &Node) -> State {
    let mut read = State { kind: kind(cx, node), ..State::default() };
    for entry in node.entries() {
        match entry.key.text.as_str() {
            "initial" => read.initial = Some(cx.field("initial", entry, initial)),
            "states" => {
                read.states = cx.field("states", entry, |cx, node| {
                    let child = |entry: &Entry, cx: &mut Context| {
                        (entry.key.text.clone(), cx.field(&entry.key.text, entry, state))
                    };
                    node.entries().iter().map(|entry| child(entry, cx)).collect()
                });
            }
            "on" => read.on = cx.field("on", entry, |cx, node| keys(cx, node, on)),
            "always" => read.always = cx.at("always", |cx| keyed(cx, entry)),
            "after" => read.after = cx.field("after", entry, |cx, node| keys(cx, node, after)),
            "entry" => read.entry = cx.field("entry", entry, blocks),
            "exit" => read.exit = cx.field("exit", entry, blocks),
            "invoke" => read.invoke = cx.field("invoke", entry, |cx, node| cx.items(node, invoke)),
            "onDone" => read.on_done = cx.at("on_done", |cx| keyed(cx, entry)),
            "data" => read.data = cx.field("data", entry, templates),
            "tags" => read.tags = cx.field("tags", entry, Context::names),
            _ => {}
        }
    }
    read
}

fn kind(cx: &mut Context, node: &Node) -> StateKind {
    let has_children = node.get("states").is_some_and(|states| !states.entries().is_empty());
    let Some(entry) = node.entry("type") else {
        return if has_children { StateKind::Compound } else { StateKind::Atomic };
    };
    let kind = match entry.value.text().unwrap_or_default() {
        "compound" => StateKind::Compound,
        "parallel" => StateKind::Parallel,
        "final" => StateKind::Final,
        "history" if node.get("history").and_then(Node::text) == Some("deep") => StateKind::Deep,
        "history" => StateKind::Shallow,
        _ => StateKind::Atomic,
    };
    cx.at("kind", |cx| cx.mark_entry(entry));
    if has_children != matches!(kind, StateKind::Compound | StateKind::Parallel) {
        let name = entry.value.text().unwrap_or_default();
        let message = if has_children {
            format!("`type: {name}` cannot have `states`")
        } else {
            format!("`type: {name}` requires `states`")
        };
        cx.report(Diagnostic::error(codes::CONFLICT, entry.value.span, message));
    }
    kind
}

fn history(cx: &mut Context, node: &Node, state: &mut State) {
    let read = |cx: &mut Context| Initial {
        target: node.entry("target").map(|entry| cx.field("target", entry, Context::names)).unwrap_or_default(),
        actions: node.entry("actions").map(|entry| cx.field("actions", entry, block)).unwrap_or_default(),
    };
    if let Some(entry) = node.entry("initial") {
        cx.report(
            Diagnostic::error(codes::CONFLICT, entry.key.span, "a history state cannot have `initial`")
                .help("write its default as `target`"),
        );
    } else if node.entry("target").or(node.entry("actions")).is_some() {
        state.initial = Some(cx.at("initial", read));
    }
}

/// Reads the entries of `on` and `after`: an object, or a list of objects if a key occurs twice.
fn keys<T>(cx: &mut Context, node: &Node, mut read: impl FnMut(&mut Context, &Entry) -> T) -> Vec<T> {
    let entries = node.one_or_many().iter().flat_map(|node| node.entries());
    entries
        .enumerate()
        .map(|(index, entry)| {
            cx.at_index(index, |cx| {
                cx.mark(entry.key.span);
                read(cx, entry)
            })
        })
        .collect()
}

fn on(cx: &mut Context, entry: &Entry) -> On {
    // A key may hold several descriptors separated by spaces, as in SCXML.
    let events: Vec<String> = entry.key.text.split_whitespace().map(str::to_owned).collect();
    if events.is_empty() {
        cx.report(Diagnostic::error(codes::VALUE, entry.key.span, "an event type cannot be empty"));
    }
    On { events, transitions: cx.at("transitions", |cx| keyed(cx, entry)) }
}

fn after(cx: &mut Context, entry: &Entry) -> After {
    let key = entry.key.text.clone();
    let read = delays::from_text(&key);
    match &read {
        Err(error) => cx.report(delays::invalid(entry.key.span, &key, *error)),
        Ok(Delay::Cel(_)) => cx.at("delay", |cx| cx.at("cel", |cx| mark_key(cx, &entry.key, 2))),
        Ok(Delay::Name(name)) => cx.refer(Space::Delay, name.clone(), entry.key.span),
        Ok(Delay::Ms(_)) => {}
    }
    After { key, delay: read.unwrap_or(Delay::Ms(0)), transitions: cx.at("transitions", |cx| keyed(cx, entry)) }
}

/// Records the place of an expression in a key. The first character of the key determines the
/// quoting style.
fn mark_key(cx: &mut Context, key: &Key, skip: usize) {
    let style = match cx.source.as_bytes().get(key.span.start) {
        Some(b'"') => crate::source::Style::Double,
        Some(b'\'') => crate::source::Style::Single,
        _ => crate::source::Style::Plain,
    };
    let text = crate::source::Text { text: key.text.clone(), style };
    cx.mark_text(&Node { span: key.span, value: Value::Text(text) }, skip);
}

fn invoke(cx: &mut Context, node: &Node) -> Invoke {
    let mut read = Invoke::default();
    for entry in node.entries() {
        match entry.key.text.as_str() {
            "src" => read.src = cx.field("src", entry, |cx, node| cx.name(Space::ActorOrMachine, node)),
            "machine" => read.src = cx.field("src", entry, |cx, node| cx.name(Space::Machine, node)),
            "id" => read.id = Some(cx.field("id", entry, |_, node| text(node))),
            "idLocation" => read.id_location = Some(cx.field("id_location", entry, |_, node| text(node))),
            "input" => read.input = Some(cx.field("input", entry, template)),
            "timeout" => read.timeout = Some(cx.field("timeout", entry, delay)),
            "onDone" => read.on_done = cx.at("on_done", |cx| keyed(cx, entry)),
            "onError" => read.on_error = cx.at("on_error", |cx| keyed(cx, entry)),
            "finalize" => read.finalize = cx.field("finalize", entry, block),
            "autoforward" => read.autoforward = entry.value.value == Value::Bool(true),
            _ => {}
        }
    }
    read
}
