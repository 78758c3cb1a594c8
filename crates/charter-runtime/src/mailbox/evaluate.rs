//! Evaluating inputs: each one in the state after the one before it. Nothing is written yet.

use std::sync::Arc;

use charter_journal::{MAX_RECORD_BYTES, StoreError};
use charter_kernel::{Envelope, Event, Principal, Refusal, Step, Timestamp};
use rustc_hash::FxHashSet;

use super::load::Lookups;
use super::perform::Staged;
use super::run::RunState;
use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::inner::Inner;
use crate::request::{Input, Reply, SendEvent, Start};
use crate::tasks;

/// Upper limit of inputs of one run that are committed together.
pub(super) const MAX_BATCH: usize = 64;

/// Records that are committed together, and the run after them.
pub(super) struct Batch {
    pub(super) state: RunState,
    pub(super) staged: Vec<Staged>,
    /// Ids of the events in the batch.
    pub(super) ids: FxHashSet<String>,
    pub(super) lookups: Lookups,
}

/// The result of evaluating an input.
pub(super) enum Evaluation {
    /// It is in the batch, or was answered without a record.
    Done,
    /// It depends on a record that the batch has not written yet: it comes first in the next batch.
    Later(Input),
}

impl Inner {
    /// Evaluates an input, after the timers that are due.
    pub(super) fn evaluate(&self, run: &Arc<str>, batch: &mut Batch, input: Input) -> Evaluation {
        self.fire(run, batch);
        match input {
            Input::Due => Evaluation::Done,
            Input::Start { charter, start, reply } => self.evaluate_start(run, batch, charter, start, reply),
            Input::Event { send, reply } => self.evaluate_event(run, batch, send, reply),
            Input::Answer { invocation, effect, outcome, person, reply } => {
                let Some(snapshot) = &batch.state.snapshot else {
                    drop(reply.send(Err(RuntimeError::NeverStarted(run.to_string()))));
                    return Evaluation::Done;
                };
                let (invocation, by) = match person {
                    None => (invocation, Principal::system()),
                    Some(person) => match tasks::invocation(run, &batch.state.charter, snapshot, effect, &person) {
                        Ok(invocation) => (invocation, person),
                        Err(e) => {
                            drop(reply.send(Err(e)));
                            return Evaluation::Done;
                        }
                    },
                };
                let event = Event::answer(invocation, effect, outcome);
                self.evaluate_own(run, batch, event, by, reply)
            }
            Input::Attempt { invocation, effect, attempt, error, retry_at, reply } => {
                let event = Event::Attempt { invocation, effect, attempt, error, retry_at };
                self.evaluate_own(run, batch, event, Principal::system(), reply)
            }
        }
    }

    /// An event of the host itself: its limit of records is twice that of events from outside.
    fn evaluate_own(&self, run: &Arc<str>, batch: &mut Batch, event: Event, by: Principal, reply: Reply) -> Evaluation {
        if batch.state.snapshot.is_none() {
            drop(reply.send(Err(RuntimeError::NeverStarted(run.to_string()))));
        } else if self.is_full(batch, 2) {
            self.publisher.trouble(
                Some(run),
                format!(
                    "run `{run}` has twice as many records as the limit and cannot go on; `charter.cancel` ends it"
                ),
            );
            drop(reply.send(Err(self.full(run))));
        } else {
            self.stage(batch, None, None, event, by, None, Some(reply));
        }
        Evaluation::Done
    }

    /// Fires the timers that are due.
    pub(super) fn fire(&self, run: &Arc<str>, batch: &mut Batch) {
        for _ in 0..MAX_BATCH {
            let now = self.now(&batch.state);
            let Some((id, generation)) =
                batch.state.timer().filter(|t| t.due <= now).map(|t| (t.id.clone(), t.generation))
            else {
                return;
            };
            if self.is_full(batch, 2) {
                return;
            }
            let event = Event::Timer { timer: id.to_string(), generation };
            let before = batch.staged.len();
            self.stage(batch, None, None, event, Principal::system(), None, None);
            if batch.staged.len() == before {
                return;
            }
            let state = &mut batch.state;
            let machine = Some(&*state.charter.machine);
            let refused = batch.staged.last().and_then(|m| m.append.record.explanation(machine));
            if let (Some(why), Some(snapshot)) = (refused, &state.snapshot) {
                // The timer stays pending. It is not tried again before the run has changed, since
                // the result would be the same.
                if state.refused.0 != snapshot.seq() {
                    state.refused = (snapshot.seq(), FxHashSet::default());
                }
                state.refused.1.insert((id.clone(), generation));
                self.publisher.trouble(
                    Some(run),
                    format!(
                        "the timer `{id}` was refused ({}) and waits for the run to change: {}",
                        why.code, why.message
                    ),
                );
            }
        }
    }

    pub(super) fn now(&self, state: &RunState) -> Timestamp {
        self.clock.now().max(state.last)
    }

    fn evaluate_start(
        &self,
        run: &Arc<str>,
        batch: &mut Batch,
        charter: Arc<Charter>,
        start: Box<Start>,
        reply: Reply,
    ) -> Evaluation {
        if batch.state.chain.next_seq() > 0 {
            if !batch.staged.is_empty() {
                return Evaluation::Later(Input::Start { charter, start, reply });
            }
            drop(reply.send(self.repeated_start(run, batch, &charter, &start)));
            return Evaluation::Done;
        }
        batch.state.charter = charter;
        let Start { input, by, .. } = *start;
        self.stage(batch, None, None, Event::Start { input }, by, None, Some(reply));
        Evaluation::Done
    }

    fn evaluate_event(&self, run: &Arc<str>, batch: &mut Batch, send: Box<SendEvent>, reply: Reply) -> Evaluation {
        if batch.state.snapshot.is_none() {
            drop(reply.send(Err(RuntimeError::NeverStarted(run.to_string()))));
            return Evaluation::Done;
        }
        if let Some(id) = &send.id {
            if batch.ids.contains(id) {
                return Evaluation::Later(Input::Event { send, reply });
            }
            if let Some(first) = batch.lookups.by_id.get(id).cloned() {
                let result = first.map_err(RuntimeError::from);
                drop(reply.send(result.and_then(|first| self.repeated_event(run, batch, &send, first))));
                return Evaluation::Done;
            }
        }
        if send.r#type != "charter.cancel" && self.is_full(batch, 1) {
            drop(reply.send(Err(self.full(run))));
            return Evaluation::Done;
        }
        let SendEvent { to, r#type, data, by, id, expected_seq, .. } = *send;
        self.stage(batch, id, to, Event::External { r#type, data }, by, expected_seq, Some(reply));
        Evaluation::Done
    }

    /// Takes the kernel's step and stages its record.
    #[allow(clippy::too_many_arguments)] // the parts of an envelope
    fn stage(
        &self,
        batch: &mut Batch,
        id: Option<String>,
        to: Option<String>,
        event: Event,
        by: Principal,
        expected_seq: Option<u64>,
        reply: Option<Reply>,
    ) {
        let at = self.now(&batch.state);
        let state = &mut batch.state;
        let envelope = Envelope { seq: state.chain.next_seq(), to, event, by, at, expected_seq };
        let outcome = step(state, &envelope);
        let append =
            state.chain.append(&state.charter.machine, id.as_deref(), &envelope, state.snapshot.as_ref(), &outcome);
        let size = append.record.text().len();
        if size > MAX_RECORD_BYTES {
            let (run, seq) = (append.record.run.to_string(), append.record.seq);
            let e = StoreError::TooLarge { run, seq, size, limit: MAX_RECORD_BYTES };
            match reply {
                Some(reply) => drop(reply.send(Err(e.into()))),
                None => self.publisher.trouble(None, e.to_string()),
            }
            return;
        }
        state.chain.advance(&append);
        state.last = at;
        batch.ids.extend(id);
        let mut effects = Vec::new();
        if let Ok(step) = outcome {
            state.snapshot = Some(step.snapshot);
            effects = step.effects;
        }
        batch.staged.push(Staged { append, effects, after: state.snapshot.clone(), reply });
    }

    /// Whether a run has `times` as many records as the limit.
    fn is_full(&self, batch: &Batch, times: u64) -> bool {
        let limit = self.limits.records_per_run;
        limit > 0 && batch.state.chain.next_seq() >= limit.saturating_mul(times)
    }

    fn full(&self, run: &str) -> RuntimeError {
        RuntimeError::Limit {
            limit: "records_per_run",
            value: self.limits.records_per_run,
            what: format!("run `{run}` has too many records; `charter.cancel` still ends it"),
        }
    }
}

/// The kernel's step; nothing is staged.
pub(super) fn step(state: &RunState, envelope: &Envelope) -> Result<Step, Refusal> {
    match (&envelope.event, &state.snapshot) {
        (Event::Start { .. }, None) => state.charter.machine.start(state.chain.run(), envelope),
        (_, Some(snapshot)) => state.charter.machine.step(snapshot, envelope),
        (_, None) => Err(charter_kernel::Code::Finished.into()),
    }
}
