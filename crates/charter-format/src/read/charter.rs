//! Reads the top level of a charter, except its statechart.

use std::rc::Rc;

use charter_kernel::Definition;
use charter_kernel::definition::{
    ActorDecl, EventDecl, FinalRule, Interlock, InterlockRule, LedgerDecl, Limits, Projection, Property, PropertyRule,
    Role, Stream, UniqueDecl,
};
use indexmap::IndexMap;
use serde_json::Value as Json;

use super::action::block;
use super::context::{Context, Scope, Space, text};
use super::template::{delay, template};
use super::transition::guard_entry;
use super::types::Types;
use super::{delay as delays, state};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::{Entry, Node, Value};

/// Reads a document after the grammar check. What is skipped here, the check has already reported.
pub(crate) fn charter(cx: &mut Context, node: &Node) -> Definition {
    let types = Types::new(node.get("types"));
    let mut read = Definition { charter: 1, strict: true, ..Definition::default() };
    for entry in node.entries() {
        let key = entry.key.text.as_str();
        match key {
            "id" => read.id = cx.field(key, entry, |_, node| text(node)),
            "version" => read.version = cx.field(key, entry, |_, node| text(node)),
            "title" => read.title = Some(text(&entry.value)),
            "description" => read.description = Some(text(&entry.value)),
            "strict" => read.strict = entry.value.value != Value::Bool(false),
            "meta" => read.meta = entry.value.json(),
            "roles" => read.roles = map(cx, entry, |_, node| Role { description: description(node) }),
            "types" => read.types = map(cx, entry, |cx, node| types.schema(cx, node)),
            "events" => read.events = map(cx, entry, |cx, node| event(cx, node, &types)),
            "guards" => read.guards = map(cx, entry, guard_entry),
            "actions" => read.actions = scoped(cx, entry, Scope::Action, block),
            "delays" => {
                refuse_times_as_names(cx, &entry.value);
                read.delays = map(cx, entry, delay);
            }
            "actors" => read.actors = map(cx, entry, |cx, node| actor(cx, node, &types)),
            "ledger" => read.ledger = map(cx, entry, |_, node| LedgerDecl { description: description(node) }),
            "rules" => read.rules = map(cx, entry, template),
            "machines" => {
                read.machines = scoped(cx, entry, Scope::Machine, |cx, node| state::machine(cx, node, &types));
            }
            "interlocks" => {
                read.interlocks =
                    cx.field(key, entry, |cx, node| cx.items(node, interlock)).into_iter().flatten().collect()
            }
            "properties" => {
                read.properties =
                    cx.field(key, entry, |cx, node| cx.items(node, property)).into_iter().flatten().collect()
            }
            "limits" => read.limits = limits(&entry.value),
            "projections" => read.projections = map(cx, entry, projection),
            "stream" => read.stream = Some(cx.field(key, entry, stream)),
            _ => {}
        }
    }
    read.root = cx.at("root", |cx| state::chart(cx, node, &types));
    if read.types.contains_key("context") {
        let entry = node.get("types").and_then(|types| types.entry("context"));
        read.root.context_schema =
            entry.map(|entry| cx.at("root", |cx| cx.field("context_schema", entry, |cx, node| types.schema(cx, node))));
    }
    read
}

fn map<T>(cx: &mut Context, entry: &Entry, read: impl FnMut(&mut Context, &Node) -> T) -> IndexMap<String, T> {
    scoped(cx, entry, |_| Scope::Root, read)
}

/// Reads a map whose values use the names in the scope of their key.
fn scoped<T>(
    cx: &mut Context,
    entry: &Entry,
    scope: impl Fn(Rc<str>) -> Scope,
    mut read: impl FnMut(&mut Context, &Node) -> T,
) -> IndexMap<String, T> {
    let mut one = |cx: &mut Context, entry: &Entry| {
        let key = &entry.key.text;
        cx.within(scope(Rc::from(key.as_str())), |cx| (key.clone(), cx.field(key, entry, &mut read)))
    };
    cx.field(&entry.key.text, entry, |cx, node| node.entries().iter().map(|entry| one(cx, entry)).collect())
}

fn description(node: &Node) -> Option<String> {
    node.get("description").map(text)
}

fn event(cx: &mut Context, node: &Node, types: &Types) -> EventDecl {
    EventDecl {
        by: node.entry("by").map(|entry| cx.field("by", entry, Context::roles)).unwrap_or_default(),
        data: node.entry("data").map(|entry| cx.field("data", entry, |cx, node| types.schema(cx, node))),
        while_paused: node.get("whilePaused").is_some_and(|given| given.value == Value::Bool(true)),
        unique: node.entry("unique").and_then(|entry| cx.field("unique", entry, unique)),
        description: description(node),
    }
}

fn unique(cx: &mut Context, node: &Node) -> Option<UniqueDecl> {
    let key = node.entry("key")?;
    Some(UniqueDecl { key: cx.field("key", key, Context::cel) })
}

fn actor(cx: &mut Context, node: &Node, types: &Types) -> ActorDecl {
    let mut read = ActorDecl::default();
    for entry in node.entries() {
        match entry.key.text.as_str() {
            "kind" => read.kind = cx.field("kind", entry, |_, node| text(node)),
            "input" => read.input = Some(cx.field("input", entry, |cx, node| types.schema(cx, node))),
            "output" => read.output = Some(cx.field("output", entry, |cx, node| types.schema(cx, node))),
            "timeout" => read.timeout = Some(cx.field("timeout", entry, delay)),
            key => {
                // The host evaluates these keys, but their roles must be declared. What other
                // kinds mean by `by` is theirs.
                if key == "as" || (key == "by" && node.get("kind").and_then(Node::text) == Some("human")) {
                    cx.roles(&entry.value);
                }
                let value = cx.at("config", |cx| cx.field(key, entry, value_with_places));
                read.config.insert(key.to_owned(), value);
            }
        }
    }
    read
}

/// Reads a value whose keys are those of a kind of actor, with the places of its parts, but not of
/// theirs.
fn value_with_places(cx: &mut Context, node: &Node) -> Json {
    match &node.value {
        Value::List(_) => drop(cx.items(node, |_, _| ())),
        Value::Map(_) => node.entries().iter().for_each(|entry| cx.field(&entry.key.text, entry, |_, _| ())),
        _ => {}
    }
    node.json()
}

fn projection(cx: &mut Context, node: &Node) -> Projection {
    let of = |key| node.entry(key);
    Projection {
        description: description(node),
        of: of("of").map(|e| text(&e.value)).unwrap_or_default(),
        columns: of("columns").map(|entry| map(cx, entry, |_, node| text(node))).unwrap_or_default(),
    }
}

fn refuse_times_as_names(cx: &mut Context, node: &Node) {
    for entry in node.entries() {
        if !delays::is_delay_name(&entry.key.text) {
            let message = format!("invalid delay name `{}`", entry.key.text);
            cx.report(
                Diagnostic::error(codes::VALUE, entry.key.span, message)
                    .help("a name cannot start with a digit or `=`, or contain spaces"),
            );
        }
    }
}

fn interlock(cx: &mut Context, node: &Node) -> Option<Interlock> {
    let id = node.entry("id").map(|entry| cx.field("id", entry, |_, node| text(node))).unwrap_or_default();
    let table_keys = ["given", "machine", "allow", "final"];
    let rule = if let Some(entry) = node.entry("assert") {
        if let Some(odd) = table_keys.iter().find_map(|key| node.entry(key)) {
            let message = format!("`{}` cannot be used with `assert`", odd.key.text);
            cx.report(Diagnostic::error(codes::CONFLICT, odd.key.span, message));
        }
        InterlockRule::Assert(cx.at("rule", |cx| cx.field("assert", entry, Context::cel)))
    } else {
        for key in ["given", "machine"] {
            if node.entry(key).is_none() && node.entry("allow").is_some() {
                cx.report(Diagnostic::error(
                    codes::MISSING_KEY,
                    node.span,
                    format!("an interlock with `allow` needs the key `{key}`"),
                ));
            }
        }
        let allow = node.entry("allow")?;
        cx.at("rule", |cx| {
            cx.at("table", |cx| InterlockRule::Table {
                given: node
                    .entry("given")
                    .map(|entry| cx.field("given", entry, |_, node| text(node)))
                    .unwrap_or_default(),
                machine: node
                    .entry("machine")
                    .map(|entry| cx.field("machine", entry, |cx, node| cx.name(Space::Machine, node)))
                    .unwrap_or_default(),
                allow: map(cx, allow, |cx, node| cx.names(node)),
                r#final: if node.get("final").and_then(Node::text) == Some("settled") {
                    FinalRule::Settled
                } else {
                    FinalRule::Always
                },
            })
        })
    };
    Some(Interlock { id, rule, description: description(node) })
}

fn property(cx: &mut Context, node: &Node) -> Option<Property> {
    let id = node.entry("id").map(|entry| cx.field("id", entry, |_, node| text(node))).unwrap_or_default();
    let before = node.entry("unless-before");
    if let Some(entry) = before.filter(|_| node.entry("never").is_none()) {
        cx.report(Diagnostic::error(codes::CONFLICT, entry.key.span, "`unless-before` is only allowed with `never`"));
    }
    let rule = cx.at("rule", |cx| {
        if let Some(entry) = node.entry("never") {
            Some(cx.at("never", |cx| PropertyRule::Never {
                when: cx.field("when", entry, Context::cel),
                unless_before: before.map(|entry| cx.field("unless_before", entry, |_, node| text(node))),
            }))
        } else if let Some(entry) = node.entry("always") {
            Some(PropertyRule::Always(cx.field("always", entry, Context::cel)))
        } else {
            node.entry("eventually").map(|entry| PropertyRule::Eventually(cx.field("eventually", entry, Context::cel)))
        }
    })?;
    Some(Property { id, rule, description: description(node) })
}

fn limits(node: &Node) -> Limits {
    let mut limits = Limits::default();
    for entry in node.entries() {
        let Some(value) = entry.value.whole() else {
            continue;
        };
        let small = || u32::try_from(value).unwrap_or(u32::MAX);
        let large = u64::try_from(value).unwrap_or_default();
        match entry.key.text.as_str() {
            "microsteps" => limits.microsteps = small(),
            "expression" => limits.expression = large,
            "actors" => limits.actors = small(),
            "timers" => limits.timers = small(),
            "data" => limits.data = large,
            "fuel" => limits.fuel = large,
            "bytes" => limits.bytes = large,
            _ => {}
        }
    }
    limits
}

fn stream(cx: &mut Context, node: &Node) -> Stream {
    let mut part = |key: &str| node.entry(key).map(|entry| cx.field(key, entry, Context::cel));
    let (run, r#type, id) = (part("run"), part("type"), part("id"));
    let (at, data, to) = (part("at"), part("data"), part("to"));
    let (by, input) = (part("by"), part("input"));
    let mut parts = |key: &str| {
        let entry = node.entry(key);
        entry.map_or_else(IndexMap::new, |entry| map(cx, entry, |cx, node| cx.cel(node)))
    };
    let (clocks, summary) = (parts("clocks"), parts("summary"));
    let duplicate =
        node.entry("duplicate").map(|entry| cx.field("duplicate", entry, |cx, node| cx.name(Space::Rule, node)));
    Stream { run, r#type, id, at, data, to, by, input, clocks, duplicate, summary }
}
