//! Charges what a step leaves behind: its record and the snapshot of the run.

use crate::budget::Work;
use crate::canonical;
use crate::ledger::{Entry, Ledger};
use crate::refusal::Refusal;
use crate::snapshot::{Actor, LengthBound, Snapshot};
use crate::transaction::StepTransaction;

/// The length of the snapshot of a run that has not started, and more than the constant parts of
/// any snapshot.
pub(super) const START_LENGTH: u64 = 4_096;
/// What the record of a change in the ledger takes besides the key and the data.
const CHANGE_BYTES: u64 = 256;
/// How often a snapshot repeats what a step builds: the input of an invoked machine is also that of
/// the invocation, and in imports a variable.
const REPEATS: u64 = 4;

impl StepTransaction<'_> {
    /// Charges the record, and refuses a snapshot that is too large.
    pub(super) fn charge_results(&mut self, before: Option<&Snapshot>) -> Result<(), Refusal> {
        // A record has the states of one actor, before and after the event.
        let longest = |s: &Snapshot| s.actors.iter().map(|a| names(a)).max().unwrap_or_default();
        let states = longest(&self.s).saturating_add(before.map_or(0, longest));
        self.budget.build(states, Work::Record);
        self.charge_ledger(before.and_then(|b| b.ledger.as_deref()));
        self.budget.check()?;
        let grown = self.budget.bytes_used().saturating_mul(REPEATS);
        let bound = self.s.length.0.saturating_add(grown);
        self.s.length = LengthBound(bound);
        let names = self.s.actors.iter().map(|a| names(a)).fold(bound, u64::saturating_add);
        if names <= self.budget.snapshot_limit() {
            return Ok(());
        }
        let length = self.m.snapshot_text(&self.s).len() as u64;
        self.s.length = LengthBound(length.saturating_add(START_LENGTH));
        self.budget.check_snapshot(length)
    }

    /// Charges the changes of the ledger, which the record lists.
    fn charge_ledger(&self, before: Option<&Ledger>) {
        let Some(ledger) = self.s.ledger.as_deref() else {
            return;
        };
        if before.is_some_and(|b| std::ptr::eq(b, ledger)) {
            return;
        }
        self.budget.scan(ledger.len());
        for (kind, key, entry) in ledger.changes(before) {
            let names = (kind.len() as u64).saturating_add(canonical::length_of_str(key));
            if !self.budget.build(CHANGE_BYTES.saturating_add(names).saturating_add(data(entry)), Work::Record) {
                return;
            }
        }
    }
}

/// An upper bound of the length of the names of the active states.
fn names(actor: &Actor) -> u64 {
    let longest = actor.identity().shape.longest.saturating_add(3);
    (actor.configuration.len() as u64).saturating_mul(longest)
}

fn data(entry: &Entry) -> u64 {
    canonical::length(&entry.data).saturating_add(entry.how.as_deref().map_or(0, canonical::length))
}
