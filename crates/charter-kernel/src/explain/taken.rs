//! Why transitions were taken: their conditions with the values, and what they demanded of the
//! sender. Records do not contain it: the step is repeated, from the state before the event.

use std::cell::RefCell;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::candidates::reads;
use crate::budget::Budget;
use crate::demands::QuorumState;
use crate::envelope::Envelope;
use crate::event::{Ev, Origin};
use crate::machine::{Machine, Require, Transition, TransitionId};
use crate::refusal::Refusal;
use crate::run::within;
use crate::scope::EvalContext;
use crate::snapshot::Snapshot;
use crate::step::Step;
use crate::transaction::StepTransaction;

/// Upper limit of the transitions of one step that are explained.
const MAX_EXPLAINED: usize = 100;

/// The reasons that are found while a step is repeated.
pub(crate) type TakenLog = RefCell<Vec<Taken>>;

/// A transition that was taken, and why it could.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Taken {
    /// The actor that took it.
    pub actor: String,
    /// Its name.
    pub transition: String,
    /// The event that it was taken for: that of the record, or one that followed inside the step.
    /// `None` if it needs no event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
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
    /// Explains the transitions of a step, in the order of the record: those that the event took,
    /// and those that followed inside the step, for events of the run itself, for events between
    /// its actors, and without an event. Explains the first hundred. `snapshot` is the snapshot
    /// that the event was applied to. Empty if the event is refused.
    #[must_use]
    pub fn why_taken(&self, snapshot: &Snapshot, envelope: &Envelope) -> Vec<Taken> {
        self.explained(|budget| self.step_within(snapshot, envelope, budget))
    }

    /// Like [`Machine::why_taken`], for the start of a run.
    #[must_use]
    pub fn why_started(&self, run: &str, envelope: &Envelope) -> Vec<Taken> {
        self.explained(|budget| self.start_within(run, envelope, budget))
    }

    fn explained(&self, step: impl FnOnce(&Budget) -> Result<Step, Refusal>) -> Vec<Taken> {
        let budget = Budget::explaining(&self.definition.limits);
        let accepted = within(&budget, step(&budget)).is_ok();
        budget.into_taken_log().filter(|_| accepted).unwrap_or_default()
    }

    /// `sender` is the event that the transition is taken for; `None` if it needs none.
    fn taken_because<'a>(
        &'a self,
        ctx: &EvalContext<'a>,
        id: TransitionId,
        t: &'a Transition,
        sender: Option<&Ev<'_>>,
    ) -> Taken {
        let mut read = Map::new();
        if let Some(guard) = &t.guard {
            guard.programs(&mut |program| read.extend(reads(ctx, program)));
        }
        let demands = self.demands_of(ctx, id, t);
        let is_external = sender.is_some_and(|ev| ev.origin == Origin::External);
        let held = &ctx.by.roles;
        let asked = |set| self.role_names(set).into_iter().filter(move |role| held.contains(role));
        let own = sender.and_then(|ev| self.events.info(ev.id)).filter(|_| is_external);
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
            actor: ctx.actor.identity().id.to_string(),
            event: sender.map(|ev| ev.name().to_string()),
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

impl StepTransaction<'_> {
    /// Notes why transitions are about to be taken, if the step is repeated to explain it. What
    /// that costs is not part of the step.
    pub(crate) fn note_reasons(&self, actor_ix: usize, enabled: &[TransitionId], ev: Option<&Ev<'_>>, log: &TakenLog) {
        let budget = Budget::new(&self.m.definition.limits);
        let ctx = EvalContext { budget: &budget, ..self.context(actor_ix, ev, &[]) };
        let chart = self.chart(actor_ix);
        for id in enabled.iter().copied() {
            let mut log = log.borrow_mut();
            if log.len() >= MAX_EXPLAINED {
                return;
            }
            let t = chart.transition(id);
            let eventless = chart.state(t.source).always.contains(&id);
            log.push(self.m.taken_because(&ctx, id, t, ev.filter(|_| !eventless)));
        }
    }
}
