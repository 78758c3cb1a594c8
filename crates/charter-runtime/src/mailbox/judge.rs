//! What the kernel says to a piece of mail, in the state that the mail before it leads to; nothing is written yet.

use std::sync::Arc;

use charter_journal::{MAX_RECORD_BYTES, StoreError};
use charter_kernel::{Envelope, Event, Principal, Refusal, Snapshot, Step};
use rustc_hash::FxHashSet;

use super::perform::Made;
use super::state::RunState;
use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::runtime::{Inner, Input, Reply, SendEvent, Start, may, task_roles};

/// How many events of one run are committed together at most.
pub(super) const BATCH: usize = 64;

/// A batch in the making: the run as it will be, and what leads there.
pub(super) struct Batch {
    pub(super) state: RunState,
    pub(super) made: Vec<Made>,
    pub(super) ids: FxHashSet<String>,
}

/// What is to be done with a letter.
pub(super) enum Evaluation {
    /// It is in the batch, or was answered without a record.
    Done,
    /// It needs what the batch has not written yet; it comes first in the next one.
    Later(Input),
}

impl Inner {
    /// Puts a letter through the kernel.
    pub(super) fn judge(self: &Arc<Self>, run: &Arc<str>, batch: &mut Batch, mail: Input) -> Evaluation {
        // What was due before comes before.
        self.fire(run, batch);
        match mail {
            Input::Due => Evaluation::Done,
            Input::Start { charter, start, reply } => self.judge_start(run, batch, charter, start, reply),
            Input::Event { send, reply } => self.judge_event(run, batch, send, reply),
            Input::Answer { invocation, effect, outcome, person, reply } => {
                let Some(snapshot) = &batch.state.snapshot else {
                    drop(reply.send(Err(RuntimeError::NeverStarted(run.to_string()))));
                    return Evaluation::Done;
                };
                let (invocation, by) = match person {
                    None => (invocation, Principal::system()),
                    Some(person) => match task(run, &batch.state.charter, snapshot, effect, &person) {
                        Ok(invocation) => (invocation, person),
                        Err(e) => {
                            drop(reply.send(Err(e)));
                            return Evaluation::Done;
                        }
                    },
                };
                let event = Event::answer(invocation, effect, outcome);
                self.step_of_host(run, batch, event, by, reply)
            }
            Input::Attempt { invocation, effect, attempt, error, retry_at, reply } => {
                let event = Event::Attempt { invocation, effect, attempt, error, retry_at: retry_at.into() };
                self.step_of_host(run, batch, event, Principal::system(), reply)
            }
        }
    }

    /// An event of the host's own: it is taken when events from outside no longer are.
    fn step_of_host(&self, run: &Arc<str>, batch: &mut Batch, event: Event, by: Principal, reply: Reply) -> Evaluation {
        if batch.state.snapshot.is_none() {
            drop(reply.send(Err(RuntimeError::NeverStarted(run.to_string()))));
        } else if self.is_full(batch, 2) {
            self.publisher.trouble(
                Some(run),
                format!(
                    "run `{run}` has twice as many records as it may have, and stands still; `charter.cancel` ends it"
                ),
            );
            drop(reply.send(Err(self.full(run))));
        } else {
            self.step(batch, None, None, event, by, None, Some(reply));
        }
        Evaluation::Done
    }

    /// Fires the timers that are due.
    pub(super) fn fire(&self, run: &Arc<str>, batch: &mut Batch) {
        for _ in 0..BATCH {
            let now = self.now(&batch.state);
            let Some((id, generation)) =
                batch.state.timer().filter(|t| t.due.0 <= now).map(|t| (t.id.clone(), t.generation))
            else {
                return;
            };
            if self.is_full(batch, 2) {
                return;
            }
            let event = Event::Timer { timer: id.to_string(), generation };
            let before = batch.made.len();
            self.step(batch, None, None, event, Principal::system(), None, None);
            if batch.made.len() == before {
                return;
            }
            let state = &mut batch.state;
            let refused = batch.made.last().and_then(|m| m.append.record.refusal.as_deref());
            if let (Some(why), Some(snapshot)) = (refused, &state.snapshot) {
                // It stays pending. It would be refused for ever: it is tried again when the run has changed.
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

    pub(super) fn now(&self, state: &RunState) -> i64 {
        self.clock.now().max(state.last)
    }

    fn judge_start(
        self: &Arc<Self>,
        run: &Arc<str>,
        batch: &mut Batch,
        charter: Arc<Charter>,
        start: Box<Start>,
        reply: Reply,
    ) -> Evaluation {
        if batch.state.chain.next_seq() > 0 {
            if !batch.made.is_empty() {
                return Evaluation::Later(Input::Start { charter, start, reply });
            }
            drop(reply.send(self.started_before(run, batch, &charter, &start)));
            return Evaluation::Done;
        }
        batch.state.charter = charter;
        let Start { input, by, .. } = *start;
        self.step(batch, None, None, Event::Start { input }, by, None, Some(reply));
        Evaluation::Done
    }

    fn judge_event(
        self: &Arc<Self>,
        run: &Arc<str>,
        batch: &mut Batch,
        send: Box<SendEvent>,
        reply: Reply,
    ) -> Evaluation {
        if batch.state.snapshot.is_none() {
            drop(reply.send(Err(RuntimeError::NeverStarted(run.to_string()))));
            return Evaluation::Done;
        }
        if let Some(id) = &send.id {
            if batch.ids.contains(id) {
                return Evaluation::Later(Input::Event { send, reply });
            }
            match self.store.find(run, id) {
                Ok(None) => {}
                Ok(Some(first)) => {
                    drop(reply.send(self.said_before(run, batch, &send, first)));
                    return Evaluation::Done;
                }
                Err(e) => {
                    drop(reply.send(Err(e.into())));
                    return Evaluation::Done;
                }
            }
        }
        if send.r#type != "charter.cancel" && self.is_full(batch, 1) {
            drop(reply.send(Err(self.full(run))));
            return Evaluation::Done;
        }
        let SendEvent { to, r#type, data, by, id, expected_seq, .. } = *send;
        self.step(batch, id, to, Event::External { r#type, data }, by, expected_seq, Some(reply));
        Evaluation::Done
    }

    /// The kernel's step, and its record.
    #[allow(clippy::too_many_arguments)] // the parts of an envelope
    fn step(
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
        let envelope = Envelope { seq: state.chain.next_seq(), to, event, by, at: at.into(), expected_seq };
        let outcome = outcome(state, &envelope);
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
        batch.made.push(Made { append, effects, after: state.snapshot.clone(), reply });
    }

    /// Whether a run has as many records as it may have, `times` over.
    fn is_full(&self, batch: &Batch, times: u64) -> bool {
        let most = self.limits.records_per_run;
        most > 0 && batch.state.chain.next_seq() >= most.saturating_mul(times)
    }

    fn full(&self, run: &str) -> RuntimeError {
        RuntimeError::Limit {
            limit: "records_per_run",
            value: self.limits.records_per_run,
            what: format!("run `{run}` has too many records; `charter.cancel` still ends it"),
        }
    }
}

pub(super) fn outcome(state: &RunState, envelope: &Envelope) -> Result<Step, Refusal> {
    match (&envelope.event, &state.snapshot) {
        (Event::Start { .. }, None) => state.charter.machine.start(state.chain.run(), envelope),
        (_, Some(snapshot)) => state.charter.machine.step(snapshot, envelope),
        (_, None) => Err(charter_kernel::Code::Finished.into()),
    }
}

/// The invocation that waits for a person's answer.
fn task(
    run: &str,
    charter: &Charter,
    snapshot: &Snapshot,
    effect: charter_kernel::EffectId,
    by: &Principal,
) -> Result<String, RuntimeError> {
    let name = effect.text(run);
    let human = |src: &str| charter.actors.get(src).is_some_and(|s| s.kind.as_ref() == "human");
    let found = snapshot.invocations().find(|(_, i)| i.effect == effect && !i.is_machine() && human(&i.src));
    let Some((_, i)) = found.filter(|_| !snapshot.status().is_finished()) else {
        return Err(RuntimeError::NoTask { run: run.into(), task: name });
    };
    let roles = task_roles(charter, &i.src);
    if !may(&roles, by) {
        return Err(RuntimeError::NotYours { run: run.into(), task: name, roles: roles.join(", "), by: by.id.clone() });
    }
    Ok(i.id.to_string())
}
