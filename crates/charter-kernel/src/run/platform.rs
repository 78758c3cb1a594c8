//! What the platform brings: answers of services, and timers that are due.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::actors::child_id;
use crate::envelope::{EffectId, Envelope};
use crate::event::{Ev, Origin};
use crate::machine::{Machine, NO_SERVICE, RoleSet};
use crate::refusal::{Code, Refusal};
use crate::snapshot::{Held, Invocation, Snapshot, Status, TimerKind};
use crate::step::{EffectKind, Step, Verdict};
use crate::transaction::{Session, StepTransaction};

impl Machine {
    /// Which invocation an answer belongs to: owner and invocation.
    pub(super) fn owner<'s>(
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
            let actor = snapshot.actors.0.get(actor_ix).filter(|a| a.status == Status::Active)?;
            actor.invocations.iter().find(|i| fits(i)).map(|i| (actor_ix, i))
        };
        match &envelope.to {
            Some(to) => of(snapshot.actors.position(to)?),
            None => (0..snapshot.actors.0.len()).find_map(of),
        }
    }

    pub(super) fn answered(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        id: &str,
        effect: Option<EffectId>,
        outcome: Result<Json, Json>,
    ) -> Result<Step, Refusal> {
        let late = || self.unchanged(snapshot, envelope, Verdict::Late);
        if snapshot.status.is_finished() {
            return Ok(late());
        }
        let Some((actor_ix, invocation)) = self.owner(snapshot, envelope, id, effect) else {
            return Ok(late());
        };
        if let Ok(output) = &outcome
            && let Some(schema) = &self.service(invocation.service).output
            && !schema.fits(output)
        {
            return Err(Code::Schema.into());
        }
        let mut work = self.work(snapshot, envelope, RoleSet::SYSTEM);
        let owner = work.actor(actor_ix).identity().id.clone();
        if snapshot.status == Status::Paused {
            // It waits; a second answer to the same effect is late.
            if snapshot.held.iter().any(|h| h.effect == invocation.effect) {
                return Ok(late());
            }
            let held = Held { actor: owner, invocation: invocation.id.clone(), effect: invocation.effect, outcome };
            work.s.held.list().push(Arc::new(held));
            return Ok(work.step(Verdict::Accepted));
        }
        work.take_answer(actor_ix, invocation.effect, id, outcome)?;
        work.finish(Some(snapshot), Verdict::Ignored)
    }

    pub(super) fn timer(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        id: &str,
        generation: u64,
    ) -> Result<Step, Refusal> {
        let timer =
            snapshot.timers.iter().find(|t| t.id.as_ref() == id && t.generation == generation && t.due <= envelope.at);
        let Some(timer) = timer.filter(|_| snapshot.status == Status::Active) else {
            // Of an earlier generation, early, or of a paused or finished run: nothing happens, and the record says so.
            return Ok(self.unchanged(snapshot, envelope, Verdict::Ignored));
        };
        let mut work = self.work(snapshot, envelope, RoleSet::SYSTEM);
        work.s.timers.retain(|t| !(t.id == timer.id && t.generation == generation));
        let Some(actor_ix) = work.s.actors.position(&timer.actor) else {
            return work.finish(Some(snapshot), Verdict::Ignored);
        };
        match &timer.what {
            TimerKind::After { state, index } => {
                let event = usize::try_from(*index)
                    .ok()
                    .and_then(|i| work.chart(actor_ix).state(*state).after.get(i))
                    .map(|a| a.event);
                if let Some(event) = event {
                    let ev = work.known(event, json!({}), Origin::Platform);
                    work.receive(actor_ix, &ev)?;
                }
            }
            TimerKind::Send { to, kind, data, send_id } => {
                let ev = Ev::new(self.events.id(kind), kind.clone(), data.clone(), Origin::Sent);
                work.post(actor_ix, to.clone(), ev, send_id.clone());
            }
            TimerKind::Timeout { invocation, effect } => {
                let owner = work.actor(actor_ix).identity().id.clone();
                let cancel = EffectKind::Cancel { invocation: invocation.clone(), effect: *effect };
                let service = work.actor(actor_ix).invocations.iter().find(|i| i.id == *invocation).map(|i| i.service);
                match service {
                    Some(NO_SERVICE) => {
                        let id = invocation.clone();
                        work.actor_mut(actor_ix).invocations.retain(|i| i.id != id);
                        let id = child_id(self.definition.strict, &owner, &id);
                        if let Some(child) = work.s.actors.position(&id) {
                            work.cancel_actor(child)?;
                        }
                    }
                    Some(_) => drop(work.effect(owner, cancel)),
                    None => return work.finish(Some(snapshot), Verdict::Ignored),
                }
                let error = json!({"code": "timeout", "message": format!("`{invocation}` has not answered in time"), "retryable": true});
                work.take_answer(actor_ix, *effect, invocation, Err(error))?;
            }
            TimerKind::Due { kind, key } => {
                work.ledger_mut().set_overdue(*kind, key);
                let name = self.ledger.get(*kind as usize).map_or("", AsRef::as_ref);
                let ev = work.named("charter.overdue", json!({"kind": name, "key": key.as_ref()}), Origin::Platform);
                work.receive(actor_ix, &ev)?;
            }
        }
        work.finish(Some(snapshot), Verdict::Ignored)
    }
}

impl StepTransaction<'_> {
    /// A platform event reaches an actor.
    fn receive(&mut self, actor_ix: usize, ev: &Ev<'_>) -> Result<(), Refusal> {
        let mut session = Session::new();
        self.before_selection(actor_ix, ev, &mut session)?;
        let enabled = self.select(actor_ix, ev, &mut session)?;
        self.deliver(actor_ix, ev, enabled, session)
    }

    /// The answer of a service is taken: the invocation is over before its event is matched.
    pub(super) fn take_answer(
        &mut self,
        actor_ix: usize,
        effect: EffectId,
        invocation: &str,
        outcome: Result<Json, Json>,
    ) -> Result<(), Refusal> {
        self.actor_mut(actor_ix).invocations.retain(|i| !(i.effect == effect && i.id.as_ref() == invocation));
        let owner = self.actor(actor_ix).identity().id.clone();
        self.cancel_timers(|t| t.actor == owner && matches!(&t.what, TimerKind::Timeout { effect: e, invocation: i } if *e == effect && i.as_ref() == invocation));
        let ev = self.answer_event(invocation, outcome);
        self.receive(actor_ix, &ev)
    }
}
