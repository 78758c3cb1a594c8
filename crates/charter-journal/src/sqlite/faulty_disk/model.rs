//! What a store must contain: the records that were sent, and how many of them are acknowledged.

use std::path::Path;
use std::sync::LazyLock;

use charter_kernel::Machine;

use crate::chain::Chain;
use crate::error::StoreError;
use crate::head::JournalHead;
use crate::sqlite::SqliteStore;
use crate::sqlite::writer::tests::{Host, charter};
use crate::store::{Append, Store, StoredCharter};
use crate::verify::{VerifyOptions, verify_with};

/// The runs.
pub(super) const RUNS: [&str; 3] = ["a", "b", "c"];

/// Number of records of each run.
const RECORDS: usize = 60;

/// The charter, and the records of each run.
pub(super) static WORK: LazyLock<(StoredCharter, Vec<Vec<Append>>)> = LazyLock::new(|| {
    let (machine, stored) = charter();
    (stored, RUNS.map(|run| records(&machine, run)).into())
});

fn records(machine: &Machine, run: &str) -> Vec<Append> {
    let mut host = Host { machine, chain: Chain::new(run), snapshot: None };
    let next = |_| {
        let (append, after) = host.next();
        host.advance(&append, after);
        append
    };
    (0..RECORDS).map(next).collect()
}

/// The number of records of each run.
pub(super) type Counts = [usize; RUNS.len()];

/// What was sent and acknowledged.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    /// Whether the charter is stored.
    pub(super) has_charter: bool,
    /// The run of each record, in the order of their commits.
    order: Vec<usize>,
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

    fn after(&self, records: usize) -> Counts {
        let mut counts = Counts::default();
        self.order.iter().take(records).for_each(|run| counts[*run] += 1);
        counts
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

    /// Notes an acknowledged batch.
    pub(super) fn acknowledged(&mut self, runs: &[usize]) {
        self.order.extend(runs);
        self.possible.clear();
        let mut head = JournalHead::EMPTY;
        let mut counts = Counts::default();
        for run in &self.order {
            let record = &WORK.1[*run][counts[*run]].record;
            head.add_record(record.seq, record.hash);
            counts[*run] += 1;
        }
        self.anchor = Some((head.entries, head.hash));
    }

    /// Notes a batch whose result is not known.
    pub(super) fn uncertain(&mut self, runs: &[usize]) {
        self.possible.push(self.order.len());
        self.order.extend(runs);
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
        counts[n] = records.len();
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
