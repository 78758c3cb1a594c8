//! A run at one moment. Its JSON (see [`crate::Machine::snapshot_json`]) says the same with names; going there and back changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_expr::{Object, Str, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::digest::Digest;
use crate::envelope::EffectId;
use crate::ledger::Ledger;
use crate::machine::{StateId, TransitionId};

/// A run at one moment: everything that decides what may happen next. Cheap to clone (its parts are shared).
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub(crate) run: Arc<RunName>,
    pub(crate) seq: u64,
    pub(crate) status: Status,
    pub(crate) paused_at: Option<i64>,
    pub(crate) output: Option<Arc<Json>>,
    pub(crate) actors: Actors,
    pub(crate) timers: Vec<Arc<Timer>>,
    pub(crate) ledger: Option<Arc<Ledger>>,
    /// Answers that came while the run was paused.
    pub(crate) held: Vec<Arc<Held>>,
    /// Source of generations and of ids that must not repeat.
    pub(crate) counter: u64,
}

impl Snapshot {
    /// The run's id.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run.id
    }
    /// Digest of the charter it belongs to.
    #[must_use]
    pub fn charter(&self) -> Digest {
        self.run.digest
    }
    /// Sequence number of the last record that changed it.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }
    /// Whether the run goes on.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }
    /// What the run gave, once it is done.
    #[must_use]
    pub fn output(&self) -> Option<&Json> {
        self.output.as_deref()
    }
    /// The actors that are machines, the root first, then in order of creation.
    pub fn actors(&self) -> impl Iterator<Item = &Actor> {
        self.actors.0.iter().map(AsRef::as_ref)
    }
    /// An actor by its id.
    #[must_use]
    pub fn actor(&self, id: &str) -> Option<&Actor> {
        self.actors.find(id)
    }
    /// Pending timers, the next first.
    #[must_use]
    pub fn timers(&self) -> &[Arc<Timer>] {
        &self.timers
    }
    /// When the next timer is due, unless the run is paused (timers stand still then).
    #[must_use]
    pub fn next_timer(&self) -> Option<&Timer> {
        if self.status == Status::Active {
            self.timers.first().map(AsRef::as_ref)
        } else {
            None
        }
    }
    /// What was asked of the host and is not answered yet: owner, invocation.
    pub fn invocations(&self) -> impl Iterator<Item = (&Actor, &Invocation)> {
        self.actors()
            .flat_map(|a| a.invocations.iter().map(move |i| (a, i.as_ref())))
    }
    /// Answers that came while the run was paused, and wait.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }
    /// Permits and obligations.
    #[must_use]
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Takes events.
    Active,
    /// Takes run control only; timers stand still.
    Paused,
    /// Reached a final state.
    Done,
    /// Reached a final state tagged `failed`.
    Failed,
    /// Ended by `charter.cancel`.
    Cancelled,
}

impl Status {
    /// The word used in JSON and in expressions.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Paused => "paused",
            Status::Done => "done",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }
    /// Nothing can happen any more.
    #[must_use]
    pub fn is_finished(self) -> bool {
        matches!(self, Status::Done | Status::Failed | Status::Cancelled)
    }
}

/// What of a run never changes; `run` in expressions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunName {
    pub(crate) id: Box<str>,
    /// Id of the charter.
    pub(crate) charter: Box<str>,
    /// Digest of the charter.
    pub(crate) digest: Digest,
}

impl Object for RunName {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        match key {
            "id" => Some(Value::from(self.id.as_ref())),
            "charter" => Some(Value::from(self.charter.as_ref())),
            _ => None,
        }
    }
    fn keys(&self) -> Vec<Str<'_>> {
        vec!["charter".into(), "id".into()]
    }
    fn len(&self) -> usize {
        2
    }
}

/// `actors` in expressions.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Actors(pub(crate) SmallVec<[Arc<Actor>; 1]>);

impl Actors {
    /// The newest actor of that id: an invocation may be started again while its predecessor is being taken down.
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.0.iter().rposition(|a| a.identity().id.as_ref() == id)
    }
    pub(crate) fn find(&self, id: &str) -> Option<&Actor> {
        self.position(id)
            .and_then(|i| self.0.get(i))
            .map(AsRef::as_ref)
    }
}

impl Object for Actors {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.find(key).map(|a| Value::object(a))
    }
    fn keys(&self) -> Vec<Str<'_>> {
        let mut keys: Vec<_> = self.0.iter().map(|a| Str::from(a.id())).collect();
        keys.sort_unstable_by(|a: &Str<'_>, b| a.as_str().cmp(b.as_str()));
        keys
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// What a chart gives to its actors, so that expressions and JSON can name things.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Number of the chart.
    pub(crate) chart: u32,
    /// Name of the machine (`root` for the run's own chart).
    pub(crate) machine: Box<str>,
    /// Paths of the states, by number.
    pub(crate) paths: Vec<Arc<str>>,
    /// Whether a state is atomic (or final).
    pub(crate) atomic: Vec<bool>,
    /// Context variables, by slot.
    pub(crate) slots: Vec<Box<str>>,
    /// A variable without a value reads as null (SCXML) instead of being absent.
    pub(crate) lenient: bool,
    /// Slots in order of their names.
    pub(crate) sorted: Vec<u32>,
}

impl Shape {
    pub(crate) fn slot(&self, name: &str) -> Option<u32> {
        if self.slots.len() <= 8 {
            return self
                .slots
                .iter()
                .position(|s| s.as_ref() == name)
                .and_then(|i| u32::try_from(i).ok());
        }
        let at = self
            .sorted
            .binary_search_by(|s| {
                self.slots
                    .get(*s as usize)
                    .map_or("", AsRef::as_ref)
                    .cmp(name)
            })
            .ok()?;
        self.sorted.get(at).copied()
    }
}

/// What of an actor never changes: one shared part, so that a step need not copy it.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) id: Arc<str>,
    pub(crate) parent: Option<Arc<str>>,
    /// Whether it answers to an invocation of its parent; else it was spawned.
    pub(crate) invocation: bool,
    pub(crate) input: Arc<Json>,
    pub(crate) shape: Arc<Shape>,
}

impl PartialEq for Identity {
    fn eq(&self, o: &Identity) -> bool {
        // Shapes are compared by the number of their chart: snapshots are compared within one machine.
        self.shape.chart == o.shape.chart
            && self.id == o.id
            && self.parent == o.parent
            && self.invocation == o.invocation
            && self.input == o.input
    }
}

/// A machine inside a run: the root, or one that was spawned or invoked.
#[derive(Debug, Clone, PartialEq)]
pub struct Actor {
    pub(crate) status: Status,
    /// All active states, ancestors included, in document order.
    pub(crate) configuration: SmallVec<[StateId; 6]>,
    pub(crate) history: Vec<(StateId, SmallVec<[StateId; 4]>)>,
    pub(crate) context: Context,
    pub(crate) output: Option<Arc<Json>>,
    /// Services at work for it (machines it invoked are actors themselves).
    pub(crate) invocations: SmallVec<[Arc<Invocation>; 1]>,
    pub(crate) votes: Vec<Vote>,
    /// States whose late-bound data has been bound.
    pub(crate) bound: Vec<StateId>,
}

impl Actor {
    pub(crate) fn identity(&self) -> &Identity {
        &self.context.identity
    }
    /// Its id; `root` for the run's own chart.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.identity().id
    }
    /// The name of its machine; `root` for the run's own chart.
    #[must_use]
    pub fn machine(&self) -> &str {
        &self.identity().shape.machine
    }
    /// Who spawned or invoked it.
    #[must_use]
    pub fn parent(&self) -> Option<&str> {
        self.identity().parent.as_deref()
    }
    /// Whether it goes on.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }
    /// Paths of the active atomic states, in document order.
    pub fn state(&self) -> impl Iterator<Item = &str> {
        let shape = &self.identity().shape;
        self.configuration
            .iter()
            .filter(|s| shape.atomic.get(**s as usize) == Some(&true))
            .filter_map(|s| shape.paths.get(*s as usize).map(AsRef::as_ref))
    }
    /// Paths of all active states, in document order; the chart itself is left out.
    pub fn active(&self) -> impl Iterator<Item = &str> {
        let shape = &self.identity().shape;
        self.configuration
            .iter()
            .filter(|s| **s != 0)
            .filter_map(|s| shape.paths.get(*s as usize).map(AsRef::as_ref))
    }
    /// Its context, as JSON.
    #[must_use]
    pub fn context(&self) -> Json {
        self.context.json()
    }
    /// One context variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&Json> {
        self.context.slot(name)
    }
    /// Its context variables that have a value, in document order.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Json)> {
        let named = self
            .identity()
            .shape
            .slots
            .iter()
            .zip(self.context.values.iter());
        named.filter_map(|(name, value)| value.as_deref().map(|v| (name.as_ref(), v)))
    }
    /// What it started with.
    #[must_use]
    pub fn input(&self) -> &Json {
        &self.identity().input
    }
    /// What it gave.
    #[must_use]
    pub fn output(&self) -> Option<&Json> {
        self.output.as_deref()
    }
    /// Services at work for it.
    pub fn invocations(&self) -> impl Iterator<Item = &Invocation> {
        self.invocations.iter().map(AsRef::as_ref)
    }
    pub(crate) fn is_active(&self, state: StateId) -> bool {
        self.configuration.binary_search(&state).is_ok()
    }
    pub(crate) fn chart(&self) -> u32 {
        self.identity().shape.chart
    }
}

impl Object for Actor {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        match key {
            "machine" => Some(Value::from(self.machine())),
            "state" => Some(Value::list(self.state().map(Value::from).collect())),
            "status" => Some(Value::from(self.status.word())),
            "context" => Some(Value::object(&self.context)),
            _ => None,
        }
    }
    fn keys(&self) -> Vec<Str<'_>> {
        vec![
            "context".into(),
            "machine".into(),
            "state".into(),
            "status".into(),
        ]
    }
    fn len(&self) -> usize {
        4
    }
}

/// Context variables: a slot each. A variable may be absent (SCXML: declared but unbound).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Context {
    pub(crate) identity: Arc<Identity>,
    /// Copied by the first step that assigns.
    pub(crate) values: Arc<Vec<Option<Arc<Json>>>>,
}

impl Context {
    /// Where a slot's value stands, to change it.
    pub(crate) fn place(&mut self, slot: u32) -> Option<&mut Option<Arc<Json>>> {
        Arc::make_mut(&mut self.values).get_mut(slot as usize)
    }
    pub(crate) fn slot(&self, name: &str) -> Option<&Json> {
        self.values
            .get(self.identity.shape.slot(name)? as usize)?
            .as_deref()
    }
    pub(crate) fn json(&self) -> Json {
        let mut map = serde_json::Map::new();
        for (name, value) in self.identity.shape.slots.iter().zip(self.values.iter()) {
            if let Some(value) = value {
                map.insert(name.to_string(), Json::clone(value));
            }
        }
        Json::Object(map)
    }
}

impl Object for Context {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        match self.slot(key) {
            Some(value) => Some(Value::from_json(value)),
            None if self.identity.shape.lenient && self.identity.shape.slot(key).is_some() => {
                Some(Value::Null)
            }
            None => None,
        }
    }
    fn keys(&self) -> Vec<Str<'_>> {
        let named = |s: &u32| {
            self.values.get(*s as usize)?.as_ref()?;
            self.identity
                .shape
                .slots
                .get(*s as usize)
                .map(|n| Str::from(n.as_ref()))
        };
        self.identity
            .shape
            .sorted
            .iter()
            .filter_map(named)
            .collect()
    }
    fn len(&self) -> usize {
        self.values.iter().filter(|v| v.is_some()).count()
    }
}

/// Something asked of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// Its id: answers name it.
    pub id: Arc<str>,
    /// The entry of `actors`.
    pub src: Arc<str>,
    /// The effect that asked.
    pub effect: EffectId,
    pub(crate) service: u32,
    /// The state it belongs to; none for a spawned service.
    pub(crate) state: Option<StateId>,
    /// The input it was given.
    pub input: Arc<Json>,
}

impl Invocation {
    /// A machine, which is an actor of the run itself; nothing of the host's.
    #[must_use]
    pub fn is_machine(&self) -> bool {
        self.service == crate::content::NO_SERVICE
    }
}

/// Something that happens at a time. The kernel never waits: the host sends [`crate::Event::Timer`] when it is due.
#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    /// Unique among the pending timers of the run.
    pub id: Arc<str>,
    /// Distinguishes it from earlier timers of the same id.
    pub generation: u64,
    /// Milliseconds since 1970.
    pub due: i64,
    /// The actor it belongs to.
    pub actor: Arc<str>,
    pub(crate) what: TimerKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TimerKind {
    /// `after` of a state.
    After { state: StateId, index: u32 },
    /// A delayed `send`.
    Send {
        to: Arc<str>,
        kind: Arc<str>,
        data: Arc<Json>,
        send_id: Option<Arc<str>>,
    },
    /// An invocation has taken too long.
    Timeout {
        invocation: Arc<str>,
        effect: EffectId,
    },
    /// An obligation is due.
    Due { kind: u32, key: Arc<str> },
}

/// An answer that came while the run was paused.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Held {
    pub(crate) actor: Arc<str>,
    pub(crate) invocation: Arc<str>,
    pub(crate) effect: EffectId,
    pub(crate) outcome: Result<Json, Json>,
}

/// Who has voted for a transition with a quorum since its source was entered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vote {
    pub(crate) transition: TransitionId,
    pub(crate) digest: Digest,
    pub(crate) by: Vec<Box<str>>,
}

/// Entries by key.
pub(crate) type Keyed<T> = BTreeMap<Arc<str>, T>;
