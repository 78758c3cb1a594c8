//! State nodes: kinds, children, invocations, and the order in which transitions are tried.

use charter_kernel::definition::{After, Delay, Initial, Invoke, On, State, StateKind, Template, Transition};

use super::names::Kind;
use super::{Reader, ordered};
use charter_format::source::{Node, Span, Value};
use charter_format::{Diagnostic, codes};

const KEYS: [&str; 25] = [
    "id",
    "key",
    "initial",
    "type",
    "states",
    "on",
    "always",
    "after",
    "entry",
    "exit",
    "invoke",
    "onDone",
    "tags",
    "meta",
    "description",
    "output",
    "history",
    "target",
    "context",
    "version",
    "types",
    "schemas",
    "order",
    "$schema",
    "parent",
];
/// What `*` matches in XState: everything, what the machine tells itself too.
const EVERY: [&str; 4] = ["*", "done.*", "error.*", "after.*"];

/// A descriptor of XState with its transitions, on the way to its place.
struct Listener {
    descriptor: String,
    events: Vec<String>,
    transitions: Vec<(Transition, Span)>,
}

impl Reader<'_> {
    pub(super) fn state(&mut self, node: &Node, number: usize) -> State {
        if !matches!(node.value, Value::Map(_)) {
            self.refuse(codes::TYPE, node.span, format!("a state is an object, this is {}", node.kind()), None);
            return State::default();
        }
        self.only(node, "a state", &KEYS);
        let kind = self.names.get(number).map_or(Kind::Atomic, |p| p.kind);
        if let Some(odd) = node
            .get("type")
            .filter(|t| !matches!(t.text(), Some("atomic" | "compound" | "parallel" | "final" | "history")))
        {
            self.refuse(
                codes::VALUE,
                odd.span,
                "this is no type of a state",
                Some("`atomic`, `compound`, `parallel`, `final` or `history`"),
            );
        }
        let mut state = State { id: self.names.explicit(number), ..State::default() };
        state.description = node.get("description").and_then(Node::text).map(str::to_owned);
        state.meta = node.get("meta").map(Node::json).unwrap_or_default();
        state.tags = node
            .get("tags")
            .map(|tags| tags.one_or_many().iter().filter_map(|t| t.text().map(str::to_owned)).collect())
            .unwrap_or_default();
        state.output = node.get("output").map(|output| Template::Literal(output.json()));
        if kind == Kind::History {
            self.history(node, number, &mut state);
            return state;
        }
        for (key, blocks) in [("entry", &mut state.entry), ("exit", &mut state.exit)] {
            if let Some(entry) = node.entry(key) {
                let block = self.inside(key, entry.key.span, |reader| {
                    reader.inside("0", entry.key.span, |reader| reader.actions(&entry.value))
                });
                blocks.push(block);
            }
        }
        if let Some(states) = node.get("states") {
            let above = self.cx.enter("states");
            for entry in ordered(states) {
                let key = &entry.key.text;
                let Some(child) = self.names.child(number, key) else {
                    continue;
                };
                let read = self.inside(key, entry.key.span, |reader| reader.state(&entry.value, child));
                state.states.insert(key.clone(), read);
            }
            self.cx.leave(above);
        }
        state.kind = match kind {
            Kind::Atomic | Kind::History => StateKind::Atomic,
            Kind::Compound => StateKind::Compound,
            Kind::Parallel if state.states.is_empty() => StateKind::Atomic,
            Kind::Parallel => StateKind::Parallel,
            Kind::Final => StateKind::Final,
        };
        self.initial(node, number, kind, &mut state);
        self.listeners(node, number, &mut state);
        state
    }

    fn initial(&mut self, node: &Node, number: usize, kind: Kind, state: &mut State) {
        let entry = node.entry("initial");
        if kind != Kind::Compound {
            if let Some(entry) = entry.filter(|e| kind != Kind::Parallel && !e.value.is_null()) {
                self.refuse(codes::VALUE, entry.key.span, "only a state with children has `initial`", None);
            }
            return;
        }
        let Some(entry) = entry else {
            self.refuse(
                codes::MISSING_KEY,
                node.span.first(),
                "a state with children needs `initial`",
                Some("the key of the child to begin with"),
            );
            return;
        };
        let target = entry.value.text().or_else(|| entry.value.get("target")?.text()).unwrap_or_default();
        if self.names.child(number, target).is_none() {
            self.refuse(
                codes::UNDEFINED,
                entry.value.span,
                format!("no child `{target}`"),
                Some("`initial` is the key of a child"),
            );
        }
        let actions = entry.value.get("actions").map(|node| self.actions(node)).unwrap_or_default();
        state.initial = Some(Initial { target: vec![format!(".{target}")], actions });
        let span = entry.value.span;
        self.inside("initial", span, |_| ());
    }

    fn history(&mut self, node: &Node, number: usize, state: &mut State) {
        state.kind = match node.get("history").map(|h| &h.value) {
            Some(Value::Text(text)) if text.text == "deep" => StateKind::Deep,
            _ => StateKind::Shallow,
        };
        let Some(parent) = self.names.get(number).and_then(|p| p.parent) else {
            return;
        };
        let mut targets = Vec::new();
        match node.entry("target") {
            Some(entry) => {
                for target in entry.value.one_or_many() {
                    match self.names.within(parent, target.text().unwrap_or_default()) {
                        Ok(found) => targets.push(format!("#{}", self.names.name(found))),
                        Err(why) => self.refuse(codes::UNDEFINED, target.span, why, None),
                    }
                }
            }
            // Without a target: where its parent starts.
            None => {
                for child in self.starts(parent) {
                    targets.push(format!("#{}", self.names.name(child)));
                }
            }
        }
        state.initial = Some(Initial { target: targets, actions: Vec::new() });
    }

    /// The children that a state enters by default.
    pub(super) fn starts(&self, number: usize) -> Vec<usize> {
        let Some(place) = self.names.get(number) else {
            return Vec::new();
        };
        match place.kind {
            Kind::Parallel => {
                let can = |c: &usize| self.names.get(*c).is_some_and(|p| p.kind != Kind::History);
                place.children.iter().copied().filter(can).collect()
            }
            _ => place.initial.as_deref().and_then(|key| self.names.child(number, key)).into_iter().collect(),
        }
    }

    /// Everything that selects transitions. XState tries the exact descriptor first, then wildcards, the longer ones before.
    fn listeners(&mut self, node: &Node, number: usize, state: &mut State) {
        let mut listeners: Vec<Listener> = Vec::new();
        if let Some(on) = node.get("on") {
            for entry in ordered(on) {
                let descriptor = entry.key.text.clone();
                let transitions = self.transitions(&entry.value, number);
                if let Some(events) = self.events(&descriptor, entry.key.span) {
                    listeners.push(Listener { descriptor, events, transitions });
                }
            }
        }
        state.invoke = self.invocations(node, number);
        if let Some(entry) = node.entry("onDone") {
            state.on_done =
                self.inside("on_done", entry.key.span, |reader| reader.transitions_here(&entry.value, number));
            if !matches!(state.kind, StateKind::Compound | StateKind::Parallel) {
                state.on_done.clear();
                let mut problem = Diagnostic::warning(
                    codes::CONFLICT,
                    entry.key.span,
                    "a state without children is never done; `onDone` is ignored",
                );
                problem.help = Some("what an invoked actor gives is under `onDone` of its `invoke`".to_owned());
                self.cx.report(problem);
            }
        }
        self.after(node, number, state);
        if let Some(entry) = node.entry("always") {
            state.always =
                self.inside("always", entry.key.span, |reader| reader.transitions_here(&entry.value, number));
        }
        // `onDone` and its like replace what `on` says about the same event.
        let name = self.names.name(number);
        let replaced: Vec<String> = std::iter::once(format!("done.state.{name}"))
            .filter(|_| !state.on_done.is_empty())
            .chain(
                state
                    .invoke
                    .iter()
                    .filter(|i| !i.on_done.is_empty())
                    .map(|i| format!("done.invoke.{}", i.id.as_deref().unwrap_or_default())),
            )
            .chain(
                state
                    .invoke
                    .iter()
                    .filter(|i| !i.on_error.is_empty())
                    .map(|i| format!("error.invoke.{}", i.id.as_deref().unwrap_or_default())),
            )
            .collect();
        listeners.retain(|l| !matches!(l.events.as_slice(), [only] if replaced.contains(only)));
        let wild = |l: &Listener| l.descriptor == "*" || l.descriptor.ends_with(".*");
        if listeners.iter().any(|l| {
            wild(l)
                && l.events
                    .iter()
                    .any(|e| EVERY.contains(&e.as_str()) || e.starts_with("done.") || e.starts_with("error."))
        }) {
            before_wildcards(&name, node.span.first(), state, &mut listeners);
        }
        let (mut wildcards, exact): (Vec<Listener>, Vec<Listener>) = listeners.into_iter().partition(wild);
        wildcards.sort_by_key(|l| std::cmp::Reverse(l.descriptor.len()));
        let above = self.cx.enter("on");
        for listener in exact.into_iter().chain(wildcards) {
            let Some(span) = listener.transitions.first().map(|(_, span)| *span) else {
                continue;
            };
            let transitions = self.inside(&state.on.len().to_string(), span, |reader| {
                reader.inside("transitions", span, |reader| reader.placed(listener.transitions))
            });
            state.on.push(On { events: listener.events, transitions });
        }
        self.cx.leave(above);
    }

    fn after(&mut self, node: &Node, number: usize, state: &mut State) {
        let Some(after) = node.get("after") else {
            return;
        };
        for (index, entry) in ordered(after).into_iter().enumerate() {
            let key = entry.key.text.trim();
            // `Infinity` is a number for JavaScript, and no length of time; `inf` is a name.
            let number_like = key.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            let parsed = key.parse::<f64>().ok().filter(|_| number_like || key == "Infinity");
            let delay = match parsed.ok_or(()) {
                Ok(ms) if (0.0..9e15).contains(&ms) => {
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    // in range: just looked at
                    Delay::Ms(ms as u64)
                }
                Ok(_) => {
                    self.refuse(
                        codes::VALUE,
                        entry.key.span,
                        format!("`{key}` is no length of time"),
                        Some("milliseconds, or a name from `delays`"),
                    );
                    continue;
                }
                Err(_) => {
                    self.declared("delay", key, entry.key.span);
                    Delay::Name(key.to_owned())
                }
            };
            let transitions = self.inside("after", entry.key.span, |reader| {
                reader.inside(&index.to_string(), entry.key.span, |reader| {
                    reader.inside("transitions", entry.key.span, |reader| reader.transitions_here(&entry.value, number))
                })
            });
            state.after.push(After { key: key.to_owned(), delay, transitions });
        }
    }

    fn invocations(&mut self, node: &Node, number: usize) -> Vec<Invoke> {
        let Some(entry) = node.entry("invoke") else {
            return Vec::new();
        };
        let mut invokes = Vec::new();
        for (index, item) in entry.value.one_or_many().iter().enumerate() {
            self.only(
                item,
                "an invocation",
                &["src", "id", "input", "onDone", "onError", "onSnapshot", "systemId", "description", "meta", "type"],
            );
            if let Some(snapshot) = item.entry("onSnapshot") {
                let help = "let the actor send events instead";
                self.refuse(
                    codes::NOT_SUPPORTED,
                    snapshot.key.span,
                    "`onSnapshot` is not supported: the inside of an actor is its own",
                    Some(help),
                );
            }
            let src = item.entry("src");
            let name = src.and_then(|s| s.value.text());
            let (Some(src), Some(name)) = (src, name) else {
                let span = src.map_or(item.span.first(), |s| s.value.span);
                self.null(span, "the `src` of an invocation");
                continue;
            };
            self.declared("actor", name, src.value.span);
            let id = match item.get("id").and_then(Node::text) {
                Some(id) => id.to_owned(),
                // As XState makes it: the place of the invocation, and the id of its state.
                None => format!("{index}.{}", self.names.get(number).map_or("", |p| p.id.as_str())),
            };
            let mut invoke = Invoke { src: name.to_owned(), id: Some(id), ..Invoke::default() };
            invoke.input = item.get("input").map(|input| Template::Literal(input.json()));
            let spans = item.span;
            self.inside("invoke", entry.key.span, |reader| {
                reader.inside(&index.to_string(), spans, |reader| {
                    for (key, core, list) in
                        [("onDone", "on_done", &mut invoke.on_done), ("onError", "on_error", &mut invoke.on_error)]
                    {
                        if let Some(entry) = item.entry(key) {
                            *list = reader
                                .inside(core, entry.key.span, |reader| reader.transitions_here(&entry.value, number));
                        }
                    }
                });
            });
            invokes.push(invoke);
        }
        invokes
    }

    /// A descriptor as descriptors of the core form. What XState calls its own events begins with `xstate.`.
    fn events(&mut self, descriptor: &str, span: Span) -> Option<Vec<String>> {
        if descriptor == "*" {
            return Some(EVERY.map(str::to_owned).to_vec());
        }
        let Some(own) = descriptor.strip_prefix("xstate.") else {
            // Errors of the charter itself, which XState does not have, may be waited for.
            let own = ["error.execution", "error.communication"].contains(&descriptor);
            let reserved = ["done.", "error.", "after.", "charter."];
            if !own && reserved.iter().any(|p| descriptor.starts_with(p)) {
                let help = "`done.`, `error.`, `after.` and `charter.` begin the platform's own events, which nobody can send; rename it";
                self.refuse(
                    codes::NOT_SUPPORTED,
                    span,
                    format!("the event `{descriptor}` cannot be sent to a charter"),
                    Some(help),
                );
                return None;
            }
            let bad = descriptor.is_empty()
                || descriptor.contains(char::is_whitespace)
                || descriptor.strip_suffix(".*").unwrap_or(descriptor).contains('*');
            if bad {
                let message = format!("`{descriptor}` is no event descriptor");
                self.refuse(codes::VALUE, span, message, Some("an event type without blanks, `prefix.*`, or `*`"));
                return None;
            }
            return Some(vec![descriptor.to_owned()]);
        };
        let state_name = |id: &str| self.names.by_id(id).map(|n| self.names.name(n));
        let events = if let Some(id) = own.strip_prefix("done.state.") {
            state_name(id)
                .map(|name| vec![format!("done.state.{name}")])
                .or_else(|| id.ends_with('*').then(|| vec!["done.state.*".to_owned()]))
        } else if let Some(id) = own.strip_prefix("done.actor.") {
            Some(vec![format!("done.invoke.{id}")])
        } else if let Some(id) = own.strip_prefix("error.actor.") {
            Some(vec![format!("error.invoke.{id}")])
        } else if let Some((delay, id)) = own.strip_prefix("after.").and_then(|rest| rest.split_once('.')) {
            state_name(id).map(|name| vec![format!("after.{delay}.{name}")])
        } else {
            match own {
                "*" => Some(vec!["done.*".into(), "error.*".into(), "after.*".into()]),
                "done.*" | "error.*" | "after.*" => Some(vec![own.to_owned()]),
                _ => None,
            }
        };
        if events.is_none() {
            let help = "of XState's own events, those of done states, of actors that are done or have failed, and of delays can be waited for";
            self.refuse(codes::NOT_SUPPORTED, span, format!("`{descriptor}` has no counterpart"), Some(help));
        }
        events
    }
}

/// A wildcard that matches what the machine tells itself comes after what names it: then all of it stands under `on`.
fn before_wildcards(name: &str, span: Span, state: &mut State, listeners: &mut Vec<Listener>) {
    let mut exact = |event: String, transitions: &mut Vec<Transition>| {
        if !transitions.is_empty() {
            listeners.push(Listener {
                descriptor: event.clone(),
                events: vec![event],
                transitions: std::mem::take(transitions).into_iter().map(|t| (t, span)).collect(),
            });
        }
    };
    for invoke in &mut state.invoke {
        let id = invoke.id.clone().unwrap_or_default();
        exact(format!("done.invoke.{id}"), &mut invoke.on_done);
        exact(format!("error.invoke.{id}"), &mut invoke.on_error);
    }
    exact(format!("done.state.{name}"), &mut state.on_done);
    for after in &mut state.after {
        exact(format!("after.{}.{name}", after.key), &mut after.transitions);
    }
}
