//! What a program does with runs, wherever they are hosted: in this process ([`Runtime`]), or in
//! another one.

use std::sync::Arc;

use charter_actors::{BoxFuture, CallProgress};
use charter_journal::{JournalHead, Record, RunFilter, RunInfo, StateChange, UsageFilter, UsageTotals, Verdict};
use charter_kernel::{Digest, Legal, Principal, Timestamp};
use charter_run::Task;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::events::{RuntimeEvent, Subscription, Working};
use crate::request::{Receipt, SendEvent, Start, View};
use crate::runtime::Runtime;

/// The result of an operation of a [`Backend`].
pub type Answer<'a, T> = BoxFuture<'a, Result<T, RuntimeError>>;

/// A place where runs are hosted.
///
/// Every operation may be repeated after [`RuntimeError::Lost`]: events have ids, starts have the
/// id of their run. An event without an id, or a start without a run, can be recorded twice then.
pub trait Backend: Send + Sync {
    /// Adds a charter, so that its runs can start.
    fn add(&self, charter: Charter) -> Answer<'_, Arc<Charter>>;

    /// Looks up a charter that was added or that a run uses.
    fn charter(&self, digest: Digest) -> Answer<'_, Arc<Charter>>;

    /// Starts a run.
    fn start(&self, start: Start) -> Answer<'_, Acknowledged>;

    /// Starts a run of the copy of its charter that was added under this name
    /// ([`charter_journal::StoredCharter::name`]), so in the folder of that copy, even if a copy
    /// from another folder was added since. A host without folders ignores the name.
    fn start_in(&self, start: Start, place: String) -> Answer<'_, Acknowledged> {
        let _ = place;
        self.start(start)
    }

    /// Sends an event.
    fn send(&self, send: SendEvent) -> Answer<'_, Acknowledged>;

    /// Answers a task, or declines it with a reason.
    fn answer(&self, task: String, answer: TaskAnswer, by: Principal) -> Answer<'_, Acknowledged>;

    /// Resumes the open invocations of a run, if the host has not resumed them.
    fn resume(&self, run: String) -> Answer<'_, ()>;

    /// Returns the current state of a run.
    fn view(&self, run: String) -> Answer<'_, View>;

    /// Returns the events that a principal may send to a run now.
    fn legal(&self, run: String, by: Principal) -> Answer<'_, Vec<Legal>>;

    /// Lists at most `limit` tasks, across all runs, that a principal may answer.
    fn tasks(&self, by: Principal, limit: usize) -> Answer<'_, Vec<Task>>;

    /// Returns the head and the metadata of a run.
    fn run(&self, run: String) -> Answer<'_, Option<RunInfo>>;

    /// Lists runs.
    fn runs(&self, filter: RunFilter) -> Answer<'_, Vec<RunInfo>>;

    /// Returns records of a run, in order, starting at sequence number `from`: at most `limit`, and
    /// at least one if there is one. [`Backend::view`] then shows the run as it was after them, or
    /// later.
    fn records(&self, run: String, from: u64, limit: usize) -> Answer<'_, Vec<Record>>;

    /// Returns records of all runs in the order of their commits, each with its position in the
    /// journal, starting after a position: at most `limit`. [`Backend::view`] then shows their runs
    /// as they were after them, or later.
    fn records_after(&self, position: u64, limit: usize) -> Answer<'_, Vec<(u64, Record)>>;

    /// Returns the position of the last record; 0 if there has been none.
    fn last_position(&self) -> Answer<'_, u64>;

    /// Returns the head of the journal; `None` if the host keeps none, or does not tell.
    fn head(&self) -> Answer<'_, Option<JournalHead>> {
        Box::pin(async { Ok(None) })
    }

    /// Returns a run as it was after one of its records.
    fn at(&self, run: String, seq: u64) -> Answer<'_, View>;

    /// Creates a run that shares the records of another one up to `at`; `dry` is whether its actors
    /// are not called ([`charter_journal::Origin::dry`]).
    fn fork(&self, run: String, at: u64, new: String, dry: bool) -> Answer<'_, ()>;

    /// Subscribes to the events of one run or of all runs, from now on.
    fn updates(&self, run: Option<String>) -> Answer<'_, Box<dyn Updates>>;

    /// Adds up what the models of a run were asked. A host that counts nothing returns zeros.
    fn usage(&self, run: String) -> Answer<'_, UsageTotals> {
        let _ = run;
        Box::pin(async { Ok(UsageTotals::default()) })
    }

    /// Returns what the host keeps in an area beside the records
    /// ([`charter_journal::Store::host_state`]). Hosts that others can reach do not tell.
    fn host_state(&self, area: String) -> Answer<'_, Vec<(String, String)>> {
        Box::pin(async move { Err(no_host_state(&area)) })
    }

    /// Changes what the host keeps beside the records.
    fn put_host_state(&self, changes: Vec<StateChange>) -> Answer<'_, ()> {
        let area = changes.into_iter().next().map(|change| change.area).unwrap_or_default();
        Box::pin(async move { Err(no_host_state(&area)) })
    }
}

fn no_host_state(area: &str) -> RuntimeError {
    RuntimeError::Remote(format!("what a host keeps beside the records (`{area}`) cannot be reached from here"))
}

/// The events of a [`Backend`], from a subscription on.
pub trait Updates: Send {
    /// Waits for the next event; returns `None` once the connection or the host has ended. Dropping
    /// the future loses no event.
    fn next(&mut self) -> BoxFuture<'_, Option<Update>>;
}

/// A recorded event, accepted or refused.
#[derive(Debug, Clone)]
pub struct Acknowledged {
    /// The record; it is durable.
    pub record: Record,
    /// Whether the event was recorded earlier under the same id.
    pub repeated: bool,
}

impl Acknowledged {
    /// Whether the event was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.record.verdict == Verdict::Refused
    }
}

impl From<Receipt> for Acknowledged {
    fn from(receipt: Receipt) -> Acknowledged {
        Acknowledged { record: receipt.record, repeated: receipt.repeated }
    }
}

/// An answer to a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskAnswer {
    /// The output of the invocation.
    Output(Json),
    /// The task is declined, for this reason.
    Declined(String),
}

/// An event of a host, as other processes see it: [`RuntimeEvent`] without what is in memory only.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Update {
    /// A record is durable.
    #[serde(with = "record_text")]
    Recorded(Record),
    /// The charter emitted an event.
    Emitted {
        /// The run.
        run: Arc<str>,
        /// Event type.
        r#type: Arc<str>,
        /// Event data.
        data: Json,
    },
    /// The charter wrote a log line.
    Logged {
        /// The run.
        run: Arc<str>,
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
    /// The subscriber was too slow and missed this many events.
    Missed(u64),
}

mod record_text {
    use charter_journal::Record;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(record: &Record, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(record.text())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Record, D::Error> {
        let text = String::deserialize(from)?;
        Record::read(&text).map_err(D::Error::custom)
    }
}

impl From<RuntimeEvent> for Update {
    fn from(event: RuntimeEvent) -> Update {
        match event {
            RuntimeEvent::Recorded(recorded) => Update::Recorded(recorded.record),
            RuntimeEvent::Emitted { run, r#type, data, .. } => Update::Emitted { run, r#type, data },
            RuntimeEvent::Logged { run, label, value, .. } => Update::Logged { run, label, value },
            RuntimeEvent::Began(work) => Update::Began(work),
            RuntimeEvent::Retrying { work, error, at } => Update::Retrying { work, error, at },
            RuntimeEvent::Waiting(work) => Update::Waiting(work),
            RuntimeEvent::Stopped(work) => Update::Stopped(work),
            RuntimeEvent::Progress(progress) => Update::Progress(progress),
            RuntimeEvent::Trouble { run, message } => Update::Trouble { run, message },
            RuntimeEvent::Missed(count) => Update::Missed(count),
        }
    }
}

impl Updates for Subscription {
    fn next(&mut self) -> BoxFuture<'_, Option<Update>> {
        Box::pin(async move { Subscription::next(self).await.map(Update::from) })
    }
}

impl Backend for Runtime {
    fn add(&self, charter: Charter) -> Answer<'_, Arc<Charter>> {
        Box::pin(Runtime::add(self, charter))
    }

    fn charter(&self, digest: Digest) -> Answer<'_, Arc<Charter>> {
        Box::pin(Runtime::charter(self, digest))
    }

    fn start(&self, start: Start) -> Answer<'_, Acknowledged> {
        Box::pin(async move { Ok(Runtime::start(self, start).await?.into()) })
    }

    fn start_in(&self, start: Start, place: String) -> Answer<'_, Acknowledged> {
        Box::pin(async move { Ok(Runtime::start_in(self, start, Some(&place)).await?.into()) })
    }

    fn send(&self, send: SendEvent) -> Answer<'_, Acknowledged> {
        Box::pin(async move { Ok(Runtime::send(self, send).await?.into()) })
    }

    fn answer(&self, task: String, answer: TaskAnswer, by: Principal) -> Answer<'_, Acknowledged> {
        Box::pin(async move {
            let receipt = match answer {
                TaskAnswer::Output(output) => self.complete(&task, output, by).await?,
                TaskAnswer::Declined(reason) => self.decline(&task, &reason, by).await?,
            };
            Ok(receipt.into())
        })
    }

    fn resume(&self, run: String) -> Answer<'_, ()> {
        Box::pin(async move {
            let recovery = Runtime::resume(self, &run).await;
            recovery.failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
        })
    }

    fn view(&self, run: String) -> Answer<'_, View> {
        Box::pin(async move { Runtime::view(self, &run).await })
    }

    fn legal(&self, run: String, by: Principal) -> Answer<'_, Vec<Legal>> {
        Box::pin(async move { Runtime::legal(self, &run, &by).await })
    }

    fn tasks(&self, by: Principal, limit: usize) -> Answer<'_, Vec<Task>> {
        Box::pin(async move { Runtime::tasks(self, &by, limit).await })
    }

    fn run(&self, run: String) -> Answer<'_, Option<RunInfo>> {
        Box::pin(async move { Ok(self.inner.with_store(move |inner| inner.store.run(&run)).await??) })
    }

    fn runs(&self, filter: RunFilter) -> Answer<'_, Vec<RunInfo>> {
        Box::pin(Runtime::runs(self, filter))
    }

    fn records(&self, run: String, from: u64, limit: usize) -> Answer<'_, Vec<Record>> {
        Box::pin(async move {
            let records = self.inner.with_store(move |inner| inner.store.records(&run, from, limit)).await??;
            self.inner.settled(records.iter()).await;
            Ok(records)
        })
    }

    fn records_after(&self, position: u64, limit: usize) -> Answer<'_, Vec<(u64, Record)>> {
        Box::pin(async move {
            let records = self.inner.with_store(move |inner| inner.store.records_after(position, limit)).await??;
            self.inner.settled(records.iter().map(|(_, record)| record)).await;
            Ok(records)
        })
    }

    fn last_position(&self) -> Answer<'_, u64> {
        Box::pin(async move { Ok(self.inner.with_store(|inner| inner.store.last_position()).await??) })
    }

    fn head(&self) -> Answer<'_, Option<JournalHead>> {
        Box::pin(async move { Ok(self.inner.with_store(|inner| inner.store.head()).await??) })
    }

    fn at(&self, run: String, seq: u64) -> Answer<'_, View> {
        Box::pin(async move { Runtime::at(self, &run, seq).await })
    }

    fn fork(&self, run: String, at: u64, new: String, dry: bool) -> Answer<'_, ()> {
        Box::pin(async move { Runtime::fork(self, &run, at, &new, dry).await })
    }

    fn updates(&self, run: Option<String>) -> Answer<'_, Box<dyn Updates>> {
        Box::pin(async move { Ok(Box::new(self.subscribe(run.as_deref())) as Box<dyn Updates>) })
    }

    fn usage(&self, run: String) -> Answer<'_, UsageTotals> {
        let filter = UsageFilter::run(&run);
        Box::pin(async move { Ok(self.inner.with_store(move |inner| inner.store.usage(&filter)).await??) })
    }

    fn host_state(&self, area: String) -> Answer<'_, Vec<(String, String)>> {
        Box::pin(async move { Ok(self.inner.with_store(move |inner| inner.store.host_state(&area)).await??) })
    }

    fn put_host_state(&self, changes: Vec<StateChange>) -> Answer<'_, ()> {
        Box::pin(self.change_host_state(changes))
    }
}
