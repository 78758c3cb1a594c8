//! A snapshot as JSON, with names instead of numbers, and back. The two are one: `restore(snapshot_json(s)) == s`, whatever a JSON
//! library does to numbers on the way.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::actors::{MACHINE_EFFECT, new_actor};
use crate::content::NO_SERVICE;
use crate::definition::StateKind;
use crate::digest::Digest;
use crate::envelope::EffectId;
use crate::ledger::{Entry, EntryStatus, Kind, Ledger};
use crate::machine::{Chart, Machine, StateId};
use crate::snapshot::{
    Actor, Actors, Held, Identity, Invocation, RunName, Snapshot, Status, Timer, TimerKind, Vote,
};

/// Why a JSON is not a snapshot of this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not a snapshot of the charter: {0}")]
pub struct RestoreError(pub String);

type Names<T> = std::collections::BTreeMap<String, T>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotForm {
    v: u32,
    run: String,
    charter: Digest,
    seq: u64,
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused_at: Option<i64>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    output: Option<Json>,
    actors: Vec<ActorForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    timers: Vec<TimerForm>,
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    ledger: Names<Names<EntryForm>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    held: Vec<HeldForm>,
    counter: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActorForm {
    id: String,
    machine: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    invoked: bool,
    status: Status,
    /// All active states but the root of the chart.
    active: Vec<String>,
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    history: Names<Vec<String>>,
    context: serde_json::Map<String, Json>,
    input: Json,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    output: Option<Json>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    invocations: Vec<InvocationForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    votes: Vec<VoteForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bound: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InvocationForm {
    id: String,
    src: String,
    /// None: a machine, which is an actor itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effect: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    input: Json,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VoteForm {
    transition: String,
    digest: Digest,
    by: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimerForm {
    id: String,
    generation: u64,
    due: i64,
    actor: String,
    what: WhatForm,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum WhatForm {
    After {
        state: String,
        index: u32,
    },
    Send {
        to: String,
        r#type: String,
        data: Json,
        id: Option<String>,
    },
    Timeout {
        invocation: String,
        effect: Option<String>,
    },
    Due {
        kind: String,
        key: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryForm {
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uses: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<i64>,
    data: Json,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    how: Option<Json>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeldForm {
    actor: String,
    invocation: String,
    effect: String,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    done: Option<Json>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    error: Option<Json>,
}

/// A field that is there is some value, even if that is null.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

fn effect_text(effect: EffectId) -> Option<String> {
    (effect != MACHINE_EFFECT).then(|| format!("{}/{}", effect.seq, effect.index))
}

fn bad<T>(what: impl Into<String>) -> Result<T, RestoreError> {
    Err(RestoreError(what.into()))
}

fn effect_of(text: Option<&str>) -> Result<EffectId, RestoreError> {
    match text {
        None => Ok(MACHINE_EFFECT),
        Some(text) => EffectId::parse(text)
            .ok_or_else(|| RestoreError(format!("`{text}` is not the id of an effect"))),
    }
}

/// Data of a snapshot: numbers mean what they say, however they were written.
fn data(mut json: Json) -> Arc<Json> {
    charter_expr::json::normalize(&mut json);
    Arc::new(json)
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
        let history = a
            .history
            .iter()
            .map(|(h, states)| (path(h), states.iter().map(path).collect()));
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
            actor.map_or_else(String::new, |a| {
                self.chart(a.chart()).path(state).to_string()
            })
        };
        let what = match &t.what {
            TimerKind::After { state, index } => WhatForm::After {
                state: state_path(*state),
                index: *index,
            },
            TimerKind::Send {
                to,
                kind,
                data,
                send_id,
            } => WhatForm::Send {
                to: to.to_string(),
                r#type: kind.to_string(),
                data: Json::clone(data),
                id: send_id.as_deref().map(Into::into),
            },
            TimerKind::Timeout { invocation, effect } => WhatForm::Timeout {
                invocation: invocation.to_string(),
                effect: effect_text(*effect),
            },
            TimerKind::Due { kind, key } => WhatForm::Due {
                kind: self
                    .ledger
                    .get(*kind as usize)
                    .map_or_else(String::new, ToString::to_string),
                key: key.to_string(),
            },
        };
        TimerForm {
            id: t.id.to_string(),
            generation: t.generation,
            due: t.due,
            actor: t.actor.to_string(),
            what,
        }
    }

    /// Reads a snapshot. It is checked against this machine: its digest, that every state exists, that the active states fit together.
    ///
    /// # Errors
    /// Says what does not fit. A snapshot of another charter is refused.
    pub fn restore(&self, json: &Json) -> Result<Snapshot, RestoreError> {
        let form = SnapshotForm::deserialize(json).map_err(|e| RestoreError(e.to_string()))?;
        if form.v != 1 {
            return bad(format!("version {} is not known", form.v));
        }
        if form.charter != self.digest {
            return bad(format!(
                "it belongs to the charter {}, this one is {}",
                form.charter, self.digest
            ));
        }
        let mut actors: SmallVec<[Arc<Actor>; 1]> = SmallVec::new();
        for actor in form.actors {
            let actor = self.actor_of(actor)?;
            if actors
                .iter()
                .any(|a| a.identity().id == actor.identity().id)
            {
                return bad(format!("two actors are called `{}`", actor.identity().id));
            }
            actors.push(Arc::new(actor));
        }
        if actors
            .first()
            .is_none_or(|a| a.identity().id.as_ref() != "root" || a.chart() != 0)
        {
            return bad("the first actor is not the root");
        }
        let actors = Actors(actors);
        let mut timers: Vec<Arc<Timer>> = Vec::with_capacity(form.timers.len());
        for timer in form.timers {
            timers.push(Arc::new(self.timer_of(&actors, timer)?));
        }
        if !timers.is_sorted_by_key(|t| (t.due, t.generation)) {
            return bad("the timers are not in order");
        }
        let held = form
            .held
            .into_iter()
            .map(held_of)
            .collect::<Result<_, _>>()?;
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
        })
    }

    fn actor_of(&self, form: ActorForm) -> Result<Actor, RestoreError> {
        let Some(chart) = self
            .charts
            .iter()
            .find(|c| c.shape.machine.as_ref() == form.machine)
        else {
            return bad(format!("no machine is called `{}`", form.machine));
        };
        let state = |path: &str| {
            chart.path_to(path).ok_or_else(|| {
                RestoreError(format!("machine `{}` has no state `{path}`", form.machine))
            })
        };
        let mut actor = new_actor(Identity {
            id: form.id.as_str().into(),
            parent: form.parent.map(|p| p.as_str().into()),
            invocation: form.invoked,
            input: data(form.input),
            shape: chart.shape.clone(),
        });
        actor.status = form.status;
        actor.configuration.push(0);
        for path in &form.active {
            actor.configuration.push(state(path)?);
        }
        if !actor.configuration.is_sorted_by(|a, b| a < b) || !is_legal(chart, &actor) {
            return bad(format!(
                "the states {} of `{}` cannot be active together",
                form.active.join(", "),
                form.id
            ));
        }
        for (history, states) in &form.history {
            let history = state(history)?;
            let node = chart.state(history);
            let states: SmallVec<[StateId; 4]> =
                states.iter().map(|s| state(s)).collect::<Result<_, _>>()?;
            if !node.is_history() || states.iter().any(|s| !chart.inside(*s, node.parent)) {
                return bad(format!(
                    "`{}` is not a history of these states",
                    chart.path(history)
                ));
            }
            actor.history.push((history, states));
        }
        actor.history.sort_by_key(|(h, _)| *h);
        for (name, value) in form.context {
            let slot = chart.shape.slot(&name).and_then(|s| actor.context.place(s));
            let Some(slot) = slot else {
                return bad(format!("the context of `{}` has no `{name}`", form.id));
            };
            *slot = Some(data(value));
        }
        actor.output = form.output.map(data);
        for i in form.invocations {
            let service = match (
                &i.effect,
                self.services
                    .iter()
                    .zip(0u32..)
                    .find(|(s, _)| s.name.as_ref() == i.src),
            ) {
                (Some(_), Some((_, n))) => n,
                (None, _) => NO_SERVICE,
                (Some(_), None) => return bad(format!("no actor is called `{}`", i.src)),
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
            let Some((_, transition)) = chart
                .transitions
                .iter()
                .zip(0u32..)
                .find(|(t, _)| t.name.as_ref() == v.transition)
            else {
                return bad(format!("no transition is called `{}`", v.transition));
            };
            actor.votes.push(Vote {
                transition,
                digest: v.digest,
                by: v.by.into_iter().map(String::into_boxed_str).collect(),
            });
        }
        for path in &form.bound {
            actor.bound.push(state(path)?);
        }
        Ok(actor)
    }

    fn timer_of(&self, actors: &Actors, form: TimerForm) -> Result<Timer, RestoreError> {
        let Some(actor) = actors.find(&form.actor) else {
            return bad(format!("timer `{}` belongs to no actor", form.id));
        };
        let what = match form.what {
            WhatForm::After { state, index } => {
                let chart = self.chart(actor.chart());
                let found = chart
                    .path_to(&state)
                    .filter(|s| chart.state(*s).after.len() > index as usize);
                let Some(state) = found else {
                    return bad(format!("no `after` in state `{state}`"));
                };
                TimerKind::After { state, index }
            }
            WhatForm::Send {
                to,
                r#type,
                data: d,
                id,
            } => TimerKind::Send {
                to: to.as_str().into(),
                kind: r#type.as_str().into(),
                data: data(d),
                send_id: id.map(|i| i.as_str().into()),
            },
            WhatForm::Timeout { invocation, effect } => TimerKind::Timeout {
                invocation: invocation.as_str().into(),
                effect: effect_of(effect.as_deref())?,
            },
            WhatForm::Due { kind, key } => {
                let Some(kind) = self.ledger_kind(&kind) else {
                    return bad(format!("the ledger has no kind `{kind}`"));
                };
                TimerKind::Due {
                    kind,
                    key: key.as_str().into(),
                }
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
        self.ledger
            .iter()
            .zip(0u32..)
            .find(|(n, _)| n.as_ref() == name)
            .map(|(_, i)| i)
    }

    fn ledger_of(
        &self,
        form: Names<Names<EntryForm>>,
    ) -> Result<Option<Arc<Ledger>>, RestoreError> {
        if self.ledger.is_empty() && form.is_empty() {
            return Ok(None);
        }
        let mut ledger = Ledger::new(&self.ledger);
        for (kind, entries) in form {
            let place = self
                .ledger_kind(&kind)
                .and_then(|k| ledger.kinds.get_mut(k as usize));
            let Some(place) = place else {
                return bad(format!("the ledger has no kind `{kind}`"));
            };
            let mut restored = Kind::default();
            for (key, e) in entries {
                let Some(status) = EntryStatus::parse(&e.status) else {
                    return bad(format!("`{}` is not the status of an entry", e.status));
                };
                let entry = Entry {
                    status,
                    uses: e.uses,
                    expires: e.expires,
                    due: e.due,
                    data: data(e.data),
                    how: e.how.map(data),
                };
                restored
                    .entries
                    .insert(key.as_str().into(), Arc::new(entry));
            }
            *place = restored;
        }
        Ok(Some(Arc::new(ledger)))
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

fn held_of(form: HeldForm) -> Result<Arc<Held>, RestoreError> {
    let plain = |j: Json| Json::clone(&data(j));
    let outcome = match (form.done, form.error) {
        (Some(output), None) => Ok(plain(output)),
        (None, Some(error)) => Err(plain(error)),
        _ => return bad("an answer that waits is either done or failed"),
    };
    let (actor, invocation) = (form.actor.as_str().into(), form.invocation.as_str().into());
    Ok(Arc::new(Held {
        actor,
        invocation,
        effect: effect_of(Some(&form.effect))?,
        outcome,
    }))
}

impl Chart {
    fn path_to(&self, path: &str) -> Option<StateId> {
        // Almost always the name is the path; a state whose id is another's path is found the slow way.
        let found = self.find(path).filter(|s| self.path(*s).as_ref() == path);
        found.or_else(|| {
            self.shape
                .paths
                .iter()
                .zip(0u32..)
                .find(|(p, _)| p.as_ref() == path)
                .map(|(_, i)| i)
        })
    }
}

/// Can these states be active together? Each has an active parent; a compound one has one active child, a parallel one all of them.
fn is_legal(chart: &Chart, actor: &Actor) -> bool {
    actor.configuration.iter().all(|s| {
        let node = chart.state(*s);
        let active = node
            .children
            .iter()
            .filter(|c| actor.is_active(**c))
            .count();
        let children = match node.kind {
            StateKind::Compound => active == 1,
            StateKind::Parallel => active == node.children.len(),
            StateKind::Atomic | StateKind::Final => true,
            StateKind::Shallow | StateKind::Deep => false,
        };
        children && (*s == 0 || actor.is_active(node.parent))
    })
}
