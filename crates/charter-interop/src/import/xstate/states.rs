//! The index of the states of a config by id and by path. Resolves targets by the rules of XState
//! (`resolveTarget`).

use rustc_hash::FxHashMap;

use super::ordered;
use charter_format::import::DocumentBuilder;
use charter_format::source::Node;
use charter_format::{Diagnostic, codes};

/// A state of the config.
#[derive(Debug)]
pub(super) struct IndexedState {
    pub(super) parent: Option<usize>,
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
}

impl StateIndex {
    pub(super) fn new(machine: &str, root: &Node, cx: &mut DocumentBuilder<'_>) -> StateIndex {
        let mut states_index = StateIndex::default();
        // Pre-order without recursion, because the nesting may be deep.
        let mut stack: Vec<(&Node, String, Option<usize>)> = vec![(root, String::new(), None)];
        while let Some((node, key, parent)) = stack.pop() {
            let number = states_index.list.len();
            let path = match parent.and_then(|p| states_index.list.get(p)) {
                Some(up) if !up.path.is_empty() => format!("{}.{key}", up.path),
                _ => key.clone(),
            };
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
                _ if node.get("history").is_some_and(|h| h.text().is_some()) => StateType::History,
                _ if empty => StateType::Atomic,
                _ => StateType::Compound,
            };
            if states_index.ids.insert(id.clone(), number).is_some() {
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

    fn descend(&self, mut at: usize, path: &[String]) -> Option<usize> {
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

    /// The id that the definition gives to the state explicitly, if the state has an `id` or its
    /// path is the id of another state.
    pub(super) fn explicit(&self, number: usize) -> Option<String> {
        let place = self.get(number)?;
        let shadowed =
            || self.ids.get(&place.path).is_some_and(|n| *n != number && self.get(*n).is_some_and(|p| p.has_id));
        (place.has_id || (place.parent.is_some() && shadowed())).then(|| place.id.clone())
    }

    /// The name of the state in the definition, as in `#NAME` and `done.state.NAME`.
    pub(super) fn name(&self, number: usize) -> String {
        self.explicit(number).or_else(|| Some(self.get(number)?.path.clone())).unwrap_or_default()
    }
}

/// Splits a path at its dots; `\.` is a dot inside a key.
fn split(path: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for c in path.chars() {
        match c {
            '\\' if !escaped => escaped = true,
            '.' if !escaped => parts.push(String::new()),
            c => {
                if escaped && c != '.' {
                    parts.last_mut().into_iter().for_each(|part| part.push('\\'));
                }
                parts.last_mut().into_iter().for_each(|part| part.push(c));
                escaped = false;
            }
        }
    }
    parts
}
