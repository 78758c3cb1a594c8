//! What can go wrong with a store.

use charter_kernel::Digest;

/// Why a store could not do what it was asked. Cheap to clone: one failed commit answers everybody who waited for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The run is not where the record wants to go on: another writer was faster, or the record is of another run's chain.
    #[error("run `{run}`: record {seq} does not follow: {why}")]
    Conflict {
        /// The run.
        run: String,
        /// Sequence number of the record that does not fit.
        seq: u64,
        /// The sequence number that would fit.
        expected: u64,
        /// One clause.
        why: String,
    },
    /// The charter of a new run is not in the store.
    #[error("the charter {digest} is not in this store; put it there before its first run starts")]
    UnknownCharter {
        /// Its digest.
        digest: Digest,
    },
    /// No such run.
    #[error("there is no run `{0}` in this store")]
    UnknownRun(String),
    /// The writer has stopped after a failure; nothing is written any more until the store is opened again.
    #[error(
        "the journal takes no more records since a failure ({reason}); close it, mend the cause, and open it again"
    )]
    Stopped {
        /// The failure.
        reason: String,
    },
    /// A read or write failed. After a failed commit it is not known whether it was durable: read the run's head after opening again.
    #[error("{doing} failed: {reason}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        reason: String,
    },
    /// It could not be written now (the disk is full, another program holds the file). Nothing of it was kept; the store goes on, and
    /// takes it as soon as the cause is mended.
    #[error("nothing was written: {reason}; mend that and try again")]
    NotWritten {
        /// The cause.
        reason: String,
    },
    /// Another process has it open for writing.
    #[error(
        "`{path}` is in use by another process{holder}; one process writes a journal at a time (reading it meanwhile is fine)"
    )]
    InUse {
        /// The file.
        path: String,
        /// Who, as far as known.
        holder: String,
    },
    /// The file was written by a newer version of this program.
    #[error(
        "`{path}` has schema version {found}; this program knows up to {known}: use the newer program, or export the runs with it and import them here"
    )]
    Newer {
        /// The file.
        path: String,
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The file is not a journal.
    #[error("`{path}` is not a journal: {why}")]
    NotAJournal {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// What is stored is not what was written.
    #[error("the journal is damaged: {0}; `charter verify` tells more")]
    Damaged(String),
    /// A record is larger than a store takes.
    #[error(
        "run `{run}`: record {seq} has {size} bytes; the most is {limit}. Keep large values as blobs and pass their digests"
    )]
    TooLarge {
        /// The run.
        run: String,
        /// The record.
        seq: u64,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
}
