//! Run control: pause, resume, cancel.

use std::sync::Arc;

use crate::budget::Budget;
use crate::envelope::Envelope;
use crate::machine::{Machine, RoleSet};
use crate::refusal::{Cause, Code, Refusal};
use crate::snapshot::{Snapshot, Status, TimerKind};
use crate::step::{Step, Verdict};
use crate::transaction::StepTransaction;

/// Run control: the only types beginning with `charter.` that may be sent from outside.
pub(crate) const CONTROL: [&str; 4] = ["charter.pause", "charter.resume", "charter.cancel", "charter.trust"];

impl Machine {
    pub(super) fn control(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        name: &str,
        held: RoleSet,
        budget: &Budget,
    ) -> Result<Step, Refusal> {
        let mut tx = self.begin(snapshot, envelope, held, budget);
        match (name, snapshot.status) {
            // What it allows is for the host; the run only keeps who said it.
            ("charter.trust", _) => Ok(tx.step(Verdict::Accepted)),
            ("charter.pause", Status::Active) => {
                tx.s.status = Status::Paused;
                tx.s.paused_at = Some(envelope.at);
                Ok(tx.step(Verdict::Accepted))
            }
            ("charter.pause", _) => Err(Code::Paused.into()),
            ("charter.resume", Status::Paused) => {
                tx.resume()?;
                tx.finish(Some(snapshot), Verdict::Accepted)
            }
            ("charter.resume", _) => Err(Refusal::because(Code::Unhandled, Cause::NotPaused)),
            _ => {
                tx.s.status = Status::Active;
                tx.s.paused_at = None;
                tx.ended = true;
                tx.cancel_actor(0)?;
                tx.clean_up()?;
                tx.s.status = Status::Cancelled;
                Ok(tx.step(Verdict::Accepted))
            }
        }
    }
}

impl StepTransaction<'_> {
    /// Resumes the run: timers, also those of obligations, continue with the time they had left,
    /// then held answers are delivered in the order in which they arrived. Permits expire when they
    /// were to, because a pause extends no right.
    fn resume(&mut self) -> Result<(), Refusal> {
        let stood = self.stood();
        self.s.status = Status::Active;
        self.s.paused_at = None;
        let timers = std::mem::take(&mut self.s.timers);
        for timer in timers {
            let mut timer = timer;
            Arc::make_mut(&mut timer).due = timer.due.saturating_add(stood);
            if let TimerKind::Due { kind, key } = &timer.what {
                self.ledger_mut().set_due(*kind, key, timer.due);
            }
            self.timers.push(crate::step::TimerChange::Set(timer.clone()));
            self.s.timers.push(timer);
        }
        for held in std::mem::take(&mut self.s.held).list().drain(..) {
            if self.ended {
                break;
            }
            let Some(actor_ix) =
                self.s.actors.position(&held.actor).filter(|a| self.actor(*a).status == Status::Active)
            else {
                continue;
            };
            self.budget.scan(self.actor(actor_ix).invocations.len());
            self.budget.check()?;
            if self.actor(actor_ix).invocations.iter().any(|i| i.effect == held.effect && i.id == held.invocation) {
                self.take_answer(actor_ix, held.effect, &held.invocation, held.outcome.clone())?;
                self.quiesce()?;
            }
        }
        Ok(())
    }
}
