//! Evaluates inputs, each in the state after the previous one. Writes nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use charter_journal::Record;
use charter_run::{Appended, Bounds, Denied, Known, Reply as Answer, Trouble};

use super::load::Lookups;
use super::run::RunState;
use crate::charter::Charter;
use crate::inner::Inner;
use crate::request::{Input, Reply};

/// Maximum number of inputs of one run that are committed together.
pub(super) const MAX_BATCH: usize = 64;

/// Inputs whose records are committed together, and the state of the run after them.
pub(super) struct Batch {
    pub(super) state: RunState,
    pub(super) entries: Vec<Entry>,
    pub(super) lookups: Lookups,
}

/// An input of a batch.
pub(super) struct Entry {
    /// The input, if it is kept.
    pub(super) input: Option<charter_run::Input>,
    pub(super) charter: Option<Arc<Charter>>,
    pub(super) reply: Option<Reply>,
    pub(super) appended: Vec<Appended>,
    pub(super) answer: Answer,
    pub(super) troubles: Vec<Trouble>,
}

impl Entry {
    /// Whether the input is denied for a reason that does not apply to a repeated event.
    pub(super) fn is_denied(&self) -> bool {
        matches!(
            self.answer,
            Answer::Denied(
                Denied::TooManyRecords { .. }
                    | Denied::RecordTooLarge { .. }
                    | Denied::NothingToAllow
                    | Denied::NoFolder { .. }
            )
        )
    }
}

impl Batch {
    /// Puts the inputs back in front of the others, to evaluate them again.
    pub(super) fn give_back(self, inputs: &mut VecDeque<Input>) {
        for Entry { input, charter, reply, .. } in self.entries.into_iter().rev() {
            if let Some(input) = input {
                inputs.push_front(Input { input, charter, reply });
            }
        }
    }

    /// The records to commit, with what follows the commit.
    pub(super) fn appended(&self) -> impl Iterator<Item = &Appended> {
        self.entries.iter().flat_map(|e| &e.appended)
    }

    /// Returns the record with an event id, from the batch or from the journal.
    fn with_id(&self, id: &str) -> Option<Record> {
        let own = self.appended().map(|a| &a.append.record).find(|r| r.id == id);
        own.or_else(|| self.lookups.by_id.get(id)).cloned()
    }

    /// Returns record 0, from the batch or from the journal.
    fn first(&self) -> Option<Record> {
        let own = self.appended().map(|a| &a.append.record).find(|r| r.seq == 0);
        own.or(self.lookups.first.as_ref()).cloned()
    }
}

impl Inner {
    /// Evaluates an input, after the timers that are due.
    pub(super) fn evaluate(&self, batch: &mut Batch, input: Input) {
        let Input { input, charter, reply } = input;
        let known = match (&input, &charter) {
            (charter_run::Input::Start { .. }, Some(charter)) if !batch.state.run.exists() => {
                batch.state.charter = charter.clone();
                Known::default()
            }
            // The existing run belongs to another charter.
            (charter_run::Input::Start { .. }, Some(charter)) => {
                let same = charter.digest() == batch.state.charter.digest();
                Known { first: batch.first().filter(|_| same), ..Known::default() }
            }
            (charter_run::Input::Event(event), _) => {
                let records = batch.appended().map(|a| &a.append.record);
                let unique = batch.lookups.keys.of(&batch.state.charter.machine, batch.state.run.id(), event, records);
                Known { first: None, same: event.id.as_deref().and_then(|id| batch.with_id(id)), unique }
            }
            _ => Known::default(),
        };
        // The store may refuse the batch because of an id or a key; the input is then evaluated
        // again.
        let kept = (batch.lookups.unsure || batch.lookups.keys.are_used()).then(|| input.clone());
        let machine = batch.state.charter.machine.clone();
        let bounds = Bounds { records: self.limits.records_per_run, data_bytes: self.limits.data_bytes };
        // A repeated event gets its first answer.
        let denied = known.same.is_none().then(|| batch.state.allows_nothing(&input, &self.executors)).flatten();
        let (appended, answer, troubles) = match denied {
            Some(denied) => (Vec::new(), Answer::Denied(denied), Vec::new()),
            None => {
                let handled = batch.state.run.handle(&machine, &bounds, self.clock.now(), input, known);
                (handled.appended, handled.reply, handled.troubles)
            }
        };
        batch.entries.push(Entry { input: kept, charter, reply, appended, answer, troubles });
    }
}
