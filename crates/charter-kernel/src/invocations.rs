//! Invocations of an actor: machines and services start at the end of the macrostep that enters
//! their state, and end when it is exited (SCXML 6.4).

use std::sync::Arc;

use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::actors::child_id;
use crate::budget::Work;
use crate::event::Ev;
use crate::fault::{Fault, FaultCode};
use crate::machine::{NO_SERVICE, Src, StateId};
use crate::refusal::Refusal;
use crate::snapshot::{Invocation, TimerKind};
use crate::step::EffectKind;
use crate::transaction::{EVENT_BYTES, Queued, Session, StepTransaction};

impl StepTransaction<'_> {
    /// Prepares for matching an external event: runs `finalize` of the invocation that the event
    /// comes from, and forwards the event to the invocations with `autoforward`.
    pub(crate) fn before_selection(
        &mut self,
        actor_ix: usize,
        ev: &Ev<'_>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let chart = self.chart(actor_ix);
        if !chart.forwards {
            return Ok(());
        }
        let from = ev.meta.as_ref().and_then(|m| m.invoke_id.clone());
        let states = self.actor(actor_ix).configuration.clone();
        self.budget.scan(states.len());
        let mut forwarded: Option<Ev<'static>> = None;
        for state in states {
            self.budget.check()?;
            for number in &chart.state(state).invokes {
                let invoke = chart.invoke(*number);
                if from.as_deref() == Some(invoke.id.as_ref()) {
                    self.run_block(actor_ix, &invoke.finalize, Some(ev), session)?;
                }
                self.budget.scan(self.actor(actor_ix).invocations.len());
                if invoke.autoforward && self.actor(actor_ix).invocations.iter().any(|i| i.id == invoke.id) {
                    let parent = self.actor(actor_ix).identity().id.clone();
                    let to = child_id(self.m.definition.strict, &parent, &invoke.id);
                    if forwarded.is_none() {
                        self.budget.copy(ev.data(), Work::Actions);
                    }
                    self.budget.build(EVENT_BYTES, Work::Actions);
                    self.budget.check()?;
                    // The copies share their data.
                    let event = forwarded.get_or_insert_with(|| ev.clone().into_owned()).clone();
                    self.queue.push_back(Queued { to, from: parent, event: Some(event) });
                }
            }
        }
        Ok(())
    }

    /// Starts the invocations of a state that is still active at the end of the macrostep.
    pub(crate) fn start_invocations(
        &mut self,
        actor_ix: usize,
        state: StateId,
        ev: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let chart = self.chart(actor_ix);
        for number in &chart.state(state).invokes {
            let invoke = chart.invoke(*number);
            let input = match invoke.input.as_ref().map(|t| self.context(actor_ix, ev, &[]).value(t)).transpose() {
                Ok(input) => input.unwrap_or_default(),
                Err(e) => {
                    self.raise_fault(actor_ix, e.into(), session);
                    continue;
                }
            };
            let src = match self.chosen(actor_ix, invoke, ev) {
                Ok(src) => src,
                Err(fault) => {
                    self.raise_fault(actor_ix, fault, session);
                    continue;
                }
            };
            if let Some(slot) = invoke.id_location {
                self.bind(actor_ix, slot, Arc::new(Json::String(invoke.id.to_string())));
            }
            let started = match src {
                Src::Chart(chart) => self.add_actor(actor_ix, chart, invoke.id.clone(), input, true, Some(state)),
                Src::Service(service) => self.start_service(actor_ix, service, invoke.id.clone(), input, Some(state)),
            };
            let started = started.and_then(|()| self.start_timeout(actor_ix, *number, ev));
            if let Err(fault) = started {
                match fault.code {
                    FaultCode::Schema => {
                        let failed = self.answer_event(&invoke.id, Err(fault.error()));
                        session.internal.push_back(failed);
                    }
                    _ => self.raise_fault(actor_ix, fault, session),
                }
            }
        }
        Ok(())
    }

    /// Returns what an invocation starts: the source that it names, or the one that the value of an
    /// expression selects.
    fn chosen(&self, actor_ix: usize, invoke: &crate::machine::Invoke, ev: Option<&Ev<'_>>) -> Result<Src, Fault> {
        let Some((program, machines)) = &invoke.choose else {
            return Ok(invoke.src);
        };
        let value = self.context(actor_ix, ev, &[]).cel(program)?;
        let text = value.as_str().unwrap_or_default();
        if let Some(unknowns) = self.budget.unknowns().filter(|u| u.is_unknown(&text.into())) {
            let ways = u32::try_from(machines.len()).unwrap_or(u32::MAX).saturating_add(1);
            let src = machines.get(unknowns.choose(ways) as usize).map(|(_, src)| *src);
            return src.ok_or_else(|| Fault::execution("no-machine"));
        }
        let found = machines.iter().find(|(known, _)| known.as_ref() == text).map(|(_, src)| *src);
        found.ok_or_else(|| Fault::execution("no-machine").with("name", text.chars().take(60).collect::<String>()))
    }

    fn start_timeout(&mut self, actor_ix: usize, number: u32, ev: Option<&Ev<'_>>) -> Result<(), Fault> {
        let invoke = self.chart(actor_ix).invoke(number);
        let of_service = match invoke.src {
            Src::Service(s) => self.m.service(s).timeout.as_ref(),
            Src::Chart(_) => None,
        };
        let Some(delay) = invoke.timeout.as_ref().or(of_service) else {
            return Ok(());
        };
        let delay = self.context(actor_ix, ev, &[]).delay(delay)?;
        let actor = self.actor(actor_ix).identity().id.clone();
        let Some(effect) = self.actor(actor_ix).invocations.iter().find(|i| i.id == invoke.id).map(|i| i.effect) else {
            return Ok(());
        };
        let timer = format!("{actor}/timeout/{}", invoke.id).into();
        self.set_timer(timer, actor, delay, TimerKind::Timeout { invocation: invoke.id.clone(), effect })
    }

    /// Requests a service from the host.
    pub(crate) fn start_service(
        &mut self,
        actor_ix: usize,
        service: u32,
        id: Arc<str>,
        input: Arc<Json>,
        state: Option<StateId>,
    ) -> Result<(), Fault> {
        self.budget.scan(self.actor(actor_ix).invocations.len());
        if self.actor(actor_ix).invocations.iter().any(|i| i.id == id) {
            return Err(Fault::execution("invocation-exists").with("name", &*id));
        }
        let decl = self.m.service(service);
        if let Some(schema) = &decl.input {
            Fault::unless_fits(&decl.name, schema, &input, self.budget)?;
        }
        let actor = self.actor(actor_ix).identity().id.clone();
        let kind = EffectKind::Invoke {
            invocation: id.clone(),
            src: decl.name.clone(),
            service: decl.kind.clone(),
            input: input.clone(),
        };
        let effect = self.effect(actor, kind);
        self.actor_mut(actor_ix).invocations.push(Arc::new(Invocation {
            id,
            src: decl.name.clone(),
            effect,
            service,
            state,
            input,
        }));
        Ok(())
    }

    /// Cancels the invocations of a state that is exited; `None`: all invocations of an actor that
    /// ends.
    pub(crate) fn cancel_invocations(&mut self, actor_ix: usize, state: Option<StateId>) -> Result<(), Refusal> {
        self.budget.scan(self.actor(actor_ix).invocations.len());
        self.budget.check()?;
        let of_state = |i: &Invocation| state.is_none() || i.state == state;
        let gone: SmallVec<[Arc<Invocation>; 2]> =
            self.actor(actor_ix).invocations.iter().filter(|i| of_state(i)).cloned().collect();
        if gone.is_empty() {
            return Ok(());
        }
        self.actor_mut(actor_ix).invocations.retain(|i| !of_state(i));
        for invocation in gone {
            self.end_invocation(actor_ix, &invocation)?;
        }
        Ok(())
    }

    pub(super) fn end_invocation(&mut self, actor_ix: usize, invocation: &Invocation) -> Result<(), Refusal> {
        let owner = self.actor(actor_ix).identity().id.clone();
        self.cancel_timers(|t| {
            t.actor == owner && matches!(&t.what, TimerKind::Timeout { invocation: i, .. } if *i == invocation.id)
        });
        if invocation.service == NO_SERVICE {
            let id = child_id(self.m.definition.strict, &owner, &invocation.id);
            match self.s.actors.position(&id).filter(|c| self.actor(*c).identity().parent.as_ref() == Some(&owner)) {
                Some(child) => self.cancel_actor(child),
                None => Ok(()),
            }
        } else {
            self.effect(owner, EffectKind::Cancel { invocation: invocation.id.clone(), effect: invocation.effect });
            Ok(())
        }
    }
}
