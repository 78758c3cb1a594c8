//! Verification of an exported run in its file, even if the host has dropped its first records.

use std::io::BufRead;

use charter_kernel::Digest;

use super::current::Current;
use super::report::{Anchor, Difference, Report, VerifiedRun};
use super::{Verifier, diagnose};
use crate::error::StoreError;
use crate::memory::MemoryStore;
use crate::record::{Record, json_of};
use crate::store::{Row, Store};
use crate::transfer::{After, CheckSource, Header, Lines, SourceCheck, TransferError, other_source};

/// Verifies the file of an exported run: every record is rehashed, replayed through the kernel, and
/// compared.
///
/// A file that starts after record 0 contains the previous record and the snapshot after it.
/// Verification checks that this record is intact and that the snapshot matches it. Whether it is
/// authentic can only be decided with its hash from another source (`anchors`).
///
/// # Errors
/// The file cannot be read, or its first line is not the first line of an exported run. Problems in
/// the run are findings, not errors.
pub fn verify_export(from: &mut dyn BufRead, anchors: &[Anchor]) -> Result<Report, TransferError> {
    verify_export_with(from, anchors, &|_| SourceCheck::Matches)
}

/// Like [`verify_export`], but also compares the source of the charter with `check`.
///
/// # Errors
/// See [`verify_export`].
pub fn verify_export_with(
    from: &mut dyn BufRead,
    anchors: &[Anchor],
    check: CheckSource<'_>,
) -> Result<Report, TransferError> {
    let mut lines = Lines { from, number: 0 };
    let header = Header::read(&mut lines)?;
    let charter = header.charter();
    let store = MemoryStore::new();
    let stored = store.put_charter(&charter);
    for (_, bytes) in header.files()? {
        store.put_blob(&bytes)?;
    }
    let mut verifier = Verifier::new(&store);
    verifier.expect(anchors, Some(&header.run));
    match check(&charter) {
        SourceCheck::Matches => {}
        SourceCheck::Unknown => {
            let remark = "the source of the charter names other files, so it was not compared with the definition";
            verifier.report.remarks.push(remark.into());
        }
        SourceCheck::Differs(why) => {
            verifier.found(Some(header.run.clone()), None, Difference::Charter, other_source(&why));
        }
    }
    let mut current = Current::new(&header.run);
    match stored {
        // Without the charter, no event of the run can be replayed.
        Err(StoreError::Damaged(why)) => {
            current.broken = true;
            verifier.found(Some(header.run.clone()), None, Difference::Charter, why);
        }
        stored => stored?,
    }
    if let (false, Some(after)) = (current.broken, &header.after) {
        verifier.begin_after(&mut current, after, charter.digest);
    }
    let first = current.next;
    while !current.broken {
        let text = match lines.next() {
            Ok(Some(text)) => text,
            Ok(None) => break,
            Err(TransferError::Line { why, .. }) => {
                current.broken = true;
                let message = format!("the line of this record is {why}");
                verifier.found(Some(header.run.clone()), Some(current.next), Difference::Unreadable, message);
                break;
            }
            Err(e) => return Err(e),
        };
        match Record::read(&text) {
            Err(e) => {
                let (what, message) = diagnose::unreadable(&text, &e);
                current.broken = true;
                verifier.found(Some(header.run.clone()), Some(current.next), what, message);
            }
            Ok(record) => {
                let (at, hash) = (record.at_text(), record.hash.to_string());
                let row = Row {
                    place: i64::try_from(lines.number).unwrap_or(i64::MAX),
                    run: &record.run,
                    seq: i64::try_from(record.seq).unwrap_or(i64::MAX),
                    id: &record.id,
                    at: &at,
                    r#type: &record.event.r#type,
                    verdict: record.verdict.word(),
                    hash: &hash,
                    text: text.as_bytes(),
                };
                verifier.row(&mut current, &row);
            }
        }
    }
    let run = Some(header.run.clone());
    if !current.broken && (current.next, current.hash) != (header.records, header.head) {
        let message = format!(
            "the file does not match its first line: expected {} records with the last hash {}, found {} with the last hash {}",
            header.records, header.head, current.next, current.hash
        );
        let last = current.next.checked_sub(1);
        verifier.found(run.clone(), last, Difference::Head, message);
    }
    if let (false, Some(manifest)) = (current.broken, current.manifest.take()) {
        verifier.manifest(&header.run, &manifest)?;
    }
    let unknown = verifier.anchors.remove(&header.run).unwrap_or_default();
    for (seq, hash) in unknown.into_iter().filter(|_| !current.broken) {
        let message = format!("the anchor expects the hash {hash}, but the record is not in the file");
        verifier.found(run.clone(), Some(seq), Difference::Anchor, message);
    }
    verifier.report.runs.push(VerifiedRun {
        run: header.run,
        first,
        records: current.next.saturating_sub(first),
        hash: current.hash,
    });
    Ok(verifier.report)
}

impl Verifier<'_> {
    /// Restores the state of a run at the start of its file.
    fn begin_after(&mut self, current: &mut Current, after: &After, charter: Digest) {
        let begun = self.after(current, after, charter);
        if let Err((seq, what, message)) = begun {
            current.broken = true;
            self.found(Some(current.run.clone()), seq, what, message);
        }
    }

    fn after(
        &mut self,
        current: &mut Current,
        after: &After,
        charter: Digest,
    ) -> Result<(), (Option<u64>, Difference, String)> {
        let record = Record::read(&after.record).map_err(|e| {
            let (what, message) = diagnose::unreadable(&after.record, &e);
            (None, what, message)
        })?;
        let wrong = |what: Difference, message: String| (Some(record.seq), what, message);
        if let Some((what, message)) = diagnose::not_intact(&after.record) {
            return Err(wrong(what, message));
        }
        if record.run != current.run || record.charter != charter {
            let message = "the record before the first one belongs to another run or charter";
            return Err(wrong(Difference::Place, message.into()));
        }
        let digest = Digest::of_bytes(after.snapshot.as_bytes());
        if digest != record.snapshot {
            let message = format!(
                "the snapshot at the start of the file has the digest {digest}, but the record before it has {}",
                record.snapshot
            );
            return Err(wrong(Difference::Snapshot, message));
        }
        if let Some(known) = self.anchors.get_mut(&current.run).and_then(|a| a.remove(&record.seq))
            && known != record.hash
        {
            let message = format!("its hash is {}, but the anchor expects {known}", record.hash);
            return Err(wrong(Difference::Anchor, message));
        }
        let machine = self.machine(charter).map_err(|e| wrong(Difference::Charter, diagnose::reason(e)))?;
        let restored = json_of(&after.snapshot)
            .map_err(|e| e.to_string())
            .and_then(|json| machine.restore(&json).map_err(|e| e.to_string()));
        current.snapshot = Some(restored.map_err(|why| wrong(Difference::Snapshot, why))?);
        current.machine = Some(machine);
        current.digest = Some(digest);
        current.next = record.seq.saturating_add(1);
        current.hash = record.hash;
        Ok(())
    }
}
