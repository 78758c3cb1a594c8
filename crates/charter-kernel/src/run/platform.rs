//! Events of the platform: answers of services, and timers that are due.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::actors::child_id;
use crate::budget::Budget;
use crate::envelope::{EffectId, Envelope};
use crate::event::{Ev, Origin};
use crate::fault::{Fault, FaultCode};
use crate::machine::{Machine, NO_SERVICE, RoleSet};
use crate::refusal::Refusal;
use crate::snapshot::{Held, Invocation, Snapshot, Status, TimerKind};
use crate::step::{EffectKind, Step, Verdict};
use crate::transaction::{Session, StepTransaction};
use crate::validate;

impl Machine {
    /// Finds the invocation that an answer belongs to, and its owner.
    pub(crate) fn owner<'s>(
        &self,
        snapshot: &'s Snapshot,
        envelope: &Envelope,
        invocation: &str,
        effect: Option<EffectId>,
    ) -> Option<(usize, &'s Arc<Invocation>)> {
        let fits = |i: &Arc<Invocation>| {
            i.service != NO_SERVICE && i.id.as_ref() == invocation && effect.is_none_or(|e| e == i.effect)
        };
        let of = |actor_ix: usize| {
            let actor = snapshot.actors.get(actor_ix).filter(|a| a.status == Status::Active)?;
            actor.invocations.iter().find(|i| fits(i)).map(|i| (actor_ix, i))
        };
        match &envelope.to {
            Some(to) => of(snapshot.actors.position(to)?),
            None => (0..snapshot.actors.len()).find_map(of),
        }
    }

    pub(super) fn answered(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        id: &str,
        effect: Option<EffectId>,
        outcome: Result<Json, Json>,
        budget: &Budget,
    ) -> Result<Step, Refusal> {
        let late = || self.unchanged(snapshot, envelope, Verdict::Late, budget);
        if snapshot.status.is_finished() {
            return Ok(late());
        }
        let Some((actor_ix, invocation)) = self.owner(snapshot, envelope, id, effect) else {
            return Ok(late());
        };
        if let Ok(output) = &outcome
            && budget.unknowns().is_none()
            && let Some(schema) = &self.service(invocation.service).output
        {
            validate::matches(schema, output, budget)?;
        }
        let mut tx = self.begin(snapshot, envelope, RoleSet::SYSTEM, budget);
        let owner = tx.actor(actor_ix).identity().id.clone();
        if snapshot.status == Status::Paused {
            // The answer is held; a second one for the same effect is late.
            if snapshot.held.iter().any(|h| h.effect == invocation.effect) {
                return Ok(late());
            }
            let held = Held { actor: owner, invocation: invocation.id.clone(), effect: invocation.effect, outcome };
            tx.s.held.list().push(Arc::new(held));
            return Ok(tx.step(Verdict::Accepted));
        }
        tx.take_answer(actor_ix, invocation.effect, id, outcome)?;
        tx.finish(Some(snapshot), Verdict::Ignored)
    }

    pub(super) fn timer(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        id: &str,
        generation: u64,
        budget: &Budget,
    ) -> Result<Step, Refusal> {
        // The order of timers is not known in an analysis.
        let timer = snapshot.timers.iter().find(|t| {
            t.id.as_ref() == id && t.generation == generation && (t.due <= envelope.at || budget.unknowns().is_some())
        });
        let Some(timer) = timer.filter(|_| snapshot.status == Status::Active) else {
            // A timer changes nothing if its generation is old, if it is not due, or if the run is
            // paused or finished.
            return Ok(self.unchanged(snapshot, envelope, Verdict::Ignored, budget));
        };
        let mut tx = self.begin(snapshot, envelope, RoleSet::SYSTEM, budget);
        tx.s.timers.retain(|t| !(t.id == timer.id && t.generation == generation));
        let Some(actor_ix) = tx.s.actors.position(&timer.actor) else {
            return tx.finish(Some(snapshot), Verdict::Ignored);
        };
        match &timer.what {
            TimerKind::After { state, index } => {
                let event = usize::try_from(*index)
                    .ok()
                    .and_then(|i| tx.chart(actor_ix).state(*state).after.get(i))
                    .map(|a| a.event);
                if let Some(event) = event {
                    let ev = tx.known(event, json!({}), Origin::Platform);
                    tx.receive(actor_ix, &ev)?;
                }
            }
            TimerKind::Send { to, kind, data, send_id } => {
                let ev = tx.sent(self.events.id(kind), kind.clone(), data.clone(), Origin::Sent);
                tx.post(actor_ix, to.clone(), ev, send_id.clone());
            }
            TimerKind::Timeout { invocation, effect } => {
                let owner = tx.actor(actor_ix).identity().id.clone();
                let cancel = EffectKind::Cancel { invocation: invocation.clone(), effect: *effect };
                let service = tx.actor(actor_ix).invocations.iter().find(|i| i.id == *invocation).map(|i| i.service);
                match service {
                    Some(NO_SERVICE) => {
                        let id = invocation.clone();
                        tx.actor_mut(actor_ix).invocations.retain(|i| i.id != id);
                        let id = child_id(self.definition.strict, &owner, &id);
                        if let Some(child) = tx.s.actors.position(&id) {
                            tx.cancel_actor(child)?;
                        }
                    }
                    Some(_) => drop(tx.effect(owner, cancel)),
                    None => return tx.finish(Some(snapshot), Verdict::Ignored),
                }
                let fault = Fault::new(FaultCode::Timeout, "timeout").with("retryable", true);
                tx.take_answer(actor_ix, *effect, invocation, Err(fault.error()))?;
            }
            TimerKind::Due { kind, key } => {
                let mut key = Json::from(key.as_ref());
                match budget.unknowns() {
                    // Other obligations may become overdue later.
                    Some(unknowns) => {
                        drop(tx.set_due(actor_ix, *kind));
                        key = unknowns.anything();
                    }
                    None => tx.ledger_mut().set_overdue(*kind, key.as_str().unwrap_or_default()),
                }
                let name = self.ledger_name(*kind);
                let ev = tx.named("charter.overdue", json!({"kind": name, "key": key}), Origin::Platform);
                tx.receive(actor_ix, &ev)?;
            }
        }
        tx.finish(Some(snapshot), Verdict::Ignored)
    }
}

impl StepTransaction<'_> {
    /// Delivers a platform event to an actor.
    fn receive(&mut self, actor_ix: usize, ev: &Ev<'_>) -> Result<(), Refusal> {
        let mut session = Session::new();
        self.before_selection(actor_ix, ev, &mut session)?;
        let enabled = self.select(actor_ix, ev, &mut session)?;
        self.deliver(actor_ix, ev, enabled, session)
    }

    /// Applies the answer of a service. The invocation ends before the event of the answer is
    /// matched.
    pub(super) fn take_answer(
        &mut self,
        actor_ix: usize,
        effect: EffectId,
        invocation: &str,
        outcome: Result<Json, Json>,
    ) -> Result<(), Refusal> {
        self.budget.scan(self.actor(actor_ix).invocations.len());
        let ended = |i: &Invocation| i.effect == effect && i.id.as_ref() == invocation;
        let service = self.actor(actor_ix).invocations.iter().find(|i| ended(i)).map(|i| i.service);
        self.actor_mut(actor_ix).invocations.retain(|i| !ended(i));
        let owner = self.actor(actor_ix).identity().id.clone();
        self.cancel_timers(|t| t.actor == owner && matches!(&t.what, TimerKind::Timeout { effect: e, invocation: i } if *e == effect && i.as_ref() == invocation));
        let numbers = service.filter(|s| *s != NO_SERVICE).and_then(|s| self.m.service(s).answer.as_ref());
        let ev = self.answer_event(invocation, outcome).typed(numbers);
        self.receive(actor_ix, &ev)
    }
}
