//! Reads transitions and their conditions: guards, authority, ledger, quorum.

use charter_kernel::definition::{Guard, Initial, Quorum, Require, Template, Transition};

use super::action::block;
use super::context::{Context, Space, text};
use super::template::template;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::{Entry, Node, Value};

/// Reads a target, an object, or a list of them.
pub(crate) fn transitions(cx: &mut Context, node: &Node) -> Vec<Transition> {
    cx.items(node, transition)
}

/// Reads the transitions of an entry whose key selects them. If there is only one, diagnostics
/// underline that key.
pub(crate) fn keyed(cx: &mut Context, entry: &Entry) -> Vec<Transition> {
    if let Value::Map(_) = entry.value.value {
        return vec![cx.at_index(0, |cx| {
            cx.mark(entry.key.span);
            transition(cx, &entry.value)
        })];
    }
    transitions(cx, &entry.value)
}

fn transition(cx: &mut Context, node: &Node) -> Transition {
    let mut read = Transition::default();
    if node.text().is_some() {
        read.target = cx.at("target", |cx| {
            cx.mark_text(node, 0);
            cx.names(node)
        });
        return read;
    }
    for entry in node.entries() {
        match entry.key.text.as_str() {
            "target" => read.target = cx.field("target", entry, Context::names),
            "guard" => read.guard = Some(cx.field("guard", entry, guard)),
            "when" => read.when = Some(cx.field("when", entry, Context::cel)),
            "by" => read.by = cx.field("by", entry, Context::roles),
            "approves" => approves(cx, entry, &mut read),
            "requires" => {
                read.requires =
                    cx.field("requires", entry, |cx, node| cx.items(node, require)).into_iter().flatten().collect()
            }
            "quorum" => {
                read.quorum = Some(cx.field("quorum", entry, quorum));
                not_by(cx, &entry.value, &mut read);
            }
            "agents" => read.agents = cx.field("agents", entry, |_, node| node.value == Value::Bool(true)),
            "refuse" => read.refuse = Some(cx.field("refuse", entry, |cx, node| cx.name(Space::Rule, node))),
            "actions" => read.actions = cx.field("actions", entry, block),
            "reenter" => read.reenter = entry.value.value == Value::Bool(true),
            "description" => read.description = Some(text(&entry.value)),
            "meta" => read.meta = entry.value.json(),
            _ => {}
        }
    }
    read
}

/// Reads `approves`: an expression, or an object with `value` and `not_by`.
fn approves(cx: &mut Context, entry: &Entry, read: &mut Transition) {
    let value = match &entry.value.value {
        Value::Map(_) => entry.value.entry("value"),
        _ => Some(entry),
    };
    read.approves = value.map(|value| cx.field("approves", value, Context::cel));
    not_by(cx, &entry.value, read);
}

/// Reads the `not_by` of an approval or of a quorum.
fn not_by(cx: &mut Context, node: &Node, read: &mut Transition) {
    let Some(entry) = node.entry("not_by") else { return };
    if read.not_by.is_some() {
        let message = "`not_by` is given in both `approves` and `quorum`";
        let help = "write it once; for several principals, a list: `[context.a, context.b]`";
        cx.report(Diagnostic::error(codes::CONFLICT, entry.key.span, message).help(help));
        return;
    }
    read.not_by = Some(cx.field("not_by", entry, Context::cel));
}

/// Reads a guard name or a combination of guards.
pub(crate) fn guard(cx: &mut Context, node: &Node) -> Guard {
    if node.text().is_some() {
        return Guard::Name(cx.name(Space::Guard, node));
    }
    combination(cx, node)
}

/// Reads an entry of `guards`, where a string is CEL.
pub(crate) fn guard_entry(cx: &mut Context, node: &Node) -> Guard {
    match &node.value {
        Value::Map(_) => combination(cx, node),
        _ => Guard::Cel(cx.at("cel", |cx| cx.cel(node))),
    }
}

fn combination(cx: &mut Context, node: &Node) -> Guard {
    let Some(entry) = node.entries().first() else {
        return Guard::And(Vec::new());
    };
    let key = entry.key.text.as_str();
    cx.field(key, entry, |cx, value| match key {
        "not" => Guard::Not(Box::new(guard(cx, value))),
        "or" => Guard::Or(cx.items(value, guard)),
        _ => Guard::And(cx.items(value, guard)),
    })
}

fn require(cx: &mut Context, node: &Node) -> Option<Require> {
    let entry = node.entries().first()?;
    let part = entry.key.text.as_str();
    cx.field(part, entry, |cx, value| {
        let kind = value
            .entry("kind")
            .map(|entry| cx.field("kind", entry, |cx, node| cx.name(Space::Ledger, node)))
            .unwrap_or_default();
        let key: Template = value.entry("key").map(|entry| cx.field("key", entry, template)).unwrap_or_default();
        let rule = value.entry("rule").map(|entry| cx.field("rule", entry, |cx, node| cx.name(Space::Rule, node)));
        let rules = value.entry("rules").map(|entry| {
            cx.field("rules", entry, |cx, node| {
                let one = |entry: &Entry| {
                    let failure = entry.key.text.clone();
                    let rule = cx.field(&failure, entry, |cx, node| cx.name(Space::Rule, node));
                    (failure, rule)
                };
                node.entries().iter().map(one).collect()
            })
        });
        Some(match part {
            "use" => Require::Use {
                kind,
                key,
                when: value.entry("when").map(|entry| cx.field("when", entry, Context::cel)),
                rules: rules.unwrap_or_default(),
            },
            "open" => Require::Open { kind, key, rule },
            "none" => Require::None { kind, rule },
            _ => return None,
        })
    })
}

fn quorum(cx: &mut Context, node: &Node) -> Quorum {
    let count = |node: Option<&Node>| {
        node.and_then(Node::whole).and_then(|count| u32::try_from(count).ok()).unwrap_or_default()
    };
    match &node.value {
        Value::Map(_) => Quorum {
            count: count(node.get("count")),
            of: node.entry("of").map(|entry| cx.field("of", entry, |cx, node| cx.name(Space::Role, node))),
        },
        _ => Quorum { count: count(Some(node)), of: None },
    }
}

/// Reads `initial`: a state, or an object with actions. (History states have their own `target` and
/// `actions`.)
pub(crate) fn initial(cx: &mut Context, node: &Node) -> Initial {
    match &node.value {
        Value::Map(_) => Initial {
            target: node.entry("target").map(|entry| cx.field("target", entry, Context::names)).unwrap_or_default(),
            actions: node.entry("actions").map(|entry| cx.field("actions", entry, block)).unwrap_or_default(),
        },
        _ => Initial { target: cx.at("target", |cx| cx.names(node)), actions: Vec::new() },
    }
}
