//! The life cycle of the actors of a run: creation, delivery of events, and termination (SCXML
//! 6.4).

use std::sync::Arc;

use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::algorithm::Begin;
use crate::budget::Work;
use crate::envelope::EffectId;
use crate::event::Ev;
use crate::fault::Fault;
use crate::machine::{NO_SERVICE, StateId};
use crate::refusal::Refusal;
use crate::selection::Enabled;
use crate::snapshot::{Actor, Context, Identity, Invocation, Status, ThinVec, TimerKind};
use crate::step::NoteKind;
use crate::transaction::{MAX_GENERATIONS, Queued, Session, StepTransaction};

/// The placeholder for the effect of an invoked machine, which has none because the run executes
/// it.
pub(crate) const MACHINE_EFFECT: EffectId = EffectId { seq: 0, index: u32::MAX };

/// What an actor takes besides its id, its input and its variables, in the run and in the snapshot.
const ACTOR_BYTES: u64 = 1_024;

/// Creates an actor that has not started.
pub(crate) fn new_actor(identity: Identity) -> Actor {
    Actor {
        status: Status::Active,
        configuration: SmallVec::new(),
        history: ThinVec::default(),
        context: Context { values: Arc::new(vec![None; identity.shape.slots.len()]), identity: Arc::new(identity) },
        output: None,
        invocations: SmallVec::new(),
        votes: ThinVec::default(),
        bound: ThinVec::default(),
    }
}

/// Returns the id of the actor that an invocation starts. In imports, an invocation id belongs to
/// the session that created it (SCXML 6.4.1), so below the root it is prefixed with the id of its
/// owner; in charters, the ids of all actors of a run share one namespace.
pub(crate) fn child_id(strict: bool, owner: &str, invocation: &Arc<str>) -> Arc<str> {
    if strict || owner == "root" { invocation.clone() } else { format!("{owner}/{invocation}").into() }
}

/// Inverts [`child_id`]: returns the id of the invocation that an actor answers.
pub(crate) fn invocation_of(strict: bool, actor: &Actor) -> Arc<str> {
    let owner = actor.identity().parent.as_deref().filter(|_| !strict);
    let name = owner.and_then(|owner| actor.identity().id.strip_prefix(owner)?.strip_prefix('/'));
    name.map_or_else(|| actor.identity().id.clone(), Arc::from)
}

impl StepTransaction<'_> {
    /// Runs until every queue of the run is empty, or the root has ended.
    pub(crate) fn quiesce(&mut self) -> Result<(), Refusal> {
        while let Some(next) = self.queue.pop_front() {
            if self.ended {
                self.queue.clear();
                break;
            }
            self.budget.scan(self.s.actors.len());
            let Some(actor_ix) =
                self.s.actors.position(&next.to).filter(|actor_ix| self.actor(*actor_ix).status == Status::Active)
            else {
                continue;
            };
            match next.event {
                None => self.macrostep(actor_ix, Begin::Start)?,
                Some(ev) => {
                    self.count_microstep()?;
                    let mut session = Session::new();
                    self.before_selection(actor_ix, &ev, &mut session)?;
                    let enabled = self.select(actor_ix, &ev, &mut session)?;
                    if enabled.is_empty() && self.m.definition.strict && !crate::compile::is_platform(ev.name()) {
                        let note = NoteKind::Unhandled { event: ev.name().to_string(), from: next.from.to_string() };
                        self.note(actor_ix, None, note);
                    }
                    self.deliver(actor_ix, &ev, enabled, session)?;
                }
            }
        }
        Ok(())
    }

    /// Delivers an event to an actor, with the transitions that the event enables.
    pub(crate) fn deliver(
        &mut self,
        actor_ix: usize,
        ev: &Ev<'_>,
        enabled: Enabled,
        selecting: Session,
    ) -> Result<(), Refusal> {
        // Selection has queued the errors of guards, ahead of anything that the transitions raise.
        if selecting.internal.is_empty() {
            return self.macrostep(actor_ix, Begin::Event(ev, enabled));
        }
        self.macrostep_with(actor_ix, Begin::Event(ev, enabled), selecting)
    }

    /// Adds an actor that runs a chart and queues its start.
    pub(crate) fn add_actor(
        &mut self,
        actor_ix: usize,
        chart: u32,
        name: Arc<str>,
        input: Arc<Json>,
        invoked: bool,
        state: Option<StateId>,
    ) -> Result<(), Fault> {
        let id = if invoked {
            child_id(self.m.definition.strict, &self.actor(actor_ix).identity().id, &name)
        } else {
            name.clone()
        };
        let slots = self.m.chart(chart).shape.slots.len() as u64;
        let size = ACTOR_BYTES.saturating_add(id.len() as u64).saturating_add(slots.saturating_mul(16));
        self.budget.build(size, Work::Run);
        self.budget.scan(self.s.actors.len());
        let limit = self.m.definition.limits.actors;
        if self.s.actors.len() >= limit as usize {
            return Err(Fault::execution("too-many-actors").with("limit", limit));
        }
        if id.is_empty() || matches!(id.as_ref(), "self" | "parent") || id.starts_with("#_") {
            return Err(Fault::execution("invalid-actor-id").with("name", &*id));
        }
        // Invoked actors that have ended are removed at the end of the step; spawned ones stay, and
        // their ids stay taken.
        let taken = self.s.actors.find(&id).is_some_and(|a| a.status == Status::Active || !a.identity().invocation);
        if taken {
            return Err(Fault::execution("actor-exists").with("name", &*id));
        }
        let mut generations = 0usize;
        let mut up = Some(self.actor(actor_ix).identity().id.clone());
        while let Some(parent) = up {
            generations = generations.saturating_add(1);
            self.budget.spend(1, Work::Run);
            if generations > MAX_GENERATIONS {
                return Err(Fault::execution("too-many-generations").with("limit", MAX_GENERATIONS));
            }
            up = self.s.actors.find(&parent).and_then(|a| a.identity().parent.clone());
        }
        let target = self.m.chart(chart);
        if let Some(schema) = &target.input {
            Fault::unless_fits(&target.shape.machine, schema, &input, self.budget)?;
        }
        let parent = self.actor(actor_ix).identity().id.clone();
        let mut actor = new_actor(Identity {
            id: id.clone(),
            parent: Some(parent.clone()),
            invocation: invoked,
            input: input.clone(),
            shape: target.shape.clone(),
        });
        if invoked {
            // Imports bind parameters to variables of the same name (SCXML 6.4); charters read
            // `input`.
            if !self.m.definition.strict
                && let Json::Object(fields) = &*input
            {
                for (name, value) in fields {
                    let slot = target.shape.slot(name).filter(|s| target.context.iter().any(|(c, _)| c == s));
                    if let Some(place) = slot.and_then(|s| actor.context.place(s)) {
                        *place = Some(Arc::new(value.clone()));
                    }
                }
            }
            let invocation = Invocation {
                id: name,
                src: target.shape.machine.as_ref().into(),
                effect: MACHINE_EFFECT,
                service: NO_SERVICE,
                state,
                input,
            };
            self.actor_mut(actor_ix).invocations.push(Arc::new(invocation));
        }
        self.s.actors.push(actor);
        self.queue.push_back(Queued { to: id, from: parent, event: None });
        Ok(())
    }

    /// Cancels a machine: its exit actions run, and its parent gets no more events from it.
    pub(crate) fn cancel_actor(&mut self, actor_ix: usize) -> Result<(), Refusal> {
        if self.actor(actor_ix).status != Status::Active {
            return Ok(());
        }
        self.actor_mut(actor_ix).status = Status::Cancelled;
        let (id, parent) = (self.actor(actor_ix).identity().id.clone(), self.actor(actor_ix).identity().parent.clone());
        self.budget.scan(self.queue.len());
        self.queue.retain(|q| q.to != id && !(q.from == id && Some(&q.to) == parent.as_ref()));
        let mut session = Session::new();
        self.exit_interpreter(actor_ix, None, &mut session, true)
    }

    /// Executes `stop`: stops a spawned actor, or a service that this actor spawned.
    pub(crate) fn stop_actor(&mut self, actor_ix: usize, id: &str) -> Result<(), crate::content::Stop> {
        self.budget.scan(self.actor(actor_ix).invocations.len());
        let own = self.actor(actor_ix).invocations.iter().find(|i| i.id.as_ref() == id && i.state.is_none()).cloned();
        if let Some(invocation) = own {
            self.actor_mut(actor_ix).invocations.retain(|i| i.id != invocation.id);
            self.end_invocation(actor_ix, &invocation)?;
            return Ok(());
        }
        match self.s.actors.position(id) {
            Some(child)
                if !self.actor(child).identity().invocation && self.actor(child).identity().parent.is_some() =>
            {
                if child == actor_ix {
                    return Err(Fault::execution("stop-itself").into());
                }
                self.cancel_actor(child)?;
                Ok(())
            }
            _ => Err(Fault::execution("no-spawned-actor").with("name", id).into()),
        }
    }

    /// Ends an actor that has reached a final state, and sends its output to its parent.
    pub(crate) fn finish_actor(&mut self, actor_ix: usize, output: Json, failed: bool) {
        let actor = self.actor_mut(actor_ix);
        actor.status = if failed { Status::Failed } else { Status::Done };
        actor.output = Some(Arc::new(output.clone()));
        let (id, parent) = (actor.identity().id.clone(), actor.identity().parent.clone());
        let name = invocation_of(self.m.definition.strict, self.actor(actor_ix));
        match parent {
            None => {
                self.ended = true;
                self.s.output = Some(Arc::new(output));
            }
            Some(parent) => {
                if let Some(p) = self.s.actors.position(&parent) {
                    self.budget.scan(self.actor(p).invocations.len());
                    self.actor_mut(p).invocations.retain(|i| !(i.id == name && i.service == NO_SERVICE));
                    let timeout_of = |t: &crate::snapshot::Timer| {
                        t.actor == parent
                            && matches!(&t.what, TimerKind::Timeout { invocation, .. } if *invocation == name)
                    };
                    self.cancel_timers(timeout_of);
                }
                self.answer(&parent, &id, &name, Ok(output));
            }
        }
    }

    /// Cleans up after the last event: cancels all other actors if the root has ended, and removes
    /// invoked actors that have ended.
    pub(crate) fn clean_up(&mut self) -> Result<(), Refusal> {
        if self.ended {
            for actor_ix in (1..self.s.actors.len()).rev() {
                self.cancel_actor(actor_ix)?;
            }
            self.cancel_timers(|_| true);
            self.s.held = ThinVec::default();
            self.s.status = match self.s.actors.first().map(|a| a.status) {
                Some(Status::Active) | None => Status::Cancelled,
                Some(status) => status,
            };
            self.s.paused_at = None;
        } else if self.s.actors.len() > 1 {
            let gone = |a: &Actor| {
                a.identity().parent.is_some()
                    && a.status != Status::Active
                    && (a.identity().invocation || a.status == Status::Cancelled)
            };
            if self.s.actors.iter().any(|a| gone(a)) {
                self.s.actors.retain(|a| !gone(a));
            }
        }
        Ok(())
    }
}
