//! Why an event was refused. A [`Refusal`] stays small, because most callers need only its code;
//! explaining it evaluates the refused step again.
//!
//! [`Machine::refusal_details`] returns what a record stores; [`RefusalDetails::explain`] renders
//! it as messages, with or without the charter.

mod authority;
mod candidates;
mod condition;
mod expression;
mod key;
mod not_legal;
mod regions;
mod rules;
mod taken;
mod text;

use std::borrow::Cow;

use candidates::Considered;
pub(crate) use candidates::{reads, short};
pub use condition::Condition;
pub(crate) use taken::TakenLog;
pub use taken::{RequirementMet, Taken};

use crate::budget::Budget;
use crate::envelope::{Envelope, Event};
use crate::event::Ev;
use crate::machine::{Machine, RoleSet};
use crate::principal::Principal;
use crate::refusal::{Cause, Code, Explanation, Refusal, RefusalDetails};
use crate::schema::MisfitDetails;
use crate::scope::EvalContext;
use crate::snapshot::{Actor, Snapshot};
use crate::time::Timestamp;
use crate::validate;

/// What the messages of a refusal refer to besides its details. A record contains all of it except
/// the charter.
#[derive(Debug, Clone)]
pub struct RefusalContext<'a> {
    /// Event type.
    pub event: Cow<'a, str>,
    /// The invocation, if the event is the answer to one.
    pub invocation: Option<&'a str>,
    /// The sender.
    pub by: &'a Principal,
    /// The actor that the event is addressed to.
    pub to: Cow<'a, str>,
    /// The active states of that actor.
    pub state: Vec<&'a str>,
    /// The time of the event.
    pub at: Timestamp,
    /// The last record that the sender had seen.
    pub expected_seq: Option<u64>,
    /// The charter. Without it, the messages of its rules are not available.
    pub machine: Option<&'a Machine>,
}

impl<'a> RefusalContext<'a> {
    /// Creates the context of an event that was just refused.
    #[must_use]
    pub fn new(machine: &'a Machine, snapshot: Option<&'a Snapshot>, envelope: &'a Envelope) -> RefusalContext<'a> {
        let to = envelope.to.as_deref().unwrap_or("root");
        let invocation = match &envelope.event {
            Event::Done { invocation, .. } | Event::Failed { invocation, .. } | Event::Attempt { invocation, .. } => {
                Some(invocation.as_str())
            }
            Event::Start { .. } | Event::External { .. } | Event::Timer { .. } => None,
        };
        RefusalContext {
            event: envelope.event.type_name(snapshot),
            invocation,
            by: &envelope.by,
            to: to.into(),
            state: snapshot.and_then(|s| s.actors.find(to)).into_iter().flat_map(Actor::state).collect(),
            at: envelope.at,
            expected_seq: envelope.expected_seq,
            machine: Some(machine),
        }
    }
}

impl Machine {
    /// Explains why an event was refused. `snapshot` is the snapshot that the event was applied to
    /// (`None` for [`Machine::start`]), and `envelope` contains the event.
    #[must_use]
    pub fn explain(&self, snapshot: Option<&Snapshot>, envelope: &Envelope, refusal: &Refusal) -> Explanation {
        let details = self.refusal_details(snapshot, envelope, refusal);
        details.explain(&RefusalContext::new(self, snapshot, envelope))
    }

    /// Like [`Machine::explain`], but computes `legal` only if the message uses it, because that
    /// costs more than everything else.
    #[must_use]
    pub fn explain_briefly(&self, snapshot: Option<&Snapshot>, envelope: &Envelope, refusal: &Refusal) -> Explanation {
        let legal = refusal.code == Code::Unhandled;
        let details = self.details(snapshot, envelope, refusal, legal);
        details.explain(&RefusalContext::new(self, snapshot, envelope))
    }

    /// Returns the details of a refusal that a record stores.
    #[must_use]
    pub fn refusal_details(
        &self,
        snapshot: Option<&Snapshot>,
        envelope: &Envelope,
        refusal: &Refusal,
    ) -> RefusalDetails {
        self.details(snapshot, envelope, refusal, true)
    }

    fn details(
        &self,
        snapshot: Option<&Snapshot>,
        envelope: &Envelope,
        refusal: &Refusal,
        with_legal: bool,
    ) -> RefusalDetails {
        let mut details = RefusalDetails::new(refusal.code);
        if let Some(detail) = refusal.detail.as_deref() {
            details.rule.clone_from(&detail.rule);
            details.interlock.clone_from(&detail.interlock);
            details.read.clone_from(&detail.read);
            details.cause.clone_from(&detail.cause);
        }
        // The details cost at most as much as the event.
        let budget = Budget::new(&self.definition.limits);
        let Some(snapshot) = snapshot.filter(|s| s.charter() == self.digest) else {
            if let (Event::Start { input }, Code::Schema, None) = (&envelope.event, refusal.code, &details.cause) {
                let schema = self.chart(0).input.as_ref();
                details.misfits = schema.map(|s| budget.misfits(s, input)).unwrap_or_default();
            }
            return details;
        };
        if with_legal {
            let legal = self.legal_within(snapshot, &envelope.by, envelope.at, &budget);
            details.legal = legal.into_iter().map(|l| l.r#type).collect();
            details.legal.dedup();
        }
        match &envelope.event {
            Event::External { r#type, data } => {
                let budget = Budget::new(&self.definition.limits);
                self.external_details(snapshot, envelope, r#type, data, &mut details, &budget);
            }
            Event::Done { invocation, effect, output } if refusal.code == Code::Schema && details.cause.is_none() => {
                let answered = |i: &crate::snapshot::Invocation| {
                    i.id.as_ref() == invocation && effect.is_none_or(|e| e == i.effect)
                };
                let service = snapshot.invocations().find(|(_, i)| answered(i)).map(|(_, i)| i.service);
                let schema = service.and_then(|n| self.services.get(n as usize)).and_then(|s| s.output.as_ref());
                // The events listed above may have used up the other one.
                let budget = Budget::new(&self.definition.limits);
                details.misfits = schema.map(|s| budget.misfits(s, output)).unwrap_or_default();
            }
            _ => {}
        }
        details
    }

    fn external_details(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        name: &str,
        data: &serde_json::Value,
        details: &mut RefusalDetails,
        budget: &Budget,
    ) {
        let data = validate::validate_event(data, &self.definition.limits, budget).unwrap_or(Cow::Borrowed(data));
        let ev = Ev::external(&self.events, self.events.id(name), name, &data);
        let to = envelope.to.as_deref().unwrap_or("root");
        let actor = snapshot.actors.find(to);
        let required = self.roles_to_send(name, ev.id);
        let may_send = required.admits(self.held(envelope));
        let mut considered = Considered::default();
        if let Some(actor) = actor.filter(|_| may_send && comes_from_candidates(details.code)) {
            considered = self.candidates(snapshot, actor, &ev, envelope, (details.code, budget));
            details.candidates = considered.candidates;
        }
        match details.code {
            Code::Authority if !may_send => details.roles = self.role_names(required),
            Code::Schema if details.cause.is_none() => {
                let schema = self.events.info(ev.id).and_then(|i| i.schema.as_ref());
                details.misfits = schema.map(|s| budget.misfits(s, &data)).unwrap_or_default();
                details.rule = self.rule_of_schema(name, &mut details.misfits);
                if let (Some(rule), Some(actor)) = (details.rule.as_deref().and_then(|r| self.rule(r)), actor) {
                    details.read = self.rule_reads(rule, &self.context_of(snapshot, actor, &ev, envelope, budget));
                }
            }
            Code::Finished => {
                details.cause = Some(match (snapshot.status.is_finished(), actor) {
                    (false, Some(actor)) => {
                        Cause::Finished { actor: Some(to.to_string()), status: actor.status.word().to_string() }
                    }
                    _ => Cause::Finished { actor: None, status: snapshot.status.word().to_string() },
                });
            }
            Code::UnknownActor => {
                let known = snapshot.actors().map(|a| a.id().to_string()).take(10).collect();
                details.cause = Some(Cause::Actors { known });
            }
            Code::Stale if details.candidates.is_empty() => {
                let ahead = envelope.expected_seq.is_some_and(|seen| seen >= envelope.seq);
                let last = if ahead { envelope.seq.saturating_sub(1) } else { snapshot.seq };
                details.cause = Some(Cause::Changed { last });
            }
            _ => {}
        }
        if details.rule.is_none() {
            details.rule = considered.rule;
        }
    }

    /// Returns the context for evaluating expressions for an event from outside.
    pub(crate) fn context_of<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        actor: &'a Actor,
        ev: &'a Ev<'a>,
        envelope: &'a Envelope,
        budget: &'a Budget,
    ) -> EvalContext<'a> {
        EvalContext {
            machine: self,
            snapshot,
            actor,
            event: Some(ev),
            by: &envelope.by,
            now: envelope.at,
            locals: &[],
            entry: None,
            budget,
        }
    }

    /// Returns the roles of which the sender needs one before any transition is considered.
    fn roles_to_send(&self, name: &str, id: u32) -> RoleSet {
        if crate::run::CONTROL.contains(&name) {
            return RoleSet::OPERATOR;
        }
        self.events.info(id).filter(|i| i.declared).map(|i| i.by).unwrap_or_default()
    }

    pub(crate) fn role_names(&self, set: RoleSet) -> Vec<String> {
        let bits = self.roles.iter().enumerate();
        bits.filter(|(i, _)| set.0 & (1u128 << (i & 127)) != 0).map(|(_, name)| name.to_string()).collect()
    }

    /// Finds the text of the `rule` keyword next to the first failed schema keyword that has one.
    /// Moves that violation to the front, because the message shows it directly after the rule.
    fn rule_of_schema(&self, event: &str, misfits: &mut [MisfitDetails]) -> Option<String> {
        let schema = self.definition.events.get(event)?.data.as_ref()?;
        let (place, rule) = misfits.iter().enumerate().find_map(|(place, misfit)| {
            // The path has no `/` if the whole schema is `false`, which cannot have a `rule`.
            let (around, _) = misfit.rule.rsplit_once('/')?;
            Some((place, crate::schema::lookup(schema, around)?.get("rule")?.as_str()?.to_string()))
        })?;
        misfits.get_mut(..=place)?.rotate_right(1);
        Some(rule)
    }
}

/// Whether candidates were evaluated before an event was refused with this code.
fn comes_from_candidates(code: Code) -> bool {
    matches!(
        code,
        Code::Authority
            | Code::Guard
            | Code::Rule
            | Code::Stale
            | Code::PermitMissing
            | Code::PermitRevoked
            | Code::PermitExpired
            | Code::PermitExhausted
            | Code::PermitScope
            | Code::ObligationMissing
            | Code::ObligationOpen
    )
}
