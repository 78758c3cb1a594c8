//! From a snapshot to its form: numbers become names.

use std::sync::Arc;

use serde_json::Value as Json;

use super::form::{ActorForm, EntryForm, HeldForm, InvocationForm, Names, SnapshotForm, TimerForm, VoteForm, WhatForm};
use crate::actors::MACHINE_EFFECT;
use crate::envelope::EffectId;
use crate::ledger::Ledger;
use crate::machine::{Machine, StateId};
use crate::snapshot::{Actor, Held, Invocation, Snapshot, Timer, TimerKind, Vote};

fn effect_text(effect: EffectId) -> Option<String> {
    (effect != MACHINE_EFFECT).then(|| format!("{}/{}", effect.seq, effect.index))
}

impl Machine {
    /// The snapshot as JSON.
    #[must_use]
    pub fn snapshot_json(&self, s: &Snapshot) -> Json {
        let form = SnapshotForm {
            v: 1,
            run: s.run.id.to_string(),
            charter: s.charter(),
            seq: s.seq,
            status: s.status,
            paused_at: s.paused_at,
            output: s.output.as_deref().cloned(),
            actors: s.actors.0.iter().map(|a| self.actor_form(a)).collect(),
            timers: s.timers.iter().map(|t| self.timer_form(s, t)).collect(),
            ledger: ledger_form(s.ledger.as_deref()),
            held: s.held.iter().map(|h| held_form(h)).collect(),
            counter: s.counter,
        };
        // Plain data with text keys always has a JSON form.
        serde_json::to_value(form).unwrap_or_default()
    }

    fn actor_form(&self, a: &Actor) -> ActorForm {
        let chart = self.chart(a.chart());
        let path = |s: &StateId| chart.path(*s).to_string();
        let history = a.history.iter().map(|(h, states)| (path(h), states.iter().map(path).collect()));
        let invocation = |i: &Arc<Invocation>| InvocationForm {
            id: i.id.to_string(),
            src: i.src.to_string(),
            effect: effect_text(i.effect),
            state: i.state.as_ref().map(path),
            input: Json::clone(&i.input),
        };
        let vote = |v: &Vote| VoteForm {
            transition: chart.transition(v.transition).name.to_string(),
            digest: v.digest,
            by: v.by.iter().map(ToString::to_string).collect(),
        };
        ActorForm {
            id: a.identity().id.to_string(),
            machine: a.machine().to_string(),
            parent: a.identity().parent.as_deref().map(Into::into),
            invoked: a.identity().invocation,
            status: a.status,
            active: a.active().map(Into::into).collect(),
            history: history.collect(),
            context: match a.context.json() {
                Json::Object(map) => map,
                _ => serde_json::Map::new(),
            },
            input: Json::clone(&a.identity().input),
            output: a.output.as_deref().cloned(),
            invocations: a.invocations.iter().map(invocation).collect(),
            votes: a.votes.iter().map(vote).collect(),
            bound: a.bound.iter().map(path).collect(),
        }
    }

    fn timer_form(&self, s: &Snapshot, t: &Timer) -> TimerForm {
        let state_path = |state: StateId| {
            let actor = s.actors.find(&t.actor);
            actor.map_or_else(String::new, |a| self.chart(a.chart()).path(state).to_string())
        };
        let what = match &t.what {
            TimerKind::After { state, index } => WhatForm::After { state: state_path(*state), index: *index },
            TimerKind::Send { to, kind, data, send_id } => WhatForm::Send {
                to: to.to_string(),
                r#type: kind.to_string(),
                data: Json::clone(data),
                id: send_id.as_deref().map(Into::into),
            },
            TimerKind::Timeout { invocation, effect } => {
                WhatForm::Timeout { invocation: invocation.to_string(), effect: effect_text(*effect) }
            }
            TimerKind::Due { kind, key } => WhatForm::Due {
                kind: self.ledger.get(*kind as usize).map_or_else(String::new, ToString::to_string),
                key: key.to_string(),
            },
        };
        TimerForm { id: t.id.to_string(), generation: t.generation, due: t.due, actor: t.actor.to_string(), what }
    }
}

fn ledger_form(ledger: Option<&Ledger>) -> Names<Names<EntryForm>> {
    let mut out: Names<Names<EntryForm>> = Names::new();
    for (kind, key, e) in ledger.into_iter().flat_map(Ledger::entries) {
        let form = EntryForm {
            status: e.status.word().into(),
            uses: e.uses,
            expires: e.expires,
            due: e.due,
            data: Json::clone(&e.data),
            how: e.how.as_deref().cloned(),
        };
        out.entry(kind.into()).or_default().insert(key.into(), form);
    }
    out
}

fn held_form(h: &Held) -> HeldForm {
    let (done, error) = match &h.outcome {
        Ok(v) => (Some(v.clone()), None),
        Err(v) => (None, Some(v.clone())),
    };
    HeldForm {
        actor: h.actor.to_string(),
        invocation: h.invocation.to_string(),
        effect: effect_text(h.effect).unwrap_or_default(),
        done,
        error,
    }
}
