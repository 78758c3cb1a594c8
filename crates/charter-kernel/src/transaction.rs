//! A step in progress: a candidate snapshot, and the effects, timers and notes gathered so far. All
//! of it is dropped if the event is refused.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use smallvec::SmallVec;

use crate::budget::{Budget, Work};
use crate::envelope::EffectId;
use crate::event::{Ev, Meta, Origin};
use crate::fault::{Fault, FaultCode};
use crate::ledger::Ledger;
use crate::machine::{Chart, EventId, Machine, RoleSet, StateId, TransitionId};
use crate::principal::Principal;
use crate::refusal::{Cause, Code, Refusal};
use crate::scope::{EvalContext, Local};
use crate::snapshot::{Actor, Snapshot, Timer, TimerKind};
use crate::step::{Effect, EffectKind, Note, NoteKind, Step, Taken, TimerChange, Verdict};
use crate::time::{Millis, Timestamp};

/// Upper limit of the actions that one event runs: nested `each` loops could otherwise run for
/// minutes within the microstep limit.
const MAX_ACTIONS: u32 = 100_000;
/// Upper limit of the notes of a step: further ones add nothing new.
const MAX_NOTES: usize = 20;
/// What a taken transition takes besides its name, in the step and in the record.
pub(crate) const TAKEN_BYTES: u64 = 64;
/// What an effect takes besides its names and values, in the step and in the record.
const EFFECT_BYTES: u64 = 512;
/// What an event in a queue takes besides its data.
pub(crate) const EVENT_BYTES: u64 = 256;
/// What a timer takes besides its names and its value, in the step, the record and the snapshot.
const TIMER_BYTES: u64 = 512;
/// Upper limit of the depth to which machines invoke or spawn machines.
pub(crate) const MAX_GENERATIONS: usize = 64;

pub(crate) struct StepTransaction<'m> {
    pub(crate) m: &'m Machine,
    pub(crate) s: Snapshot,
    pub(crate) by: &'m Principal,
    pub(crate) held: RoleSet,
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) budget: &'m Budget,
    /// Events between actors, in the order in which they were sent: the external queues of all
    /// actors in one.
    pub(crate) queue: VecDeque<Queued>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) timers: Vec<TimerChange>,
    pub(crate) notes: Vec<Note>,
    pub(crate) taken: SmallVec<[Taken; 1]>,
    pub(crate) microsteps: u32,
    pub(crate) actions: u32,
    /// The number of changes to variables, ledger and actors, whether or not they made a
    /// difference; see [`settles`](crate::definition::Chart::settles).
    pub(crate) changes: u32,
    /// Whether the root has reached a final state.
    pub(crate) ended: bool,
}

pub(crate) struct Queued {
    pub(crate) to: Arc<str>,
    pub(crate) from: Arc<str>,
    /// `None`: start the actor.
    pub(crate) event: Option<Ev<'static>>,
}

/// The state of one macrostep of one actor.
pub(crate) struct Session {
    pub(crate) internal: VecDeque<Ev<'static>>,
    /// States that were entered and not exited since. Their invocations start at the end of the
    /// macrostep (SCXML `statesToInvoke`).
    pub(crate) to_invoke: SmallVec<[StateId; 4]>,
    pub(crate) running: bool,
}

impl Session {
    pub(crate) fn new() -> Session {
        Session { internal: VecDeque::new(), to_invoke: SmallVec::new(), running: true }
    }
}

// Indexes of actors come from `Actors::position` or from a loop over the actors, and no actor is
// removed before the end of the step.
#[allow(clippy::indexing_slicing)]
impl<'m> StepTransaction<'m> {
    #[inline]
    pub(crate) fn actor(&self, actor_ix: usize) -> &Actor {
        &self.s.actors[actor_ix]
    }
    #[inline]
    pub(crate) fn actor_mut(&mut self, actor_ix: usize) -> &mut Actor {
        Arc::make_mut(&mut self.s.actors[actor_ix])
    }
    #[inline]
    pub(crate) fn chart(&self, actor_ix: usize) -> &'m Chart {
        self.m.chart(self.actor(actor_ix).chart())
    }
}

impl<'m> StepTransaction<'m> {
    pub(crate) fn new(
        m: &'m Machine,
        s: Snapshot,
        by: &'m Principal,
        held: RoleSet,
        seq: u64,
        at: Timestamp,
        budget: &'m Budget,
    ) -> StepTransaction<'m> {
        StepTransaction {
            m,
            s,
            by,
            held,
            seq,
            at,
            budget,
            queue: VecDeque::new(),
            effects: Vec::new(),
            timers: Vec::new(),
            notes: Vec::new(),
            taken: SmallVec::new(),
            microsteps: 0,
            actions: 0,
            changes: 0,
            ended: false,
        }
    }

    /// Returns what the expressions of an actor can read while it handles `event`.
    pub(crate) fn context<'a>(
        &'a self,
        actor_ix: usize,
        event: Option<&'a Ev<'a>>,
        locals: &'a [Local],
    ) -> EvalContext<'a> {
        EvalContext {
            machine: self.m,
            snapshot: &self.s,
            actor: self.actor(actor_ix),
            event,
            by: self.by,
            now: self.at,
            locals,
            entry: None,
            budget: self.budget,
        }
    }

    pub(crate) fn count_microstep(&mut self) -> Result<(), Refusal> {
        self.microsteps = self.microsteps.saturating_add(1);
        if self.microsteps > self.m.definition.limits.microsteps {
            let limit = u64::from(self.m.definition.limits.microsteps);
            return Err(Refusal::because(Code::Runaway, Cause::Microsteps { limit }));
        }
        self.budget.check()
    }

    pub(crate) fn count_action(&mut self) -> Result<(), Refusal> {
        self.actions = self.actions.saturating_add(1);
        if self.actions > MAX_ACTIONS {
            return Err(Refusal::because(Code::Runaway, Cause::Actions { limit: u64::from(MAX_ACTIONS) }));
        }
        self.budget.spend(1, Work::Actions);
        self.budget.check()
    }

    pub(crate) fn count_change(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    pub(crate) fn note(&mut self, actor_ix: usize, at: Option<Arc<str>>, kind: NoteKind) {
        if self.notes.len() < MAX_NOTES {
            let actor = self.actor(actor_ix).identity().id.clone();
            self.notes.push(Note { actor, at, kind });
        }
    }

    pub(crate) fn take(&mut self, actor_ix: usize, transition: TransitionId) {
        let actor = self.actor(actor_ix);
        // The record names the transitions that are taken.
        let name = self.m.chart(actor.chart()).transition(transition).name.len();
        self.budget.build(TAKEN_BYTES.saturating_add(name as u64), Work::Record);
        let taken = Taken::by(actor, transition);
        self.taken.push(taken);
    }

    pub(crate) fn effect(&mut self, actor: Arc<str>, kind: EffectKind) -> EffectId {
        let id = EffectId { seq: self.seq, index: u32::try_from(self.effects.len()).unwrap_or(u32::MAX) };
        // The record repeats the effect.
        let names = (actor.len() as u64).saturating_add(self.s.run.id.len() as u64);
        if self.budget.build(EFFECT_BYTES.saturating_add(names).saturating_add(kind.length()), Work::Effects) {
            self.effects.push(Effect { id, actor, kind });
        }
        id
    }

    /// Returns the next value of the run's counter.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.s.counter = self.s.counter.saturating_add(1);
        self.s.counter
    }

    pub(crate) fn event_name(&self, id: EventId) -> Arc<str> {
        self.m.events.info(id).map_or_else(|| "".into(), |i| i.name.clone())
    }

    pub(crate) fn known(&self, id: EventId, data: Json, origin: Origin) -> Ev<'static> {
        Ev::new(id, self.event_name(id), Arc::new(data), origin)
    }

    /// Returns an event that an action raises or sends.
    pub(crate) fn sent(&self, id: EventId, name: Arc<str>, data: Arc<Json>, origin: Origin) -> Ev<'static> {
        Ev::new(id, name, data, origin).typed(self.m.events.numbers(id))
    }

    pub(crate) fn named(&self, name: &str, data: Json, origin: Origin) -> Ev<'static> {
        Ev::new(self.m.events.id(name), name.into(), Arc::new(data), origin)
    }

    /// Raises the event that reports a fault, and notes it: a transition without the error, or none
    /// at all, may take the event.
    pub(crate) fn raise_fault(&mut self, actor_ix: usize, fault: Fault, session: &mut Session) {
        let ev = self.fault_event(fault);
        let error = ev.data().get("error").cloned().unwrap_or_default();
        self.note(actor_ix, None, NoteKind::Failed { event: ev.name().to_owned(), error });
        session.internal.push_back(ev);
    }

    /// Returns the event that reports a fault.
    pub(crate) fn fault_event(&self, fault: Fault) -> Ev<'static> {
        let name = match fault.code {
            FaultCode::Communication => "error.communication",
            _ => "error.execution",
        };
        let send_id = fault.send_id.clone();
        let error = self.budget.error(fault.error());
        let mut ev = self.named(name, json!({"error": error}), Origin::Platform);
        if send_id.is_some() {
            ev.meta = Some(Arc::new(Meta { send_id, ..Meta::default() }));
        }
        ev
    }

    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        self.count_change();
        let entries = self.s.ledger.as_deref().map_or(0, Ledger::len);
        self.budget.scan(entries);
        let names = &self.m.ledger;
        Arc::make_mut(self.s.ledger.get_or_insert_with(|| Arc::new(Ledger::new(names))))
    }

    pub(crate) fn set_timer(
        &mut self,
        id: Arc<str>,
        actor: Arc<str>,
        delay: Millis,
        what: TimerKind,
    ) -> Result<(), Fault> {
        let due = self.clock().saturating_add(delay);
        self.set_timer_at(id, actor, due, what)
    }

    /// The time that timers count from; it stands still while the run is paused.
    fn clock(&self) -> Timestamp {
        self.s.paused_at.unwrap_or(self.at)
    }

    /// How long this time has stood still.
    pub(crate) fn stood(&self) -> Millis {
        self.at.since(self.clock()).max(Millis(0))
    }

    pub(crate) fn set_timer_at(
        &mut self,
        id: Arc<str>,
        actor: Arc<str>,
        due: Timestamp,
        what: TimerKind,
    ) -> Result<(), Fault> {
        let names = (id.len() as u64).saturating_add(actor.len() as u64);
        self.budget.build(TIMER_BYTES.saturating_add(names).saturating_add(what.length()), Work::Run);
        self.cancel_timers(|t| t.id == id);
        if self.s.timers.len() >= self.m.definition.limits.timers as usize {
            return Err(Fault::execution("too-many-timers").with("limit", self.m.definition.limits.timers));
        }
        let generation = self.fresh();
        let timer = Arc::new(Timer { id, generation, due, actor, what });
        let place = self.s.timers.partition_point(|t| (t.due, t.generation) <= (due, generation));
        self.s.timers.insert(place, timer.clone());
        self.timers.push(TimerChange::Set(timer));
        Ok(())
    }

    pub(crate) fn cancel_timers(&mut self, which: impl Fn(&Timer) -> bool) {
        self.budget.scan(self.s.timers.len());
        let budget = self.budget;
        let changes = &mut self.timers;
        self.s.timers.retain(|t| {
            let gone = which(t);
            if gone && budget.build(EVENT_BYTES.saturating_add(t.id.len() as u64), Work::Record) {
                changes.push(TimerChange::Cancel { id: t.id.clone(), generation: t.generation });
            }
            !gone
        });
    }

    pub(crate) fn step(mut self, verdict: Verdict) -> Step {
        self.s.seq = self.seq;
        Step {
            verdict,
            snapshot: self.s,
            effects: self.effects,
            timers: self.timers,
            notes: self.notes,
            taken: self.taken,
        }
    }
}
