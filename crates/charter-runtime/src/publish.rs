//! What subscribers are told: what was recorded, and what goes on beside the records.

use std::sync::Arc;

use charter_journal::Record;
use charter_kernel::Snapshot;
use serde_json::Value as Json;
use tokio::sync::broadcast;

use crate::charter::Charter;

/// How many happenings a slow subscriber may be behind.
const BEHIND: usize = 4_096;

/// Something happened. Cheap to clone. What is not a record is told once and kept nowhere.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RuntimeEvent {
    /// A record is durable.
    Recorded(Recorded),
    /// The charter tells its subscribers something (`emit`).
    Emitted {
        /// The run.
        run: Arc<str>,
        /// The record it belongs to.
        seq: u64,
        /// Event type.
        r#type: Arc<str>,
        /// Event data.
        data: Json,
    },
    /// The charter has a line for people (`log`).
    Logged {
        /// The run.
        run: Arc<str>,
        /// The record it belongs to.
        seq: u64,
        /// What stands in front.
        label: Option<String>,
        /// What it says.
        value: Json,
    },
    /// An actor begins to work.
    Began(Working),
    /// An attempt failed, and there will be another one.
    Retrying {
        /// Which work.
        work: Working,
        /// Why it failed: `{code, message, ...}`.
        error: Json,
        /// When it is tried again, milliseconds since 1970.
        at: i64,
    },
    /// A task waits for a person.
    Waiting(Working),
    /// The work of an actor was stopped, because nobody waits for it any more.
    Stopped(Working),
    /// Something needs a person who looks after the host.
    Trouble {
        /// The run, if it is one's.
        run: Option<Arc<str>>,
        /// One sentence.
        message: String,
    },
    /// The subscriber was too slow, and so many happenings were not kept for it; the records are in the journal.
    Missed(u64),
}

impl RuntimeEvent {
    /// The run it is about.
    #[must_use]
    pub fn run(&self) -> Option<&str> {
        match self {
            RuntimeEvent::Recorded(r) => Some(&r.record.run),
            RuntimeEvent::Emitted { run, .. } | RuntimeEvent::Logged { run, .. } => Some(run),
            RuntimeEvent::Began(w) | RuntimeEvent::Waiting(w) | RuntimeEvent::Stopped(w) => Some(&w.run),
            RuntimeEvent::Retrying { work, .. } => Some(&work.run),
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
    /// The run after it; none if its start was refused.
    pub snapshot: Option<Snapshot>,
}

/// An actor at work on an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Working {
    /// The run.
    pub run: Arc<str>,
    /// The effect, `RUN/SEQ/INDEX`: the idempotency key.
    pub effect: Arc<str>,
    /// Id of the invocation.
    pub invocation: Arc<str>,
    /// The entry of `actors`.
    pub src: Arc<str>,
    /// Its kind.
    pub kind: Arc<str>,
    /// Which attempt; the first is 1.
    pub attempt: u32,
    /// When it began, milliseconds since 1970.
    pub since: i64,
}

#[derive(Debug)]
pub(crate) struct Publisher(broadcast::Sender<RuntimeEvent>);

impl Publisher {
    pub(crate) fn new() -> Publisher {
        Publisher(broadcast::channel(BEHIND).0)
    }
    pub(crate) fn tell(&self, happening: RuntimeEvent) {
        // Nobody listens: nobody misses it.
        let _ = self.0.send(happening);
    }
    pub(crate) fn trouble(&self, run: Option<&Arc<str>>, message: String) {
        self.tell(RuntimeEvent::Trouble { run: run.cloned(), message });
    }
    pub(crate) fn subscribe(&self, run: Option<&str>) -> Subscription {
        Subscription { receiver: self.0.subscribe(), run: run.map(Into::into) }
    }
}

/// What happens from now on, of one run or of all.
#[derive(Debug)]
pub struct Subscription {
    receiver: broadcast::Receiver<RuntimeEvent>,
    run: Option<Box<str>>,
}

impl Subscription {
    /// From now on only what happens in one run; of what has happened since it was subscribed, too.
    #[must_use]
    pub fn only(mut self, run: &str) -> Subscription {
        self.run = Some(run.into());
        self
    }

    /// The next thing that happens; none once the runtime is gone.
    pub async fn next(&mut self) -> Option<RuntimeEvent> {
        loop {
            let happening = match self.receiver.recv().await {
                Ok(happening) => happening,
                Err(broadcast::error::RecvError::Lagged(count)) => RuntimeEvent::Missed(count),
                Err(broadcast::error::RecvError::Closed) => return None,
            };
            if self.wants(&happening) {
                return Some(happening);
            }
        }
    }

    /// What has happened already, without waiting; none if there is nothing new.
    pub fn try_next(&mut self) -> Option<RuntimeEvent> {
        loop {
            let happening = match self.receiver.try_recv() {
                Ok(happening) => happening,
                Err(broadcast::error::TryRecvError::Lagged(count)) => RuntimeEvent::Missed(count),
                Err(_) => return None,
            };
            if self.wants(&happening) {
                return Some(happening);
            }
        }
    }

    fn wants(&self, happening: &RuntimeEvent) -> bool {
        match (&self.run, happening.run()) {
            (Some(wanted), Some(run)) => wanted.as_ref() == run,
            _ => true,
        }
    }
}
