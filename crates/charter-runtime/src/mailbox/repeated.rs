//! What was said before: the same start, the same event again gets the answer it had.

use charter_kernel::{Envelope, Event};

use super::judge::{Batch, outcome};
use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::runtime::{Inner, Receipt, SendEvent, Start};

impl Inner {
    /// The same run, started again.
    pub(super) fn started_before(
        &self,
        run: &str,
        batch: &Batch,
        charter: &Charter,
        start: &Start,
    ) -> Result<Receipt, RuntimeError> {
        let exists = || RuntimeError::RunExists(run.to_owned());
        let first = self.store.records(run, 0, 1)?.into_iter().next().ok_or_else(exists)?;
        let event = Event::Start { input: start.input.clone() };
        let envelope =
            Envelope { seq: 0, to: None, event, by: start.by.clone(), at: first.at.into(), expected_seq: None };
        let outcome = charter.machine.start(run, &envelope);
        let again = charter_journal::Record::of(
            &charter.machine,
            run,
            None,
            charter_journal::GENESIS,
            &envelope,
            None,
            &outcome,
        );
        if first.charter != charter.digest() || !first.says_the_same(&again) {
            return Err(exists());
        }
        Ok(Receipt { record: first, snapshot: batch.state.snapshot.clone(), repeated: true })
    }

    /// An event whose id is in the journal already: the first answer, if it says the same.
    pub(super) fn said_before(
        &self,
        run: &str,
        batch: &Batch,
        send: &SendEvent,
        first: charter_journal::Record,
    ) -> Result<Receipt, RuntimeError> {
        let state = &batch.state;
        let envelope = Envelope {
            seq: state.chain.next_seq(),
            to: send.to.clone(),
            event: Event::External { r#type: send.r#type.clone(), data: send.data.clone() },
            by: send.by.clone(),
            at: self.now(state).into(),
            expected_seq: send.expected_seq,
        };
        let outcome = outcome(state, &envelope);
        let again = state.chain.append(&state.charter.machine, None, &envelope, state.snapshot.as_ref(), &outcome);
        if first.says_the_same(&again.record) {
            return Ok(Receipt { record: first, snapshot: state.snapshot.clone(), repeated: true });
        }
        Err(RuntimeError::IdTaken { run: run.into(), id: first.id.to_string(), seq: first.seq })
    }
}
