//! Why transitions took an event: their conditions with the values, and what they demanded of the
//! sender. Records do not contain it: it is computed from the state before the event.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::candidates::reads;
use super::regions::active_candidates;
use crate::budget::Budget;
use crate::demands::QuorumState;
use crate::envelope::{Envelope, Event};
use crate::event::{Ev, Origin};
use crate::machine::{Machine, Require, Transition, TransitionId};
use crate::scope::EvalContext;
use crate::snapshot::{Actor, Snapshot, Status, TimerKind};
use crate::validate;

/// A transition that took an event, and why it could.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Taken {
    /// Its name.
    pub transition: String,
    /// Its guard as one expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The values that its conditions read, by path; `null` where there was no value. Long values
    /// are truncated.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub read: Map<String, Json>,
    /// The roles of the sender that the event and the transition ask for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Whether only persons may take it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub persons_only: bool,
    /// The ids that `not_by` excluded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_by: Vec<String>,
    /// The votes that were given before this one, for the same data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quorum: Option<QuorumState>,
    /// What it requires of the ledger.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<RequirementMet>,
}

/// A requirement of the ledger that held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RequirementMet {
    /// `use`, `open` or `none`, as in the charter.
    pub demand: &'static str,
    /// The kind of the entry.
    pub kind: String,
    /// The key of the entry; `None` for `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The condition on the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// How many uses the permit had before; `None`: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<u64>,
}

impl Machine {
    /// Explains the transitions that took the event of an envelope itself; `names` are those of the
    /// record. Transitions that followed, of other events and of eventless transitions, are left
    /// out. `snapshot` is the snapshot that the event was applied to.
    #[must_use]
    pub fn why_taken<N: AsRef<str>>(&self, snapshot: &Snapshot, envelope: &Envelope, names: &[N]) -> Vec<Taken> {
        if snapshot.charter() != self.digest {
            return Vec::new();
        }
        let snapshot = &snapshot.with_expired_permits(envelope.at);
        let budget = Budget::new(&self.definition.limits);
        let Some((actor, ev)) = self.received(snapshot, envelope, &budget) else {
            return Vec::new();
        };
        let ctx = self.context_of(snapshot, actor, &ev, envelope, &budget);
        let all = active_candidates(self.chart(actor.chart()), &actor.configuration, &ev).into_iter();
        let was_taken = |t: &Transition| names.iter().any(|name| *name.as_ref() == *t.name);
        all.filter(|(_, t)| was_taken(t)).map(|(id, t)| self.taken_because(&ctx, id, t)).collect()
    }

    /// Returns the event of an envelope as expressions see it, and the actor that received it.
    fn received<'s>(
        &'s self,
        snapshot: &'s Snapshot,
        envelope: &'s Envelope,
        budget: &Budget,
    ) -> Option<(&'s Actor, Ev<'static>)> {
        let platform =
            |name: &str, data: Json| Ev::new(self.events.id(name), name.into(), Arc::new(data), Origin::Platform);
        match &envelope.event {
            Event::External { r#type, data } => {
                let data = validate::validate_event(data, &self.definition.limits, budget).ok()?.into_owned();
                let id = self.events.id(r#type);
                let ev = Ev::new(id, r#type.as_str().into(), Arc::new(data), Origin::External);
                let actor = snapshot.actors.find(envelope.to.as_deref().unwrap_or("root"))?;
                Some((actor, ev.typed(self.events.numbers(id))))
            }
            Event::Done { invocation, effect, .. } | Event::Failed { invocation, effect, .. } => {
                let (actor_ix, open) = self.owner(snapshot, envelope, invocation, *effect)?;
                let ev = match &envelope.event {
                    Event::Failed { error, .. } => {
                        platform(&format!("error.invoke.{invocation}"), json!({"error": error}))
                    }
                    Event::Done { output, .. } => {
                        platform(&format!("done.invoke.{invocation}"), json!({"output": output}))
                    }
                    _ => return None,
                };
                Some((snapshot.actors.get(actor_ix)?, ev.typed(self.service(open.service).answer.as_ref())))
            }
            Event::Timer { timer, generation } => {
                let timer = snapshot.timers.iter().find(|t| *t.id == **timer && t.generation == *generation)?;
                let actor = snapshot.actors.find(&timer.actor).filter(|a| a.status == Status::Active)?;
                let TimerKind::After { .. } = timer.what else {
                    return None;
                };
                Some((actor, platform(&envelope.event.type_name(Some(snapshot)), json!({}))))
            }
            _ => None,
        }
    }

    fn taken_because<'a>(&'a self, ctx: &EvalContext<'a>, id: TransitionId, t: &'a Transition) -> Taken {
        let mut read = Map::new();
        if let Some(guard) = &t.guard {
            guard.programs(&mut |program| read.extend(reads(ctx, program)));
        }
        let demands = self.demands_of(ctx, id, t);
        let is_external = ctx.event.is_some_and(|ev| ev.origin == Origin::External);
        let held = &ctx.by.roles;
        let asked = |set| self.role_names(set).into_iter().filter(move |role| held.contains(role));
        let own = ctx.event.and_then(|ev| self.events.info(ev.id)).filter(|_| is_external);
        let of_quorum = t.quorum.as_ref().map(|quorum| quorum.of);
        let sets = own.map(|info| info.by).into_iter().chain(is_external.then_some(t.by)).chain(of_quorum);
        let mut roles: Vec<String> = sets.flat_map(asked).collect();
        roles.sort_unstable();
        roles.dedup();
        let ballot = ctx.event.map(|ev| t.ballot(ev.data()));
        let quorum = demands.quorum.map(|quorum| {
            let same = |digest| Some(digest) == ballot;
            let votes: (Vec<_>, Vec<_>) =
                quorum.votes.into_iter().zip(quorum.data).filter(|(_, digest)| same(*digest)).unzip();
            QuorumState { votes: votes.0, data: votes.1, ..quorum }
        });
        let requires = t.requires.iter().map(|require| self.requirement_met(ctx, require, &mut read)).collect();
        Taken {
            transition: t.name.to_string(),
            condition: t.guard.as_ref().map(|guard| guard.text()),
            read,
            roles,
            persons_only: demands.persons_only,
            not_by: t.sender.as_ref().map(|rule| rule.excluded(ctx)).unwrap_or_default(),
            quorum,
            requires,
        }
    }

    fn requirement_met<'a>(
        &'a self,
        ctx: &EvalContext<'a>,
        require: &'a Require,
        read: &mut Map<String, Json>,
    ) -> RequirementMet {
        let (demand, kind, key, when) = match require {
            Require::Use { kind, key, when, .. } => ("use", *kind, Some(key), when.as_ref()),
            Require::Open { kind, key, .. } => ("open", *kind, Some(key), None),
            Require::None { kind, .. } => ("none", *kind, None, None),
        };
        let key = key.and_then(|key| ctx.text(key).ok());
        let entry = key.as_ref().and_then(|key| ctx.snapshot.ledger.as_deref()?.get(kind, key));
        if let (Some(when), Some(entry)) = (when, entry) {
            read.extend(reads(&EvalContext { entry: Some(entry), ..*ctx }, when));
        }
        RequirementMet {
            demand,
            kind: self.ledger_name(kind).to_string(),
            key: key.map(|key| key.to_string()),
            condition: when.map(|when| when.source().to_string()),
            uses: entry.and_then(|entry| entry.uses),
        }
    }
}
