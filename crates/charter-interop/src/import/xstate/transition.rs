//! Reads transitions and guards. Translates targets where XState and SCXML have different rules for
//! internal transitions.

use charter_kernel::definition::{Guard, Transition};
use serde::de::DeserializeOwned;

use super::XstateReader;
use super::action::with_params;
use super::states::{StateType, split};
use charter_format::source::{Node, Span, Value};
use charter_format::{Diagnostic, codes};

impl XstateReader<'_> {
    /// Reads a target, an object, or a list of them.
    pub(super) fn transitions(&mut self, node: &Node, source: usize) -> Vec<(Transition, Span)> {
        let items: &[Node] = node.one_or_many();
        let read = |item| Some((self.transition(item, source)?, item.span));
        items.iter().filter_map(read).collect()
    }

    /// Like [`Self::transitions`], but the reader is already at the list of transitions.
    pub(super) fn transitions_here(&mut self, node: &Node, source: usize) -> Vec<Transition> {
        let read = self.transitions(node, source);
        self.placed(read)
    }

    /// Records the places of the transitions in the current list.
    pub(super) fn placed(&mut self, read: Vec<(Transition, Span)>) -> Vec<Transition> {
        let mut list = Vec::with_capacity(read.len());
        for (transition, span) in read {
            self.inside(&list.len().to_string(), span, |_| ());
            list.push(transition);
        }
        list
    }

    fn transition(&mut self, node: &Node, source: usize) -> Option<Transition> {
        let mut read = Transition::default();
        match &node.value {
            Value::Text(_) => self.targets(std::slice::from_ref(node), source, &mut read),
            Value::Map(_) => {
                self.only(node, "a transition", &["target", "guard", "actions", "reenter", "description", "meta"]);
                read.reenter = node.get("reenter").is_some_and(|r| r.value == Value::Bool(true));
                read.description = node.get("description").and_then(Node::text).map(str::to_owned);
                read.meta = node.get("meta").map(Node::json).unwrap_or_default();
                self.governance(node, &mut read);
                if let Some(guard) = node.get("guard") {
                    match self.own(guard, "charter.guard") {
                        Some((guard, when)) => (read.guard, read.when) = (guard, when),
                        None => read.guard = self.guard(guard),
                    }
                }
                if let Some(actions) = node.get("actions") {
                    read.actions = self.actions(actions);
                }
                if let Some(target) = node.get("target") {
                    self.targets(target.one_or_many(), source, &mut read);
                }
            }
            Value::Null => {
                self.null(node.span, "this transition");
                return None;
            }
            _ => {
                self.refuse(
                    codes::TYPE,
                    node.span,
                    format!("expected a transition (a target or an object), found {}", node.kind()),
                    None,
                );
                return None;
            }
        }
        // A transition without a target exits no state.
        self.stays |= read.target.is_empty();
        if read.target.is_empty() {
            (read.reenter, read.parallel_domain) = (false, false);
        }
        Some(read)
    }

    fn targets(&mut self, nodes: &[Node], source: usize, read: &mut Transition) {
        let mut found = Vec::new();
        for node in nodes {
            let Some(text) = node.text() else {
                self.unnamed(node, "a target", "a string", "write the key or the id of a state");
                continue;
            };
            // An empty target means none, as in XState.
            if text.is_empty() {
                continue;
            }
            match self.states.target(source, text) {
                Ok(0) => self.refuse(
                    codes::NOT_SUPPORTED,
                    node.span,
                    "the root cannot be a target",
                    Some("name one of its states"),
                ),
                Ok(state) => found.push((state, text)),
                Err(error) => self.refuse(codes::UNDEFINED, node.span, error.to_string(), None),
            }
        }
        self.stays |= !found.iter().any(|(s, _)| self.states.excludes(*s, source));
        let inner = |s: &usize| *s == source || self.states.is_inside(*s, source);
        if !read.reenter && found.iter().all(|(s, _)| inner(s)) && found.iter().any(|(s, _)| *s == source) {
            // In XState the source stays active and its children are re-entered; an atomic state
            // has no children.
            if let Some(other) = found.iter().find(|(s, _)| *s != source).map(|(_, t)| (*t).to_owned()) {
                let span = nodes.first().map(|n| n.span).unwrap_or_default();
                self.refuse(
                    codes::NOT_SUPPORTED,
                    span,
                    format!("a state and `{other}` inside it cannot both be targets"),
                    None,
                );
                return;
            }
            let inside = match self.states.get(source).map(|p| p.kind) {
                Some(StateType::Compound | StateType::Parallel) => self.starts(source),
                _ => Vec::new(),
            };
            read.parallel_domain = self.states.is_parallel(source);
            read.target = inside.into_iter().map(|s| format!("#{}", self.states.name(s))).collect();
            return;
        }
        read.parallel_domain = self.states.has_parallel_domain(source, found.iter().map(|(s, _)| *s), read.reenter);
        for (state, text) in found {
            // The key of a sibling and `.key` of a child have the same meaning in XState and in a
            // charter.
            let plain = !text.trim_start_matches('.').contains(['.', '\\', '#']);
            read.target.push(if plain && source != 0 {
                text.to_owned()
            } else {
                format!("#{}", self.states.name(state))
            });
        }
    }

    /// Reads the parts of an exported transition that XState cannot express.
    fn governance(&mut self, node: &Node, read: &mut Transition) {
        let Some(meta) = own_part(node) else {
            return;
        };
        read.by = part(meta, "by");
        read.approves = part(meta, "approves");
        read.requires = part(meta, "requires");
        read.quorum = part(meta, "quorum");
        read.not_by = part(meta, "not_by");
        read.agents = part(meta, "agents");
        read.refuse = part(meta, "refuse");
        without_own_part(&mut read.meta);
    }

    /// Reads an exported guard without a name: `{type: charter.guard, params: {guard, when}}`.
    fn own(&mut self, node: &Node, kind: &str) -> Option<(Option<Guard>, Option<String>)> {
        if node.get("type").and_then(Node::text) != Some(kind) {
            return None;
        }
        let params = node.get("params")?;
        let guard = params.get("guard").and_then(|g| serde_json::from_value(g.json()).ok());
        Some((guard, params.get("when").and_then(Node::text).map(str::to_owned)))
    }

    /// Reads a guard: a name, `{type, params}`, or one of XState's combinations written as data.
    fn guard(&mut self, node: &Node) -> Option<Guard> {
        if let Some(name) = node.text() {
            let declared = self.declared("guard", name, node.span);
            self.reads_params("guard", name, false);
            return declared.then(|| Guard::Name(name.to_owned()));
        }
        let Some(kind) = node.get("type").and_then(Node::text) else {
            let help = "declare a guard under `guards` of the charter, and write its name here";
            self.unnamed(node, "a guard", "a name or an object with `type`", help);
            return None;
        };
        let own = kind.strip_prefix("xstate.").unwrap_or(kind);
        let supplied = self.definition.guards.contains_key(kind);
        let list = node.get("guards").or_else(|| node.get("children")).or_else(|| node.get("guard"));
        match (own, list) {
            ("and" | "or", Some(list)) if !supplied => {
                let guards: Option<Vec<Guard>> = list.one_or_many().iter().map(|g| self.guard(g)).collect();
                guards.map(|guards| if own == "and" { Guard::And(guards) } else { Guard::Or(guards) })
            }
            ("not", Some(list)) if !supplied => {
                let guard = self.guard(list.one_or_many().first()?)?;
                Some(Guard::Not(Box::new(guard)))
            }
            ("stateIn", _) if !supplied => {
                let value = node.get("stateValue").or_else(|| node.get("params")).map(Node::json).unwrap_or_default();
                let cel = self.state_in(&value, node.span);
                if cel.is_none() {
                    self.refuse(codes::VALUE, node.span, "`stateIn` requires a state id or a state value", None);
                }
                self.inline_guard(cel?)
            }
            _ => {
                if !self.declared("guard", kind, node.span) {
                    return None;
                }
                let params = node.get("params").map(Node::json).filter(|p| !p.is_null());
                let reads = self.reads_params("guard", kind, params.is_some());
                let Some(params) = params.filter(|_| reads) else {
                    return Some(Guard::Name(kind.to_owned()));
                };
                let name = format!("{kind}({params})");
                if !self.definition.guards.contains_key(&name)
                    && let Some(mut guard) = self.definition.guards.get(kind).cloned()
                {
                    guard_with_params(&mut guard, &params.to_string());
                    self.definition.guards.insert(name.clone(), guard);
                }
                Some(Guard::Name(name))
            }
        }
    }

    /// Declares an inline expression as a guard whose name is the expression.
    fn inline_guard(&mut self, cel: String) -> Option<Guard> {
        self.definition.guards.insert(cel.clone(), Guard::Cel(cel.clone()));
        Some(Guard::Name(cel))
    }

    /// Translates `stateIn`: an id, or a state value in the notation of XState. It never holds if a
    /// state in it does not exist.
    fn state_in(&mut self, value: &serde_json::Value, span: Span) -> Option<String> {
        let mut paths: Vec<Vec<String>> = Vec::new();
        match value {
            serde_json::Value::String(text) if text.starts_with('#') => {
                let name = self.states.name(self.states.target(0, text).ok()?);
                return Some(format!("in({})", serde_json::Value::from(name)));
            }
            serde_json::Value::String(text) => paths.push(split(text)),
            value => {
                let mut stack: Vec<(Vec<String>, _)> = vec![(Vec::new(), value)];
                while let Some((path, value)) = stack.pop() {
                    let join = |key: &str| [path.as_slice(), &[key.to_owned()]].concat();
                    match value {
                        serde_json::Value::String(key) => paths.push(join(key)),
                        serde_json::Value::Object(map) if map.is_empty() => paths.push(path),
                        serde_json::Value::Object(map) => {
                            stack.extend(map.iter().map(|(key, value)| (join(key), value)))
                        }
                        _ => return None,
                    }
                }
                paths.sort();
            }
        }
        let mut calls = Vec::new();
        for path in paths {
            let Some(state) = self.states.descend(0, &path) else {
                let message = format!("there is no state `{}`: this guard never holds", path.join("."));
                self.cx.report(Diagnostic::warning(codes::UNDEFINED, span, message));
                return Some("false".to_owned());
            };
            calls.push(format!("in({})", serde_json::Value::from(self.states.name(state))));
        }
        (!calls.is_empty()).then(|| calls.join(" && "))
    }
}

/// The `meta.charter` of an exported state, invocation or transition: what XState cannot express.
pub(super) fn own_part(node: &Node) -> Option<&Node> {
    node.get("meta")?.get("charter")
}

/// Reads a field of [`own_part`].
pub(super) fn part<T: DeserializeOwned + Default>(own: &Node, key: &str) -> T {
    own.get(key).and_then(|value| serde_json::from_value(value.json()).ok()).unwrap_or_default()
}

/// Removes [`own_part`] from a `meta`.
pub(super) fn without_own_part(meta: &mut serde_json::Value) {
    if let serde_json::Value::Object(map) = meta {
        map.remove("charter");
        if map.is_empty() {
            *meta = serde_json::Value::Null;
        }
    }
}

fn guard_with_params(guard: &mut Guard, params: &str) {
    match guard {
        Guard::Name(_) => {}
        Guard::Cel(cel) => *cel = with_params(cel, params),
        Guard::And(list) | Guard::Or(list) => list.iter_mut().for_each(|g| guard_with_params(g, params)),
        Guard::Not(guard) => guard_with_params(guard, params),
    }
}
