//! Executable content: a block runs in order and stops at its first error, which becomes an event at the end of the internal queue
//! (SCXML 4 and 5.10). Arguments are evaluated when the action runs, never later.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use smallvec::SmallVec;

use crate::event::{Ev, Meta, Origin};
use crate::ledger::{Entry, EntryStatus};
use crate::machine::{Action, Assign, Block, EventId, NONE, Segment, Send, Src, TypeName};
use crate::refusal::Refusal;
use crate::scope::items;
use crate::snapshot::{Status, TimerKind};
use crate::step::EffectKind;
use crate::work::{Fault, Queued, Session, Work};

/// An action failed, or the whole event has to be refused.
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

/// The way into a context variable: a key or an index each.
type Keys = SmallVec<[Json; 2]>;

/// Where an event of an action goes.
enum Receiver {
    Internal,
    Actor(Arc<str>),
}

impl Work<'_> {
    /// Runs a block; its first error ends it and is queued.
    pub(crate) fn run_block(
        &mut self,
        ai: usize,
        block: &Block,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        if block.is_empty() {
            return Ok(());
        }
        match self.actions(ai, block, ev, &mut Vec::new(), session) {
            Ok(()) => Ok(()),
            Err(Stop::Refuse(refusal)) => Err(refusal),
            Err(Stop::Fault(fault)) => {
                let fault = self.fault_event(fault);
                session.internal.push_back(fault);
                Ok(())
            }
        }
    }

    fn actions(
        &mut self,
        ai: usize,
        block: &Block,
        ev: Option<&Ev<'_>>,
        locals: &mut Vec<Arc<Json>>,
        session: &mut Session,
    ) -> Result<(), Stop> {
        for action in block {
            self.count_action()?;
            self.action(ai, action, ev, locals, session)?;
        }
        Ok(())
    }

    fn action(
        &mut self,
        ai: usize,
        action: &Action,
        ev: Option<&Ev<'_>>,
        locals: &mut Vec<Arc<Json>>,
        session: &mut Session,
    ) -> Result<(), Stop> {
        match action {
            // A named block sees no names bound around its use.
            Action::Named(block) => self.actions(ai, block, ev, &mut Vec::new(), session)?,
            Action::Assign(assigns) => self.assign(ai, assigns, ev, locals)?,
            Action::Raise { kind, data } => {
                let data = data
                    .as_ref()
                    .map(|t| self.eyes(ai, ev, locals).value(t))
                    .transpose()?;
                let (id, name) = self.event_type(ai, kind, ev, locals)?;
                session.internal.push_back(Ev::new(
                    id,
                    name,
                    data.unwrap_or_default(),
                    Origin::Internal,
                ));
            }
            Action::Send(send) => self.send(ai, send, ev, locals, session)?,
            Action::Cancel(id) => {
                let id = self.eyes(ai, ev, locals).text(id)?;
                let actor = self.actor(ai).identity().id.clone();
                self.cancel_timers(|t| {
                    t.actor == actor
                        && matches!(&t.what, TimerKind::Send { send_id: Some(s), .. } if *s == id)
                });
            }
            Action::Emit { kind, data } => {
                let kind = self.eyes(ai, ev, locals).text(kind)?;
                let data = data
                    .as_ref()
                    .map(|t| self.eyes(ai, ev, locals).json(t))
                    .transpose()?
                    .unwrap_or(Json::Null);
                let actor = self.actor(ai).identity().id.clone();
                self.effect(actor, EffectKind::Emit { r#type: kind, data });
            }
            Action::Log { value, label } => {
                let value = self.eyes(ai, ev, locals).json(value)?;
                let actor = self.actor(ai).identity().id.clone();
                self.effect(
                    actor,
                    EffectKind::Log {
                        label: label.clone(),
                        value,
                    },
                );
            }
            Action::Spawn { what, id, input } => {
                let id = self.eyes(ai, ev, locals).text(id)?;
                let input = input
                    .as_ref()
                    .map(|t| self.eyes(ai, ev, locals).value(t))
                    .transpose()?
                    .unwrap_or_default();
                match what {
                    Src::Chart(chart) => self.add_actor(ai, *chart, id, input, false, None)?,
                    Src::Service(service) => self.start_service(ai, *service, id, input, None)?,
                }
            }
            Action::Stop(id) => {
                let id = self.eyes(ai, ev, locals).text(id)?;
                self.stop_actor(ai, &id)?;
            }
            Action::If(branches) => {
                for (when, block) in branches {
                    let holds = match when {
                        None => true,
                        // A condition that fails is false, and an error besides (SCXML 5.9.1): the next branch is tried.
                        Some(program) => match self.eyes(ai, ev, locals).holds(program) {
                            Ok(holds) => holds,
                            Err(e) => {
                                let fault = self.fault_event(e.into());
                                session.internal.push_back(fault);
                                false
                            }
                        },
                    };
                    if holds {
                        return self.actions(ai, block, ev, locals, session);
                    }
                }
            }
            Action::Each {
                list,
                index,
                depth,
                block,
            } => {
                let list = {
                    let eyes = self.eyes(ai, ev, locals);
                    items(&eyes.cel(list)?)?
                };
                for (item, key) in list {
                    locals.truncate(*depth as usize);
                    locals.push(item);
                    if *index {
                        locals.push(key);
                    }
                    self.actions(ai, block, ev, locals, session)?;
                }
                locals.truncate(*depth as usize);
            }
            Action::Grant { .. }
            | Action::Revoke { .. }
            | Action::Open { .. }
            | Action::Close { .. } => self.ledger_action(ai, action, ev, locals)?,
        }
        Ok(())
    }

    fn event_type(
        &self,
        ai: usize,
        kind: &TypeName,
        ev: Option<&Ev<'_>>,
        locals: &[Arc<Json>],
    ) -> Result<(EventId, Arc<str>), Fault> {
        match kind {
            TypeName::Known(id) => Ok((*id, self.event_name(*id))),
            TypeName::Computed(t) => {
                let name = self.eyes(ai, ev, locals).text(t)?;
                Ok((self.m.events.id(&name), name))
            }
        }
    }

    /// All values are computed before the first variable is set; then either all are set or none.
    fn assign(
        &mut self,
        ai: usize,
        assigns: &[Assign],
        ev: Option<&Ev<'_>>,
        locals: &[Arc<Json>],
    ) -> Result<(), Fault> {
        let mut values: SmallVec<[(Arc<Json>, Keys); 2]> = SmallVec::new();
        {
            let eyes = self.eyes(ai, ev, locals);
            for assign in assigns {
                let mut keys = Keys::new();
                for segment in &assign.path {
                    keys.push(match segment {
                        Segment::Key(key) => Json::String(key.to_string()),
                        Segment::Computed(program) => eyes.cel(program)?.to_json()?,
                    });
                }
                values.push((eyes.value(&assign.value)?, keys));
            }
        }
        if let ([assign], [(value, keys)]) = (assigns, values.as_slice())
            && keys.is_empty()
        {
            self.bind(ai, assign.slot, value.clone());
            return Ok(());
        }
        let before = self.actor(ai).context.clone();
        for (assign, (value, keys)) in assigns.iter().zip(values) {
            let Some(place) = self.actor_mut(ai).context.place(assign.slot) else {
                continue;
            };
            if keys.is_empty() {
                *place = Some(value);
                continue;
            }
            let whole = place.get_or_insert_with(|| Arc::new(Json::Object(serde_json::Map::new())));
            if let Err(message) = put(Arc::make_mut(whole), &keys, Json::clone(&value)) {
                let name = self
                    .chart(ai)
                    .shape
                    .slots
                    .get(assign.slot as usize)
                    .map_or("", AsRef::as_ref)
                    .to_string();
                self.actor_mut(ai).context = before;
                return Err(Fault::execution(format!(
                    "cannot assign inside `{name}`: {message}"
                )));
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        ai: usize,
        send: &Send,
        ev: Option<&Ev<'_>>,
        locals: &[Arc<Json>],
        session: &mut Session,
    ) -> Result<(), Fault> {
        let eyes = self.eyes(ai, ev, locals);
        let mut given_id = send.id.as_ref().map(|t| eyes.text(t)).transpose()?;
        if let Some(slot) = send.id_location {
            // The place receives the id even if the event cannot be sent, so that the error can be told by it (SCXML 6.2.1).
            let fresh = self.fresh();
            let made: Arc<str> = format!("send.{fresh}").into();
            self.bind(ai, slot, Arc::new(Json::String(made.to_string())));
            given_id = Some(made);
        }
        let eyes = self.eyes(ai, ev, locals);
        let mut with_id = |mut fault: Fault| {
            fault.send_id.clone_from(&given_id);
            fault
        };
        let data = send
            .data
            .as_ref()
            .map(|t| eyes.value(t))
            .transpose()
            .map_err(|e| with_id(e.into()))?
            .unwrap_or_default();
        let delay = send
            .delay
            .as_ref()
            .map(|d| eyes.delay(d))
            .transpose()
            .map_err(|e| with_id(e.into()))?
            .unwrap_or(0);
        let to = send
            .to
            .as_ref()
            .map(|t| eyes.text(t))
            .transpose()
            .map_err(|e| with_id(e.into()))?;
        let processor = send
            .processor
            .as_ref()
            .map(|t| eyes.text(t))
            .transpose()
            .map_err(|e| with_id(e.into()))?;
        if let Some(p) = processor
            && !matches!(
                p.as_ref(),
                "scxml"
                    | "http://www.w3.org/TR/scxml/"
                    | "http://www.w3.org/TR/scxml/#SCXMLEventProcessor"
                    | "http://www.w3.org/TR/scxml#SCXMLEventProcessor"
            )
        {
            return Err(with_id(Fault::execution(format!(
                "no event processor `{p}`; there is `scxml`"
            ))));
        }
        let (id, name) = self
            .event_type(ai, &send.kind, ev, locals)
            .map_err(&mut with_id)?;
        let receiver = self
            .receiver(ai, to.as_deref(), delay > 0)
            .map_err(&mut with_id)?;
        let send_id = given_id.clone();
        let sender = self.actor(ai).identity().id.clone();
        match receiver {
            Receiver::Internal if delay > 0 => Err(with_id(Fault::execution(
                "an event for the internal queue cannot be delayed",
            ))),
            Receiver::Internal => {
                let mut ev = Ev::new(id, name, data, Origin::Internal);
                if send_id.is_some() {
                    ev.meta = Some(Arc::new(Meta {
                        send_id,
                        ..Meta::default()
                    }));
                }
                session.internal.push_back(ev);
                Ok(())
            }
            Receiver::Actor(to) if delay > 0 => {
                let fresh = self.fresh();
                let timer = format!("{sender}/send/{fresh}").into();
                self.set_timer(
                    timer,
                    sender,
                    delay,
                    TimerKind::Send {
                        to,
                        kind: name,
                        data,
                        send_id,
                    },
                )
                .map_err(with_id)
            }
            Receiver::Actor(to) => {
                self.post(ai, to, Ev::new(id, name, data, Origin::Sent), send_id);
                Ok(())
            }
        }
    }

    /// Puts an event into the queue of another actor (or its own external one).
    pub(crate) fn post(
        &mut self,
        ai: usize,
        to: Arc<str>,
        mut ev: Ev<'static>,
        send_id: Option<Arc<str>>,
    ) {
        let actor = self.actor(ai);
        // The parent of a cancelled actor hears nothing of it any more (SCXML 6.4).
        if actor.status != Status::Active && actor.identity().parent.as_ref() == Some(&to) {
            return;
        }
        let invoke_id = (actor.identity().invocation
            && actor.identity().parent.as_ref() == Some(&to))
        .then(|| crate::actors::invocation_of(self.m.definition.strict, actor));
        let from = actor.identity().id.clone();
        ev.meta = Some(Arc::new(Meta {
            send_id,
            origin: Some(self.session_target(&from).into()),
            invoke_id,
        }));
        self.queue.push_back(Queued {
            to,
            from,
            event: Some(ev),
        });
    }

    /// SCXML's address of an actor of this run: `#_scxml_SESSION`.
    pub(crate) fn session_target(&self, actor: &str) -> String {
        format!(
            "#_scxml_{}",
            crate::scope::session_id(&self.s.run.id, actor)
        )
    }

    fn receiver(&self, ai: usize, to: Option<&str>, later: bool) -> Result<Receiver, Fault> {
        let me = self.actor(ai);
        let actor = |id: &str| {
            // A delayed event may be for somebody who is not there yet.
            let there = self
                .s
                .actors
                .find(id)
                .map(|a| (a.identity().id.clone(), a.status));
            match there {
                // A session that has ended is no session any more (SCXML 6.2.4).
                Some((_, status)) if !self.m.definition.strict && status != Status::Active => Err(
                    Fault::communication(format!("the session `{id}` has ended")),
                ),
                Some((id, _)) => Ok(Receiver::Actor(id)),
                None if later => Ok(Receiver::Actor(id.into())),
                None => Err(Fault::communication(format!("no actor `{id}` in this run"))),
            }
        };
        match to {
            None | Some("self") => Ok(Receiver::Actor(me.identity().id.clone())),
            Some("#_internal") => Ok(Receiver::Internal),
            Some("parent" | "#_parent") => me
                .identity()
                .parent
                .clone()
                .map(Receiver::Actor)
                .ok_or_else(|| Fault::communication("this actor has no parent")),
            Some(to) => {
                if let Some(session) = to.strip_prefix("#_scxml_") {
                    let run = self.s.run.id.as_ref();
                    return match session.strip_prefix(run) {
                        Some("") => actor("root"),
                        Some(rest) => actor(rest.strip_prefix('/').unwrap_or(rest)),
                        None => Err(Fault::communication(format!("no session `{session}`"))),
                    };
                }
                if let Some(id) = to.strip_prefix("#_") {
                    return actor(&crate::actors::child_id(
                        self.m.definition.strict,
                        &me.identity().id,
                        &id.into(),
                    ));
                }
                if !self.m.definition.strict && self.s.actors.find(to).is_none() {
                    return Err(Fault::execution(format!(
                        "`{to}` is not a target that an event can be sent to"
                    )));
                }
                actor(to)
            }
        }
    }

    fn ledger_action(
        &mut self,
        ai: usize,
        action: &Action,
        ev: Option<&Ev<'_>>,
        locals: &[Arc<Json>],
    ) -> Result<(), Fault> {
        let eyes = self.eyes(ai, ev, locals);
        let name = |kind: u32| self.m.ledger.get(kind as usize).map_or("", AsRef::as_ref);
        match action {
            Action::Grant {
                kind,
                key,
                uses,
                expires,
                data,
            } => {
                let key = eyes.text(key)?;
                let uses =
                    match uses.as_ref().map(|t| eyes.json(t)).transpose()? {
                        None | Some(Json::Null) => None,
                        Some(n) => Some(n.as_u64().filter(|n| *n > 0).ok_or_else(|| {
                            Fault::execution("`uses` is a whole number, at least 1")
                        })?),
                    };
                let expires = expires
                    .as_ref()
                    .map(|t| eyes.moment(t))
                    .transpose()?
                    .flatten();
                let data = data
                    .as_ref()
                    .map(|t| eyes.value(t))
                    .transpose()?
                    .unwrap_or_default();
                let status = if expires.is_some_and(|t| t <= self.at) {
                    EntryStatus::Expired
                } else {
                    EntryStatus::Granted
                };
                let entry = Entry {
                    status,
                    uses,
                    expires,
                    due: None,
                    data,
                    how: None,
                };
                let fault = Fault::execution(format!(
                    "the permit `{}` `{key}` was granted before; a key is used once in a run",
                    name(*kind)
                ));
                if self.ledger_mut().insert(*kind, key, entry) {
                    Ok(())
                } else {
                    Err(fault)
                }
            }
            Action::Revoke { kind, key } => {
                let key = key.as_ref().map(|t| eyes.text(t)).transpose()?;
                let fault = || {
                    Fault::execution(format!(
                        "there is no permit `{}` `{}` to revoke",
                        name(*kind),
                        key.as_deref().unwrap_or("")
                    ))
                };
                let fault = fault();
                if self.ledger_mut().revoke(*kind, key.as_deref()) {
                    Ok(())
                } else {
                    Err(fault)
                }
            }
            Action::Open {
                kind,
                key,
                due,
                data,
            } => {
                let key = eyes.text(key)?;
                let due = due.as_ref().map(|t| eyes.moment(t)).transpose()?.flatten();
                let data = data
                    .as_ref()
                    .map(|t| eyes.value(t))
                    .transpose()?
                    .unwrap_or_default();
                let entry = Entry {
                    status: EntryStatus::Open,
                    uses: None,
                    expires: None,
                    due,
                    data,
                    how: None,
                };
                let fault = Fault::execution(format!(
                    "the obligation `{}` `{key}` was opened before; a key is used once in a run",
                    name(*kind)
                ));
                let timer = format!("due/{}/{key}", name(*kind)).into();
                if !self.ledger_mut().insert(*kind, key.clone(), entry) {
                    return Err(fault);
                }
                match due {
                    Some(due) => {
                        let actor = self.actor(ai).identity().id.clone();
                        self.set_timer_at(timer, actor, due, TimerKind::Due { kind: *kind, key })
                    }
                    None => Ok(()),
                }
            }
            Action::Close { kind, key, how } => {
                let key = key.as_ref().map(|t| eyes.text(t)).transpose()?;
                let how = how.as_ref().map(|t| eyes.value(t)).transpose()?;
                let fault = Fault::execution(format!(
                    "the obligation `{}` `{}` is not open",
                    name(*kind),
                    key.as_deref().unwrap_or("")
                ));
                let closed = self.ledger_mut().close(*kind, key.as_deref(), how.as_ref());
                if closed.is_empty() && key.is_some() {
                    return Err(fault);
                }
                let kind = *kind;
                self.cancel_timers(|t| matches!(&t.what, TimerKind::Due { kind: k, key } if *k == kind && closed.contains(key)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Queues `done.invoke.ID` or `error.invoke.ID` for an actor.
    pub(crate) fn answer(
        &mut self,
        to: &Arc<str>,
        from: &Arc<str>,
        invocation: &str,
        outcome: Result<Json, Json>,
    ) {
        let ev = self.answer_event(invocation, outcome);
        self.queue.push_back(Queued {
            to: to.clone(),
            from: from.clone(),
            event: Some(ev),
        });
    }

    pub(crate) fn answer_event(
        &self,
        invocation: &str,
        outcome: Result<Json, Json>,
    ) -> Ev<'static> {
        let (kind, data) = match outcome {
            Ok(output) => ("done", json!({"output": output})),
            Err(error) => ("error", json!({"error": error})),
        };
        let mut ev = self.named(
            &format!("{kind}.invoke.{invocation}"),
            data,
            Origin::Platform,
        );
        ev.meta = Some(Arc::new(Meta {
            invoke_id: Some(invocation.into()),
            ..Meta::default()
        }));
        ev
    }
}

/// Sets a value inside a value. Objects on the way are made; lists take an index, or their length to append.
fn put(mut at: &mut Json, keys: &[Json], value: Json) -> Result<(), String> {
    let mut rest = keys;
    while let Some((key, tail)) = rest.split_first() {
        rest = tail;
        if at.is_null() {
            *at = Json::Object(serde_json::Map::new());
        }
        at = match (at, key) {
            (Json::Object(map), Json::String(key)) => map.entry(key.clone()).or_insert(Json::Null),
            (Json::Object(map), key @ (Json::Number(_) | Json::Bool(_))) => {
                map.entry(key.to_string()).or_insert(Json::Null)
            }
            (Json::Array(list), key) => {
                let len = list.len();
                let index = match key {
                    Json::String(text) => text.parse().ok(),
                    other => other.as_u64().and_then(|i| usize::try_from(i).ok()),
                };
                let index = index
                    .filter(|i| *i <= len)
                    .ok_or_else(|| format!("index {key} of a list of {len}"))?;
                if index == len {
                    list.push(Json::Null);
                }
                list.get_mut(index)
                    .ok_or_else(|| format!("index {key} of a list of {len}"))?
            }
            (other, key) => return Err(format!("{key} of {}", kind_of(other))),
        };
    }
    *at = value;
    Ok(())
}

fn kind_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a bool",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// Stands for the number of the service of an invoked machine.
pub(crate) const NO_SERVICE: u32 = NONE;
