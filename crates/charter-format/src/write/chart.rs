//! Writes statecharts, transitions and actions in the charter language.

use std::collections::BTreeSet;

use charter_kernel::definition::{
    Action, After, Block, Chart, Delay, Guard, Initial, Invoke, On, Require, Send, State, StateKind, Template,
    Transition,
};
use serde_json::Value as Json;

use crate::ordered::{OrderedJson, OrderedObject};

pub(crate) fn machine(chart: &Chart) -> OrderedJson {
    let mut out = OrderedObject::default();
    head(&mut out, &chart.state);
    if let Some(schema) = &chart.context_schema {
        let types: OrderedObject = [("context".to_owned(), OrderedJson::from(schema.clone()))].into_iter().collect();
        out.put("types", types);
    }
    self::chart(&mut out, chart);
    out.into()
}

pub(crate) fn chart(out: &mut OrderedObject, chart: &Chart) {
    out.put_some("input", chart.input.clone());
    out.put_map("context", &chart.context, template);
    out.put_some("output", chart.output.as_ref().map(template));
    body(out, &chart.state);
}

fn head(out: &mut OrderedObject, state: &State) {
    out.put_some("id", state.id.as_deref());
    out.put_some("description", state.description.as_deref());
    if !state.meta.is_null() {
        out.put("meta", state.meta.clone());
    }
}

fn state(state: &State) -> OrderedJson {
    let mut out = OrderedObject::default();
    head(&mut out, state);
    body(&mut out, state);
    out.put_some("output", state.output.as_ref().map(template));
    out.into()
}

fn body(out: &mut OrderedObject, state: &State) {
    let usual = if state.states.is_empty() { StateKind::Atomic } else { StateKind::Compound };
    let is_history = matches!(state.kind, StateKind::Shallow | StateKind::Deep);
    match state.kind {
        kind if kind == usual => {}
        StateKind::Atomic => out.put("type", "atomic"),
        StateKind::Compound => out.put("type", "compound"),
        StateKind::Parallel => out.put("type", "parallel"),
        StateKind::Final => out.put("type", "final"),
        StateKind::Shallow | StateKind::Deep => {
            out.put("type", "history");
            out.put("history", if state.kind == StateKind::Deep { "deep" } else { "shallow" });
        }
    }
    if let Some(initial) = &state.initial {
        if is_history {
            out.put_names("target", &initial.target);
            block_field(out, "actions", &initial.actions);
        } else {
            out.put("initial", self::initial(initial));
        }
    }
    out.put_names("tags", &state.tags);
    out.put_map("data", &state.data, template);
    blocks(out, "entry", &state.entry);
    blocks(out, "exit", &state.exit);
    match state.invoke.as_slice() {
        [] => {}
        [only] => out.put("invoke", invoke(only)),
        many => out.put_list("invoke", many, invoke),
    }
    out.put_map("states", &state.states, self::state);
    keyed(out, "on", &state.on, |on: &On| (on.events.join(" "), &on.transitions));
    transitions(out, "always", &state.always);
    keyed(out, "after", &state.after, |after: &After| (after.key.clone(), &after.transitions));
    transitions(out, "onDone", &state.on_done);
}

fn initial(initial: &Initial) -> OrderedJson {
    match (initial.target.as_slice(), initial.actions.is_empty()) {
        ([target], true) => target.as_str().into(),
        (targets, true) => targets.to_vec().into(),
        (_, false) => {
            let mut out = OrderedObject::default();
            out.put("target", initial.target.clone());
            block_field(&mut out, "actions", &initial.actions);
            out.into()
        }
    }
}

/// Writes `on` and `after`: an object, or a list of objects if a key occurs twice.
fn keyed<'d, T>(
    out: &mut OrderedObject,
    key: &str,
    items: &'d [T],
    split: impl Fn(&'d T) -> (String, &'d Vec<Transition>),
) {
    let entry = |item: &'d T| {
        let (key, transitions) = split(item);
        (key, transition_list(transitions))
    };
    if items.is_empty() {
        return;
    }
    let distinct: BTreeSet<String> = items.iter().map(|item| split(item).0).collect();
    if distinct.len() == items.len() {
        out.put(key, items.iter().map(entry).collect::<OrderedObject>());
    } else {
        let single = |item: &'d T| OrderedJson::from(std::iter::once(entry(item)).collect::<OrderedObject>());
        out.put(key, OrderedJson::List(items.iter().map(single).collect()));
    }
}

fn transitions(out: &mut OrderedObject, key: &str, transitions: &[Transition]) {
    if !transitions.is_empty() {
        out.put(key, transition_list(transitions));
    }
}

fn transition_list(transitions: &[Transition]) -> OrderedJson {
    match transitions {
        [only] => transition(only),
        many => OrderedJson::List(many.iter().map(transition).collect()),
    }
}

fn transition(transition: &Transition) -> OrderedJson {
    let mut out = OrderedObject::default();
    out.put_names("target", &transition.target);
    out.put_some("guard", transition.guard.as_ref().map(guard));
    out.put_some("when", transition.when.as_deref());
    out.put_names("by", &transition.by);
    let not_by = transition.not_by.as_deref();
    if let Some(approves) = transition.approves.as_deref() {
        match not_by {
            None => out.put("approves", approves),
            Some(not_by) => {
                let mut part = OrderedObject::default();
                part.put("value", approves);
                part.put("not_by", not_by);
                out.put("approves", part);
            }
        }
    }
    out.put_list("requires", &transition.requires, require);
    if let Some(quorum) = &transition.quorum {
        // `approves` has it if there is one.
        let not_by = not_by.filter(|_| transition.approves.is_none());
        match (&quorum.of, not_by) {
            (None, None) => out.put("quorum", quorum.count),
            (of, not_by) => {
                let mut part = OrderedObject::default();
                part.put("count", quorum.count);
                part.put_some("of", of.as_deref());
                part.put_some("not_by", not_by);
                out.put("quorum", part);
            }
        }
    }
    if transition.agents {
        out.put("agents", true);
    }
    out.put_some("refuse", transition.refuse.as_deref());
    block_field(&mut out, "actions", &transition.actions);
    if transition.reenter {
        out.put("reenter", true);
    }
    out.put_some("description", transition.description.as_deref());
    if !transition.meta.is_null() {
        out.put("meta", transition.meta.clone());
    }
    match transition.target.as_slice() {
        [target] if out.len() == 1 => target.as_str().into(),
        _ => out.into(),
    }
}

pub(crate) fn guard(guard: &Guard) -> OrderedJson {
    let one = |key: &str, value: OrderedJson| {
        OrderedJson::from([(key.to_owned(), value)].into_iter().collect::<OrderedObject>())
    };
    match guard {
        Guard::Name(text) | Guard::Cel(text) => text.as_str().into(),
        Guard::And(guards) => one("and", OrderedJson::List(guards.iter().map(self::guard).collect())),
        Guard::Or(guards) => one("or", OrderedJson::List(guards.iter().map(self::guard).collect())),
        Guard::Not(inner) => one("not", self::guard(inner)),
    }
}

fn require(require: &Require) -> OrderedJson {
    let mut inner = OrderedObject::default();
    let part = match require {
        Require::Use { kind, key, when, rules } => {
            inner.put("kind", kind.as_str());
            inner.put("key", template(key));
            inner.put_some("when", when.as_deref());
            if !rules.is_empty() {
                let mut names = OrderedObject::default();
                for (failure, rule) in rules {
                    names.put(failure, rule.as_str());
                }
                inner.put("rules", names);
            }
            "use"
        }
        Require::Open { kind, key, rule } => {
            inner.put("kind", kind.as_str());
            inner.put("key", template(key));
            inner.put_some("rule", rule.as_deref());
            "open"
        }
        Require::None { kind, rule } => {
            inner.put("kind", kind.as_str());
            inner.put_some("rule", rule.as_deref());
            "none"
        }
    };
    let mut out = OrderedObject::default();
    out.put(part, inner);
    out.into()
}

fn invoke(invoke: &Invoke) -> OrderedJson {
    let mut out = OrderedObject::default();
    out.put("src", invoke.src.as_str());
    out.put_some("id", invoke.id.as_deref());
    out.put_some("idLocation", invoke.id_location.as_deref());
    out.put_some("input", invoke.input.as_ref().map(template));
    out.put_some("timeout", invoke.timeout.as_ref().map(delay));
    transitions(&mut out, "onDone", &invoke.on_done);
    transitions(&mut out, "onError", &invoke.on_error);
    block_field(&mut out, "finalize", &invoke.finalize);
    if invoke.autoforward {
        out.put("autoforward", true);
    }
    out.into()
}

pub(crate) fn delay(delay: &Delay) -> OrderedJson {
    match delay {
        Delay::Name(name) => name.as_str().into(),
        Delay::Ms(ms) => (*ms).into(),
        Delay::Cel(cel) => format!("= {cel}").into(),
    }
}

pub(crate) fn template(template: &Template) -> OrderedJson {
    match template {
        Template::Cel(cel) => format!("= {cel}").into(),
        Template::Literal(value) if needs_quoting(value) => OrderedJson::from(
            [("literal".to_owned(), OrderedJson::from(value.clone()))].into_iter().collect::<OrderedObject>(),
        ),
        Template::Literal(value) => value.clone().into(),
        Template::List(items) => OrderedJson::List(items.iter().map(self::template).collect()),
        Template::Object(fields) => OrderedJson::from(
            fields.iter().map(|(key, value)| (key.clone(), self::template(value))).collect::<OrderedObject>(),
        ),
    }
}

/// Whether a literal would be read as an expression or as `{literal: ...}`.
fn needs_quoting(value: &Json) -> bool {
    match value {
        Json::String(text) => text.starts_with("= "),
        Json::Array(items) => items.iter().any(needs_quoting),
        Json::Object(fields) => {
            fields.len() == 1 && fields.contains_key("literal") || fields.values().any(needs_quoting)
        }
        _ => false,
    }
}

fn block_field(out: &mut OrderedObject, key: &str, block: &[Action]) {
    if !block.is_empty() {
        out.put(key, self::block(block));
    }
}

pub(crate) fn block(block: &[Action]) -> OrderedJson {
    match block {
        [only] => action(only),
        many => OrderedJson::List(many.iter().map(action).collect()),
    }
}

fn blocks(out: &mut OrderedObject, key: &str, blocks: &[Block]) {
    let list = |block: &Block| OrderedJson::List(block.iter().map(action).collect());
    match blocks {
        [] => {}
        [only] if !only.is_empty() => out.put(key, block(only)),
        many => out.put(key, OrderedJson::List(many.iter().map(list).collect())),
    }
}

fn action(action: &Action) -> OrderedJson {
    let mut out = OrderedObject::default();
    let mut inner = OrderedObject::default();
    let mut given = |key: &str, value: &Option<Template>| inner.put_some(key, value.as_ref().map(template));
    match action {
        Action::Name(name) => return name.as_str().into(),
        Action::Assign(paths) => {
            let paths: OrderedObject = paths.iter().map(|(path, value)| (path.clone(), template(value))).collect();
            out.put("assign", paths);
        }
        Action::Raise { r#type, data } | Action::Emit { r#type, data } => {
            let key = if matches!(action, Action::Raise { .. }) { "raise" } else { "emit" };
            match (r#type, data) {
                (Template::Literal(Json::String(name)), None) if !name.starts_with("= ") => out.put(key, name.as_str()),
                _ => {
                    inner.put("type", template(r#type));
                    inner.put_some("data", data.as_ref().map(template));
                    out.put(key, inner);
                }
            }
        }
        Action::Send(send) => out.put("send", self::send(send)),
        Action::Cancel(id) => out.put("cancel", template(id)),
        Action::Stop(id) => out.put("stop", template(id)),
        Action::Log { value, label } => {
            out.put("log", template(value));
            out.put_some("label", label.as_deref());
        }
        Action::Spawn { machine, id, input } => {
            inner.put("machine", machine.as_str());
            inner.put("id", template(id));
            inner.put_some("input", input.as_ref().map(template));
            out.put("spawn", inner);
        }
        Action::If(branches) => out.put(
            "if",
            OrderedJson::List(
                branches
                    .iter()
                    .map(|branch| {
                        let mut out = OrderedObject::default();
                        out.put_some("when", branch.when.as_deref());
                        out.put("do", block(&branch.r#do));
                        out.into()
                    })
                    .collect(),
            ),
        ),
        Action::Each { r#in, r#as, index, r#do } => {
            inner.put("in", r#in.as_str());
            inner.put("as", r#as.as_str());
            inner.put_some("index", index.as_deref());
            inner.put("do", block(r#do));
            out.put("each", inner);
        }
        Action::Grant { kind, key, uses, expires, data } => {
            given("uses", uses);
            given("expires", expires);
            given("data", data);
            out.put("grant", ledger(kind, Some(key), inner));
        }
        Action::Revoke { kind, key } => out.put("revoke", ledger(kind, key.as_ref(), inner)),
        Action::Open { kind, key, due, data } => {
            given("due", due);
            given("data", data);
            out.put("open", ledger(kind, Some(key), inner));
        }
        Action::Close { kind, key, r#as } => {
            given("as", r#as);
            out.put("close", ledger(kind, key.as_ref(), inner));
        }
    }
    out.into()
}

/// Writes `kind`, then `key` or `all: true`, then the other keys.
fn ledger(kind: &str, key: Option<&Template>, rest: OrderedObject) -> OrderedObject {
    let mut out = OrderedObject::default();
    out.put("kind", kind);
    match key {
        Some(key) => out.put("key", template(key)),
        None => out.put("all", true),
    }
    out.append(rest);
    out
}

fn send(send: &Send) -> OrderedObject {
    let mut out = OrderedObject::default();
    out.put_some("to", send.to.as_ref().map(template));
    out.put("type", template(&send.r#type));
    out.put_some("data", send.data.as_ref().map(template));
    out.put_some("delay", send.delay.as_ref().map(delay));
    out.put_some("id", send.id.as_ref().map(template));
    out.put_some("idLocation", send.id_location.as_deref());
    out.put_some("processor", send.processor.as_ref().map(template));
    out
}
