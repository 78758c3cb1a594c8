//! One compiled chart: states, transitions and invocations in tables, numbered in document order.

use std::sync::Arc;

use charter_expr::Program;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::content::{Block, Delay, Guard, Require, Src, Template};
use super::{EventId, RoleSet};
use crate::definition::StateKind;
use crate::schema::Schema;
use crate::sender::SenderRule;
use crate::snapshot::Shape;

/// Index of a state in its chart.
pub(crate) type StateId = u32;

/// Index of a transition in its chart.
pub(crate) type TransitionId = u32;

/// A compiled statechart.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) shape: Arc<Shape>,
    /// States by path and by id.
    pub(crate) names: FxHashMap<Arc<str>, StateId>,
    pub(crate) states: Vec<StateNode>,
    /// Whether any state has eventless transitions.
    pub(crate) has_always: bool,
    /// Whether eventless transitions that change nothing are not selected again at once.
    pub(crate) settles: bool,
    /// Whether any state is parallel: then several atomic states may be active.
    pub(crate) has_parallel: bool,
    /// For each transition, its move if the transition is trivial.
    pub(crate) moves: Vec<Option<crate::fast_path::Move>>,
    /// Whether any invocation has `finalize` or `autoforward`.
    pub(crate) forwards: bool,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) invokes: Vec<Invoke>,
    /// Initial values of the context, in document order: slot and value.
    pub(crate) context: Vec<(u32, Template)>,
    pub(crate) input: Option<Schema>,
    pub(crate) output: Option<Template>,
}

// These indices are always in range: `compile` assigns them, `restore` validates those of a
// snapshot, and a snapshot of another charter is refused before any lookup.
#[allow(clippy::indexing_slicing)]
impl Chart {
    #[inline]
    pub(crate) fn state(&self, id: StateId) -> &StateNode {
        &self.states[id as usize]
    }

    #[inline]
    pub(crate) fn transition(&self, id: TransitionId) -> &Transition {
        &self.transitions[id as usize]
    }

    #[inline]
    pub(crate) fn invoke(&self, id: u32) -> &Invoke {
        &self.invokes[id as usize]
    }

    /// Whether `inner` is a proper descendant of `outer`.
    #[inline]
    pub(crate) fn inside(&self, inner: StateId, outer: StateId) -> bool {
        inner > outer && inner <= self.state(outer).last
    }

    pub(crate) fn path(&self, id: StateId) -> &Arc<str> {
        &self.shape.paths[id as usize]
    }

    /// Looks up a state by path or by id.
    pub(crate) fn find(&self, name: &str) -> Option<StateId> {
        self.names.get(name).copied()
    }
}

/// A compiled state.
#[derive(Debug)]
pub(crate) struct StateNode {
    pub(crate) kind: StateKind,
    pub(crate) parent: StateId,
    /// The last descendant (itself if it has none).
    pub(crate) last: StateId,
    /// Children that can be active, in document order.
    pub(crate) children: Vec<StateId>,
    pub(crate) histories: Vec<StateId>,
    pub(crate) initial: Option<Initial>,
    pub(crate) entry: Vec<Block>,
    pub(crate) exit: Vec<Block>,
    /// Indices into [`Chart::invokes`].
    pub(crate) invokes: Vec<u32>,
    /// For each event type that this state names exactly: the transitions that match it, in
    /// document order. Sorted by event type.
    pub(crate) exact: Vec<(EventId, SmallVec<[TransitionId; 2]>)>,
    /// Transitions with a wildcard, in document order. Only these match a type that is not in
    /// `exact`.
    pub(crate) patterns: Vec<(Pattern, TransitionId)>,
    pub(crate) always: Vec<TransitionId>,
    pub(crate) after: Vec<After>,
    pub(crate) done_event: EventId,
    pub(crate) output: Option<Template>,
    /// Context variables bound on the first entry (late binding).
    pub(crate) data: Vec<(u32, Template)>,
    pub(crate) failed: bool,
}

impl StateNode {
    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self.kind, StateKind::Atomic | StateKind::Final)
    }

    pub(crate) fn is_history(&self) -> bool {
        matches!(self.kind, StateKind::Shallow | StateKind::Deep)
    }
}

/// A descriptor with a wildcard.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// `*`: every event except those of the platform.
    Any,
    /// `prefix.*`: `prefix` and `prefix.x.y`.
    Prefix(Box<str>),
}

impl Pattern {
    pub(crate) fn matches(&self, name: &str) -> bool {
        match self {
            Pattern::Any => !crate::compile::is_platform(name),
            Pattern::Prefix(p) => match name.strip_prefix(p.as_ref()) {
                Some(rest) => rest.is_empty() || rest.starts_with('.'),
                None => false,
            },
        }
    }
}

#[derive(Debug)]
pub(crate) struct Initial {
    pub(crate) targets: SmallVec<[StateId; 1]>,
    pub(crate) block: Block,
}

#[derive(Debug)]
pub(crate) struct After {
    pub(crate) delay: Delay,
    pub(crate) event: EventId,
    /// `STATE/after/KEY`; in the timer's id, the actor's id precedes it.
    pub(crate) timer: Arc<str>,
}

/// A compiled transition.
#[derive(Debug)]
pub(crate) struct Transition {
    /// `human_review/on/HUMAN_APPROVED/0`.
    pub(crate) name: Arc<str>,
    /// JSON pointer in the core form.
    pub(crate) at: Arc<str>,
    pub(crate) source: StateId,
    pub(crate) targets: SmallVec<[StateId; 1]>,
    /// The domain (SCXML 3.13, `getTransitionDomain`), unless it depends on the configuration
    /// because of a history target.
    pub(crate) domain: Domain,
    pub(crate) internal: bool,
    /// Whether a parallel state may be the domain.
    pub(crate) parallel_domain: bool,
    pub(crate) guard: Option<Guard>,
    pub(crate) by: RoleSet,
    /// The expression for the approved value.
    pub(crate) approves: Option<Program>,
    pub(crate) requires: Vec<Require>,
    pub(crate) quorum: Option<Quorum>,
    /// What it asks of the sender besides roles.
    pub(crate) sender: Option<Box<SenderRule>>,
    /// Index of the rule that refuses the event.
    pub(crate) refuse: Option<u32>,
    pub(crate) block: Block,
    /// Whether a check reads `event` (then it cannot be evaluated without the event's data).
    pub(crate) reads_event: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Domain {
    /// Targetless.
    Targetless,
    /// The active descendants of this state are exited.
    State(StateId),
    /// Computed at run time.
    Dynamic,
}

#[derive(Debug)]
pub(crate) struct Quorum {
    pub(crate) count: u32,
    pub(crate) of: RoleSet,
}

/// The source for each value of an expression.
pub(crate) type Choices = Vec<(Box<str>, Src)>;

#[derive(Debug)]
pub(crate) struct Invoke {
    pub(crate) id: Arc<str>,
    pub(crate) src: Src,
    /// Selects the source by the value of an expression, instead of `src`.
    pub(crate) choose: Option<(Program, Choices)>,
    pub(crate) input: Option<Template>,
    pub(crate) timeout: Option<Delay>,
    pub(crate) id_location: Option<u32>,
    pub(crate) finalize: Block,
    pub(crate) autoforward: bool,
}
