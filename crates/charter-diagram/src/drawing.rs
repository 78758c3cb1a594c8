//! A statechart as boxes and arrows, shared by all output formats.

use std::collections::{BTreeMap, BTreeSet};

use charter_kernel::Definition;
use charter_kernel::definition::{Chart, Delay, State, StateKind, Transition};

use super::label::label;
use super::{Marks, Overlay};

/// A state.
pub(crate) struct Shape<'d> {
    pub(crate) state: &'d State,
    pub(crate) kind: StateKind,
    pub(crate) key: &'d str,
    pub(crate) path: String,
    pub(crate) parent: Option<usize>,
    pub(crate) children: Vec<usize>,
    pub(crate) active: bool,
    /// The initial state of a compound state.
    pub(crate) initial: Option<usize>,
    /// The lines inside the box: invocations, and transitions without a target.
    pub(crate) lines: Vec<String>,
}

/// The transitions from one state to another.
pub(crate) struct Arrow {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The label of each transition; may be empty.
    pub(crate) labels: Vec<String>,
    pub(crate) taken: bool,
}

pub(crate) struct Drawing<'d> {
    pub(crate) name: &'d str,
    /// The states in document order; the first is the root.
    pub(crate) shapes: Vec<Shape<'d>>,
    pub(crate) arrows: Vec<Arrow>,
}

/// Returns the drawing of the root statechart, then those of the machines.
pub(crate) fn drawings<'d>(definition: &'d Definition, overlay: &Overlay) -> Vec<Drawing<'d>> {
    let none = Marks::default();
    let root = Drawing::of(&definition.id, &definition.root, &overlay.root);
    let machines = definition
        .machines
        .iter()
        .map(|(name, chart)| Drawing::of(name, chart, overlay.machines.get(name).unwrap_or(&none)));
    std::iter::once(root).chain(machines).collect()
}

impl<'d> Drawing<'d> {
    fn of(name: &'d str, chart: &'d Chart, marks: &Marks) -> Drawing<'d> {
        let mut drawing = Drawing { name, shapes: flatten(name, &chart.state, marks), arrows: Vec::new() };
        let names = Names::of(&drawing.shapes);
        let mut arrows: BTreeMap<(usize, usize), Arrow> = BTreeMap::new();
        let mut lines: Vec<(usize, String)> = Vec::new();
        for (from, shape) in drawing.shapes.iter().enumerate() {
            let all = transitions(shape);
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for (event, ..) in &all {
                let count = counts.entry(event).or_default();
                *count = count.saturating_add(1);
            }
            let mut places: BTreeMap<String, usize> = BTreeMap::new();
            for (event, name, transition) in &all {
                let text = label(event, transition);
                // The order decides between transitions of the same event.
                let text = match counts.get(event.as_str()) {
                    None | Some(..2) => text,
                    _ => {
                        let place = places.entry(event.clone()).or_default();
                        *place = place.saturating_add(1);
                        format!("{place}. {text}")
                    }
                };
                let taken = marks.taken.contains(name);
                let targets: BTreeSet<usize> = transition
                    .target
                    .iter()
                    .filter_map(|target| names.resolve(&drawing.shapes, from, target, false))
                    .collect();
                if targets.is_empty() {
                    lines.push((from, text));
                    continue;
                }
                for to in targets {
                    if to == from {
                        lines.push((from, format!("↻ {text}")));
                        continue;
                    }
                    let arrow =
                        arrows.entry((from, to)).or_insert(Arrow { from, to, labels: Vec::new(), taken: false });
                    arrow.labels.push(text.clone());
                    arrow.taken |= taken;
                }
            }
        }
        let initials: Vec<Option<usize>> =
            (0..drawing.shapes.len()).map(|id| names.initial(&drawing.shapes, id)).collect();
        for (shape, initial) in drawing.shapes.iter_mut().zip(initials) {
            shape.initial = initial;
        }
        for (id, line) in lines {
            if let Some(shape) = drawing.shapes.get_mut(id) {
                shape.lines.push(line);
            }
        }
        drawing.arrows = arrows.into_values().collect();
        drawing
    }

    pub(crate) fn shape(&self, id: usize) -> Option<&Shape<'d>> {
        self.shapes.get(id)
    }

    /// The number of descendants of a state.
    pub(crate) fn inside_count(&self, outer: usize) -> usize {
        (0..self.shapes.len()).filter(|inner| self.inside(*inner, outer)).count()
    }

    /// Whether a state is a descendant of another.
    pub(crate) fn inside(&self, inner: usize, outer: usize) -> bool {
        let mut at = self.shape(inner).and_then(|shape| shape.parent);
        while let Some(id) = at {
            if id == outer {
                return true;
            }
            at = self.shape(id).and_then(|shape| shape.parent);
        }
        false
    }
}

/// Returns all states in document order, without recursion.
fn flatten<'d>(name: &'d str, root: &'d State, marks: &Marks) -> Vec<Shape<'d>> {
    let mut shapes: Vec<Shape<'d>> = Vec::new();
    let mut stack: Vec<(&'d str, &'d State, Option<usize>, String)> = vec![(name, root, None, String::new())];
    let active: BTreeSet<&str> = marks
        .active
        .iter()
        .flat_map(|path| {
            path.match_indices('.').map(|(end, _)| end).chain([path.len()]).filter_map(|end| path.get(..end))
        })
        .collect();
    while let Some((key, state, parent, path)) = stack.pop() {
        let id = shapes.len();
        if let Some(parent) = parent.and_then(|parent| shapes.get_mut(parent)) {
            parent.children.push(id);
        }
        for (key, child) in state.states.iter().rev() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            stack.push((key, child, Some(id), path));
        }
        let kind =
            if state.kind == StateKind::Atomic && !state.states.is_empty() { StateKind::Compound } else { state.kind };
        let lines = state.invoke.iter().map(|invoke| format!("⚙ {}", invoke.src)).collect();
        let active = active.contains(path.as_str());
        shapes.push(Shape { state, kind, key, path, parent, children: Vec::new(), active, initial: None, lines });
    }
    shapes
}

/// Returns the transitions of a state, each with its event as text and its name in the kernel.
fn transitions<'s>(shape: &'s Shape<'_>) -> Vec<(String, String, &'s Transition)> {
    let (state, path) = (shape.state, &shape.path);
    let mut all = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for on in &state.on {
        let first = on.events.first().map_or("", String::as_str);
        for transition in &on.transitions {
            let count = counts.entry(first).or_default();
            all.push((on.events.join(" "), format!("{path}/on/{first}/{count}"), transition));
            *count = count.saturating_add(1);
        }
    }
    for invoke in &state.invoke {
        let id = invoke.id.as_ref().unwrap_or(&invoke.src);
        for (word, key, list) in [("done", "onDone", &invoke.on_done), ("error", "onError", &invoke.on_error)] {
            let numbered = list.iter().enumerate();
            all.extend(
                numbered.map(|(n, transition)| {
                    (format!("{word} {id}"), format!("{path}/invoke/{id}/{key}/{n}"), transition)
                }),
            );
        }
    }
    all.extend(
        state
            .on_done
            .iter()
            .enumerate()
            .map(|(n, transition)| ("done".to_owned(), format!("{path}/onDone/{n}"), transition)),
    );
    for after in &state.after {
        let numbered = after.transitions.iter().enumerate();
        let event = match &after.delay {
            Delay::Ms(ms) if after.key.bytes().all(|b| b.is_ascii_digit()) => {
                format!("after {ms}ms")
            }
            _ => format!("after {}", after.key),
        };
        all.extend(
            numbered.map(|(n, transition)| (event.clone(), format!("{path}/after/{}/{n}", after.key), transition)),
        );
    }
    all.extend(
        state
            .always
            .iter()
            .enumerate()
            .map(|(n, transition)| ("always".to_owned(), format!("{path}/always/{n}"), transition)),
    );
    // Omit transitions that refuse events: they do not change the state and would clutter the
    // diagram.
    all.retain(|(_, _, transition)| transition.refuse.is_none());
    all
}

/// Resolves targets as the kernel does. Transitions to unknown states are not drawn.
struct Names<'d> {
    ids: BTreeMap<String, usize>,
    children: BTreeMap<(usize, &'d str), usize>,
}

impl<'d> Names<'d> {
    fn of(shapes: &[Shape<'d>]) -> Names<'d> {
        let mut ids: BTreeMap<String, usize> =
            shapes.iter().enumerate().map(|(id, shape)| (shape.path.clone(), id)).collect();
        ids.extend(shapes.iter().enumerate().filter_map(|(id, shape)| shape.state.id.clone().map(|name| (name, id))));
        let children = shapes
            .iter()
            .enumerate()
            .filter_map(|(id, shape)| shape.parent.map(|parent| ((parent, shape.key), id)))
            .collect();
        Names { ids, children }
    }

    fn resolve(&self, shapes: &[Shape<'_>], from: usize, target: &str, inside: bool) -> Option<usize> {
        if let Some(id) = target.strip_prefix('#') {
            let tails = id
                .rmatch_indices('.')
                .find_map(|(end, _)| self.descend(*self.ids.get(id.get(..end)?)?, id.get(end.saturating_add(1)..)?));
            return self.ids.get(id).copied().or(tails);
        }
        if let Some(path) = target.strip_prefix('.') {
            return self.descend(from, path);
        }
        let parent = shapes.get(from).and_then(|shape| shape.parent).unwrap_or(from);
        self.descend(if inside { from } else { parent }, target)
    }

    /// Resolves a path `a.b.c`. A key may contain dots, so the longest prefix is tried first.
    fn descend(&self, from: usize, path: &str) -> Option<usize> {
        let mut stack = vec![(from, path)];
        // Limit the number of attempts, because a path with many dots could require an exponential
        // search.
        for _ in 0..10_000 {
            let (from, path) = stack.pop()?;
            if let Some(child) = self.children.get(&(from, path)) {
                return Some(*child);
            }
            // Push the longest prefix last: it is popped and tried first.
            for (end, _) in path.match_indices('.') {
                if let (Some(head), Some(tail)) = (path.get(..end), path.get(end.saturating_add(1)..))
                    && let Some(child) = self.children.get(&(from, head))
                {
                    stack.push((*child, tail));
                }
            }
        }
        None
    }

    fn initial(&self, shapes: &[Shape<'_>], id: usize) -> Option<usize> {
        let shape = shapes.get(id)?;
        let first_real = || {
            shape.children.iter().copied().find(|child| shapes.get(*child).is_some_and(|child| !is_history(child.kind)))
        };
        match shape.kind {
            StateKind::Compound => match &shape.state.initial {
                Some(initial) => initial.target.first().and_then(|target| self.resolve(shapes, id, target, true)),
                None => first_real(),
            },
            // The default of a history state is drawn like a transition.
            StateKind::Shallow | StateKind::Deep => shape
                .state
                .initial
                .as_ref()
                .and_then(|initial| initial.target.first())
                .and_then(|target| self.resolve(shapes, id, target, false)),
            _ => None,
        }
    }
}

pub(crate) fn is_history(kind: StateKind) -> bool {
    matches!(kind, StateKind::Shallow | StateKind::Deep)
}

pub(crate) fn is_compound(kind: StateKind) -> bool {
    matches!(kind, StateKind::Compound | StateKind::Parallel)
}
