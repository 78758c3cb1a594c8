//! Converts a snapshot to JSON, with names instead of indices, and back.
//! `restore(snapshot_json(s)) == s`, even if a JSON library changes the form of numbers in between.

mod error;
mod form;
mod write;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::actors::{MACHINE_EFFECT, new_actor};
use crate::definition::StateKind;
use crate::envelope::EffectId;
use crate::ledger::{Entry, EntryStatus, Kind, Ledger};
use crate::machine::{Chart, Machine, NO_SERVICE, StateId};
use crate::snapshot::{
    Actor, Actors, Held, Identity, Invocation, LengthBound, RunName, Snapshot, Timer, TimerKind, Vote,
};
pub use error::RestoreError;
use form::{ActorForm, EntryForm, HeldForm, Names, SnapshotForm, TimerForm, WhatForm};

fn effect_of(text: Option<&str>) -> Result<EffectId, RestoreError> {
    match text {
        None => Ok(MACHINE_EFFECT),
        Some(text) => EffectId::parse(text).ok_or_else(|| RestoreError::Effect(text.into())),
    }
}

/// Makes the numbers in the data of a snapshot canonical.
fn data(mut json: Json) -> Arc<Json> {
    charter_expr::json::normalize(&mut json);
    Arc::new(json)
}

impl Machine {
    /// Reads a snapshot and checks it against this machine: the digest, the states, the
    /// configuration.
    ///
    /// # Errors
    /// Returns what does not match. A snapshot of another charter is refused.
    pub fn restore(&self, json: &Json) -> Result<Snapshot, RestoreError> {
        let form = SnapshotForm::deserialize(json).map_err(|e| RestoreError::Form(e.to_string()))?;
        if form.v != 1 {
            return Err(RestoreError::Version(form.v));
        }
        if form.charter != self.digest {
            return Err(RestoreError::OtherCharter { snapshot: form.charter, charter: self.digest });
        }
        let mut actors: SmallVec<[Arc<Actor>; 1]> = SmallVec::new();
        for actor in form.actors {
            let actor = self.actor_of(actor, form.status.is_finished())?;
            // A run that ends keeps its actors as they were, also one that ended in the last step
            // and was invoked again in it.
            let is_known = actors.iter().any(|a| a.identity().id == actor.identity().id);
            if is_known && !form.status.is_finished() {
                return Err(RestoreError::DuplicateActor(actor.identity().id.as_ref().into()));
            }
            actors.push(Arc::new(actor));
        }
        if actors.first().is_none_or(|a| a.identity().id.as_ref() != "root" || a.chart() != 0) {
            return Err(RestoreError::NoRoot);
        }
        let odd = actors.iter().enumerate().find(|(i, a)| a.identity().parent.is_none() != (*i == 0));
        if let Some((_, actor)) = odd {
            return Err(RestoreError::Parent(actor.identity().id.as_ref().into()));
        }
        let actors = Actors::new(actors);
        let mut timers: Vec<Arc<Timer>> = Vec::with_capacity(form.timers.len());
        for timer in form.timers {
            timers.push(Arc::new(self.timer_of(&actors, timer)?));
        }
        if !timers.is_sorted_by_key(|t| (t.due, t.generation)) {
            return Err(RestoreError::TimerOrder);
        }
        let held = form.held.into_iter().map(held_of).collect::<Result<_, _>>()?;
        Ok(Snapshot {
            run: Arc::new(RunName {
                id: form.run.into(),
                charter: self.definition.id.as_str().into(),
                digest: self.digest,
            }),
            seq: form.seq,
            status: form.status,
            paused_at: form.paused_at,
            output: form.output.map(data),
            actors,
            timers,
            ledger: self.ledger_of(form.ledger)?,
            held,
            counter: form.counter,
            length: LengthBound::UNKNOWN,
        })
    }

    /// `finished` is whether the run has ended.
    fn actor_of(&self, form: ActorForm, finished: bool) -> Result<Actor, RestoreError> {
        let Some(chart) = self.charts.iter().find(|c| c.shape.machine.as_ref() == form.machine) else {
            return Err(RestoreError::UnknownMachine(form.machine));
        };
        let state = |path: &str| {
            let unknown = || RestoreError::UnknownState { machine: form.machine.clone(), state: path.into() };
            chart.path_to(path).ok_or_else(unknown)
        };
        let mut actor = new_actor(Identity {
            id: form.id.as_str().into(),
            parent: form.parent.map(|p| p.as_str().into()),
            invocation: form.invoked,
            input: data(form.input),
            shape: chart.shape.clone(),
        });
        actor.status = form.status;
        // An actor that was spawned when the run ended never started, so it has no states.
        let started = !(finished && form.active.is_empty());
        if started {
            actor.configuration.push(0);
        }
        for path in &form.active {
            actor.configuration.push(state(path)?);
        }
        if started && (!actor.configuration.is_sorted_by(|a, b| a < b) || !is_legal(chart, &actor)) {
            return Err(RestoreError::Configuration { actor: form.id, states: form.active });
        }
        for (history, states) in &form.history {
            let history = state(history)?;
            let node = chart.state(history);
            let states: SmallVec<[StateId; 4]> = states.iter().map(|s| state(s)).collect::<Result<_, _>>()?;
            if !node.is_history() || states.iter().any(|s| !chart.inside(*s, node.parent)) {
                return Err(RestoreError::History(chart.path(history).as_ref().into()));
            }
            actor.history.list().push((history, states));
        }
        if !actor.history.is_empty() {
            actor.history.list().sort_by_key(|(h, _)| *h);
        }
        for (name, value) in form.context {
            let slot = chart.shape.slot(&name).and_then(|s| actor.context.place(s));
            let Some(slot) = slot else {
                return Err(RestoreError::UnknownVariable { actor: form.id, name });
            };
            *slot = Some(data(value));
        }
        actor.output = form.output.map(data);
        for i in form.invocations {
            let service = match (&i.effect, self.services.iter().zip(0u32..).find(|(s, _)| s.name.as_ref() == i.src)) {
                (Some(_), Some((_, n))) => n,
                (None, _) => NO_SERVICE,
                (Some(_), None) => return Err(RestoreError::UnknownActor(i.src)),
            };
            actor.invocations.push(Arc::new(Invocation {
                id: i.id.as_str().into(),
                src: i.src.as_str().into(),
                effect: effect_of(i.effect.as_deref())?,
                service,
                state: i.state.as_deref().map(state).transpose()?,
                input: data(i.input),
            }));
        }
        for v in form.votes {
            let Some((_, transition)) =
                chart.transitions.iter().zip(0u32..).find(|(t, _)| t.name.as_ref() == v.transition)
            else {
                return Err(RestoreError::UnknownTransition(v.transition));
            };
            actor.votes.list().push(Vote {
                transition,
                digest: v.digest,
                by: v.by.into_iter().map(String::into_boxed_str).collect(),
            });
        }
        for path in &form.bound {
            actor.bound.list().push(state(path)?);
        }
        Ok(actor)
    }

    fn timer_of(&self, actors: &Actors, form: TimerForm) -> Result<Timer, RestoreError> {
        let Some(actor) = actors.find(&form.actor) else {
            return Err(RestoreError::TimerWithoutActor(form.id));
        };
        let what = match form.what {
            WhatForm::After { state, index } => {
                let chart = self.chart(actor.chart());
                let found = chart.path_to(&state).filter(|s| chart.state(*s).after.len() > index as usize);
                let Some(state) = found else {
                    return Err(RestoreError::UnknownAfter(state));
                };
                TimerKind::After { state, index }
            }
            WhatForm::Send { to, r#type, data: d, id } => TimerKind::Send {
                to: to.as_str().into(),
                kind: r#type.as_str().into(),
                data: data(d),
                send_id: id.map(|i| i.as_str().into()),
            },
            WhatForm::Timeout { invocation, effect } => {
                TimerKind::Timeout { invocation: invocation.as_str().into(), effect: effect_of(effect.as_deref())? }
            }
            WhatForm::Due { kind, key } => {
                let Some(kind) = self.ledger_kind(&kind) else {
                    return Err(RestoreError::UnknownLedgerKind(kind));
                };
                TimerKind::Due { kind, key: key.as_str().into() }
            }
        };
        Ok(Timer {
            id: form.id.as_str().into(),
            generation: form.generation,
            due: form.due,
            actor: actor.identity().id.clone(),
            what,
        })
    }

    fn ledger_kind(&self, name: &str) -> Option<u32> {
        self.ledger.iter().zip(0u32..).find(|(n, _)| n.as_ref() == name).map(|(_, i)| i)
    }

    fn ledger_of(&self, form: Names<Names<EntryForm>>) -> Result<Option<Arc<Ledger>>, RestoreError> {
        if self.ledger.is_empty() && form.is_empty() {
            return Ok(None);
        }
        let mut ledger = Ledger::new(&self.ledger);
        for (kind, entries) in form {
            let place = self.ledger_kind(&kind).and_then(|k| ledger.kinds.get_mut(k as usize));
            let Some(place) = place else {
                return Err(RestoreError::UnknownLedgerKind(kind));
            };
            let mut restored = Kind::default();
            for (key, e) in entries {
                let Some(status) = EntryStatus::parse(&e.status) else {
                    return Err(RestoreError::EntryStatus(e.status));
                };
                let entry = Entry {
                    status,
                    uses: e.uses,
                    expires: e.expires,
                    due: e.due,
                    data: data(e.data),
                    how: e.how.map(data),
                };
                restored.entries.insert(key.as_str().into(), Arc::new(entry));
            }
            *place = restored;
        }
        Ok(Some(Arc::new(ledger)))
    }
}

fn held_of(form: HeldForm) -> Result<Arc<Held>, RestoreError> {
    let plain = |j: Json| Json::clone(&data(j));
    let outcome = match (form.done, form.error) {
        (Some(output), None) => Ok(plain(output)),
        (None, Some(error)) => Err(plain(error)),
        _ => return Err(RestoreError::Held),
    };
    let (actor, invocation) = (form.actor.as_str().into(), form.invocation.as_str().into());
    Ok(Arc::new(Held { actor, invocation, effect: effect_of(Some(&form.effect))?, outcome }))
}

impl Chart {
    fn path_to(&self, path: &str) -> Option<StateId> {
        // `names` almost always leads from a path to its state. A search is needed only if the path
        // is also the id of another state.
        let found = self.find(path).filter(|s| self.path(*s).as_ref() == path);
        found.or_else(|| self.shape.paths.iter().zip(0u32..).find(|(p, _)| p.as_ref() == path).map(|(_, i)| i))
    }
}

/// Whether these states can be active together: each has an active parent; a compound state has one
/// active child, a parallel state all of them.
fn is_legal(chart: &Chart, actor: &Actor) -> bool {
    actor.configuration.iter().all(|s| {
        let node = chart.state(*s);
        let active = node.children.iter().filter(|c| actor.is_active(**c)).count();
        let children = match node.kind {
            StateKind::Compound => active == 1,
            StateKind::Parallel => active == node.children.len(),
            StateKind::Atomic | StateKind::Final => true,
            StateKind::Shallow | StateKind::Deep => false,
        };
        children && (*s == 0 || actor.is_active(node.parent))
    })
}
