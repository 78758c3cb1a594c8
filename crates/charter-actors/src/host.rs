//! What an executor may use of the host that calls it.

use std::sync::Arc;

use charter_journal::{Record, StoreError};
use charter_kernel::{Digest, Explanation, Principal, Snapshot};
use serde_json::Value as Json;

use crate::clock::{BoxFuture, Clock};
use crate::executor::{Executor, Fault};

/// A host, as executors see it. Each host implements it once; executors reach it through
/// [`Call`](crate::Call).
///
/// Functions that are not `async` may wait for a disk: call them from a blocking thread.
pub trait CallHost: Send + Sync + 'static {
    /// Where time comes from.
    fn clock(&self) -> &Arc<dyn Clock>;

    /// The host's executor of a kind.
    fn executor(&self, kind: &str) -> Option<Arc<dyn Executor>>;

    /// Sends an event of an actor to its run, and waits until it is recorded.
    ///
    /// # Errors
    /// The event was not recorded. A refusal is recorded, so it is not an error.
    fn send(self: Arc<Self>, event: ActorEvent) -> BoxFuture<'static, Result<Delivery, Fault>>;

    /// Reports the records that a run gets from now on.
    fn updates(&self, run: &str) -> Box<dyn RunUpdates>;

    /// The current state of a run.
    ///
    /// # Errors
    /// There is no such run, or it cannot be restored from its records.
    fn snapshot(&self, run: &str) -> Result<Snapshot, Fault>;

    /// At most `limit` records of a run, beginning with number `from`.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError>;

    /// Visits what all runs have emitted of a type, the latest first: run, record, data as JSON.
    /// Ends when `visit` returns false.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError>;

    /// Stores a blob beside the records.
    ///
    /// # Errors
    /// The journal cannot be written.
    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError>;
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
    /// Idempotency key: the same id with the same content returns the first result again.
    pub id: String,
}

/// An event was recorded, accepted or refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Why it was refused; `None` if it was accepted.
    pub refusal: Option<Box<Explanation>>,
    /// The number of the run's snapshot after it; `None` if the run's start was refused.
    pub snapshot_seq: Option<u64>,
    /// The event was recorded earlier, under the same id; this call changed nothing.
    pub repeated: bool,
}

/// Updates of one run.
pub trait RunUpdates: Send {
    /// Waits for the next update; `None` once the host has shut down.
    fn next(&mut self) -> BoxFuture<'_, Option<RunUpdate>>;
}

/// Something changed in a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunUpdate {
    /// A record is durable. Contains the run after it; `None` if its start was refused.
    Recorded(Option<Snapshot>),
    /// The receiver was too slow, and updates were dropped.
    Missed,
}
