//! Reads state nodes: types, children, and the order in which transitions are tried.

use charter_kernel::definition::{After, Delay, Initial, On, State, StateKind, Template};

use super::events::{EVERY, Listener, before_wildcards};
use super::states::StateType;
use super::transition::{own_part, part, without_own_part};
use super::{XstateReader, ordered};
use charter_format::source::{Node, Value};
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
impl XstateReader<'_> {
    pub(super) fn state(&mut self, node: &Node, number: usize) -> State {
        if !matches!(node.value, Value::Map(_)) {
            self.refuse(codes::TYPE, node.span, format!("expected a state (an object), found {}", node.kind()), None);
            return State::default();
        }
        self.only(node, "a state", &KEYS);
        let kind = self.states.get(number).map_or(StateType::Atomic, |p| p.kind);
        if let Some(odd) = node
            .get("type")
            .filter(|t| !matches!(t.text(), Some("atomic" | "compound" | "parallel" | "final" | "history")))
        {
            self.refuse(
                codes::VALUE,
                odd.span,
                "invalid state type",
                Some("write `atomic`, `compound`, `parallel`, `final` or `history`"),
            );
        }
        let mut state = State { id: self.states.explicit(number), ..State::default() };
        state.description = node.get("description").and_then(Node::text).map(str::to_owned);
        state.meta = node.get("meta").map(Node::json).unwrap_or_default();
        state.tags = node
            .get("tags")
            .map(|tags| tags.one_or_many().iter().filter_map(|t| t.text().map(str::to_owned)).collect())
            .unwrap_or_default();
        state.output = node.get("output").map(|output| Template::Literal(output.json()));
        // The root has the whole charter in its `meta.charter`.
        let own = own_part(node).and_then(|own| if number == 0 { own.get("state") } else { Some(own) });
        if let Some(own) = own {
            state.output = state.output.or_else(|| part(own, "output"));
            let data: Option<String> = part(own, "data");
            state.data = data.and_then(|data| charter_expr::strict_json::typed(&data).ok()).unwrap_or_default();
        }
        if own.is_some() || number == 0 {
            without_own_part(&mut state.meta);
        }
        if kind == StateType::History {
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
                let Some(child) = self.states.child(number, key) else {
                    continue;
                };
                let read = self.inside(key, entry.key.span, |reader| reader.state(&entry.value, child));
                state.states.insert(key.clone(), read);
            }
            self.cx.leave(above);
        }
        state.kind = match kind {
            StateType::Atomic | StateType::History => StateKind::Atomic,
            StateType::Compound => StateKind::Compound,
            StateType::Parallel if state.states.is_empty() => StateKind::Atomic,
            StateType::Parallel => StateKind::Parallel,
            StateType::Final => StateKind::Final,
        };
        self.initial(node, number, kind, &mut state);
        self.history_actions(node, &mut state);
        self.listeners(node, number, &mut state, own);
        state
    }

    fn initial(&mut self, node: &Node, number: usize, kind: StateType, state: &mut State) {
        let entry = node.entry("initial");
        if kind != StateType::Compound {
            if let Some(entry) = entry.filter(|e| kind != StateType::Parallel && !e.value.is_null()) {
                self.refuse(codes::VALUE, entry.key.span, "only a state with children can have `initial`", None);
            }
            return;
        }
        let Some(entry) = entry else {
            self.refuse(
                codes::MISSING_KEY,
                node.span.first(),
                "a state with children requires `initial`",
                Some("write the key of the initial child"),
            );
            return;
        };
        let target = entry.value.text().or_else(|| entry.value.get("target")?.text()).unwrap_or_default();
        if self.states.child(number, target).is_none() {
            self.refuse(
                codes::UNDEFINED,
                entry.value.span,
                format!("undefined child `{target}`"),
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
        let Some(parent) = self.states.get(number).and_then(|p| p.parent) else {
            return;
        };
        let mut targets = Vec::new();
        match node.entry("target") {
            Some(entry) => {
                for target in entry.value.one_or_many() {
                    match self.states.within(parent, target.text().unwrap_or_default()) {
                        Ok(found) => targets.push(format!("#{}", self.states.name(found))),
                        Err(error) => self.refuse(codes::UNDEFINED, target.span, error.to_string(), None),
                    }
                }
            }
            // Without a target, a history state enters the initial state of its parent.
            None => {
                for child in self.starts(parent) {
                    targets.push(format!("#{}", self.states.name(child)));
                }
            }
        }
        state.initial = Some(Initial { target: targets, actions: Vec::new() });
    }

    /// A history state without a target takes the initial transition of its parent, with its
    /// actions.
    fn history_actions(&self, node: &Node, state: &mut State) {
        let Some(actions) = state.initial.as_ref().map(|i| i.actions.clone()).filter(|a| !a.is_empty()) else {
            return;
        };
        for (key, child) in &mut state.states {
            let history = matches!(child.kind, StateKind::Shallow | StateKind::Deep);
            let config = node.get("states").and_then(|states| states.get(key));
            if history && config.is_some_and(|config| config.get("target").is_none()) {
                child.initial.iter_mut().for_each(|initial| initial.actions.clone_from(&actions));
            }
        }
    }

    /// Returns the children that a state enters by default.
    pub(super) fn starts(&self, number: usize) -> Vec<usize> {
        let Some(place) = self.states.get(number) else {
            return Vec::new();
        };
        match place.kind {
            StateType::Parallel => {
                let can = |c: &usize| self.states.get(*c).is_some_and(|p| p.kind != StateType::History);
                place.children.iter().copied().filter(can).collect()
            }
            _ => place.initial.as_deref().and_then(|key| self.states.child(number, key)).into_iter().collect(),
        }
    }

    /// Reads the transitions of a state. XState tries exact descriptors first, then wildcards from
    /// longest to shortest.
    fn listeners(&mut self, node: &Node, number: usize, state: &mut State, own: Option<&Node>) {
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
                problem.help = Some("for the output of an actor, write `onDone` in its `invoke`".to_owned());
                self.cx.report(problem);
            }
        }
        self.after(node, number, state, own.and_then(|own| own.get("after")));
        if let Some(entry) = node.entry("always") {
            self.stays = false;
            state.always =
                self.inside("always", entry.key.span, |reader| reader.transitions_here(&entry.value, number));
            self.settles |= self.stays;
        }
        // `onDone` and `onError` override `on` for the same event.
        let name = self.states.name(number);
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

    /// Reads delayed transitions. `computed` has the delays of an exported charter that are
    /// expressions.
    fn after(&mut self, node: &Node, number: usize, state: &mut State, computed: Option<&Node>) {
        let Some(after) = node.get("after") else {
            return;
        };
        for (index, entry) in ordered(after).into_iter().enumerate() {
            let key = entry.key.text.trim();
            // JavaScript parses `Infinity` as a number, but it is not a valid delay; `inf` is a
            // name.
            let number_like = key.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            let parsed = key.parse::<f64>().ok().filter(|_| number_like || key == "Infinity");
            let own: Option<Delay> = computed.and_then(|computed| part(computed, key));
            let delay = match parsed.ok_or(own) {
                Ok(ms) if (0.0..9e15).contains(&ms) => {
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    // The value is in range.
                    Delay::Ms(ms as u64)
                }
                Ok(_) => {
                    self.refuse(
                        codes::VALUE,
                        entry.key.span,
                        format!("invalid delay `{key}`"),
                        Some("write milliseconds, or a name from `delays`"),
                    );
                    continue;
                }
                Err(Some(own)) => own,
                Err(None) if !charter_format::is_delay_name(key) => {
                    self.refuse(
                        codes::VALUE,
                        entry.key.span,
                        format!("the delay `{key}` cannot be imported under this name"),
                        Some("rename it in the machine: a name cannot start with a digit, `.`, `-`, `+` or `=`, or contain spaces"),
                    );
                    continue;
                }
                Err(None) => {
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
}
