//! Verification of the records of a run, one by one: each is parsed, rehashed, and replayed through
//! the kernel.

use std::sync::Arc;

use charter_kernel::{Digest, Machine, Refusal, Snapshot, Step};

use super::Verifier;
use super::current::{Current, Wrong};
use super::diagnose;
use super::report::Difference;
use crate::record::{Origin, Record, RecordBuilder, RecordError, RecordInput, Verdict};
use crate::replay::{ReplayError, machine};
use crate::store::Row;

impl Verifier<'_> {
    pub(super) fn row(&mut self, current: &mut Current, row: &Row<'_>) {
        if current.broken {
            return;
        }
        if let Err((what, message)) = self.check(current, row) {
            current.broken = true;
            self.found(Some(current.run.clone()), Some(current.next), what, message);
        }
    }

    /// Rebuilds one record and compares it.
    fn check(&mut self, current: &mut Current, row: &Row<'_>) -> Result<(), Wrong> {
        if u64::try_from(row.seq) != Ok(current.next) {
            return Err(diagnose::out_of_place(current.next, row));
        }
        let text = std::str::from_utf8(row.text)
            .map_err(|_| (Difference::Unreadable, "the stored record is not UTF-8".to_owned()))?;
        let input = RecordInput::read(text).map_err(|e| diagnose::unreadable(text, &e))?;
        if input.run != current.run || input.seq != current.next {
            return Err(diagnose::elsewhere(text, &current.run, current.next, &input));
        }
        if current.next == 0 {
            let found = self.machine(input.charter);
            current.machine = Some(
                found.map_err(|e| diagnose::not_intact(text).unwrap_or((Difference::Charter, diagnose::reason(e))))?,
            );
            current.origin = input.forked_from.clone().map(Origin::owned);
            current.manifest = input.manifest.clone();
        }
        // Record 0 has set the machine, unless the run is broken.
        let Some(machine) = current.machine.clone() else {
            return Ok(());
        };
        if current.next > 0 && current.snapshot.is_none() {
            return Err((Difference::Replay, "the start of the run was refused, so no record can follow".into()));
        }
        let id = input.id.clone();
        let place = (row.place, current.place);
        let outcome: Result<Step, Refusal>;
        match input.envelope() {
            Ok(envelope) => {
                outcome = match &current.snapshot {
                    None => machine.start(&current.run, &envelope),
                    Some(before) => machine.step(before, &envelope),
                };
                let digest = match (&outcome, &current.snapshot) {
                    (Ok(step), Some(before)) if step.snapshot.seq() == before.seq() => current.digest,
                    (Ok(step), _) => {
                        self.buffer.clear();
                        machine.write_snapshot(&mut self.buffer, &step.snapshot);
                        Some(Digest::of_bytes(self.buffer.as_bytes()))
                    }
                    _ => current.digest,
                };
                let first = current.next == 0;
                let forked_from = current.origin.clone().filter(|_| first);
                let manifest = current.manifest.clone().filter(|_| first);
                let builder = RecordBuilder {
                    machine: &machine,
                    run: &current.run,
                    id: Some(&id),
                    prev: current.hash,
                    envelope: &envelope,
                    before: current.snapshot.as_ref(),
                    outcome: &outcome,
                    snapshot: digest,
                    forked_from,
                    manifest,
                };
                let mut fields = builder.fields();
                self.buffer.clear();
                fields.write_hashed(&mut self.buffer);
                if self.buffer != text {
                    return Err(diagnose::why(text, &self.buffer));
                }
                if fields.seq == 0 {
                    current.started = fields.at;
                }
                (current.updated, current.status) = (fields.at, fields.status_word());
                (current.hash, current.digest) = (fields.hash, Some(fields.snapshot));
                diagnose::columns(row, &fields)?;
            }
            Err(RecordError::Redacted) => {
                outcome = Err(charter_kernel::Code::TooLarge.into());
                self.redacted(current, row, text)?;
            }
            Err(e) => return Err((Difference::Unreadable, e.to_string())),
        }
        if let Ok(step) = outcome {
            current.snapshot = Some(step.snapshot);
        }
        if place.0 <= place.1 {
            return Err((Difference::Place, "it is stored before its predecessor".into()));
        }
        current.place = row.place;
        if let Some(kept) = self.snapshots.get_mut(&current.run).and_then(|s| s.remove(&current.next))
            && Some(kept) != current.digest
        {
            return Err((
                Difference::Snapshot,
                format!(
                    "the stored snapshot has the digest {kept}, but the record has {}",
                    current.digest.unwrap_or_default()
                ),
            ));
        }
        if let Some(anchor) = self.anchors.get_mut(&current.run).and_then(|a| a.remove(&current.next))
            && anchor != current.hash
        {
            return Err((Difference::Anchor, format!("its hash is {}, but the anchor expects {anchor}", current.hash)));
        }
        current.next = current.next.saturating_add(1);
        Ok(())
    }

    /// Checks a record with redacted data. Its event cannot be replayed, but it must have been
    /// refused by validation, and the record must not change anything.
    fn redacted(&self, current: &mut Current, row: &Row<'_>, text: &str) -> Result<(), Wrong> {
        let record = Record::read(text).map_err(|e| diagnose::unreadable(text, &e))?;
        if let Some(wrong) = diagnose::not_intact(text) {
            return Err(wrong);
        }
        if record.prev != current.hash {
            return Err(diagnose::wrong_prev(record.prev, current.hash));
        }
        if Some(record.charter) != current.machine.as_ref().map(|m| m.digest()) {
            return Err((
                Difference::Charter,
                format!("it has the charter {}, but the run has another one", record.charter),
            ));
        }
        let state: Vec<&str> = current
            .snapshot
            .as_ref()
            .and_then(|s| s.actor(&record.to))
            .map(|a| a.state().collect())
            .unwrap_or_default();
        let code = record.refusal.as_ref().map_or("", |r| r.code.word());
        let unchanged = record.verdict == Verdict::Refused
            && matches!(code, "too-large" | "schema" | "charter-mismatch" | "reserved")
            && record.from == state
            && record.state == state
            && record.transitions.is_empty()
            && record.effects.is_empty()
            && record.timers.is_empty()
            && record.ledger.is_empty()
            && record.approvals.is_empty()
            && record.status == current.snapshot.as_ref().map(Snapshot::status)
            && record.snapshot == current.digest.unwrap_or_else(|| Digest::of_bytes(b"null"));
        if !unchanged {
            return Err((Difference::Replay, "its data is redacted, so it must have been refused by validation and must have changed nothing, but the record differs".into()));
        }
        if record.seq == 0 {
            current.started = record.at;
        }
        (current.updated, current.status, current.hash) = (record.at, record.status_word(), record.hash);
        diagnose::columns(row, &record)
    }

    pub(super) fn machine(&mut self, digest: Digest) -> Result<Arc<Machine>, ReplayError> {
        let store = self.store;
        self.machines.entry(digest).or_insert_with(|| machine(store, digest).map(Arc::new)).clone()
    }
}
