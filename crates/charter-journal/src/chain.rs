//! The end of a run's chain: builds the next record, and the snapshot to store with it when one is
//! due.

use charter_kernel::{Digest, Envelope, Machine, Refusal, Snapshot, Status, Step};

use crate::record::{GENESIS, Manifest, Origin, Record, RecordBuilder};
use crate::store::Append;

/// Default number of records between two stored snapshots.
pub const SNAPSHOT_EVERY: u64 = 100;

/// The end of a run's chain. Building a record does not change it; call [`Chain::advance`] once the
/// record is durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    run: String,
    next: u64,
    hash: Digest,
    /// Digest of the run's snapshot.
    snapshot: Option<Digest>,
    status: Option<Status>,
    since_snapshot: u64,
    snapshot_every: u64,
    pub(crate) forked_from: Option<Origin<'static>>,
    pub(crate) manifest: Option<Box<Manifest>>,
}

impl Chain {
    /// The chain of a run that does not exist yet.
    #[must_use]
    pub fn new(run: &str) -> Chain {
        Chain {
            run: run.into(),
            next: 0,
            hash: GENESIS,
            snapshot: None,
            status: None,
            since_snapshot: 0,
            snapshot_every: SNAPSHOT_EVERY,
            forked_from: None,
            manifest: None,
        }
    }

    /// The chain that ends with this record, for a host that keeps the last record and the snapshot
    /// after it.
    #[must_use]
    pub fn after(last: &Record) -> Chain {
        Chain::resumed(last, Some(last.seq))
    }

    /// The chain that ends with this record; `snapshot` is the sequence number of the newest stored
    /// snapshot.
    pub(crate) fn resumed(last: &Record, snapshot: Option<u64>) -> Chain {
        Chain {
            run: last.run.to_string(),
            next: last.seq.saturating_add(1),
            hash: last.hash,
            snapshot: Some(last.snapshot),
            status: last.status,
            since_snapshot: last.seq.saturating_sub(snapshot.unwrap_or(0)),
            snapshot_every: SNAPSHOT_EVERY,
            forked_from: None,
            manifest: None,
        }
    }

    /// Sets the files that a run which does not exist yet may use; record 0 contains them.
    pub fn set_manifest(&mut self, manifest: &Manifest) {
        self.manifest = (!manifest.is_empty()).then(|| Box::new(manifest.clone()));
    }

    /// Sets how often a snapshot is stored: every `records` records and whenever the status
    /// changes. With 0, it is stored only when the status changes.
    #[must_use]
    pub fn snapshot_every(mut self, records: u64) -> Chain {
        self.snapshot_every = records;
        self
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The sequence number of the next record: the `seq` of the next envelope.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// The hash of the last record.
    #[must_use]
    pub fn hash(&self) -> Digest {
        self.hash
    }

    pub(crate) fn snapshot_digest(&self) -> Option<Digest> {
        self.snapshot
    }

    /// Builds the record of the next envelope and its outcome, to be written to a store.
    /// `envelope.seq` must be [`Chain::next_seq`].
    #[must_use]
    pub fn append(
        &self,
        machine: &Machine,
        id: Option<&str>,
        envelope: &Envelope,
        before: Option<&Snapshot>,
        outcome: &Result<Step, Refusal>,
    ) -> Append {
        let mut text = None;
        let digest = match (outcome, before) {
            (Err(_), Some(_)) => self.snapshot,
            // A late answer or a stale timer: the kernel has left the snapshot unchanged.
            (Ok(step), Some(before)) if step.snapshot.seq() == before.seq() && self.snapshot.is_some() => self.snapshot,
            (Ok(step), _) => {
                let written = machine.snapshot_text(&step.snapshot);
                let digest = Digest::of_bytes(written.as_bytes());
                text = Some(written);
                Some(digest)
            }
            (Err(_), None) => None,
        };
        let (forked_from, manifest) = self.only_first();
        let builder = RecordBuilder {
            machine,
            run: &self.run,
            id,
            prev: self.hash,
            envelope,
            before,
            outcome,
            snapshot: digest,
            forked_from,
            manifest,
        };
        let record = builder.record();
        let due = self.snapshot_every > 0 && self.since_snapshot.saturating_add(1) >= self.snapshot_every;
        let keep = due || record.status != self.status;
        let after = outcome.as_ref().ok().map(|step| &step.snapshot).or(before);
        let snapshot = keep.then(|| text.or_else(|| after.map(|s| machine.snapshot_text(s)))).flatten();
        Append { record, snapshot, imported: false, state: Vec::new() }
    }

    /// Returns what only record 0 contains: the origin of a fork and the manifest.
    pub(crate) fn only_first(&self) -> (Option<Origin<'static>>, Option<Box<Manifest>>) {
        match self.next {
            0 => (self.forked_from.clone(), self.manifest.clone()),
            _ => (None, None),
        }
    }

    /// Moves the end of the chain to this record, which must be durable.
    pub fn advance(&mut self, append: &Append) {
        self.next = append.record.seq.saturating_add(1);
        self.hash = append.record.hash;
        self.snapshot = Some(append.record.snapshot);
        self.status = append.record.status;
        self.since_snapshot = if append.snapshot.is_some() { 0 } else { self.since_snapshot.saturating_add(1) };
    }
}
