//! The part of a host that executors may use.

use std::sync::Arc;

use charter_journal::{Record, StoreError, UsageFilter, UsageRow, UsageTotals};
use charter_kernel::{Digest, Explanation, Machine, Principal, Snapshot};
use serde_json::Value as Json;

use crate::clock::{BoxFuture, Clock};
use crate::executor::{Executor, Fault};
use crate::progress::CallProgress;

/// A host, from the perspective of executors. Each host implements it once; executors access it
/// through [`Call`](crate::Call).
///
/// Functions that are not `async` may block on a disk: call them from a blocking thread.
pub trait CallHost: Send + Sync + 'static {
    /// The source of time.
    fn clock(&self) -> &Arc<dyn Clock>;

    /// The host's executor of a kind.
    fn executor(&self, kind: &str) -> Option<Arc<dyn Executor>>;

    /// Sends an event of an actor to its run, and waits until it is recorded.
    ///
    /// # Errors
    /// The event was not recorded. A refusal is recorded, so it is not an error.
    fn send(self: Arc<Self>, event: ActorEvent) -> BoxFuture<'static, Result<Delivery, Fault>>;

    /// Subscribes to the records that a run gets from now on.
    fn updates(&self, run: &str) -> Box<dyn RunUpdates>;

    /// Returns the current state of a run.
    ///
    /// # Errors
    /// There is no such run, or it cannot be restored from its records.
    fn snapshot(&self, run: &str) -> Result<Snapshot, Fault>;

    /// Returns the compiled charter of a run.
    ///
    /// # Errors
    /// There is no such run, or its charter cannot be read.
    fn machine(&self, run: &str) -> Result<Arc<Machine>, Fault>;

    /// Returns at most `limit` records of a run, starting at sequence number `from`.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError>;

    /// Visits the events of a type that any run has emitted, the latest first: run, sequence
    /// number, data as JSON. Stops when `visit` returns false.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError>;

    /// Stores a blob in the journal file.
    ///
    /// # Errors
    /// The journal cannot be written.
    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError>;

    /// Reads a blob of the journal file; `None`: there is none with this digest.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Whether this host stores blobs.
    fn stores_blobs(&self) -> bool {
        true
    }

    /// Shows the progress of a call to those who follow the run. It is not recorded, and a host may
    /// show nothing.
    fn progress(&self, progress: CallProgress) {
        let _ = progress;
    }

    /// Writes what models were asked.
    ///
    /// # Errors
    /// The journal cannot be written. A host that counts nothing does not fail.
    fn put_usage(&self, rows: Vec<UsageRow>) -> Result<(), StoreError> {
        let _ = rows;
        Ok(())
    }

    /// Adds up what models were asked; `None`: the host does not count it.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn usage(&self, filter: &UsageFilter) -> Result<Option<UsageTotals>, StoreError> {
        let _ = filter;
        Ok(None)
    }
}

/// An event that an actor sends to its run.
#[derive(Debug, Clone, PartialEq)]
pub struct ActorEvent {
    /// The run.
    pub run: Arc<str>,
    /// The actor of the run that receives it; `None`: the root actor.
    pub to: Option<String>,
    /// Event type.
    pub r#type: String,
    /// Event data.
    pub data: Json,
    /// The sender.
    pub by: Principal,
    /// Event id: sending the same event again with the same id returns the first result.
    pub id: String,
}

/// The receipt of a recorded event, accepted or refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Sequence number of the event's record.
    pub seq: u64,
    /// Why the event was refused; `None` if it was accepted.
    pub refusal: Option<Box<Explanation>>,
    /// Sequence number of the run's snapshot after the event; `None` if the run's start was
    /// refused.
    pub snapshot_seq: Option<u64>,
    /// Whether the event was recorded earlier under the same id; if so, this call changed nothing.
    pub repeated: bool,
}

/// Updates of one run.
pub trait RunUpdates: Send {
    /// Waits for the next update; `None` once the host has shut down.
    fn next(&mut self) -> BoxFuture<'_, Option<RunUpdate>>;
}

/// An update of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunUpdate {
    /// A record is durable. Contains the snapshot after it; `None` if the start was refused.
    Recorded(Option<Snapshot>),
    /// The receiver was too slow, and updates were dropped.
    Missed,
}
