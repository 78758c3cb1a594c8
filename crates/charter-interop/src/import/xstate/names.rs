//! States by id and by path, and what a target means: XState's rules (`resolveTarget`), as ids of the core form.

use rustc_hash::FxHashMap;

use super::ordered;
use charter_format::import::DocumentBuilder;
use charter_format::source::Node;
use charter_format::{Diagnostic, codes};

/// A state of the config.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) parent: Option<usize>,
    /// Keys from the root, joined by `.`.
    pub(super) path: String,
    /// XState's id: given, or `MACHINE.PATH`.
    pub(super) id: String,
    pub(super) given: bool,
    pub(super) kind: Kind,
    pub(super) children: Vec<usize>,
    /// The children by their keys.
    keys: FxHashMap<String, usize>,
    pub(super) initial: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Atomic,
    Compound,
    Parallel,
    Final,
    History,
}

#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) places: Vec<Place>,
    ids: FxHashMap<String, usize>,
}

impl Names {
    pub(super) fn new(machine: &str, root: &Node, cx: &mut DocumentBuilder<'_>) -> Names {
        let mut names = Names::default();
        // Pre-order, without recursion; children get their numbers before those of the next state.
        let mut stack: Vec<(&Node, String, Option<usize>)> = vec![(root, String::new(), None)];
        while let Some((node, key, parent)) = stack.pop() {
            let number = names.places.len();
            let path = match parent.and_then(|p| names.places.get(p)) {
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
                Some("parallel") => Kind::Parallel,
                Some("final") => Kind::Final,
                Some("history") => Kind::History,
                _ if node.get("history").is_some_and(|h| h.text().is_some()) => Kind::History,
                _ if empty => Kind::Atomic,
                _ => Kind::Compound,
            };
            if names.ids.insert(id.clone(), number).is_some() {
                let span = node.get("id").map_or(node.span, |id| id.span);
                cx.report(Diagnostic::error(codes::AMBIGUOUS, span, format!("two states have the id `{id}`")));
            }
            if let Some(up) = parent.and_then(|p| names.places.get_mut(p)) {
                up.children.push(number);
                up.keys.insert(key.clone(), number);
            }
            let initial =
                node.get("initial").and_then(|i| i.text().or_else(|| i.get("target")?.text())).map(str::to_owned);
            names.places.push(Place {
                parent,
                path,
                id,
                given: given.is_some(),
                kind,
                children: Vec::new(),
                keys: FxHashMap::default(),
                initial,
            });
            for entry in states.map(ordered).unwrap_or_default().into_iter().rev() {
                stack.push((&entry.value, entry.key.text.clone(), Some(number)));
            }
        }
        names
    }

    pub(super) fn get(&self, number: usize) -> Option<&Place> {
        self.places.get(number)
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

    /// The state that a target of `source` means.
    pub(super) fn target(&self, source: usize, target: &str) -> Result<usize, String> {
        let missing = || format!("no state `{target}`");
        if let Some(id) = target.strip_prefix('#') {
            let path = split(id);
            let (first, rest) = path.split_first().ok_or_else(missing)?;
            let at = self.by_id(first).ok_or_else(|| format!("no state has the id `{first}`"))?;
            return self.descend(at, rest).ok_or_else(missing);
        }
        if let Some(path) = target.strip_prefix('.') {
            return self.descend(source, &split(path)).ok_or_else(missing);
        }
        match self.get(source).and_then(|p| p.parent) {
            Some(parent) => self.descend(parent, &split(target)).ok_or_else(missing),
            None => Err(format!("`{target}` cannot be a target of the root; did you mean `.{target}`?")),
        }
    }

    /// The state that the target of a history state (or of anything read inside a state) means.
    pub(super) fn within(&self, state: usize, target: &str) -> Result<usize, String> {
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
        self.get(state).is_some_and(|p| p.kind == Kind::Parallel)
    }

    /// Does a parallel state stay while its inside is left? That is so in XState, and not in SCXML, where the least common ancestor is one.
    pub(super) fn has_parallel_domain(
        &self,
        source: usize,
        targets: impl Iterator<Item = usize> + Clone,
        reenter: bool,
    ) -> bool {
        if targets.clone().any(|t| self.get(t).is_some_and(|p| p.kind == Kind::History)) {
            // What a history stands for is known when it is entered; a domain that is not parallel is the same either way.
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

    /// The id of the state in the core form, where it has one: as given, or where its path is the id of another state.
    pub(super) fn explicit(&self, number: usize) -> Option<String> {
        let place = self.get(number)?;
        let shadowed =
            || self.ids.get(&place.path).is_some_and(|n| *n != number && self.get(*n).is_some_and(|p| p.given));
        (place.given || (place.parent.is_some() && shadowed())).then(|| place.id.clone())
    }

    /// How the core form calls the state: in `#NAME`, and in `done.state.NAME`.
    pub(super) fn name(&self, number: usize) -> String {
        self.explicit(number).or_else(|| Some(self.get(number)?.path.clone())).unwrap_or_default()
    }
}

/// A path at its dots; `\.` is a dot of a key.
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
