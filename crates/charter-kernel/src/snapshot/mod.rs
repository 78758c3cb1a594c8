//! The state of a run. Its JSON form (see [`crate::Machine::snapshot_json`]) is equivalent, with
//! names instead of indices.

mod actor;
mod actors;
mod thin_vec;

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_expr::{Object, Str, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use actor::{Actor, Invocation};
pub(crate) use actor::{Context, Identity, Shape, Vote};
pub(crate) use actors::Actors;
pub(crate) use thin_vec::ThinVec;

use crate::digest::Digest;
use crate::envelope::EffectId;
use crate::ledger::Ledger;
use crate::machine::StateId;
use crate::time::Timestamp;

/// The state of a run: everything that decides what may happen next. Cheap to clone, because its
/// parts are shared.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub(crate) run: Arc<RunName>,
    pub(crate) seq: u64,
    pub(crate) status: Status,
    pub(crate) paused_at: Option<Timestamp>,
    pub(crate) output: Option<Arc<Json>>,
    pub(crate) actors: Actors,
    pub(crate) timers: Vec<Arc<Timer>>,
    pub(crate) ledger: Option<Arc<Ledger>>,
    /// Answers that arrived while the run was paused.
    pub(crate) held: ThinVec<Arc<Held>>,
    /// The counter from which generations and unique ids are taken.
    pub(crate) counter: u64,
    pub(crate) length: LengthBound,
}

/// An upper bound of the length of the snapshot's JSON, without the names of active states. Not a
/// part of the state: it only says when the length has to be measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LengthBound(pub(crate) u64);

impl LengthBound {
    /// The length was not measured.
    pub(crate) const UNKNOWN: LengthBound = LengthBound(u64::MAX);
}

impl PartialEq for LengthBound {
    fn eq(&self, _: &LengthBound) -> bool {
        true
    }
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

    /// The run's status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// The run's output, once it is done.
    #[must_use]
    pub fn output(&self) -> Option<&Json> {
        self.output.as_deref()
    }

    /// The actors: the root first, then in order of creation.
    pub fn actors(&self) -> impl Iterator<Item = &Actor> {
        self.actors.iter().map(AsRef::as_ref)
    }

    /// Looks up an actor by its id.
    #[must_use]
    pub fn actor(&self, id: &str) -> Option<&Actor> {
        self.actors.find(id)
    }

    /// The pending timers, earliest first.
    #[must_use]
    pub fn timers(&self) -> &[Arc<Timer>] {
        &self.timers
    }

    /// The next timer, unless the run is paused (its timers do not run then).
    #[must_use]
    pub fn next_timer(&self) -> Option<&Timer> {
        if self.status == Status::Active { self.timers.first().map(AsRef::as_ref) } else { None }
    }

    /// Since when the run is paused.
    #[must_use]
    pub fn paused_at(&self) -> Option<Timestamp> {
        self.paused_at
    }

    /// The invocations that are not answered yet, with their owners.
    pub fn invocations(&self) -> impl Iterator<Item = (&Actor, &Invocation)> {
        self.actors().flat_map(|a| a.invocations.iter().map(move |i| (a, i.as_ref())))
    }

    /// When an invocation times out; `None` if it has no timeout or is not open. In a paused run it
    /// is later.
    #[must_use]
    pub fn timeout_of(&self, invocation: EffectId) -> Option<Timestamp> {
        let is_its = |what: &TimerKind| matches!(what, TimerKind::Timeout { effect, .. } if *effect == invocation);
        self.timers.iter().find(|timer| is_its(&timer.what)).map(|timer| timer.due)
    }

    /// Whether the answer to an effect is held until the run is resumed.
    #[must_use]
    pub fn holds_answer(&self, effect: EffectId) -> bool {
        self.held.iter().any(|held| held.effect == effect)
    }

    /// The number of answers held until the run is resumed.
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

/// The status of a run or an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// Accepts events.
    Active,
    /// Accepts run control only; timers do not run.
    Paused,
    /// Reached a final state.
    Done,
    /// Reached a final state tagged `failed`.
    Failed,
    /// Ended by `charter.cancel`.
    Cancelled,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 5] = [Status::Active, Status::Paused, Status::Done, Status::Failed, Status::Cancelled];

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

    /// Whether the run or actor has ended.
    #[must_use]
    pub fn is_finished(self) -> bool {
        matches!(self, Status::Done | Status::Failed | Status::Cancelled)
    }
}

/// The immutable part of a run; `run` in expressions.
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

/// A pending timer. The kernel never waits: the host sends [`crate::Event::Timer`] when it is due.
#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    /// Unique among the pending timers of the run.
    pub id: Arc<str>,
    /// Distinguishes it from earlier timers of the same id.
    pub generation: u64,
    /// When it is due.
    pub due: Timestamp,
    /// The actor it belongs to.
    pub actor: Arc<str>,
    pub(crate) what: TimerKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TimerKind {
    /// `after` of a state.
    After { state: StateId, index: u32 },
    /// A delayed `send`.
    Send { to: Arc<str>, kind: Arc<str>, data: Arc<Json>, send_id: Option<Arc<str>> },
    /// The timeout of an invocation.
    Timeout { invocation: Arc<str>, effect: EffectId },
    /// An obligation is due.
    Due { kind: u32, key: Arc<str> },
}

impl TimerKind {
    /// An upper bound of the length of its names and its data in canonical JSON.
    pub(crate) fn length(&self) -> u64 {
        match self {
            TimerKind::After { .. } => 0,
            TimerKind::Send { to, kind, data, send_id } => {
                let names = [to.len(), kind.len(), send_id.as_ref().map_or(0, |id| id.len())];
                names.iter().fold(crate::canonical::length(data), |sum, len| sum.saturating_add(*len as u64))
            }
            TimerKind::Timeout { invocation, .. } => invocation.len() as u64,
            TimerKind::Due { key, .. } => key.len() as u64,
        }
    }
}

/// An answer that arrived while the run was paused.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Held {
    pub(crate) actor: Arc<str>,
    pub(crate) invocation: Arc<str>,
    pub(crate) effect: EffectId,
    pub(crate) outcome: Result<Json, Json>,
}

/// Entries by key.
pub(crate) type Keyed<T> = BTreeMap<Arc<str>, T>;
