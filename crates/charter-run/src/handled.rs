//! The result of applying one input to a run.

use std::sync::Arc;

use charter_journal::{Append, Record};
use charter_kernel::{Code, Digest, EffectId, InvalidName, PERSONS_ONLY, PrincipalKind, Snapshot, Timestamp};
use serde_json::Value as Json;

/// The result of applying one input. The host commits all records atomically, then performs their
/// actions in order, then sends the reply.
#[derive(Debug, Clone)]
pub struct Handled {
    /// Records to commit together, in order: those of the timers that were due, then those of the
    /// input.
    pub appended: Vec<Appended>,
    /// The answer to the input.
    pub reply: Reply,
    /// What the operator of the host should know.
    pub troubles: Vec<Trouble>,
}

/// A record to commit.
#[derive(Debug, Clone)]
pub struct Appended {
    /// The record, and the snapshot to store with it if one is due.
    pub append: Append,
    /// The snapshot after it; `None` if the start was refused.
    pub after: Option<Snapshot>,
    /// What to do after the commit, in order.
    pub actions: Vec<Action>,
}

/// The answer to an input.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// The input needs none.
    None,
    /// The record with this index in [`Handled::appended`] is the result. It may contain a refusal.
    Made(usize),
    /// The input is a repetition; this record is its result.
    Repeated(Box<Record>),
    /// The run does not wait for this answer, so there is no record.
    NotAwaited,
    /// There is no record.
    Denied(Denied),
}

/// Maximum length of the id of an event, in bytes.
pub const MAX_EVENT_ID_BYTES: usize = 256;

/// Checks the event id that a sender has chosen. Only the host itself (`by_host`) uses ids that
/// begin with the id of the run and `/`, because these are the ids of records.
///
/// # Errors
/// The id is empty, too long or reserved.
pub fn check_event_id(run: &str, id: &str, by_host: bool) -> Result<(), Denied> {
    if !by_host && id.strip_prefix(run).is_some_and(|rest| rest.starts_with('/')) {
        return Err(Denied::IdReserved { prefix: format!("{run}/") });
    }
    match id.len() {
        1..=MAX_EVENT_ID_BYTES => Ok(()),
        bytes => Err(Denied::IdLength { bytes }),
    }
}

/// Why an input has no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    /// The run's start was refused, or the run was never started.
    #[error("the run never started")]
    NeverStarted,
    /// The run exists, and was started with another charter, other files or another input.
    #[error("the run exists and was started with another charter, other files or another input")]
    RunExists,
    /// Another event has this id.
    #[error("the event id `{id}` belongs to another event (record {seq})")]
    IdTaken {
        /// The id.
        id: String,
        /// The record of that event.
        seq: u64,
    },
    /// The id is empty, or too long.
    #[error("an event id has 1 to {MAX_EVENT_ID_BYTES} bytes, and this one has {bytes}; leave it out, or use another")]
    IdLength {
        /// The length of the id in bytes.
        bytes: usize,
    },
    /// The id is reserved for the host.
    #[error("event ids that begin with `{prefix}` are reserved for the host; use another id")]
    IdReserved {
        /// The id of the run and `/`.
        prefix: String,
    },
    /// The sender has the name of the host, or one that looks like another.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// The event would allow another manifest than that of the run, so it would allow nothing.
    #[error("the run has the manifest {manifest}, not {given}; an event with another one allows nothing")]
    OtherManifest {
        /// The digest of the run's manifest.
        manifest: Digest,
        /// The manifest in the event, as JSON.
        given: String,
    },
    /// There is nothing to allow: the run was started in this journal, or is allowed already.
    #[error("nothing to allow: the run was started in this journal, or is allowed already")]
    NothingToAllow,
    /// The actors that the event would allow need the folder of the charter, which is not there.
    #[error(
        "nothing was allowed, because the actors of the run could not start: {need}, and the folder of the charter is not known here; name a copy of it with `charter trust RUN --charter FILE`"
    )]
    NoFolder {
        /// What they need of it, as a clause.
        need: String,
    },
    /// The data is too large.
    #[error("the data of `{event}` is larger than {limit} bytes")]
    DataTooLarge {
        /// The type of the event.
        event: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The record would be too large.
    #[error("record {seq} would have {size} bytes; the limit is {limit}")]
    RecordTooLarge {
        /// The number of the record.
        seq: u64,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The run has too many records.
    #[error("the run has too many records; the limit is {limit}")]
    TooManyRecords {
        /// The limit.
        limit: u64,
    },
    /// No such task is open.
    #[error("no open task `{task}`")]
    NoTask {
        /// The effect, `RUN/SEQ/INDEX`.
        task: String,
    },
    /// The task is for other principals.
    #[error("the task `{task}` requires one of the roles {}; `{by}` has none of them", roles.join(", "))]
    NotYours {
        /// The effect, `RUN/SEQ/INDEX`.
        task: String,
        /// The roles that may answer.
        roles: Vec<String>,
        /// The principal that tried to answer.
        by: String,
    },
    /// The task is for persons only ([`charter_kernel::PERSONS_ONLY`]).
    #[error("the task `{task}` is for persons only; `{by}` is of kind `{kind}`")]
    PersonsOnly {
        /// The effect, `RUN/SEQ/INDEX`.
        task: String,
        /// The principal that tried to answer.
        by: String,
        /// What it is.
        kind: PrincipalKind,
    },
}

impl Denied {
    /// The refusal code that a transition would give for the same reason, and its rule.
    #[must_use]
    pub fn code(&self) -> Option<(Code, Option<&'static str>)> {
        match self {
            Denied::NotYours { .. } => Some((Code::Authority, None)),
            Denied::PersonsOnly { .. } => Some((Code::Authority, Some(PERSONS_ONLY))),
            _ => None,
        }
    }
}

/// What a host does after the commit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Starts an attempt of an invocation: the first one, or the next one after a failure.
    Invoke(InvocationRequest),
    /// Drops an attempt that waits for its start, because the run was paused. [`Action::Invoke`]
    /// requests it again after the run was resumed. An attempt that has begun continues.
    Hold(EffectId),
    /// Stops the work on an invocation.
    Stop(EffectId),
    /// Publishes an event.
    Emit {
        /// Its type.
        r#type: String,
        /// Its data.
        data: Json,
    },
    /// Writes to the log.
    Log {
        /// A label.
        label: Option<String>,
        /// The value.
        value: Json,
    },
}

/// An attempt that a run requests.
#[derive(Debug, Clone, PartialEq)]
pub struct InvocationRequest {
    /// The effect; with the id of the run in front, it is the idempotency key.
    pub effect: EffectId,
    /// Id of the invocation.
    pub invocation: Arc<str>,
    /// The entry of `actors`.
    pub src: Arc<str>,
    /// The input.
    pub input: Arc<Json>,
    /// The number of the attempt to start with; the first is 1.
    pub attempt: u32,
    /// Its earliest start; [`Timestamp::MAX`] while it waits for the run to be resumed.
    pub not_before: Timestamp,
}

/// A problem that the operator of a host should know about. The state of the run is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The event of a timer was refused.
    #[error("the timer `{timer}` was refused ({code}) and waits for the run to change: {message}")]
    TimerRefused {
        /// The timer.
        timer: String,
        /// The code of the refusal.
        code: String,
        /// Why.
        message: String,
    },
    /// The record of a timer's event would be too large.
    #[error(
        "the timer `{timer}` cannot fire and waits for the run to change: its record would have {size} bytes; the limit is {limit}"
    )]
    TimerTooLarge {
        /// The timer.
        timer: String,
        /// The size of its record in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The run refuses an answer and also its failure.
    #[error("the run refuses both the answer of `{invocation}` and its failure, and keeps waiting")]
    AnswerRefused {
        /// The invocation.
        invocation: String,
    },
    /// The run has twice as many records as the limit.
    #[error("the run has twice as many records as the limit and cannot continue; `charter.cancel` ends it")]
    Full,
}
