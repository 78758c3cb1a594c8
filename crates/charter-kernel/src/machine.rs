//! The compiled machine: a definition turned into tables of small integers, once.
//!
//! States of a chart are numbered in document order (pre-order), so document order is `<`, exit order is `>`, and the descendants of a
//! state are the numbers after it up to [`StateNode::last`]. The root of a chart is state 0.

use std::sync::Arc;

use charter_expr::{FunctionId, Program};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::definition::{Definition, FinalRule, StateKind};
use crate::digest::Digest;
use crate::problem::Problem;
use crate::refusal::Code;
use crate::schema::Schema;
use crate::snapshot::Shape;

/// Number of a state in its chart.
pub(crate) type StateId = u32;
/// Number of a transition in its chart.
pub(crate) type TransitionId = u32;
/// Number of an event type in the machine.
pub(crate) type EventId = u32;

/// No state, no event: also the number of an event type that no part of the definition mentions.
pub(crate) const NONE: u32 = u32::MAX;

/// A charter, compiled: what [`crate::Machine::step`] runs on. Immutable; share it in an `Arc`.
#[derive(Debug)]
pub struct Machine {
    pub(crate) definition: Arc<Definition>,
    pub(crate) digest: Digest,
    pub(crate) events: Events,
    pub(crate) roles: Vec<Box<str>>,
    pub(crate) ledger: Arc<[Box<str>]>,
    /// Fields of events that anything reads; none: events are needed as they are.
    pub(crate) event_reads: Option<Vec<Vec<Box<str>>>>,
    /// Rules that refusals name, with their sentences.
    pub(crate) rules: Vec<(Arc<str>, Template)>,
    /// 0 is the root; then `machines` in document order.
    pub(crate) charts: Vec<Chart>,
    pub(crate) services: Vec<Service>,
    pub(crate) interlocks: Vec<Interlock>,
    pub(crate) functions: Functions,
    pub(crate) only_algorithm: bool,
}

impl Machine {
    /// The same machine without the short way for plain events (`lane`): for tests that hold the two against each other.
    #[doc(hidden)]
    #[must_use]
    pub fn only_algorithm(mut self) -> Machine {
        self.only_algorithm = true;
        self
    }

    /// Checks and compiles a definition.
    ///
    /// # Errors
    /// Everything that is wrong with it (at most 100 problems), each with its address.
    pub fn compile(definition: Definition) -> Result<Machine, Vec<Problem>> {
        crate::compile::compile(Arc::new(definition))
    }

    /// The definition it was made from.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The fields of events (of their data) that anything in the charter reads, as paths; none if it needs events as they are.
    ///
    /// An event reduced to them is judged like the whole one by [`Machine::step_checked`]: for hosts that read events of many fields at a
    /// high rate.
    #[must_use]
    pub fn event_reads(&self) -> Option<&[Vec<Box<str>>]> {
        self.event_reads.as_deref()
    }

    /// Is this event declared, and does its data surely fit? False: cannot say; [`Machine::step`] decides.
    #[must_use]
    pub fn surely_fits(&self, event: &str, data: impl crate::schema::View) -> bool {
        let info = self.events.info(self.events.id(event));
        info.filter(|i| i.declared)
            .is_some_and(|i| i.schema.as_ref().is_none_or(|s| s.surely_fits(data)))
    }

    /// The digest of the definition; every snapshot and record carries it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Host functions of the expression language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    /// `in("state.path")`.
    pub(crate) is_in: FunctionId,
    /// `In("id")`: the same, in SCXML's spelling.
    pub(crate) is_in_scxml: FunctionId,
    /// `digest(x)`.
    pub(crate) digest: FunctionId,
    /// `fail("why")`, in machines that are not strict: what an import could not read is an error when it runs (SCXML 5.9).
    pub(crate) fail: Option<FunctionId>,
}

/// Every event type that the definition mentions.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) ids: FxHashMap<Arc<str>, EventId>,
    pub(crate) list: Vec<EventInfo>,
}

impl Events {
    pub(crate) fn id(&self, name: &str) -> EventId {
        self.ids.get(name).copied().unwrap_or(NONE)
    }
    pub(crate) fn info(&self, id: EventId) -> Option<&EventInfo> {
        self.list.get(id as usize)
    }
}

#[derive(Debug)]
pub(crate) struct EventInfo {
    pub(crate) name: Arc<str>,
    /// Declared under `events`.
    pub(crate) declared: bool,
    pub(crate) by: RoleSet,
    pub(crate) schema: Option<Schema>,
    pub(crate) while_paused: bool,
}

/// A set of roles, as bits; empty as a requirement means: anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RoleSet(pub(crate) u128);

impl RoleSet {
    pub(crate) const SYSTEM: RoleSet = RoleSet(1);
    pub(crate) const OPERATOR: RoleSet = RoleSet(2);
    /// Does a principal with the roles `held` satisfy this requirement?
    pub(crate) fn admits(self, held: RoleSet) -> bool {
        self.0 == 0 || self.0 & held.0 != 0
    }
}

/// A compiled statechart.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) shape: Arc<Shape>,
    /// States by path and by id.
    pub(crate) names: FxHashMap<Arc<str>, StateId>,
    pub(crate) states: Vec<StateNode>,
    /// Whether any state has eventless transitions.
    pub(crate) has_always: bool,
    /// Whether any state is parallel: then several atomic states may be active.
    pub(crate) has_parallel: bool,
    /// For each transition: what it does, if that is plain.
    pub(crate) moves: Vec<Option<crate::lane::Move>>,
    /// Whether any invocation has `finalize` or `autoforward`.
    pub(crate) forwards: bool,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) invokes: Vec<Invoke>,
    /// First values of the context, in document order: slot and value.
    pub(crate) context: Vec<(u32, Template)>,
    pub(crate) input: Option<Schema>,
    pub(crate) output: Option<Template>,
}

// Numbers of states, transitions and invocations are made by `compile` for this very chart and checked when a snapshot is restored;
// a snapshot of another charter is refused before any of them is looked up. So these look-ups, and only these, index.
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
    /// Is `inner` a proper descendant of `outer`?
    #[inline]
    pub(crate) fn inside(&self, inner: StateId, outer: StateId) -> bool {
        inner > outer && inner <= self.state(outer).last
    }
    pub(crate) fn path(&self, id: StateId) -> &Arc<str> {
        &self.shape.paths[id as usize]
    }
    /// A state by path, or by id.
    pub(crate) fn find(&self, name: &str) -> Option<StateId> {
        self.names.get(name).copied()
    }
}

#[allow(clippy::indexing_slicing)] // as above
impl Machine {
    #[inline]
    pub(crate) fn chart(&self, id: u32) -> &Chart {
        &self.charts[id as usize]
    }
    pub(crate) fn service(&self, id: u32) -> &Service {
        &self.services[id as usize]
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
    /// Numbers into [`Chart::invokes`].
    pub(crate) invokes: Vec<u32>,
    /// Event type -> transitions that match it, in document order; sorted by event type. Holds the types named exactly in this state.
    pub(crate) exact: Vec<(EventId, SmallVec<[TransitionId; 2]>)>,
    /// Transitions with a wildcard, in document order: all that a type not in `exact` can match.
    pub(crate) patterns: Vec<(Pattern, TransitionId)>,
    pub(crate) always: Vec<TransitionId>,
    pub(crate) after: Vec<After>,
    pub(crate) done_event: EventId,
    pub(crate) output: Option<Template>,
    /// Bound on first entry (late binding).
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
    /// `*`: every event but the platform's.
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
    /// `STATE/after/KEY`, to which the id of the actor is prefixed.
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
    /// The domain (SCXML 3.13, `getTransitionDomain`), unless a history target makes it depend on the configuration.
    pub(crate) domain: Domain,
    pub(crate) internal: bool,
    /// A parallel state may be the domain.
    pub(crate) parallel_domain: bool,
    pub(crate) guard: Option<Guard>,
    pub(crate) by: RoleSet,
    /// As written, for refusals.
    pub(crate) approves: Option<Program>,
    pub(crate) requires: Vec<Require>,
    pub(crate) quorum: Option<Quorum>,
    /// Number of the rule in whose name the event is refused.
    pub(crate) refuse: Option<u32>,
    pub(crate) block: Block,
    /// Whether anything that decides about it reads `event` (then it cannot be judged before the event is there).
    pub(crate) reads_event: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Domain {
    /// Targetless.
    Targetless,
    /// This state's active descendants are exited.
    State(StateId),
    /// Found at run time.
    Dynamic,
}

#[derive(Debug)]
pub(crate) struct Quorum {
    pub(crate) count: u32,
    pub(crate) of: RoleSet,
}

#[derive(Debug)]
pub(crate) enum Guard {
    Cel(Program),
    Named(Arc<(Box<str>, Guard)>),
    And(Vec<Guard>),
    Or(Vec<Guard>),
    Not(Box<Guard>),
}

#[derive(Debug)]
pub(crate) enum Require {
    Use {
        kind: u32,
        key: Template,
        when: Option<Program>,
        /// Which rule a refusal names, by what failed.
        rules: SmallVec<[(Code, u32); 2]>,
    },
    Open {
        kind: u32,
        key: Template,
        rule: Option<u32>,
    },
    None {
        kind: u32,
        rule: Option<u32>,
    },
}

impl Require {
    /// The rule that a refusal with this code names.
    pub(crate) fn rule(&self, code: Code) -> Option<u32> {
        match self {
            Require::Use { rules, .. } => rules.iter().find(|(c, _)| *c == code).map(|(_, r)| *r),
            Require::Open { rule, .. } | Require::None { rule, .. } => *rule,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Template {
    Literal(Arc<Json>),
    Cel(Program),
    List(Vec<Template>),
    Object(Vec<(Box<str>, Template)>),
}

#[derive(Debug)]
pub(crate) enum Delay {
    Ms(i64),
    Cel(Program),
}

/// A block of actions; named ones are shared.
pub(crate) type Block = Vec<Action>;

/// An event type in an action: known now, or computed.
#[derive(Debug)]
pub(crate) enum TypeName {
    Known(EventId),
    Computed(Template),
}

#[derive(Debug)]
pub(crate) enum Action {
    Named(Arc<Block>),
    Assign(Vec<Assign>),
    Raise {
        kind: TypeName,
        data: Option<Template>,
    },
    Send(Box<Send>),
    Cancel(Template),
    Emit {
        kind: Template,
        data: Option<Template>,
    },
    Log {
        value: Template,
        label: Option<Box<str>>,
    },
    Spawn {
        what: Src,
        id: Template,
        input: Option<Template>,
    },
    Stop(Template),
    If(Vec<(Option<Program>, Block)>),
    Each {
        list: Program,
        index: bool,
        depth: u32,
        block: Block,
    },
    Grant {
        kind: u32,
        key: Template,
        uses: Option<Template>,
        expires: Option<Template>,
        data: Option<Template>,
    },
    Revoke {
        kind: u32,
        key: Option<Template>,
    },
    Open {
        kind: u32,
        key: Template,
        due: Option<Template>,
        data: Option<Template>,
    },
    Close {
        kind: u32,
        key: Option<Template>,
        how: Option<Template>,
    },
}

#[derive(Debug)]
pub(crate) struct Assign {
    pub(crate) slot: u32,
    pub(crate) path: Vec<Segment>,
    pub(crate) value: Template,
}

/// A step into a context variable.
#[derive(Debug)]
pub(crate) enum Segment {
    Key(Box<str>),
    Computed(Program),
}

#[derive(Debug)]
pub(crate) struct Send {
    pub(crate) to: Option<Template>,
    pub(crate) kind: TypeName,
    pub(crate) data: Option<Template>,
    pub(crate) delay: Option<Delay>,
    pub(crate) id: Option<Template>,
    pub(crate) id_location: Option<u32>,
    pub(crate) processor: Option<Template>,
}

/// What each value of an expression stands for.
pub(crate) type Choices = Vec<(Box<str>, Src)>;

/// What an invocation or a spawn starts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Src {
    /// A chart of this machine.
    Chart(u32),
    /// A service: the host's work.
    Service(u32),
}

#[derive(Debug)]
pub(crate) struct Invoke {
    pub(crate) id: Arc<str>,
    pub(crate) src: Src,
    /// What `src` is instead, by the value of an expression.
    pub(crate) choose: Option<(Program, Choices)>,
    pub(crate) input: Option<Template>,
    pub(crate) timeout: Option<Delay>,
    pub(crate) id_location: Option<u32>,
    pub(crate) finalize: Block,
    pub(crate) autoforward: bool,
}

/// An entry of `actors`, compiled.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) input: Option<Schema>,
    pub(crate) output: Option<Schema>,
    pub(crate) timeout: Option<Delay>,
}

#[derive(Debug)]
pub(crate) struct Interlock {
    pub(crate) id: Box<str>,
    pub(crate) rule: Rule,
}

#[derive(Debug)]
pub(crate) enum Rule {
    Table {
        /// Id of the actor that is looked up.
        given: Box<str>,
        chart: u32,
        /// State of `given` -> allowed states of `chart`.
        allow: Vec<(StateId, Vec<StateId>)>,
        r#final: FinalRule,
    },
    Assert(Program),
}
