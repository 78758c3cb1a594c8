//! Repetitions: the same start, or the same event under the same id, returns the first result
//! again.

use charter_journal::{GENESIS, Record};
use charter_kernel::{Envelope, Event};

use super::evaluate::{Batch, step};
use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::inner::Inner;
use crate::request::{Receipt, SendEvent, Start};

impl Inner {
    /// The result of a start of a run that exists.
    pub(super) fn repeated_start(
        &self,
        run: &str,
        batch: &Batch,
        charter: &Charter,
        start: &Start,
    ) -> Result<Receipt, RuntimeError> {
        let exists = || RuntimeError::RunExists(run.to_owned());
        let first = batch.lookups.first.clone().ok_or_else(exists)??;
        let event = Event::Start { input: start.input.clone() };
        let envelope = Envelope { seq: 0, to: None, event, by: start.by.clone(), at: first.at, expected_seq: None };
        let outcome = charter.machine.start(run, &envelope);
        let again = Record::of(&charter.machine, run, None, GENESIS, &envelope, None, &outcome);
        if first.charter != charter.digest() || !first.says_the_same(&again) {
            return Err(exists());
        }
        Ok(Receipt { record: first, snapshot: batch.state.snapshot.clone(), repeated: true })
    }

    /// The result of an event whose id is in the journal: the first one, if the content is the
    /// same.
    pub(super) fn repeated_event(
        &self,
        run: &str,
        batch: &Batch,
        send: &SendEvent,
        first: Record,
    ) -> Result<Receipt, RuntimeError> {
        let state = &batch.state;
        let envelope = Envelope {
            seq: state.chain.next_seq(),
            to: send.to.clone(),
            event: Event::External { r#type: send.r#type.clone(), data: send.data.clone() },
            by: send.by.clone(),
            at: self.now(state),
            expected_seq: send.expected_seq,
        };
        let outcome = step(state, &envelope);
        let again = state.chain.append(&state.charter.machine, None, &envelope, state.snapshot.as_ref(), &outcome);
        if first.says_the_same(&again.record) {
            return Ok(Receipt { record: first, snapshot: state.snapshot.clone(), repeated: true });
        }
        Err(RuntimeError::IdTaken { run: run.into(), id: first.id.to_string(), seq: first.seq })
    }
}
