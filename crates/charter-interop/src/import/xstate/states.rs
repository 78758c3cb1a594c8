//! The index of the states of a config by id and by path. Resolves targets by the rules of XState
//! (`resolveTarget`).

use rustc_hash::{FxHashMap, FxHashSet};

use super::ordered;
use charter_format::import::DocumentBuilder;
use charter_format::source::{Node, Value};
use charter_format::{Diagnostic, codes};

/// A state of the config.
#[derive(Debug)]
pub(super) struct IndexedState {
    pub(super) parent: Option<usize>,
    key: String,
    /// The keys on the path from the root, joined by `.`.
    pub(super) path: String,
    /// The id in XState: the `id` of the state, or `MACHINE.PATH`.
    pub(super) id: String,
    /// Whether the config gives the state an `id`.
    pub(super) has_id: bool,
    pub(super) kind: StateType,
    pub(super) children: Vec<usize>,
    /// The children by key.
    keys: FxHashMap<String, usize>,
    pub(super) initial: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateType {
    Atomic,
    Compound,
    Parallel,
    Final,
    History,
}

/// Why a target does not resolve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TargetError {
    #[error("undefined state `{0}`")]
    UndefinedState(String),
    #[error("undefined state id `{0}`")]
    UndefinedId(String),
    #[error("`{0}` cannot be a target of the root; did you mean `.{0}`?")]
    SiblingOfRoot(String),
}

/// All states of a config, in pre-order.
#[derive(Debug, Default)]
pub(super) struct StateIndex {
    pub(super) list: Vec<IndexedState>,
    ids: FxHashMap<String, usize>,
    /// The paths that more than one state has, because keys contain dots.
    ambiguous: FxHashSet<String>,
}

impl StateIndex {
    pub(super) fn new(machine: &str, root: &Node, cx: &mut DocumentBuilder<'_>) -> StateIndex {
        let mut states_index = StateIndex::default();
        // Pre-order without recursion, because the nesting may be deep.
        let mut stack: Vec<(&Node, String, Option<usize>)> = vec![(root, String::new(), None)];
        let mut paths: FxHashSet<String> = FxHashSet::default();
        while let Some((node, key, parent)) = stack.pop() {
            let number = states_index.list.len();
            let path = match parent.and_then(|p| states_index.list.get(p)) {
                Some(up) if !up.path.is_empty() => format!("{}.{key}", up.path),
                _ => key.clone(),
            };
            if !paths.insert(path.clone()) {
                states_index.ambiguous.insert(path.clone());
            }
            let given = node.get("id").and_then(Node::text).filter(|_| parent.is_some());
            let id = match (given, parent) {
                (Some(id), _) => id.to_owned(),
                (None, None) => machine.to_owned(),
                (None, Some(_)) => format!("{machine}.{path}"),
            };
            let states = node.get("states");
            let empty = states.is_none_or(|states| states.entries().is_empty());
            let kind = match node.get("type").and_then(Node::text) {
                Some("parallel") => StateType::Parallel,
                Some("final") => StateType::Final,
                Some("history") => StateType::History,
                _ if !empty => StateType::Compound,
                _ if node.get("history").is_some_and(is_truthy) => StateType::History,
                _ => StateType::Atomic,
            };
            let other = states_index.ids.insert(id.clone(), number).and_then(|n| states_index.list.get(n));
            // Two states have the same id by default if keys contain dots.
            if other.is_some_and(|other| other.has_id || given.is_some() || other.parent.is_none()) {
                let span = node.get("id").map_or(node.span, |id| id.span);
                cx.report(Diagnostic::error(codes::AMBIGUOUS, span, format!("duplicate state id `{id}`")));
            }
            if let Some(up) = parent.and_then(|p| states_index.list.get_mut(p)) {
                up.children.push(number);
                up.keys.insert(key.clone(), number);
            }
            let initial =
                node.get("initial").and_then(|i| i.text().or_else(|| i.get("target")?.text())).map(str::to_owned);
            states_index.list.push(IndexedState {
                parent,
                key,
                path,
                id,
                has_id: given.is_some(),
                kind,
                children: Vec::new(),
                keys: FxHashMap::default(),
                initial,
            });
            for entry in states.map(ordered).unwrap_or_default().into_iter().rev() {
                stack.push((&entry.value, entry.key.text.clone(), Some(number)));
            }
        }
        states_index
    }

    pub(super) fn get(&self, number: usize) -> Option<&IndexedState> {
        self.list.get(number)
    }

    pub(super) fn by_id(&self, id: &str) -> Option<usize> {
        self.ids.get(id).copied()
    }

    pub(super) fn child(&self, of: usize, key: &str) -> Option<usize> {
        self.get(of)?.keys.get(key).copied()
    }

    /// Follows keys down from a state.
    pub(super) fn descend(&self, mut at: usize, path: &[String]) -> Option<usize> {
        for key in path {
            if key.is_empty() {
                break;
            }
            at = self.child(at, key)?;
        }
        Some(at)
    }

    /// Resolves a target of a transition from `source`.
    pub(super) fn target(&self, source: usize, target: &str) -> Result<usize, TargetError> {
        let missing = || TargetError::UndefinedState(target.to_owned());
        if let Some(id) = target.strip_prefix('#') {
            let path = split(id);
            let (first, rest) = path.split_first().ok_or_else(missing)?;
            let at = self.by_id(first).ok_or_else(|| TargetError::UndefinedId(first.clone()))?;
            return self.descend(at, rest).ok_or_else(missing);
        }
        if let Some(path) = target.strip_prefix('.') {
            return self.descend(source, &split(path)).ok_or_else(missing);
        }
        match self.get(source).and_then(|p| p.parent) {
            Some(parent) => self.descend(parent, &split(target)).ok_or_else(missing),
            None => Err(TargetError::SiblingOfRoot(target.to_owned())),
        }
    }

    /// Resolves the target of a history state inside `state`.
    pub(super) fn within(&self, state: usize, target: &str) -> Result<usize, TargetError> {
        if target.starts_with('#') { self.target(state, target) } else { self.target(state, &format!(".{target}")) }
    }

    pub(super) fn is_inside(&self, inner: usize, outer: usize) -> bool {
        let mut up = self.get(inner).and_then(|p| p.parent);
        while let Some(at) = up {
            if at == outer {
                return true;
            }
            up = self.get(at).and_then(|p| p.parent);
        }
        false
    }

    /// Whether entering the target `one` means that `other`, which is active, is left: the two are
    /// in different children of a compound state.
    pub(super) fn excludes(&self, one: usize, other: usize) -> bool {
        let history = self.get(one).filter(|p| p.kind == StateType::History);
        let Some(one) = history.map_or(Some(one), |p| p.parent) else {
            return false;
        };
        let mut up = Some(one);
        while let Some(at) = up {
            if at == other || self.is_inside(other, at) {
                return at != one && at != other && !self.is_parallel(at);
            }
            up = self.get(at).and_then(|p| p.parent);
        }
        false
    }

    pub(super) fn is_parallel(&self, state: usize) -> bool {
        self.get(state).is_some_and(|p| p.kind == StateType::Parallel)
    }

    /// Whether the domain of a transition is a parallel state, which stays active while its
    /// children are exited. XState allows that; in SCXML the domain is always a compound state.
    pub(super) fn has_parallel_domain(
        &self,
        source: usize,
        targets: impl Iterator<Item = usize> + Clone,
        reenter: bool,
    ) -> bool {
        if targets.clone().any(|t| self.get(t).is_some_and(|p| p.kind == StateType::History)) {
            // A history state is resolved at run time. If no ancestor is parallel, the result makes
            // no difference.
            let mut up = Some(source);
            while let Some(at) = up {
                if self.is_parallel(at) {
                    return true;
                }
                up = self.get(at).and_then(|p| p.parent);
            }
            return false;
        }
        let mut at = if reenter { self.get(source).and_then(|p| p.parent) } else { Some(source) };
        while let Some(state) = at {
            let all =
                targets.clone().all(|t| self.is_inside(t, state)) && (state == source || self.is_inside(source, state));
            if all {
                return self.is_parallel(state);
            }
            at = self.get(state).and_then(|p| p.parent);
        }
        false
    }

    /// The id that the definition gives to the state explicitly: if the state has an `id`, if its
    /// path is also the id or the path of another state, or if an event descriptor could not
    /// contain it.
    pub(super) fn explicit(&self, number: usize) -> Option<String> {
        let place = self.get(number).filter(|place| place.has_id || place.parent.is_some())?;
        let shadowed =
            || self.ids.get(&place.path).is_some_and(|n| *n != number && self.get(*n).is_some_and(|p| p.has_id));
        let id = match self.ambiguous.contains(&place.path) {
            _ if place.has_id => place.id.clone(),
            true => self.escaped(number),
            false if shadowed() => place.id.clone(),
            false if place.path.ends_with('*') => place.path.clone(),
            false => return None,
        };
        Some(without_wildcard(&id))
    }

    /// The path with `\.` for a dot inside a key.
    fn escaped(&self, number: usize) -> String {
        let mut keys = Vec::new();
        let mut at = self.get(number);
        while let Some(place) = at {
            keys.extend(place.parent.map(|_| place.key.replace('.', "\\.")));
            at = place.parent.and_then(|up| self.get(up));
        }
        keys.reverse();
        keys.join(".")
    }

    /// The name of the state in the definition, as in `#NAME` and `done.state.NAME`.
    pub(super) fn name(&self, number: usize) -> String {
        self.explicit(number).or_else(|| Some(self.get(number)?.path.clone())).unwrap_or_default()
    }
}

/// Changes a name with which a descriptor would end in a wildcard, such as `done.state.*`.
pub(super) fn without_wildcard(name: &str) -> String {
    match name.strip_suffix('*') {
        Some(rest) if rest.is_empty() || rest.ends_with('.') => format!("{rest}%2A"),
        _ => name.to_owned(),
    }
}

/// Whether JavaScript counts a value as true.
fn is_truthy(node: &Node) -> bool {
    match &node.value {
        Value::Null | Value::Bool(false) => false,
        Value::Text(text) => !text.text.is_empty(),
        _ => true,
    }
}

/// Splits a path at its dots; the character after a `\` belongs to the key.
pub(super) fn split(path: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = path.chars();
    while let Some(c) = characters.next() {
        match c {
            '.' => parts.push(String::new()),
            c => {
                let c = if c == '\\' { characters.next() } else { Some(c) };
                parts.last_mut().into_iter().for_each(|part| part.extend(c));
            }
        }
    }
    parts
}
