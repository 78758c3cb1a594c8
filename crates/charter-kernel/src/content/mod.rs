//! Executable content: a block runs in order and stops at its first error, which is queued as an
//! event at the end of the internal queue (SCXML 4 and 5.10). Arguments are evaluated when the
//! action runs.

mod assign;
mod each;
mod ledger;
mod send;

use std::sync::Arc;

use serde_json::Value as Json;

use crate::budget::Work;
use crate::event::{Ev, Origin};
use crate::fault::Fault;
use crate::machine::{Action, Block, EventId, Src, Template, TypeName};
use crate::refusal::Refusal;
use crate::scope::Local;
use crate::snapshot::TimerKind;
use crate::step::EffectKind;
use crate::transaction::{EVENT_BYTES, Session, StepTransaction};

/// Why a block stopped: an action failed, or the event has to be refused.
pub(crate) enum Stop {
    Fault(Fault),
    Refuse(Refusal),
}

impl<T: Into<Fault>> From<T> for Stop {
    fn from(fault: T) -> Stop {
        Stop::Fault(fault.into())
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refuse(refusal)
    }
}

impl StepTransaction<'_> {
    /// Executes a block; the first error ends it and raises an error event in the internal queue.
    pub(crate) fn run_block(
        &mut self,
        actor_ix: usize,
        block: &Block,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        if block.is_empty() {
            return Ok(());
        }
        match self.actions(actor_ix, block, ev, &mut Vec::new(), session) {
            Ok(()) => Ok(()),
            Err(Stop::Refuse(refusal)) => Err(refusal),
            Err(Stop::Fault(fault)) => {
                self.raise_fault(actor_ix, fault, session);
                Ok(())
            }
        }
    }

    fn actions(
        &mut self,
        actor_ix: usize,
        block: &Block,
        ev: Option<&Ev<'_>>,
        locals: &mut Vec<Local>,
        session: &mut Session,
    ) -> Result<(), Stop> {
        for action in block {
            self.count_action()?;
            if matches!(action, Action::Assign(_) | Action::Spawn { .. } | Action::Stop(_)) {
                self.count_change();
            }
            self.action(actor_ix, action, ev, locals, session)?;
        }
        Ok(())
    }

    fn action(
        &mut self,
        actor_ix: usize,
        action: &Action,
        ev: Option<&Ev<'_>>,
        locals: &mut Vec<Local>,
        session: &mut Session,
    ) -> Result<(), Stop> {
        match action {
            // A named block does not see the local variables at the place where it is used.
            Action::Named(block) => self.actions(actor_ix, block, ev, &mut Vec::new(), session)?,
            Action::Assign(assigns) => self.assign(actor_ix, assigns, ev, locals)?,
            Action::Raise { kind, data } => {
                let data = data.as_ref().map(|t| self.context(actor_ix, ev, locals).value(t)).transpose()?;
                let (id, name) = self.event_type(actor_ix, kind, ev, locals)?;
                self.budget.build(EVENT_BYTES, Work::Actions);
                session.internal.push_back(self.sent(id, name, data.unwrap_or_default(), Origin::Internal));
            }
            Action::Send(send) => self.send(actor_ix, send, ev, locals, session)?,
            Action::Cancel(id) => {
                let id = self.context(actor_ix, ev, locals).text(id)?;
                let actor = self.actor(actor_ix).identity().id.clone();
                self.cancel_timers(|t| {
                    t.actor == actor && matches!(&t.what, TimerKind::Send { send_id: Some(s), .. } if *s == id)
                });
            }
            Action::Emit { kind, data } => {
                let kind = self.context(actor_ix, ev, locals).text(kind)?;
                let data = data
                    .as_ref()
                    .map(|t| self.context(actor_ix, ev, locals).json(t))
                    .transpose()?
                    .unwrap_or(Json::Null);
                let actor = self.actor(actor_ix).identity().id.clone();
                self.effect(actor, EffectKind::Emit { r#type: kind, data });
            }
            Action::Log { value, label } => {
                let value = self.context(actor_ix, ev, locals).json(value)?;
                let actor = self.actor(actor_ix).identity().id.clone();
                self.effect(actor, EffectKind::Log { label: label.clone(), value });
            }
            Action::Spawn { what, id, input } => {
                let Some(id) = self.spawned_id(actor_ix, *what, id, ev, locals)? else { return Ok(()) };
                let input = input
                    .as_ref()
                    .map(|t| self.context(actor_ix, ev, locals).value(t))
                    .transpose()?
                    .unwrap_or_default();
                match what {
                    Src::Chart(chart) => self.add_actor(actor_ix, *chart, id, input, false, None)?,
                    Src::Service(service) => self.start_service(actor_ix, *service, id, input, None)?,
                }
            }
            Action::Stop(id) => {
                let id = self.context(actor_ix, ev, locals).text(id)?;
                self.stop_actor(actor_ix, &id)?;
            }
            Action::If(branches) => {
                for (when, block) in branches {
                    let holds = match when {
                        None => true,
                        // A condition that cannot be evaluated counts as false and raises an error
                        // (SCXML 5.9.1); the next branch is tried.
                        Some(program) => match self.context(actor_ix, ev, locals).holds(program) {
                            Ok(holds) => holds,
                            Err(e) => {
                                self.raise_fault(actor_ix, e.into(), session);
                                false
                            }
                        },
                    };
                    if holds {
                        return self.actions(actor_ix, block, ev, locals, session);
                    }
                }
            }
            Action::Each { list, index, depth, block } => {
                let list = {
                    let ctx = self.context(actor_ix, ev, locals);
                    each::items(&ctx.cel(list)?, list.source(), self.budget)?
                };
                for (item, key) in list {
                    locals.truncate(*depth as usize);
                    locals.push(item);
                    if *index {
                        locals.push(key);
                    }
                    self.actions(actor_ix, block, ev, locals, session)?;
                }
                locals.truncate(*depth as usize);
            }
            Action::Grant { .. } | Action::Revoke { .. } | Action::Open { .. } | Action::Close { .. } => {
                self.ledger_action(actor_ix, action, ev, locals)?
            }
        }
        Ok(())
    }

    /// The id of an actor that is spawned; `None` if an analysis does not follow it.
    fn spawned_id(
        &self,
        actor_ix: usize,
        what: Src,
        id: &Template,
        ev: Option<&Ev<'_>>,
        locals: &[Local],
    ) -> Result<Option<Arc<str>>, Fault> {
        let ctx = self.context(actor_ix, ev, locals);
        if let (Some(unknowns), Src::Chart(chart)) = (self.budget.unknowns(), what)
            && unknowns.is_unknown(&*ctx.value(id)?)
        {
            return self.spawned_as(chart, unknowns);
        }
        Ok(Some(ctx.text(id)?))
    }

    fn event_type(
        &self,
        actor_ix: usize,
        kind: &TypeName,
        ev: Option<&Ev<'_>>,
        locals: &[Local],
    ) -> Result<(EventId, Arc<str>), Fault> {
        match kind {
            TypeName::Known(id) => Ok((*id, self.event_name(*id))),
            TypeName::Computed(t) => {
                let name = self.context(actor_ix, ev, locals).text(t)?;
                Ok((self.m.events.id(&name), name))
            }
        }
    }
}
