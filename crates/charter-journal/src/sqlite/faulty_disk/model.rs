//! What a store must contain: the records that were sent, and how many of them are acknowledged.

use std::path::Path;
use std::sync::LazyLock;

use charter_kernel::{Envelope, Machine, Principal, Timestamp};
use serde_json::json;

use crate::chain::Chain;
use crate::error::StoreError;
use crate::head::JournalHead;
use crate::sqlite::head::Intervention;
use crate::sqlite::writer::tests::{Host, charter};
use crate::sqlite::{AcceptHead, Deletion, SqliteOptions, SqliteStore};
use crate::store::{Append, Store, StoredCharter};
use crate::verify::{VerifyOptions, verify_with};

/// The runs. The last ones end.
pub(super) const RUNS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// How many of them do not end.
pub(super) const LASTING: usize = 3;

/// Number of records of a run that does not end, and of one that does.
const RECORDS: (usize, usize) = (60, 4);

/// The number of records of a run that was deleted.
const GONE: usize = usize::MAX;

/// The charter, and the records of each run.
pub(super) static WORK: LazyLock<(StoredCharter, Vec<Vec<Append>>)> = LazyLock::new(|| {
    let (machine, stored) = charter();
    let all = RUNS.iter().enumerate().map(|(n, run)| records(&machine, run, n >= LASTING));
    let all = all.collect();
    (stored, all)
});

fn records(machine: &Machine, run: &str, ends: bool) -> Vec<Append> {
    let mut host = Host { machine, chain: Chain::new(run), snapshot: None };
    let next = |_| {
        let (append, after) = host.next();
        host.advance(&append, after);
        append
    };
    let mut all: Vec<Append> = (0..if ends { RECORDS.1 - 1 } else { RECORDS.0 }).map(next).collect();
    if ends {
        let by = Principal::new("bob", &["operator"]);
        let cancel = Envelope::event(host.chain.next_seq(), "charter.cancel", json!({}), by, AT);
        let outcome = machine.step(host.snapshot.as_ref().unwrap(), &cancel);
        all.push(host.chain.append(machine, None, &cancel, host.snapshot.as_ref(), &outcome));
    }
    all
}

/// When runs are canceled and deleted.
const AT: i64 = 1_795_255_300_000;

/// The deletion of a run.
pub(super) fn deletion(run: usize) -> Deletion {
    Deletion { run: RUNS[run].into(), reason: "old".into(), by: "ana".into(), at: Timestamp(AT) }
}

/// An entry of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// The next record of a run.
    Record(usize),
    /// The deletion of a run.
    Deleted(usize),
}

/// The number of records of each run.
pub(super) type Counts = [usize; RUNS.len()];

/// What was sent and acknowledged.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    /// Whether the charter is stored.
    pub(super) has_charter: bool,
    /// The entries, in the order of their commits.
    order: Vec<Entry>,
    /// How many of them the disk may have: all, or fewer if the result of the last batches was not
    /// known and nothing was acknowledged since.
    possible: Vec<usize>,
    /// The head after the last acknowledged batch.
    pub(super) anchor: Option<(u64, charter_kernel::Digest)>,
}

impl Model {
    /// The number of records of each run.
    pub(super) fn counts(&self) -> Counts {
        self.after(self.order.len())
    }

    fn after(&self, entries: usize) -> Counts {
        let mut counts = Counts::default();
        for entry in self.order.iter().take(entries) {
            match entry {
                Entry::Record(run) => counts[*run] += 1,
                Entry::Deleted(run) => counts[*run] = GONE,
            }
        }
        counts
    }

    /// Whether a run has ended, and is not deleted.
    pub(super) fn has_ended(&self, run: usize) -> bool {
        run >= LASTING && self.counts()[run] == RECORDS.1
    }

    /// What the disk may have.
    pub(super) fn possible(&self) -> Vec<Counts> {
        self.possible.iter().copied().chain([self.order.len()]).map(|records| self.after(records)).collect()
    }

    /// Whether the result of a batch is not known.
    pub(super) fn is_uncertain(&self) -> bool {
        !self.possible.is_empty()
    }

    /// Whether nothing was ever written that should be there.
    pub(super) fn may_be_empty(&self) -> bool {
        self.possible().contains(&Counts::default())
    }

    /// The records of a batch: the next ones of these runs.
    pub(super) fn batch(&self, runs: &[usize]) -> (Vec<Append>, Vec<usize>) {
        batch(self.counts(), runs)
    }

    /// Notes acknowledged entries.
    pub(super) fn acknowledged(&mut self, entries: &[Entry]) {
        self.order.extend(entries);
        self.possible.clear();
        let mut head = JournalHead::EMPTY;
        let mut counts = Counts::default();
        for entry in &self.order {
            match entry {
                Entry::Record(run) => {
                    let record = &WORK.1[*run][counts[*run]].record;
                    head.add_record(record.seq, record.hash);
                    counts[*run] += 1;
                }
                Entry::Deleted(run) => {
                    let last = WORK.1[*run].last().unwrap().record.hash.to_string();
                    let records = i64::try_from(counts[*run]).unwrap();
                    head.add_intervention(Intervention::deleted(&deletion(*run), records, &last, None).hashed().1);
                }
            }
        }
        self.anchor = Some((head.entries, head.hash));
    }

    /// Notes entries of which nobody knows whether they were written, all or none.
    pub(super) fn uncertain(&mut self, entries: &[Entry]) {
        self.possible.push(self.order.len());
        self.order.extend(entries);
    }

    /// Notes what the disk has after a process has ended. Returns false if that is not possible.
    pub(super) fn found(&mut self, counts: Counts) -> bool {
        let found = self.possible.iter().copied().chain([self.order.len()]).find(|n| self.after(*n) == counts);
        self.order.truncate(found.unwrap_or(usize::MAX));
        self.possible.retain(|n| *n < self.order.len());
        found.is_some()
    }
}

/// The records that follow these in some runs, and the runs of those there are.
pub(super) fn batch(mut counts: Counts, runs: &[usize]) -> (Vec<Append>, Vec<usize>) {
    let (mut batch, mut sent) = (Vec::new(), Vec::new());
    for run in runs {
        if let Some(append) = WORK.1[*run].get(counts[*run]) {
            batch.push(append.clone());
            sent.push(*run);
            counts[*run] += 1;
        }
    }
    (batch, sent)
}

/// The records in a journal file, compared with those that were sent; `Err` if it cannot be read.
pub(super) fn stored(store: &SqliteStore) -> Result<Counts, StoreError> {
    let mut counts = Counts::default();
    for (n, run) in RUNS.iter().enumerate() {
        let records = store.records(run, 0, usize::MAX)?;
        for (record, sent) in records.iter().zip(&WORK.1[n]) {
            if *record != sent.record {
                return Err(StoreError::Damaged(format!("record {} of run `{run}` is another one", record.seq)));
            }
        }
        let gone = "SELECT EXISTS(SELECT 1 FROM deleted WHERE run = ?1)";
        counts[n] = match records.len() {
            0 if store.query(|c| c.query_row(gone, [run], |row| row.get(0)))? => GONE,
            records => records,
        };
    }
    Ok(counts)
}

/// Opens a file after a crash on a disk that does not fail any more. Returns what it contains; or
/// why it is not opened, or what its verification finds. With `again`, also once it is closed.
pub(super) fn reopen(
    file: &Path,
    anchor: Option<(u64, charter_kernel::Digest)>,
    again: bool,
) -> Result<Counts, String> {
    let store = SqliteStore::open(file).map_err(|e| said("opening", e))?;
    let options = VerifyOptions { heads: anchor.into_iter().collect(), ..VerifyOptions::default() };
    let report = verify_with(&store, &options).map_err(|e| said("verifying", e))?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("verify: {finding}"));
    }
    let counts = stored(&store).unwrap_or_else(|e| panic!("verified, but: {e}"));
    // It can be used: the next record of each run is written.
    store.put_charter(&WORK.0).map_err(|e| said("continuing", e))?;
    store.append(batch(counts, &[0, 1, 2]).0).map_err(|e| said("continuing", e))?;
    drop(store);
    if !again {
        return Ok(counts);
    }
    let store = SqliteStore::open_read_only(file).map_err(|e| said("opening again", e))?;
    let report = verify_with(&store, &options).map_err(|e| said("verifying again", e))?;
    match report.findings.first() {
        Some(finding) => Err(format!("verify, once continued: {finding}")),
        None => Ok(counts),
    }
}

fn said(doing: &str, e: StoreError) -> String {
    assert!(!is_bug(&e), "{doing}: {e}");
    format!("{doing}: {e}")
}

/// Whether an error cannot come from a disk.
pub(super) fn is_bug(e: &StoreError) -> bool {
    matches!(e, StoreError::Stopped { reason } if reason.contains("thread has ended"))
}

/// Opens a file that has lost records.
pub(super) fn accepting() -> SqliteOptions {
    let accept =
        AcceptHead { reason: "lost".into(), by: "ana".into(), at: charter_kernel::Timestamp(1_795_255_400_000) };
    SqliteOptions { accept_head: Some(accept), ..SqliteOptions::default() }
}
