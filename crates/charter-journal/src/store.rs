//! The door to a store: what every journal can do, wherever it keeps its records.

use charter_kernel::{Definition, Digest, Status};

use crate::error::StoreError;
use crate::record::{GENESIS, Record};

/// The largest record that is taken, in bytes. Data of events is bounded by the kernel; this bounds what a charter makes of it.
pub const MAX_RECORD_BYTES: usize = 32 << 20;

/// Called when a batch is durable, or has failed. On the writer's thread: be quick.
pub type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Keeps records. One writer per store; readers at any time. All methods may be called from several threads.
///
/// A batch is written whole or not at all, and answered after its commit. The sequence number and `prev` of a record say where it
/// belongs; a batch that does not fit is refused as [`StoreError::Conflict`] and nothing of it is written.
pub trait Store: Send + Sync {
    /// Writes records, of one run or of many; calls `reply` after the commit. Batches that wait at the same time share one commit.
    fn submit(&self, batch: Vec<Append>, reply: Reply);

    /// Writes records and waits until they are durable.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::UnknownCharter`], [`StoreError::TooLarge`], [`StoreError::NotWritten`],
    /// [`StoreError::Damaged`]: nothing was written, the store goes on.
    /// [`StoreError::Failed`], [`StoreError::Stopped`]: the writer has stopped.
    fn append(&self, batch: Vec<Append>) -> Result<(), StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.submit(batch, Box::new(move |result| drop(sender.send(result))));
        receiver.recv().unwrap_or_else(|_| Err(StoreError::Stopped { reason: "the writer is gone".into() }))
    }

    /// Keeps a charter. Twice is once.
    ///
    /// # Errors
    /// The definition does not have that digest; or as [`Store::append`].
    fn put_charter(&self, charter: &StoredCharter) -> Result<(), StoreError>;

    /// A charter by its digest.
    ///
    /// # Errors
    /// The store cannot be read.
    fn charter(&self, digest: Digest) -> Result<Option<StoredCharter>, StoreError>;

    /// All charters, by digest.
    ///
    /// # Errors
    /// The store cannot be read.
    fn charters(&self) -> Result<Vec<StoredCharter>, StoreError>;

    /// Keeps bytes under their digest. Twice is once.
    ///
    /// # Errors
    /// As [`Store::append`].
    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError>;

    /// Bytes by their digest.
    ///
    /// # Errors
    /// The store cannot be read.
    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits every blob: the digest it is kept under, its bytes.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan_blobs(&self, visit: &mut dyn FnMut(&str, &[u8])) -> Result<(), StoreError>;

    /// A run's head and what else is known of it.
    ///
    /// # Errors
    /// The store cannot be read.
    fn run(&self, run: &str) -> Result<Option<RunInfo>, StoreError>;

    /// Runs, in the order of their ids.
    ///
    /// # Errors
    /// The store cannot be read.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunInfo>, StoreError>;

    /// Records of a run from a sequence number on, in order, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read, or what it holds is no record ([`StoreError::Damaged`]).
    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError>;

    /// The first record of a run whose sender gave it this id. For events that arrive twice: if it
    /// [is of the same event](Record::is_of), it is the answer and nothing is written; if not, the event is refused as `stale`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn find(&self, run: &str, id: &str) -> Result<Option<Record>, StoreError>;

    /// The newest snapshot of a run at or before a record.
    ///
    /// # Errors
    /// The store cannot be read.
    fn snapshot(&self, run: &str, at_most: u64) -> Result<Option<StoredSnapshot>, StoreError>;

    /// Keeps a snapshot (usually one comes with an [`Append`]). Snapshots only save time: they can all be thrown away.
    ///
    /// # Errors
    /// As [`Store::append`].
    fn put_snapshot(&self, run: &str, snapshot: &StoredSnapshot) -> Result<(), StoreError>;

    /// Throws away all snapshots.
    ///
    /// # Errors
    /// As [`Store::append`].
    fn forget_snapshots(&self) -> Result<(), StoreError>;

    /// Timers of active runs that are due at `until` (milliseconds since 1970) or before, the earliest first, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn pending_timers(&self, until: i64, limit: usize) -> Result<Vec<PendingTimer>, StoreError>;

    /// Invocations that no answer has come for, of runs that go on (active or paused): what a host takes up again after a restart.
    /// By run, then by effect; those after `after` (a run and an effect), at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn open_effects(&self, after: Option<&OpenEffect>, limit: usize) -> Result<Vec<OpenEffect>, StoreError>;

    /// Visits what charters told their subscribers (`emit`) under an event type, of all runs, the last first: run, record, data as
    /// JSON; until `visit` gives false.
    ///
    /// # Errors
    /// The store cannot be read.
    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError>;

    /// Visits what is stored, as it is stored, of one run or of all, by run and sequence number, from `from` on, until
    /// `visit` gives false. For replay and verification.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan(&self, run: Option<&str>, from: u64, visit: &mut dyn FnMut(&Row<'_>) -> bool) -> Result<(), StoreError>;

    /// Visits the heads of one run or of all, as they are stored, by run. For verification.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan_runs(&self, run: Option<&str>, visit: &mut dyn FnMut(&RunRow<'_>)) -> Result<(), StoreError>;

    /// Visits every snapshot: run, record, text. For verification.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan_snapshots(&self, run: Option<&str>, visit: &mut dyn FnMut(&str, u64, &[u8])) -> Result<(), StoreError>;

    /// What is wrong with the container itself (a file's pages, indexes), in words; empty if nothing.
    ///
    /// # Errors
    /// The store cannot be read.
    fn container_problems(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

/// A record to write, and the snapshot after it if it is to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The record.
    pub record: Record,
    /// Canonical JSON of the snapshot after it ([`charter_kernel::Machine::snapshot_text`]).
    pub snapshot: Option<String>,
}

impl From<Record> for Append {
    fn from(record: Record) -> Append {
        Append { record, snapshot: None }
    }
}

/// A charter as it is kept with the runs that follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCharter {
    /// Digest of the definition.
    pub digest: Digest,
    /// Name of the source, for people (a path, a bundled name).
    pub name: String,
    /// The definition in its core form, as compact JSON: the very text that the digest is of.
    pub core: String,
    /// The text it was read from; empty if there was none.
    pub source: String,
}

impl StoredCharter {
    /// A charter to keep.
    #[must_use]
    pub fn new(definition: &Definition, name: &str, source: &str) -> StoredCharter {
        // Serialising plain data cannot fail; an empty text would only match no digest.
        let core = serde_json::to_string(definition).unwrap_or_default();
        StoredCharter { digest: definition.digest(), name: name.into(), core, source: source.into() }
    }

    /// The definition.
    ///
    /// # Errors
    /// The text does not have the digest, or is no definition.
    pub fn definition(&self) -> Result<Definition, StoreError> {
        let damaged = |why: String| StoreError::Damaged(format!("the charter {}: {why}", self.digest));
        let found = Digest::of_bytes(self.core.as_bytes());
        if found != self.digest {
            return Err(damaged(format!("its text has the digest {found}")));
        }
        let mut reader = serde_json::Deserializer::from_str(&self.core);
        if crate::record::depth(&self.core) <= crate::record::MAX_DEPTH {
            reader.disable_recursion_limit();
        }
        serde::Deserialize::deserialize(&mut reader).map_err(|e| damaged(format!("it cannot be read: {e}")))
    }
}

/// A run, as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    /// Its id.
    pub run: String,
    /// Digest of its charter.
    pub charter: Digest,
    /// Status after its last record; none if its start was refused.
    pub status: Option<Status>,
    /// Sequence number of its last record.
    pub seq: u64,
    /// Hash of its last record.
    pub hash: Digest,
    /// Time of its first record, milliseconds since 1970.
    pub started: i64,
    /// Time of its last record, milliseconds since 1970.
    pub updated: i64,
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only of this charter.
    pub charter: Option<Digest>,
    /// Only with this status.
    pub status: Option<Status>,
    /// Only ids after this one.
    pub after: Option<String>,
    /// At most so many; 0: all.
    pub limit: usize,
}

/// A snapshot, kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// The record it is the snapshot after.
    pub seq: u64,
    /// Its canonical JSON.
    pub text: String,
}

/// A timer that waits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PendingTimer {
    /// When, milliseconds since 1970.
    pub due: i64,
    /// The run.
    pub run: String,
    /// Its id.
    pub timer: String,
    /// Its generation.
    pub generation: u64,
}

/// An invocation that no answer has come for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenEffect {
    /// The run.
    pub run: String,
    /// The record that asked.
    pub seq: u64,
    /// Its place among the record's effects.
    pub index: u32,
}

/// A record as it lies in a store: its columns, and its text. Nothing of it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// Place in the store, over all runs.
    pub place: i64,
    /// The run.
    pub run: &'a str,
    /// Sequence number.
    pub seq: i64,
    /// Id.
    pub id: &'a str,
    /// Time, as text.
    pub at: &'a str,
    /// Event type.
    pub r#type: &'a str,
    /// Verdict.
    pub verdict: &'a str,
    /// Hash.
    pub hash: &'a str,
    /// The record.
    pub text: &'a [u8],
}

/// The head of a run as it lies in a store. Nothing of it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunRow<'a> {
    /// The run.
    pub run: &'a str,
    /// Digest of its charter.
    pub charter: &'a str,
    /// Status, in a word.
    pub status: &'a str,
    /// Sequence number of its last record.
    pub seq: i64,
    /// Hash of its last record.
    pub hash: &'a str,
    /// Time of its first record, as text.
    pub started: &'a str,
    /// Time of its last record, as text.
    pub updated: &'a str,
}

/// Where a run's chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: u64,
    pub(crate) hash: Digest,
}

/// Checks that a record continues its run, and gives the new head.
pub(crate) fn follows(head: Option<Head>, record: &Record) -> Result<Head, StoreError> {
    let expected = head.map_or(0, |h| h.seq.saturating_add(1));
    let prev = head.map_or(GENESIS, |h| h.hash);
    let conflict =
        |why: String| Err(StoreError::Conflict { run: record.run.to_string(), seq: record.seq, expected, why });
    if record.seq != expected {
        return conflict(match head {
            Some(h) => format!("the last one is {}, so {expected} comes next", h.seq),
            None => "the run has no records yet, so 0 comes first".into(),
        });
    }
    if record.prev != prev {
        return conflict(format!("its `prev` is {}, but the record before it has the hash {prev}", record.prev));
    }
    if record.text().len() > MAX_RECORD_BYTES {
        return Err(StoreError::TooLarge {
            run: record.run.to_string(),
            seq: record.seq,
            size: record.text().len(),
            limit: MAX_RECORD_BYTES,
        });
    }
    Ok(Head { seq: record.seq, hash: record.hash })
}
