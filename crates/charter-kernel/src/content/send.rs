//! `send`: the receiver of an event, delays, and the events for the answers of services.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::budget::Work;
use crate::event::{Ev, Meta, Origin};
use crate::fault::Fault;
use crate::machine::Send;
use crate::scope::Local;
use crate::snapshot::{Status, TimerKind};
use crate::time::Millis;
use crate::transaction::{EVENT_BYTES, Queued, Session, StepTransaction};

/// The receiver of an event that an action sends.
enum Receiver {
    Internal,
    Actor(Arc<str>),
}

impl StepTransaction<'_> {
    pub(super) fn send(
        &mut self,
        actor_ix: usize,
        send: &Send,
        ev: Option<&Ev<'_>>,
        locals: &[Local],
        session: &mut Session,
    ) -> Result<(), Fault> {
        let ctx = self.context(actor_ix, ev, locals);
        let mut given_id = send.id.as_ref().map(|t| ctx.text(t)).transpose()?;
        if let Some(slot) = send.id_location {
            // The location is set even if the event cannot be sent, so that the error can be
            // matched to it (SCXML 6.2.1).
            let fresh = self.fresh();
            let made: Arc<str> = format!("send.{fresh}").into();
            self.bind(actor_ix, slot, Arc::new(Json::String(made.to_string())));
            given_id = Some(made);
        }
        let ctx = self.context(actor_ix, ev, locals);
        let mut with_id = |mut fault: Fault| {
            fault.send_id.clone_from(&given_id);
            fault
        };
        let data =
            send.data.as_ref().map(|t| ctx.value(t)).transpose().map_err(|e| with_id(e.into()))?.unwrap_or_default();
        let delay =
            send.delay.as_ref().map(|d| ctx.delay(d)).transpose().map_err(|e| with_id(e.into()))?.unwrap_or_default();
        let to = send.to.as_ref().map(|t| ctx.text(t)).transpose().map_err(|e| with_id(e.into()))?;
        let processor = send.processor.as_ref().map(|t| ctx.text(t)).transpose().map_err(|e| with_id(e.into()))?;
        if let Some(p) = processor
            && !matches!(
                p.as_ref(),
                "scxml"
                    | "http://www.w3.org/TR/scxml/"
                    | "http://www.w3.org/TR/scxml/#SCXMLEventProcessor"
                    | "http://www.w3.org/TR/scxml#SCXMLEventProcessor"
            )
        {
            return Err(with_id(Fault::execution("event-processor").with("name", &*p)));
        }
        let (id, name) = self.event_type(actor_ix, &send.kind, ev, locals).map_err(&mut with_id)?;
        let receiver = self.receiver(actor_ix, to.as_deref(), delay > Millis(0)).map_err(&mut with_id)?;
        let send_id = given_id.clone();
        let sender = self.actor(actor_ix).identity().id.clone();
        match receiver {
            Receiver::Internal if delay > Millis(0) => Err(with_id(Fault::execution("delayed-internal"))),
            Receiver::Internal => {
                self.budget.build(EVENT_BYTES, Work::Actions);
                let mut ev = self.sent(id, name, data, Origin::Internal);
                if send_id.is_some() {
                    ev.meta = Some(Arc::new(Meta { send_id, ..Meta::default() }));
                }
                session.internal.push_back(ev);
                Ok(())
            }
            Receiver::Actor(to) if delay > Millis(0) => {
                let fresh = self.fresh();
                let timer = format!("{sender}/send/{fresh}").into();
                self.set_timer(timer, sender, delay, TimerKind::Send { to, kind: name, data, send_id }).map_err(with_id)
            }
            Receiver::Actor(to) => {
                let ev = self.sent(id, name, data, Origin::Sent);
                self.post(actor_ix, to, ev, send_id);
                Ok(())
            }
        }
    }

    /// Puts an event into the queue of another actor, or into the actor's own external queue.
    pub(crate) fn post(&mut self, actor_ix: usize, to: Arc<str>, mut ev: Ev<'static>, send_id: Option<Arc<str>>) {
        let actor = self.actor(actor_ix);
        // The parent of a cancelled actor gets no more events from it (SCXML 6.4).
        if actor.status != Status::Active && actor.identity().parent.as_ref() == Some(&to) {
            return;
        }
        let invoke_id = (actor.identity().invocation && actor.identity().parent.as_ref() == Some(&to))
            .then(|| crate::actors::invocation_of(self.m.definition.strict, actor));
        let from = actor.identity().id.clone();
        let names = (from.len() as u64).saturating_add(self.s.run.id.len() as u64);
        self.budget.build(EVENT_BYTES.saturating_add(names), Work::Actions);
        ev.meta = Some(Arc::new(Meta { send_id, origin: Some(self.session_target(&from).into()), invoke_id }));
        self.queue.push_back(Queued { to, from, event: Some(ev) });
    }

    /// Returns the SCXML address of an actor of this run: `#_scxml_SESSION`.
    pub(crate) fn session_target(&self, actor: &str) -> String {
        format!("#_scxml_{}", crate::scope::session_id(&self.s.run.id, actor))
    }

    fn receiver(&self, actor_ix: usize, to: Option<&str>, later: bool) -> Result<Receiver, Fault> {
        let me = self.actor(actor_ix);
        let actor = |id: &str| {
            // A delayed event may be for an actor that does not exist yet.
            let there = self.s.actors.find(id).map(|a| (a.identity().id.clone(), a.status));
            match there {
                // A session that has ended cannot be addressed (SCXML 6.2.4).
                Some((_, status)) if !self.m.definition.strict && status != Status::Active => {
                    Err(Fault::communication("session-ended").with("name", id))
                }
                Some((id, _)) => Ok(Receiver::Actor(id)),
                None if later => Ok(Receiver::Actor(id.into())),
                None => Err(Fault::communication("no-actor").with("name", id)),
            }
        };
        match to {
            None | Some("self") => Ok(Receiver::Actor(me.identity().id.clone())),
            Some("#_internal") => Ok(Receiver::Internal),
            Some("parent" | "#_parent") => {
                me.identity().parent.clone().map(Receiver::Actor).ok_or_else(|| Fault::communication("no-parent"))
            }
            Some(to) => {
                if let Some(session) = to.strip_prefix("#_scxml_") {
                    let run = self.s.run.id.as_ref();
                    return match session.strip_prefix(run) {
                        Some("") => actor("root"),
                        Some(rest) => actor(rest.strip_prefix('/').unwrap_or(rest)),
                        None => Err(Fault::communication("no-session").with("name", session)),
                    };
                }
                if let Some(id) = to.strip_prefix("#_") {
                    return actor(&crate::actors::child_id(self.m.definition.strict, &me.identity().id, &id.into()));
                }
                if !self.m.definition.strict && self.s.actors.find(to).is_none() {
                    return Err(Fault::execution("invalid-target").with("name", to));
                }
                actor(to)
            }
        }
    }

    /// Queues `done.invoke.ID` or `error.invoke.ID` for an actor.
    pub(crate) fn answer(&mut self, to: &Arc<str>, from: &Arc<str>, invocation: &str, outcome: Result<Json, Json>) {
        let ev = self.answer_event(invocation, outcome);
        self.queue.push_back(Queued { to: to.clone(), from: from.clone(), event: Some(ev) });
    }

    pub(crate) fn answer_event(&self, invocation: &str, outcome: Result<Json, Json>) -> Ev<'static> {
        let (kind, data) = match outcome {
            Ok(output) => ("done", json!({"output": output})),
            Err(error) => ("error", json!({"error": error})),
        };
        let mut ev = self.named(&format!("{kind}.invoke.{invocation}"), data, Origin::Platform);
        ev.meta = Some(Arc::new(Meta { invoke_id: Some(invocation.into()), ..Meta::default() }));
        ev
    }
}
