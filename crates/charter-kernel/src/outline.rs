//! The compiled statecharts for tools (checks, coverage, diagrams), with names resolved to indices
//! of states and transitions.

use crate::definition::StateKind;
use crate::event::{Data, Ev, Name, Origin};
use crate::machine::{Chart, Domain, Machine, NONE};
use crate::selection::candidates;

/// A compiled statechart. States are numbered in document order; the chart itself is state 0, and
/// the descendants of a state are the numbers after it up to [`StateOutline::last`].
#[derive(Debug)]
pub struct Outline<'m> {
    /// Name of the machine; `root` for the run's own chart.
    pub machine: &'m str,
    /// The states, by index.
    pub states: Vec<StateOutline<'m>>,
    /// The transitions, by index.
    pub transitions: Vec<TransitionOutline<'m>>,
    /// Context variables, by slot.
    pub variables: Vec<&'m str>,
    of: &'m Machine,
    chart: &'m Chart,
}

/// A compiled state.
#[derive(Debug, Clone, Copy)]
pub struct StateOutline<'m> {
    /// The keys from the root down, joined by `.`.
    pub path: &'m str,
    /// Kind; a state with children is compound or parallel.
    pub kind: StateKind,
    /// `None` for the chart itself.
    pub parent: Option<u32>,
    /// The last descendant (itself if it has none).
    pub last: u32,
    /// Children that can be active, in document order.
    pub children: &'m [u32],
    /// History states among its children.
    pub histories: &'m [u32],
    /// The initial states of a compound state, or the default targets of a history state.
    pub initial: &'m [u32],
    /// Eventless transitions, in document order.
    pub always: &'m [u32],
}

/// A compiled transition.
#[derive(Debug, Clone, Copy)]
pub struct TransitionOutline<'m> {
    /// `human_review/on/HUMAN_APPROVED/0`.
    pub name: &'m str,
    /// JSON pointer in the core form.
    pub at: &'m str,
    /// The state that the transition belongs to.
    pub source: u32,
    /// The target states; empty if the transition is targetless.
    pub targets: &'m [u32],
    /// The state whose active descendants the transition exits. `None` if it exits nothing
    /// (targetless) or the domain depends on a history state.
    pub domain: Option<u32>,
}

impl Machine {
    /// The compiled statecharts: the root first, then `machines` in document order.
    #[must_use]
    pub fn outlines(&self) -> Vec<Outline<'_>> {
        self.charts.iter().map(|chart| outline(self, chart)).collect()
    }
}

fn outline<'m>(of: &'m Machine, chart: &'m Chart) -> Outline<'m> {
    let state = |(path, node): (&'m std::sync::Arc<str>, &'m crate::machine::StateNode)| StateOutline {
        path,
        kind: node.kind,
        parent: (node.parent != NONE).then_some(node.parent),
        last: node.last,
        children: &node.children,
        histories: &node.histories,
        initial: node.initial.as_ref().map_or(&[], |i| i.targets.as_slice()),
        always: &node.always,
    };
    let transition = |t: &'m crate::machine::Transition| TransitionOutline {
        name: &t.name,
        at: &t.at,
        source: t.source,
        targets: &t.targets,
        domain: match t.domain {
            Domain::State(state) => Some(state),
            Domain::Targetless | Domain::Dynamic => None,
        },
    };
    Outline {
        machine: &chart.shape.machine,
        states: chart.shape.paths.iter().zip(&chart.states).map(state).collect(),
        transitions: chart.transitions.iter().map(transition).collect(),
        variables: chart.shape.slots.iter().map(AsRef::as_ref).collect(),
        of,
        chart,
    }
}

impl Outline<'_> {
    /// Looks up a state by path or by id.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u32> {
        self.chart.find(name)
    }

    /// Returns the transitions of one state (not of its ancestors) that match an event type, in the
    /// order in which they are tried.
    #[must_use]
    pub fn candidates(&self, state: u32, event: &str) -> Vec<u32> {
        let Some(node) = self.chart.states.get(state as usize) else {
            return Vec::new();
        };
        let nothing = serde_json::Value::Null;
        let ev = Ev {
            id: self.of.events.id(event),
            name: Name::Borrowed(event),
            data: Data::Borrowed(&nothing),
            origin: Origin::Platform,
            numbers: None,
            meta: None,
        };
        candidates(node, &ev).into_owned()
    }
}

impl crate::step::Step {
    /// The transitions that were taken, in order, as indices of chart and transition.
    pub fn taken(&self) -> impl Iterator<Item = (usize, u32)> {
        self.taken.iter().map(|t| (t.chart as usize, t.transition))
    }
}

impl crate::snapshot::Actor {
    /// The index of its chart and the indices of all its active states, including the chart itself
    /// (0).
    #[must_use]
    pub fn configuration(&self) -> (usize, &[u32]) {
        (self.chart() as usize, &self.configuration)
    }
}
