//! The kernel's function, `(machine, snapshot, envelope) -> step or refusal`: checks of the event,
//! then the algorithm, then the interlocks.

mod control;
mod external;
mod platform;
mod results;

use std::sync::Arc;

use smallvec::SmallVec;

pub(crate) use control::CONTROL;

use crate::actors::new_actor;
use crate::algorithm::Begin;
use crate::budget::Budget;
use crate::envelope::{Envelope, Event};
use crate::ledger::Ledger;
use crate::machine::{Machine, RoleSet};
use crate::refusal::{Cause, Code, Refusal};
use crate::snapshot::{Actors, Identity, LengthBound, RunName, Snapshot, Status, ThinVec};
use crate::step::{Step, Verdict};
use crate::time::Timestamp;
use crate::transaction::StepTransaction;
use crate::unique::no_key;
use crate::validate;
use results::START_LENGTH;

impl Machine {
    /// Starts a run; the event becomes record 0.
    ///
    /// # Errors
    /// Returns a refusal, for example `schema` if the input does not match its schema, or
    /// `execution` if the context cannot be computed.
    pub fn start(&self, run: &str, envelope: &Envelope) -> Result<Step, Refusal> {
        let budget = Budget::new(&self.definition.limits);
        within(&budget, self.start_within(run, envelope, &budget))
    }

    /// Like [`Machine::start`]; also returns the fuel that it has used, for callers that limit the
    /// work of many steps.
    pub fn start_metered(&self, run: &str, envelope: &Envelope) -> (Result<Step, Refusal>, u64) {
        let budget = Budget::new(&self.definition.limits);
        let result = within(&budget, self.start_within(run, envelope, &budget));
        (result, budget.fuel_used())
    }

    pub(crate) fn start_within(&self, run: &str, envelope: &Envelope, budget: &Budget) -> Result<Step, Refusal> {
        let Event::Start { input } = &envelope.event else {
            return Err(Code::Reserved.into());
        };
        no_key(envelope)?;
        let input = validate::validate_event(input, &self.definition.limits, budget)?;
        check_time(envelope.at)?;
        let chart = self.chart(0);
        if let Some(schema) = chart.input.as_ref().filter(|_| budget.unknowns().is_none()) {
            validate::matches(schema, &input, budget)?;
        }
        let root = new_actor(Identity {
            id: "root".into(),
            parent: None,
            invocation: false,
            input: Arc::new(input.into_owned()),
            shape: chart.shape.clone(),
        });
        let snapshot = Snapshot {
            run: Arc::new(RunName { id: run.into(), charter: self.definition.id.as_str().into(), digest: self.digest }),
            seq: envelope.seq,
            status: Status::Active,
            paused_at: None,
            output: None,
            actors: Actors::new(SmallVec::from_iter([Arc::new(root)])),
            timers: Vec::new(),
            ledger: if self.ledger.is_empty() { None } else { Some(Arc::new(Ledger::new(&self.ledger))) },
            held: ThinVec::default(),
            counter: 0,
            length: LengthBound(START_LENGTH),
        };
        let mut tx =
            StepTransaction::new(self, snapshot, &envelope.by, self.held(envelope), envelope.seq, envelope.at, budget);
        tx.macrostep(0, Begin::Start)?;
        tx.finish(None, Verdict::Accepted)
    }

    /// Applies an event completely (until the run is quiescent) or not at all.
    ///
    /// # Errors
    /// Returns a refusal; the run is unchanged. [`Machine::explain`] returns the reasons.
    pub fn step(&self, snapshot: &Snapshot, envelope: &Envelope) -> Result<Step, Refusal> {
        let budget = Budget::new(&self.definition.limits);
        within(&budget, self.step_within(snapshot, envelope, &budget))
    }

    /// Like [`Machine::step`]; also returns the fuel that the event has used, for callers that
    /// limit the work of many steps.
    pub fn step_metered(&self, snapshot: &Snapshot, envelope: &Envelope) -> (Result<Step, Refusal>, u64) {
        let budget = Budget::new(&self.definition.limits);
        let result = within(&budget, self.step_within(snapshot, envelope, &budget));
        (result, budget.fuel_used())
    }

    /// What [`Machine::step`] would do if there were no interlocks, for analyses of what they
    /// refuse. The result is not a step of the run.
    ///
    /// # Errors
    /// See [`Machine::step`].
    pub fn step_without_interlocks(&self, snapshot: &Snapshot, envelope: &Envelope) -> Result<Step, Refusal> {
        let budget = Budget::without_interlocks(&self.definition.limits);
        within(&budget, self.step_within(snapshot, envelope, &budget))
    }

    /// Like [`Machine::step`], with a budget that is also used for other things. The caller checks
    /// it.
    #[inline]
    pub(crate) fn step_within(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        budget: &Budget,
    ) -> Result<Step, Refusal> {
        if snapshot.run.digest != self.digest {
            return Err(Code::CharterMismatch.into());
        }
        check_time(envelope.at)?;
        if !matches!(envelope.event, Event::External { .. }) {
            no_key(envelope)?;
        }
        match &envelope.event {
            Event::Start { .. } => Err(Code::Reserved.into()),
            Event::External { r#type, data } => self.external(snapshot, envelope, r#type, data, false, budget),
            Event::Done { invocation, effect, output } => {
                let output = validate::validate_event(output, &self.definition.limits, budget)?.into_owned();
                self.answered(snapshot, envelope, invocation, *effect, Ok(output), budget)
            }
            Event::Failed { invocation, effect, error } => {
                let error = validate::validate_event(error, &self.definition.limits, budget)?.into_owned();
                self.answered(snapshot, envelope, invocation, *effect, Err(error), budget)
            }
            Event::Attempt { invocation, effect, error, .. } => {
                validate::validate_event(error, &self.definition.limits, budget)?;
                let awaited = !snapshot.status.is_finished()
                    && self.owner(snapshot, envelope, invocation, Some(*effect)).is_some();
                let verdict = if awaited { Verdict::Ignored } else { Verdict::Late };
                Ok(self.unchanged(snapshot, envelope, verdict, budget))
            }
            Event::Timer { timer, generation } => self.timer(snapshot, envelope, timer, *generation, budget),
        }
    }

    /// Builds a step that changes nothing, not even the sequence number of the snapshot.
    fn unchanged(&self, snapshot: &Snapshot, envelope: &Envelope, verdict: Verdict, budget: &Budget) -> Step {
        let (by, system) = (&envelope.by, RoleSet::SYSTEM);
        let tx = StepTransaction::new(self, snapshot.clone(), by, system, envelope.seq, envelope.at, budget);
        let mut step = tx.step(verdict);
        step.snapshot.seq = snapshot.seq;
        step
    }

    /// Like [`Machine::step`], but for an external event whose data is known to match its schema
    /// ([`Machine::surely_fits`]) and to be within the limits: the data is not checked again. It
    /// may be reduced to [`Machine::event_reads`].
    ///
    /// # Errors
    /// See [`Machine::step`]. The event has half of its budget, as checking its data is not
    /// charged: where it is refused as too costly or too large, [`Machine::step`] decides.
    pub fn step_checked(&self, snapshot: &Snapshot, envelope: &Envelope) -> Result<Step, Refusal> {
        match &envelope.event {
            Event::External { r#type, data } if snapshot.charter() == self.digest && envelope.at.is_in_range() => {
                let budget = Budget::half(&self.definition.limits);
                within(&budget, self.external(snapshot, envelope, r#type, data, true, &budget))
            }
            _ => self.step(snapshot, envelope),
        }
    }

    /// Returns the roles of a sender, as bits. No sender can claim `system`.
    pub(crate) fn held(&self, envelope: &Envelope) -> RoleSet {
        let mut set = RoleSet::default();
        for role in &envelope.by.roles {
            if let Some(bit) = self.roles.iter().position(|r| r.as_ref() == role) {
                set.0 |= 1u128.checked_shl(u32::try_from(bit).unwrap_or(u32::MAX)).unwrap_or(0);
            }
        }
        set.0 &= !RoleSet::SYSTEM.0;
        set
    }

    fn begin<'m>(
        &'m self,
        snapshot: &Snapshot,
        envelope: &'m Envelope,
        held: RoleSet,
        budget: &'m Budget,
    ) -> StepTransaction<'m> {
        budget.scan(snapshot.actors.len().saturating_add(snapshot.timers.len()));
        let mut s = snapshot.clone();
        if let Some(ledger) = &mut s.ledger {
            budget.scan(ledger.len());
            Ledger::expire(ledger, envelope.at);
        }
        StepTransaction::new(self, s, &envelope.by, held, envelope.seq, envelope.at, budget)
    }
}

impl StepTransaction<'_> {
    /// Runs until the run is quiescent, checks the interlocks, and ends the run if its root has
    /// ended.
    fn finish(mut self, before: Option<&Snapshot>, unless_taken: Verdict) -> Result<Step, Refusal> {
        self.quiesce()?;
        if !self.m.interlocks.is_empty() && self.budget.checks_interlocks() {
            self.interlocks(before)?;
        }
        self.clean_up()?;
        self.charge_results(before)?;
        let moved = !self.taken.is_empty() || !self.effects.is_empty();
        let verdict = match unless_taken {
            Verdict::Ignored if moved => Verdict::Accepted,
            // In a lenient machine, an event that changed nothing counts as ignored.
            Verdict::Accepted
                if !moved
                    && before.is_some_and(|b| {
                        b.status == self.s.status && b.actors == self.s.actors && b.timers == self.s.timers
                    }) =>
            {
                Verdict::Ignored
            }
            other => other,
        };
        let unchanged =
            verdict == Verdict::Ignored && before.is_some_and(|b| Snapshot { seq: self.s.seq, ..b.clone() } == self.s);
        let seq = self.s.seq;
        let mut step = self.step(verdict);
        if unchanged {
            step.snapshot.seq = seq;
        }
        Ok(step)
    }
}

/// Replaces the result of an event that has exceeded its budget with the refusal.
#[inline]
pub(crate) fn within(budget: &Budget, mut result: Result<Step, Refusal>) -> Result<Step, Refusal> {
    if budget.is_over() {
        result = budget.check().and(result);
    }
    result
}

fn check_time(at: Timestamp) -> Result<(), Refusal> {
    if at.is_in_range() {
        return Ok(());
    }
    Err(Refusal::because(Code::Schema, Cause::Time))
}
