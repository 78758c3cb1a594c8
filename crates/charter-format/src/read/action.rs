//! Reads actions: a name, an object, or a list of them.

use charter_kernel::definition::{Action, Block, Branch, Send, Template};
use indexmap::IndexMap;

use super::context::{Context, Space, text};
use super::template::{delay, template};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::{Entry, Node, Value};

/// Reads one block of actions.
pub(crate) fn block(cx: &mut Context, node: &Node) -> Block {
    cx.items(node, action).into_iter().flatten().collect()
}

/// Reads `entry` or `exit`: one block, or a list of blocks (each a list) as in SCXML.
pub(crate) fn blocks(cx: &mut Context, node: &Node) -> Vec<Block> {
    let is_list = |node: &Node| matches!(node.value, Value::List(_));
    let items = node.items();
    match items.first() {
        Some(first) if is_list(first) => {
            if let Some(odd) = items.iter().find(|item| !is_list(item)) {
                cx.report(
                    Diagnostic::error(codes::TYPE, odd.span, "a list cannot mix actions and lists of actions")
                        .help("wrap the single actions in a list"),
                );
            }
            cx.items(node, block)
        }
        None if is_list(node) => Vec::new(),
        _ => vec![cx.at_index(0, |cx| block(cx, node))],
    }
}

fn action(cx: &mut Context, node: &Node) -> Option<Action> {
    if node.text().is_some() {
        return Some(Action::Name(cx.name(Space::Action, node)));
    }
    // The grammar ensures that there is one action key; `label` is allowed only in addition to
    // `log`.
    let entry = node.entries().iter().find(|entry| entry.key.text != "label")?;
    if let Some(label) = node.entry("label").filter(|_| entry.key.text != "log") {
        cx.report(Diagnostic::error(codes::CONFLICT, label.key.span, "`label` is only allowed with `log`"));
    }
    cx.field(&entry.key.text, entry, |cx, value| read(cx, node, entry, value))
}

/// Reads values by the path that they are assigned to; paths may contain expressions.
fn assign(cx: &mut Context, node: &Node) -> IndexMap<String, Template> {
    let entries = node.entries().iter();
    let one = entries.map(|entry| {
        let read = |cx: &mut Context, value: &Node| {
            cx.mark_key(&entry.key);
            template(cx, value)
        };
        let key = &entry.key.text;
        let variable = key.get(..key.find(['.', '[']).unwrap_or(key.len())).unwrap_or_default();
        // The kernel reports paths that are malformed.
        if !variable.is_empty() {
            cx.refer(Space::Variable, variable.to_owned(), entry.key.span);
        }
        (key.clone(), cx.field(key, entry, read))
    });
    one.collect()
}

fn read(cx: &mut Context, node: &Node, entry: &Entry, value: &Node) -> Option<Action> {
    Some(match entry.key.text.as_str() {
        "assign" => Action::Assign(assign(cx, value)),
        "raise" => {
            let (r#type, data) = event(cx, value);
            Action::Raise { r#type, data }
        }
        "emit" => {
            let (r#type, data) = event(cx, value);
            Action::Emit { r#type, data }
        }
        "send" => Action::Send(send(cx, value)),
        "cancel" => Action::Cancel(template(cx, value)),
        "stop" => Action::Stop(template(cx, value)),
        "log" => {
            let value = cx.field("value", entry, template);
            Action::Log {
                value,
                label: node.entry("label").map(|label| cx.field("label", label, |_, node| text(node))),
            }
        }
        "spawn" => Action::Spawn {
            machine: named(cx, value, "machine", Space::ActorOrMachine),
            id: needed(cx, value, "id"),
            input: given(cx, value, "input"),
        },
        "if" => Action::If(cx.items(value, branch)),
        "each" => Action::Each {
            r#in: value.entry("in").map(|entry| cx.field("in", entry, Context::cel)).unwrap_or_default(),
            r#as: value.entry("as").map(|entry| cx.field("as", entry, |_, node| text(node))).unwrap_or_default(),
            index: value.entry("index").map(|entry| cx.field("index", entry, |_, node| text(node))),
            r#do: value.entry("do").map(|entry| cx.field("do", entry, block)).unwrap_or_default(),
        },
        "grant" => Action::Grant {
            kind: named(cx, value, "kind", Space::Ledger),
            key: needed(cx, value, "key"),
            uses: given(cx, value, "uses"),
            expires: given(cx, value, "expires"),
            data: given(cx, value, "data"),
        },
        "revoke" => Action::Revoke { kind: named(cx, value, "kind", Space::Ledger), key: key_or_all(cx, value) },
        "open" => Action::Open {
            kind: named(cx, value, "kind", Space::Ledger),
            key: needed(cx, value, "key"),
            due: given(cx, value, "due"),
            data: given(cx, value, "data"),
        },
        "close" => Action::Close {
            kind: named(cx, value, "kind", Space::Ledger),
            key: key_or_all(cx, value),
            r#as: given(cx, value, "as"),
        },
        _ => return None,
    })
}

/// Reads `raise: TYPE` or `raise: {type, data}`.
fn event(cx: &mut Context, node: &Node) -> (Template, Option<Template>) {
    match &node.value {
        Value::Map(_) => (needed(cx, node, "type"), given(cx, node, "data")),
        _ => (
            cx.at("type", |cx| {
                cx.mark_text(node, 0);
                template(cx, node)
            }),
            None,
        ),
    }
}

fn send(cx: &mut Context, node: &Node) -> Send {
    Send {
        to: given(cx, node, "to"),
        r#type: needed(cx, node, "type"),
        data: given(cx, node, "data"),
        delay: node.entry("delay").map(|entry| cx.field("delay", entry, delay)),
        id: given(cx, node, "id"),
        id_location: node.entry("idLocation").map(|entry| cx.field("id_location", entry, |_, node| text(node))),
        processor: given(cx, node, "processor"),
    }
}

fn branch(cx: &mut Context, node: &Node) -> Branch {
    Branch {
        when: node.entry("when").map(|entry| cx.field("when", entry, Context::cel)),
        r#do: node.entry("do").map(|entry| cx.field("do", entry, block)).unwrap_or_default(),
    }
}

/// Reads `key: K` or `all: true`. In the definition, a missing key means all.
fn key_or_all(cx: &mut Context, node: &Node) -> Option<Template> {
    if let Some(entry) = node.entry("all").filter(|entry| entry.value.value == Value::Bool(false)) {
        cx.report(
            Diagnostic::error(codes::VALUE, entry.value.span, "`all: false` is not allowed")
                .help("write `key: ...`, or `all: true`"),
        );
    }
    given(cx, node, "key")
}

fn given(cx: &mut Context, node: &Node, key: &str) -> Option<Template> {
    node.entry(key).map(|entry| cx.field(key, entry, template))
}

fn needed(cx: &mut Context, node: &Node, key: &str) -> Template {
    given(cx, node, key).unwrap_or_default()
}

fn named(cx: &mut Context, node: &Node, key: &str, space: Space) -> String {
    node.entry(key).map(|entry| cx.field(key, entry, |cx, node| cx.name(space, node))).unwrap_or_default()
}
