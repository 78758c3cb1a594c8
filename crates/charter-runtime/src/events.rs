//! Events for subscribers: new records, and host events that are not recorded.

use std::sync::Arc;

use charter_actors::CallProgress;
use charter_journal::Record;
use charter_kernel::{Snapshot, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tokio::sync::broadcast;

use crate::charter::Charter;

/// Maximum number of events that are buffered for a slow subscriber.
const MAX_BEHIND: usize = 4_096;

/// An event in a host. Cheap to clone. Only records are stored; the other events are published
/// once.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RuntimeEvent {
    /// A record is durable.
    Recorded(Recorded),
    /// The charter emitted an event (`emit`).
    Emitted {
        /// The run.
        run: Arc<str>,
        /// The record with the effect.
        seq: u64,
        /// Event type.
        r#type: Arc<str>,
        /// Event data.
        data: Json,
    },
    /// The charter wrote a log line (`log`).
    Logged {
        /// The run.
        run: Arc<str>,
        /// The record with the effect.
        seq: u64,
        /// The label of the log line.
        label: Option<String>,
        /// The value of the log line.
        value: Json,
    },
    /// An attempt of an actor begins.
    Began(Working),
    /// An attempt failed, and another one follows.
    Retrying {
        /// The call.
        work: Working,
        /// Why it failed: `{code, message, ...}`.
        error: Json,
        /// Time of the next attempt; [`Timestamp::MAX`] if it waits for the run to be resumed.
        at: Timestamp,
    },
    /// A task waits for an answer from a person.
    Waiting(Working),
    /// A call was stopped, because its run no longer waits for it.
    Stopped(Working),
    /// A call shows what has arrived.
    Progress(CallProgress),
    /// Something that the operator of the host should know.
    Trouble {
        /// The run that it concerns, if any.
        run: Option<Arc<str>>,
        /// The message, one sentence.
        message: String,
    },
    /// The subscriber was too slow and missed this many events; the records are in the journal.
    Missed(u64),
}

impl RuntimeEvent {
    /// The run that the event concerns, if any.
    #[must_use]
    pub fn run(&self) -> Option<&str> {
        match self {
            RuntimeEvent::Recorded(r) => Some(&r.record.run),
            RuntimeEvent::Emitted { run, .. } | RuntimeEvent::Logged { run, .. } => Some(run),
            RuntimeEvent::Began(w) | RuntimeEvent::Waiting(w) | RuntimeEvent::Stopped(w) => Some(&w.run),
            RuntimeEvent::Retrying { work, .. } => Some(&work.run),
            RuntimeEvent::Progress(progress) => Some(&progress.run),
            RuntimeEvent::Trouble { run, .. } => run.as_deref(),
            RuntimeEvent::Missed(_) => None,
        }
    }
}

/// A record that has just become durable.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The record.
    pub record: Record,
    /// The run's charter.
    pub charter: Arc<Charter>,
    /// The run after the record; `None` if its start was refused.
    pub snapshot: Option<Snapshot>,
}

/// A running call of an actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Working {
    /// The run.
    pub run: Arc<str>,
    /// The effect, `RUN/SEQ/INDEX`: the idempotency key.
    pub effect: Arc<str>,
    /// Id of the invocation.
    pub invocation: Arc<str>,
    /// The name of the actor in `actors`.
    pub src: Arc<str>,
    /// The kind of the actor.
    pub kind: Arc<str>,
    /// Number of the attempt; the first is 1.
    pub attempt: u32,
    /// Start of the attempt; in the future if it waits after a failed one.
    pub since: Timestamp,
}

#[derive(Debug)]
pub(crate) struct Publisher(broadcast::Sender<RuntimeEvent>);

impl Publisher {
    pub(crate) fn new() -> Publisher {
        Publisher(broadcast::channel(MAX_BEHIND).0)
    }
    pub(crate) fn publish(&self, event: RuntimeEvent) {
        // Sending fails only if there is no subscriber.
        let _ = self.0.send(event);
    }
    pub(crate) fn trouble(&self, run: Option<&Arc<str>>, message: String) {
        self.publish(RuntimeEvent::Trouble { run: run.cloned(), message });
    }
    pub(crate) fn subscribe(&self, run: Option<&str>) -> Subscription {
        Subscription { receiver: self.0.subscribe(), run: run.map(Into::into) }
    }
}

/// The events of one run or of all runs, starting with the subscription.
#[derive(Debug)]
pub struct Subscription {
    receiver: broadcast::Receiver<RuntimeEvent>,
    run: Option<Box<str>>,
}

impl Subscription {
    /// Keeps only the events of one run, including events that were published but not yet received.
    #[must_use]
    pub fn only(mut self, run: &str) -> Subscription {
        self.run = Some(run.into());
        self
    }

    /// Waits for the next event; returns `None` once the runtime has been dropped.
    pub async fn next(&mut self) -> Option<RuntimeEvent> {
        loop {
            let event = match self.receiver.recv().await {
                Ok(event) => event,
                Err(broadcast::error::RecvError::Lagged(count)) => RuntimeEvent::Missed(count),
                Err(broadcast::error::RecvError::Closed) => return None,
            };
            if self.wants(&event) {
                return Some(event);
            }
        }
    }

    /// Returns the next event that is already available; `None` if there is none.
    pub fn try_next(&mut self) -> Option<RuntimeEvent> {
        loop {
            let event = match self.receiver.try_recv() {
                Ok(event) => event,
                Err(broadcast::error::TryRecvError::Lagged(count)) => RuntimeEvent::Missed(count),
                Err(_) => return None,
            };
            if self.wants(&event) {
                return Some(event);
            }
        }
    }

    fn wants(&self, event: &RuntimeEvent) -> bool {
        match (&self.run, event.run()) {
            (Some(wanted), Some(run)) => wanted.as_ref() == run,
            _ => true,
        }
    }
}
