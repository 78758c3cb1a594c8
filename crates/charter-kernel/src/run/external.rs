//! Events from outside: checks of the event, then the fast path or the algorithm.

use serde_json::Value as Json;

use super::control::CONTROL;
use crate::budget::Budget;
use crate::envelope::Envelope;
use crate::event::Ev;
use crate::machine::{Machine, RoleSet, TransitionId};
use crate::principal::MAX_PRINCIPAL_ID_BYTES;
use crate::refusal::{Cause, Code, Refusal};
use crate::scope::EvalContext;
use crate::snapshot::{Snapshot, Status, Vote};
use crate::step::{Step, Verdict};
use crate::transaction::{Session, StepTransaction};
use crate::unique::no_key;
use crate::validate;

impl Machine {
    pub(crate) fn external(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        name: &str,
        data: &Json,
        checked: bool,
        budget: &Budget,
    ) -> Result<Step, Refusal> {
        let data = match checked {
            // The size is known to be within the limit; the numbers still have to be canonical.
            true => validate::canonical_event(data)?,
            false => validate::validate_event(data, &self.definition.limits, budget)?,
        };
        if envelope.by.id.len() > MAX_PRINCIPAL_ID_BYTES {
            let limit = u64::try_from(MAX_PRINCIPAL_ID_BYTES).unwrap_or(u64::MAX);
            return Err(Refusal::because(Code::TooLarge, Cause::PrincipalId { limit }));
        }
        let control = CONTROL.contains(&name);
        if !control && crate::compile::is_platform(name) {
            return Err(Code::Reserved.into());
        }
        let id = self.events.id(name);
        let info = self.events.info(id).filter(|i| i.declared);
        if !control && self.definition.strict && info.is_none() {
            return Err(Code::UnknownEvent.into());
        }
        if snapshot.status.is_finished() {
            return Err(Code::Finished.into());
        }
        if snapshot.status == Status::Paused && !control && !info.is_some_and(|i| i.while_paused) {
            return Err(Code::Paused.into());
        }
        let to = envelope.to.as_deref().unwrap_or("root");
        let Some(actor_ix) = snapshot.actors.position(to) else {
            return Err(Code::UnknownActor.into());
        };
        let actor = snapshot.actors.get(actor_ix);
        if actor.is_some_and(|a| a.status != Status::Active) {
            return Err(Code::Finished.into());
        }
        // The run has changed since the sender looked, or the sender claims to have seen a record
        // that does not exist yet.
        if envelope.expected_seq.is_some_and(|seen| seen < snapshot.seq || seen >= envelope.seq) {
            return Err(Code::Stale.into());
        }
        let held = self.held(envelope);
        let required = if control { RoleSet::OPERATOR } else { info.map(|i| i.by).unwrap_or_default() };
        if !required.admits(held) {
            return Err(Code::Authority.into());
        }
        if control {
            no_key(envelope)?;
            return self.control(snapshot, envelope, name, held, budget);
        }
        if let Some(schema) = info.and_then(|i| i.schema.as_ref()).filter(|_| !checked) {
            validate::matches(schema, &data, budget)?;
        }
        let ev = Ev::external(&self.events, id, name, &data);
        // Of data that is not known, any key may be free.
        if budget.unknowns().is_none() {
            self.check_unique(info, envelope, &ev, budget)?;
        }
        if let Some(actor) = actor.filter(|_| budget.unknowns().is_none() && budget.taken_log().is_none()) {
            let (machine, by, now) = (self, &envelope.by, envelope.at);
            let event = Some(&ev);
            let ctx = EvalContext { machine, snapshot, actor, event, by, now, locals: &[], entry: None, budget };
            let mark = budget.mark();
            match self.fast_path(snapshot, actor_ix, &ev, &ctx, held) {
                Some(Ok((id, plain))) => {
                    return Ok(self.moved(snapshot, actor_ix, id, plain, envelope.seq, budget));
                }
                Some(Err(code)) => return Err(code.into()),
                None => budget.restore(mark),
            }
        }
        let mut tx = self.begin(snapshot, envelope, held, budget);
        let mut session = Session::new();
        tx.before_selection(actor_ix, &ev, &mut session)?;
        let selection = tx.select_transitions(actor_ix, &ev, &mut session);
        if selection.refused.is_some() {
            // `explain` looks up the transition again.
            return Err(Code::Rule.into());
        }
        if selection.enabled.is_empty() && selection.votes.is_empty() {
            if self.definition.strict {
                return Err(selection.furthest.code().into());
            }
        } else if !selection.votes.is_empty() {
            tx.vote(actor_ix, &selection.votes, &ev);
            if selection.enabled.is_empty() {
                return Ok(tx.step(Verdict::Vote));
            }
        }
        tx.deliver(actor_ix, &ev, selection.enabled, session)?;
        tx.finish(Some(snapshot), Verdict::Accepted)
    }
}

impl StepTransaction<'_> {
    fn vote(&mut self, actor_ix: usize, transitions: &[TransitionId], ev: &Ev<'_>) {
        if self.budget.unknowns().is_some() {
            return self.vote_for_anything(actor_ix, transitions);
        }
        let chart = self.chart(actor_ix);
        let by: Box<str> = self.by.id.as_str().into();
        for t in transitions {
            let digest = chart.transition(*t).ballot(ev.data());
            self.budget.scan(self.actor(actor_ix).votes.len());
            let votes = self.actor_mut(actor_ix).votes.list();
            match votes.iter_mut().find(|v| v.transition == *t && v.digest == digest) {
                Some(vote) => vote.by.push(by.clone()),
                None => votes.push(Vote { transition: *t, digest, by: vec![by.clone()] }),
            }
        }
    }
}
