//! Errors of a store.

use charter_kernel::Digest;

use crate::holder::Holder;

/// Why a store operation failed. Cheap to clone: a failed commit is reported to every waiting
/// caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The record does not continue the run: another writer was faster, or the record belongs to
    /// another chain.
    #[error("run `{run}`: record {seq} does not continue the chain: {why}")]
    Conflict {
        /// The run.
        run: String,
        /// Sequence number of the record.
        seq: u64,
        /// The expected sequence number.
        expected: u64,
        /// The reason, as a clause.
        why: String,
    },
    /// An earlier record of the run already has the event id of this record
    /// ([`Store::find`](crate::Store::find) returns it). Nothing was written.
    #[error("run `{run}`: record {seq} already has the event id `{id}`")]
    IdTaken {
        /// The run.
        run: String,
        /// The id.
        id: String,
        /// The record that has it.
        seq: u64,
    },
    /// A run has the unique key of the event of this record already
    /// ([`Store::key_holder`](crate::Store::key_holder) returns it). Nothing was written.
    #[error(
        "run `{run}`, record {seq}: run `{holder}` has accepted `{event}` with the key {key}, which is unique across runs"
    )]
    KeyTaken {
        /// The run.
        run: String,
        /// The record.
        seq: u64,
        /// The type of the event.
        event: String,
        /// The key, as JSON.
        key: String,
        /// The run that has it.
        holder: String,
    },
    /// The id of a new run belongs to one that was deleted.
    #[error(
        "run `{run}` was deleted at {at}; its id stays reserved, because another run with it would call actors with the keys of its calls (`{run}/...`); {help}"
    )]
    RunDeleted {
        /// The id.
        run: String,
        /// The time of the deletion.
        at: String,
        /// What would be right, as a clause.
        help: String,
    },
    /// The charter of a new run is not in the store.
    #[error("the charter {digest} is not in this store; store it before starting a run of it")]
    UnknownCharter {
        /// Its digest.
        digest: Digest,
    },
    /// The run does not exist.
    #[error("no run `{0}` in this store")]
    UnknownRun(String),
    /// The writer has stopped after a failure. Nothing is written until the store is reopened.
    #[error("the journal stopped accepting records after a failure ({reason}); fix the cause and reopen the journal")]
    Stopped {
        /// The failure.
        reason: String,
    },
    /// A read or write failed. After a failed commit it is unknown whether the records are durable:
    /// reopen the store and read the head of the run.
    #[error("{doing} failed: {reason}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// The error of the operating system or SQLite.
        reason: String,
    },
    /// Nothing was written (the disk is full, or another program has locked the file). The store
    /// stays usable; retry once the cause is fixed.
    #[error("nothing was written: {reason}; fix the cause and try again")]
    NotWritten {
        /// The cause.
        reason: String,
    },
    /// Another process has the file open for writing.
    #[error(
        "`{path}` is in use by another process{}; only one process can write to a journal file at a time (others can read it)",
        holder.as_ref().map(|h| format!(" ({h})")).unwrap_or_default()
    )]
    InUse {
        /// The file.
        path: String,
        /// The other process, if known.
        holder: Option<Box<Holder>>,
    },
    /// The file belongs to another user.
    #[error("`{path}` belongs to another user (uid {owner}); only that user writes to it, others can read it")]
    OtherUser {
        /// The file.
        path: String,
        /// The id of the user.
        owner: u32,
    },
    /// The file was written by a newer version of this program.
    #[error(
        "`{path}` has schema version {found}; this program supports versions up to {known}; use a newer version of Charter, or export the runs with it and import them here"
    )]
    Newer {
        /// The file.
        path: String,
        /// Its version.
        found: i64,
        /// The newest supported version.
        known: i64,
    },
    /// The file contains records of version 1, which was never released.
    #[error("`{path}` is a journal file made by a pre-release of Charter (record version 1); it cannot be read")]
    PreRelease {
        /// The file.
        path: String,
    },
    /// The file is not a journal.
    #[error("`{path}` is not a journal file: {why}")]
    NotAJournal {
        /// The file.
        path: String,
        /// The reason, as a clause.
        why: String,
    },
    /// The file does not have what was last acknowledged.
    #[error("`{path}`: {why}")]
    Head {
        /// The file.
        path: String,
        /// What is missing or does not match.
        why: String,
    },
    /// The tables, views or triggers of the file are not those of a journal.
    #[error("`{path}` is not opened for writing: {why}")]
    Schema {
        /// The file.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// The run has not ended, so it cannot be deleted.
    #[error("run `{run}` is {status}; only runs that have ended can be deleted")]
    NotFinished {
        /// The run.
        run: String,
        /// Its status.
        status: String,
    },
    /// The stored data is damaged.
    #[error("the journal is damaged: {0}; run `charter verify` for details")]
    Damaged(String),
    /// A record exceeds the size limit.
    #[error(
        "run `{run}`: record {seq} has {size} bytes; the limit is {limit}. Store large values as blobs and pass their digests"
    )]
    TooLarge {
        /// The run.
        run: String,
        /// The record.
        seq: u64,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
}
