//! The numbering of a chart's states in document order, and the resolution of names and targets.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Compiler, MAX_NESTING, MAX_STATES, escape};
use crate::definition::{self, StateKind};
use crate::machine::{NONE, StateId};

/// A state of the definition with its position.
pub(super) struct Flat<'d> {
    pub(super) def: &'d definition::State,
    pub(super) key: &'d str,
    pub(super) parent: StateId,
    pub(super) last: StateId,
    pub(super) path: Arc<str>,
    pub(super) at: String,
    pub(super) children: Vec<StateId>,
}

/// The tables for compiling one chart.
pub(crate) struct Scheme<'d> {
    pub(super) flat: Vec<Flat<'d>>,
    /// Each state by its parent and key.
    pub(super) children: FxHashMap<(StateId, &'d str), StateId>,
    /// Explicit ids and paths.
    pub(super) names: FxHashMap<Arc<str>, StateId>,
    pub(super) slots: FxHashMap<String, u32>,
    /// Named actions, compiled once per chart (they name its context variables).
    pub(super) blocks: FxHashMap<&'d str, Option<Arc<crate::machine::Block>>>,
    /// The number of actions and of levels of the named actions that were compiled.
    pub(super) sizes: FxHashMap<&'d str, (usize, usize)>,
    /// Named actions being compiled, to detect an action that contains itself.
    pub(super) pending: Vec<&'d str>,
}

impl Scheme<'_> {
    pub(super) fn slot(&self, name: &str) -> Option<u32> {
        self.slots.get(name).copied()
    }

    pub(super) fn slot_names(&self) -> Vec<&str> {
        self.slots.keys().map(String::as_str).collect()
    }

    pub(super) fn get(&self, id: StateId) -> Option<&Flat<'_>> {
        self.flat.get(id as usize)
    }

    pub(super) fn kind(&self, id: StateId) -> StateKind {
        self.get(id).map_or(StateKind::Atomic, kind_of)
    }

    pub(super) fn parent(&self, id: StateId) -> StateId {
        self.get(id).map_or(NONE, |f| f.parent)
    }

    pub(super) fn last(&self, id: StateId) -> StateId {
        self.get(id).map_or(id, |f| f.last)
    }

    /// Whether `inner` is a proper descendant of `outer`.
    pub(super) fn inside(&self, inner: StateId, outer: StateId) -> bool {
        inner > outer && inner <= self.last(outer)
    }

    fn child(&self, of: StateId, key: &str) -> Option<StateId> {
        self.children.get(&(of, key)).copied()
    }

    /// Resolves `a.b.c` downwards from a state. A key may itself contain dots, so the longest match
    /// is tried first.
    fn descend(&self, from: StateId, path: &str) -> Option<StateId> {
        if let Some(child) = self.child(from, path) {
            return Some(child);
        }
        let mut ends: Vec<usize> = path.match_indices('.').map(|(i, _)| i).collect();
        ends.reverse();
        ends.into_iter().find_map(|i| {
            let (head, tail) = path.split_at_checked(i)?;
            self.descend(self.child(from, head)?, tail.strip_prefix('.')?)
        })
    }

    /// Resolves a target of a transition of `from` or, if `inside` is set, a target of its
    /// `initial`, which is relative to the inside of the state.
    pub(super) fn resolve(&self, from: StateId, target: &str, inside: bool) -> Option<StateId> {
        if let Some(id) = target.strip_prefix('#') {
            if let Some(state) = self.names.get(id) {
                return Some(*state);
            }
            let ends: Vec<usize> = id.match_indices('.').map(|(i, _)| i).collect();
            return ends.into_iter().rev().find_map(|i| {
                let (head, tail) = id.split_at_checked(i)?;
                self.descend(*self.names.get(head)?, tail.strip_prefix('.')?)
            });
        }
        if let Some(path) = target.strip_prefix('.') {
            return self.descend(from, path);
        }
        let base = if inside || from == 0 { from } else { self.parent(from) };
        self.descend(base, target)
    }

    /// Returns the least common compound ancestor of some states (SCXML `findLCCA`); the root
    /// counts as compound.
    pub(super) fn lcca(&self, states: &[StateId], parallel: bool) -> StateId {
        let Some((first, rest)) = states.split_first() else {
            return 0;
        };
        let mut at = self.parent(*first);
        while at != NONE && at != 0 {
            let kind = self.kind(at);
            if (kind == StateKind::Compound || (parallel && kind == StateKind::Parallel))
                && rest.iter().all(|s| self.inside(*s, at))
            {
                return at;
            }
            at = self.parent(at);
        }
        0
    }
}

/// Returns the kind of a state. A state with children is compound even if it is not declared so.
pub(super) fn kind_of(flat: &Flat<'_>) -> StateKind {
    match flat.def.kind {
        StateKind::Atomic if !flat.children.is_empty() => StateKind::Compound,
        StateKind::Compound if flat.children.is_empty() => StateKind::Atomic,
        kind => kind,
    }
}

/// Gives each state a path of its own: keys may contain dots, so `a.b` beside `a: {b: {}}` would
/// have the same one. Where a path is ambiguous, a dot inside a key is written `\.`.
fn distinguish(flat: &mut [Flat<'_>]) {
    if !flat.iter().any(|f| f.key.contains('.')) {
        return;
    }
    let mut uses: FxHashMap<Arc<str>, u32> = FxHashMap::default();
    for f in flat.iter() {
        let count = uses.entry(f.path.clone()).or_default();
        *count = count.saturating_add(1);
    }
    let again = (0..flat.len()).filter(|id| flat.get(*id).is_some_and(|f| uses.get(&f.path).is_some_and(|n| *n > 1)));
    let paths: Vec<(usize, Arc<str>)> = again
        .map(|id| {
            let mut keys: Vec<String> = Vec::new();
            let mut at = flat.get(id);
            while let Some(f) = at.filter(|f| f.parent != NONE) {
                keys.push(f.key.replace('.', "\\."));
                at = flat.get(f.parent as usize);
            }
            keys.reverse();
            (id, keys.join(".").into())
        })
        .collect();
    for (id, path) in paths {
        if let Some(f) = flat.get_mut(id) {
            f.path = path;
        }
    }
}

impl<'d> Compiler<'d> {
    /// Lists all states in pre-order, without recursion over the nesting of the definition.
    pub(super) fn flatten(&mut self, chart: &'d definition::Chart, at: &str) -> Vec<Flat<'d>> {
        let mut flat: Vec<Flat<'d>> = Vec::new();
        let mut stack = vec![(&chart.state, "", NONE, at.to_string(), Arc::<str>::from(""), 0usize)];
        while let Some((def, key, parent, at, path, depth)) = stack.pop() {
            let id = u32::try_from(flat.len()).unwrap_or(NONE);
            if depth > MAX_NESTING || flat.len() >= MAX_STATES {
                let what = if depth > MAX_NESTING {
                    format!("states nest deeper than {MAX_NESTING}")
                } else {
                    format!("more than {MAX_STATES} states")
                };
                self.problem("too-large", &at, what, None);
                break;
            }
            for (key, child) in def.states.iter().rev() {
                let path = if path.is_empty() { Arc::from(key.as_str()) } else { Arc::from(format!("{path}.{key}")) };
                let at = format!("{at}/states/{}", escape(key));
                stack.push((child, key.as_str(), id, at, path, depth.saturating_add(1)));
            }
            if let Some(parent) = flat.get_mut(parent as usize) {
                parent.children.push(id);
            }
            flat.push(Flat { def, key, parent, last: id, path, at, children: Vec::new() });
        }
        distinguish(&mut flat);
        // The last descendant of a state is the last descendant of its last child, so iterate from
        // the back.
        for id in (1..flat.len()).rev() {
            let Some((last, parent)) = flat.get(id).map(|f| (f.last, f.parent)) else {
                continue;
            };
            if let Some(parent) = flat.get_mut(parent as usize) {
                parent.last = parent.last.max(last);
            }
        }
        flat
    }

    pub(super) fn names(&mut self, flat: &[Flat<'d>]) -> FxHashMap<Arc<str>, StateId> {
        let mut names: FxHashMap<Arc<str>, StateId> = FxHashMap::default();
        for (f, id) in flat.iter().zip(0u32..) {
            let Some(name) = &f.def.id else { continue };
            if let Some(other) = names.insert(name.as_str().into(), id) {
                let other = flat.get(other as usize).map_or("", |f| f.path.as_ref());
                let help = Some(format!("state `{other}` has it already; an id is unique in its chart"));
                self.problem("duplicate-id", &format!("{}/id", f.at), format!("two states have the id `{name}`"), help);
            }
        }
        // An explicit id takes precedence over an identical path.
        for (f, id) in flat.iter().zip(0u32..) {
            names.entry(f.path.clone()).or_insert(id);
        }
        names
    }

    pub(super) fn missing(&mut self, scheme: &Scheme<'d>, from: StateId, target: &str, at: &str, inside: bool) {
        if self.is_full() {
            return;
        }
        let base = if inside || from == 0 { from } else { scheme.parent(from) };
        let key = target.trim_start_matches(['#', '.']).rsplit('.').next().unwrap_or(target);
        let elsewhere = scheme.flat.iter().skip(1).find(|f| f.key == key || f.def.id.as_deref() == Some(key));
        let help = match elsewhere {
            Some(f) => format!(
                "did you mean `#{}`? A plain name means a sibling, `.name` a child, `#id` or `#path` any state",
                f.def.id.as_deref().unwrap_or(&f.path)
            ),
            None => {
                let siblings: Vec<&str> = scheme
                    .get(base)
                    .map(|f| f.def.states.keys().map(String::as_str).take(12).collect())
                    .unwrap_or_default();
                self.did_you_mean(key, siblings.iter().copied())
                    .unwrap_or_else(|| format!("states here: {}", siblings.join(", ")))
            }
        };
        self.problem("missing-target", at, format!("no state `{target}`"), Some(help));
    }

    /// Checks that several targets can be active at once.
    pub(super) fn together(&mut self, scheme: &Scheme<'d>, targets: &[StateId], at: &str) {
        for (i, a) in targets.iter().enumerate() {
            for b in targets.iter().skip(i.saturating_add(1)) {
                let mut up = scheme.parent(*a.min(b));
                while up != NONE && !scheme.inside(*a.max(b), up) {
                    up = scheme.parent(up);
                }
                if scheme.inside(*a.max(b), *a.min(b)) || a == b || up == NONE || scheme.kind(up) != StateKind::Parallel
                {
                    let name = |s: StateId| scheme.get(s).map_or("", |f| f.path.as_ref()).to_string();
                    let help = Some("several targets must be in different regions of one parallel state".to_string());
                    self.problem(
                        "bad-target",
                        at,
                        format!("`{}` and `{}` cannot be active at once", name(*a), name(*b)),
                        help,
                    );
                    return;
                }
            }
        }
    }
}
