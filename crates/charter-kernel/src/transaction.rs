//! A step in the making: a candidate snapshot and what has been gathered so far. Dropped whole if the event is refused.

use std::collections::VecDeque;
use std::sync::Arc;

use charter_expr::EvalError;
use serde_json::{Value as Json, json};
use smallvec::SmallVec;

use crate::envelope::{EffectId, Principal};
use crate::event::{Ev, Meta, Origin};
use crate::ledger::Ledger;
use crate::machine::{Chart, EventId, Machine, RoleSet, StateId, TransitionId};
use crate::refusal::{Code, Refusal};
use crate::scope::EvalContext;
use crate::snapshot::{Actor, Snapshot, Timer, TimerKind};
use crate::step::{Effect, EffectKind, Note, Step, Taken, TimerChange, Verdict};
use crate::time::{Millis, Timestamp};

/// Actions that one event may run; keeps nested `each` from running for minutes within the microstep limit.
const MAX_ACTIONS: u32 = 100_000;
/// Notes are for people; more of them say nothing new.
const MAX_NOTES: usize = 20;
/// How deep machines may invoke or spawn machines.
pub(crate) const MAX_GENERATIONS: usize = 64;

pub(crate) struct StepTransaction<'m> {
    pub(crate) m: &'m Machine,
    pub(crate) s: Snapshot,
    pub(crate) by: &'m Principal,
    pub(crate) held: RoleSet,
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    /// Events between actors, in the order in which they were sent; the external queues of all of them in one.
    pub(crate) queue: VecDeque<Queued>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) timers: Vec<TimerChange>,
    pub(crate) notes: Vec<Note>,
    pub(crate) taken: SmallVec<[Taken; 1]>,
    pub(crate) microsteps: u32,
    pub(crate) actions: u32,
    /// The root has reached a final state.
    pub(crate) ended: bool,
}

pub(crate) struct Queued {
    pub(crate) to: Arc<str>,
    pub(crate) from: Arc<str>,
    /// None: start the actor.
    pub(crate) event: Option<Ev<'static>>,
}

/// What belongs to one macrostep of one actor.
pub(crate) struct Session {
    pub(crate) internal: VecDeque<Ev<'static>>,
    /// States entered and not left since: their invocations start at the end (SCXML `statesToInvoke`).
    pub(crate) to_invoke: SmallVec<[StateId; 4]>,
    pub(crate) running: bool,
}

impl Session {
    pub(crate) fn new() -> Session {
        Session { internal: VecDeque::new(), to_invoke: SmallVec::new(), running: true }
    }
}

/// Why an action could not be done: becomes `error.execution` or `error.communication`.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) communication: bool,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) send_id: Option<Arc<str>>,
}

impl Fault {
    pub(crate) fn execution(message: impl Into<String>) -> Fault {
        Fault { communication: false, code: "execution", message: message.into(), send_id: None }
    }
    pub(crate) fn communication(message: impl Into<String>) -> Fault {
        Fault { communication: true, code: "communication", message: message.into(), send_id: None }
    }
}

impl From<EvalError> for Fault {
    fn from(e: EvalError) -> Fault {
        Fault { communication: false, code: "expression", message: e.to_string(), send_id: None }
    }
}

// Positions of actors come from `Actors::position` or from a loop over them, and no actor is removed before the step is finished.
#[allow(clippy::indexing_slicing)]
impl<'m> StepTransaction<'m> {
    #[inline]
    pub(crate) fn actor(&self, actor_ix: usize) -> &Actor {
        &self.s.actors.0[actor_ix]
    }
    #[inline]
    pub(crate) fn actor_mut(&mut self, actor_ix: usize) -> &mut Actor {
        Arc::make_mut(&mut self.s.actors.0[actor_ix])
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
    ) -> StepTransaction<'m> {
        StepTransaction {
            m,
            s,
            by,
            held,
            seq,
            at,
            queue: VecDeque::new(),
            effects: Vec::new(),
            timers: Vec::new(),
            notes: Vec::new(),
            taken: SmallVec::new(),
            microsteps: 0,
            actions: 0,
            ended: false,
        }
    }

    /// What an actor sees while it handles `event`.
    pub(crate) fn eyes<'a>(
        &'a self,
        actor_ix: usize,
        event: Option<&'a Ev<'a>>,
        locals: &'a [Arc<Json>],
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
        }
    }

    pub(crate) fn count_microstep(&mut self) -> Result<(), Refusal> {
        self.microsteps = self.microsteps.saturating_add(1);
        if self.microsteps > self.m.definition.limits.microsteps {
            let message = format!(
                "one event may take {} microsteps (`limits.microsteps`); this one does not come to rest",
                self.m.definition.limits.microsteps
            );
            return Err(Refusal::with(Code::Runaway, None, message));
        }
        Ok(())
    }

    pub(crate) fn count_action(&mut self) -> Result<(), Refusal> {
        self.actions = self.actions.saturating_add(1);
        if self.actions > MAX_ACTIONS {
            return Err(Refusal::with(Code::Runaway, None, format!("one event may run {MAX_ACTIONS} actions")));
        }
        Ok(())
    }

    pub(crate) fn note(&mut self, actor_ix: usize, at: Option<Arc<str>>, message: String) {
        if self.notes.len() < MAX_NOTES {
            let actor = self.actor(actor_ix).identity().id.clone();
            self.notes.push(Note { actor, at, message });
        }
    }

    pub(crate) fn take(&mut self, actor_ix: usize, transition: TransitionId) {
        let taken = Taken::by(self.actor(actor_ix), transition);
        self.taken.push(taken);
    }

    pub(crate) fn effect(&mut self, actor: Arc<str>, kind: EffectKind) -> EffectId {
        let id = EffectId { seq: self.seq, index: u32::try_from(self.effects.len()).unwrap_or(u32::MAX) };
        self.effects.push(Effect { id, actor, kind });
        id
    }

    /// A number that the run has not used yet.
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

    pub(crate) fn named(&self, name: &str, data: Json, origin: Origin) -> Ev<'static> {
        Ev::new(self.m.events.id(name), name.into(), Arc::new(data), origin)
    }

    pub(crate) fn fault_event(&self, fault: Fault) -> Ev<'static> {
        let name = if fault.communication { "error.communication" } else { "error.execution" };
        let mut ev =
            self.named(name, json!({"error": {"code": fault.code, "message": fault.message}}), Origin::Platform);
        if fault.send_id.is_some() {
            ev.meta = Some(Arc::new(Meta { send_id: fault.send_id, ..Meta::default() }));
        }
        ev
    }

    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
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

    /// The time that timers count from: stands still while the run is paused.
    fn clock(&self) -> Timestamp {
        self.s.paused_at.unwrap_or(self.at)
    }

    pub(crate) fn set_timer_at(
        &mut self,
        id: Arc<str>,
        actor: Arc<str>,
        due: Timestamp,
        what: TimerKind,
    ) -> Result<(), Fault> {
        self.cancel_timers(|t| t.id == id);
        if self.s.timers.len() >= self.m.definition.limits.timers as usize {
            return Err(Fault::execution(format!(
                "more than {} timers (`limits.timers`)",
                self.m.definition.limits.timers
            )));
        }
        let generation = self.fresh();
        let timer = Arc::new(Timer { id, generation, due, actor, what });
        let place = self.s.timers.partition_point(|t| (t.due, t.generation) <= (due, generation));
        self.s.timers.insert(place, timer.clone());
        self.timers.push(TimerChange::Set(timer));
        Ok(())
    }

    pub(crate) fn cancel_timers(&mut self, which: impl Fn(&Timer) -> bool) {
        let changes = &mut self.timers;
        self.s.timers.retain(|t| {
            let gone = which(t);
            if gone {
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
