//! The interface of a store, and the types it exchanges with its users.

use charter_kernel::{Digest, Status, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::StoreError;
pub(crate) use crate::follows::{Head, follows};
use crate::head::{HeadCheck, JournalHead};
pub use crate::host_state::{MAX_STATE_BYTES, StateChange};
use crate::record::Record;
pub use crate::rows::{Row, RunRow};
pub use crate::stored_charter::StoredCharter;
pub use crate::usage::{LastModel, PICODOLLARS, UsageFilter, UsageRow, UsageTotals};

/// Maximum size of a record in bytes. The kernel limits event data; this limit also covers the data
/// that a charter derives from it.
pub const MAX_RECORD_BYTES: usize = 32 << 20;

/// Called when a batch is durable or has failed. It runs on the writer's thread and must not block.
pub type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A store of records, with one writer and any number of concurrent readers. All methods may be
/// called from several threads.
///
/// A batch is written atomically, and its reply is called after the commit. The sequence number and
/// `prev` of a record determine its position. A batch that does not continue its runs is refused
/// with [`StoreError::Conflict`], and none of its records is written; so is a batch with an event
/// id that an earlier record of the run already has ([`StoreError::IdTaken`]), or with an accepted
/// event whose unique key a run has ([`StoreError::KeyTaken`]).
pub trait Store: Send + Sync {
    /// Writes records of one or more runs and calls `reply` after the commit. Batches that are
    /// waiting at the same time share a commit.
    fn submit(&self, batch: Vec<Append>, reply: Reply);

    /// Whether calls may block, for example on disk I/O. If they do not, a host calls the store
    /// directly from asynchronous tasks.
    fn blocks(&self) -> bool {
        true
    }

    /// Writes records and waits until they are durable.
    ///
    /// # Errors
    /// After [`StoreError::Conflict`], [`StoreError::IdTaken`], [`StoreError::UnknownCharter`],
    /// [`StoreError::TooLarge`], [`StoreError::NotWritten`] and [`StoreError::Damaged`], nothing
    /// was written and the store stays usable. After [`StoreError::Failed`] and
    /// [`StoreError::Stopped`], the writer has stopped.
    fn append(&self, batch: Vec<Append>) -> Result<(), StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.submit(batch, Box::new(move |result| drop(sender.send(result))));
        receiver.recv().unwrap_or_else(|_| Err(StoreError::Stopped { reason: "the writer thread has ended".into() }))
    }

    /// Stores a charter. Idempotent, except that the name and the source of a charter that was read
    /// from a file ([`StoredCharter::has_place`]) replace the earlier ones. Runs that have a place
    /// of their own ([`place`](crate::place)) stay where they are.
    ///
    /// # Errors
    /// The definition does not match the digest. See also [`Store::append`].
    fn put_charter(&self, charter: &StoredCharter) -> Result<(), StoreError>;

    /// Returns the charter with this digest.
    ///
    /// # Errors
    /// The store cannot be read.
    fn charter(&self, digest: Digest) -> Result<Option<StoredCharter>, StoreError>;

    /// Returns all charters, ordered by digest.
    ///
    /// # Errors
    /// The store cannot be read.
    fn charters(&self) -> Result<Vec<StoredCharter>, StoreError>;

    /// Stores bytes under their digest. Idempotent.
    ///
    /// # Errors
    /// See [`Store::append`].
    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError>;

    /// Returns the bytes with this digest.
    ///
    /// # Errors
    /// The store cannot be read.
    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits every blob: the digest under which it is stored, and its bytes.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan_blobs(&self, visit: &mut dyn FnMut(&str, &[u8])) -> Result<(), StoreError>;

    /// Returns the head and the metadata of a run.
    ///
    /// # Errors
    /// The store cannot be read.
    fn run(&self, run: &str) -> Result<Option<RunInfo>, StoreError>;

    /// Returns the runs that match the filter, ordered by id.
    ///
    /// # Errors
    /// The store cannot be read.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunInfo>, StoreError>;

    /// Returns the number of records of a run that came from another journal
    /// ([`Append::imported`]); 0 for a run that was started here.
    ///
    /// # Errors
    /// The store cannot be read.
    fn imported(&self, run: &str) -> Result<u64, StoreError>;

    /// Returns at most `limit` records of a run, in order, starting at sequence number `from`.
    ///
    /// # Errors
    /// The store cannot be read, or a stored record is invalid ([`StoreError::Damaged`]).
    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError>;

    /// Returns at most `limit` records of all runs after a position, in the order of their commits,
    /// each with its position. A position is never used twice, even if a run is deleted: a reader
    /// that continues after the last one it has seen misses no record and gets none twice.
    ///
    /// # Errors
    /// The store cannot be read, or a stored record is invalid ([`StoreError::Damaged`]).
    fn records_after(&self, position: u64, limit: usize) -> Result<Vec<(u64, Record)>, StoreError>;

    /// Returns the position of the last record that was written; 0 if there has been none.
    ///
    /// # Errors
    /// The store cannot be read.
    fn last_position(&self) -> Result<u64, StoreError>;

    /// Returns the first record of a run with this event id. Used for events that arrive twice
    /// ([`StoreError::IdTaken`]): if the record [is of the same event](Record::is_of), it is the
    /// result of that event; otherwise the id belongs to another event.
    ///
    /// # Errors
    /// The store cannot be read.
    fn find(&self, run: &str, id: &str) -> Result<Option<Record>, StoreError>;

    /// Whether the store reserves the unique keys of events. A host does not run a charter that
    /// has such events on a store that does not.
    fn keeps_keys(&self) -> bool {
        false
    }

    /// Returns the run that has a unique key: the one whose event of this type was accepted with
    /// it, even if the run was deleted since.
    ///
    /// # Errors
    /// The store cannot be read.
    fn key_holder(&self, event: &str, key: &Json) -> Result<Option<String>, StoreError> {
        let _ = (event, key);
        Ok(None)
    }

    /// Writes what a host keeps beside the records: positions of readers, secrets that it needs to
    /// sign, times. Neither the head of the journal nor an export contains it, and verification
    /// does not look at it. All changes are written, or none.
    ///
    /// # Errors
    /// A value has more than [`MAX_STATE_BYTES`] bytes, or the store keeps no such data. See also
    /// [`Store::append`].
    fn put_host_state(&self, changes: Vec<StateChange>) -> Result<(), StoreError> {
        let _ = changes;
        Err(StoreError::NotWritten { reason: "this store keeps nothing beside the records".into() })
    }

    /// Returns what a host keeps in an area, ordered by name.
    ///
    /// # Errors
    /// The store cannot be read.
    fn host_state(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        let _ = area;
        Ok(Vec::new())
    }

    /// Writes what models were asked. Like [`Store::put_host_state`], it is part of no proof.
    ///
    /// # Errors
    /// See [`Store::append`]. A store that counts nothing does not fail.
    fn put_usage(&self, rows: Vec<UsageRow>) -> Result<(), StoreError> {
        let _ = rows;
        Ok(())
    }

    /// Adds up what models were asked.
    ///
    /// # Errors
    /// The store cannot be read.
    fn usage(&self, filter: &UsageFilter) -> Result<UsageTotals, StoreError> {
        let _ = filter;
        Ok(UsageTotals::default())
    }

    /// Returns the model that each actor of a run asked last, ordered by actor.
    ///
    /// # Errors
    /// The store cannot be read.
    fn last_models(&self, run: &str) -> Result<Vec<LastModel>, StoreError> {
        let _ = run;
        Ok(Vec::new())
    }

    /// Returns the newest snapshot of a run at or before a record.
    ///
    /// # Errors
    /// The store cannot be read.
    fn snapshot(&self, run: &str, at_most: u64) -> Result<Option<StoredSnapshot>, StoreError>;

    /// Stores a snapshot; usually it is stored together with its record, in an [`Append`].
    /// Snapshots are only a cache, so they can be deleted.
    ///
    /// # Errors
    /// See [`Store::append`].
    fn put_snapshot(&self, run: &str, snapshot: &StoredSnapshot) -> Result<(), StoreError>;

    /// Deletes all snapshots.
    ///
    /// # Errors
    /// See [`Store::append`].
    fn forget_snapshots(&self) -> Result<(), StoreError>;

    /// Returns at most `limit` timers of active runs that are due at `until` or earlier, earliest
    /// first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn pending_timers(&self, until: Timestamp, limit: usize) -> Result<Vec<PendingTimer>, StoreError>;

    /// Returns the unanswered invocations of active and paused runs, which a host resumes after a
    /// restart: at most `limit`, ordered by run and effect, starting after `after`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn open_effects(&self, after: Option<&OpenEffect>, limit: usize) -> Result<Vec<OpenEffect>, StoreError>;

    /// Visits the emitted events (`emit`) of a type in all runs, newest first. `visit` receives the
    /// run, the sequence number of the record, and the data as JSON; the scan stops when it returns
    /// false.
    ///
    /// # Errors
    /// The store cannot be read.
    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError>;

    /// Visits the stored rows of one run or of all runs, ordered by run and sequence number,
    /// starting at `from`. The rows are not validated. Stops when `visit` returns false. Used by
    /// replay and verification.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan(&self, run: Option<&str>, from: u64, visit: &mut dyn FnMut(&Row<'_>) -> bool) -> Result<(), StoreError>;

    /// Visits the stored heads of one run or of all runs, ordered by run. The heads are not
    /// validated. Used by verification.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan_runs(&self, run: Option<&str>, visit: &mut dyn FnMut(&RunRow<'_>)) -> Result<(), StoreError>;

    /// Visits the stored snapshots of one run or of all runs. `visit` receives the run, the
    /// sequence number of the record, and the text. Used by verification.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan_snapshots(&self, run: Option<&str>, visit: &mut dyn FnMut(&str, u64, &[u8])) -> Result<(), StoreError>;

    /// Checks the container itself (the pages, indexes and projections of a file) and returns its
    /// problems as messages.
    ///
    /// # Errors
    /// The store cannot be read.
    fn container_problems(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns the time of the newest record that was made in this journal: imported records do not
    /// count. `None` if there is none, or if the store does not know; then a host trusts its clock.
    ///
    /// # Errors
    /// The store cannot be read.
    fn newest(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    /// Returns the head of the journal; `None` if the store keeps none.
    ///
    /// # Errors
    /// The store cannot be read.
    fn head(&self) -> Result<Option<JournalHead>, StoreError> {
        Ok(None)
    }

    /// Checks the head of the journal. `anchors` are hashes of earlier heads, each with the number
    /// of entries. With `full`, the head is recomputed from all entries; otherwise it is only
    /// checked that none of those last acknowledged is missing.
    ///
    /// # Errors
    /// The store cannot be read.
    fn check_head(&self, anchors: &[(u64, Digest)], full: bool) -> Result<HeadCheck, StoreError> {
        let _ = full;
        let problem = |(at, hash): &(u64, Digest)| {
            format!("the anchor expects the head {hash} after {at} entries, but this store keeps no heads")
        };
        Ok(HeadCheck { problems: anchors.iter().map(problem).collect(), ..HeadCheck::default() })
    }
}

/// A record to write, optionally with the snapshot after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The record.
    pub record: Record,
    /// Canonical JSON of the snapshot after it ([`charter_kernel::Machine::snapshot_text`]).
    pub snapshot: Option<String>,
    /// Whether the record came from another journal. The actors of such a run do not work before
    /// somebody allows it in this journal.
    pub imported: bool,
    /// Changes of what the host keeps beside the records ([`Store::put_host_state`]), made with the
    /// record. Record 0 first removes what was kept of an earlier run with its id.
    pub state: Vec<StateChange>,
}

impl From<Record> for Append {
    fn from(record: Record) -> Append {
        Append { record, snapshot: None, imported: false, state: Vec::new() }
    }
}

/// The head and metadata of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Its id.
    pub run: String,
    /// Digest of its charter.
    pub charter: Digest,
    /// Status after its last record; `None` if its start was refused.
    pub status: Option<Status>,
    /// Sequence number of its last record.
    pub seq: u64,
    /// Hash of its last record.
    pub hash: Digest,
    /// Time of its first record.
    pub started: Timestamp,
    /// Time of its last record.
    pub updated: Timestamp,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFilter {
    /// Only runs of this charter.
    pub charter: Option<Digest>,
    /// Only runs with this status.
    pub status: Option<Status>,
    /// Only runs whose id sorts after this one.
    pub after: Option<String>,
    /// Maximum number of runs; 0 means all.
    pub limit: usize,
}

/// A stored snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// The record after which it was taken.
    pub seq: u64,
    /// Its canonical JSON.
    pub text: String,
}

/// A pending timer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PendingTimer {
    /// Due time.
    pub due: Timestamp,
    /// The run.
    pub run: String,
    /// Its id.
    pub timer: String,
    /// Its generation.
    pub generation: u64,
}

/// An unanswered invocation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenEffect {
    /// The run.
    pub run: String,
    /// The record that requests it.
    pub seq: u64,
    /// Its index among the effects of the record.
    pub index: u32,
}
