//! Errors of a host. Refusals are not errors: they are records.

use charter_journal::{ReplayError, StoreError};
use charter_kernel::{Code, Digest, PERSONS_ONLY, PrincipalKind};
use charter_run::{BadRunId, Denied, WrongClock};

/// Why a host could not do what was requested. Nothing was written, unless the error says so.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The journal failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A run could not be restored from its records.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// There is no run with this id.
    #[error("no run `{0}` in this journal")]
    UnknownRun(String),
    /// The run's start was refused.
    #[error("run `{0}` never started: its start was refused (record 0 has the reason)")]
    NeverStarted(String),
    /// A run with this id exists; its charter or input is another one, or somebody else started it.
    #[error(
        "run `{0}` exists and was started with another charter or input, or by somebody else; choose another id, or omit it"
    )]
    RunExists(String),
    /// The id of a run has the wrong length or characters.
    #[error(transparent)]
    BadRunId(#[from] BadRunId),
    /// The run came by import, and nobody has allowed its actors to work (code `untrusted`).
    #[error("run `{run}` came from another journal, and nobody has allowed its actors to work (`untrusted`)")]
    Untrusted {
        /// The run.
        run: String,
    },
    /// The run does not wait for this answer, so the answer has no record.
    #[error("run `{0}` does not wait for this answer")]
    NotAwaited(String),
    /// The id of an event is reserved for the host.
    #[error("run `{run}`: event ids that begin with `{prefix}` are reserved for the host; use another id")]
    IdReserved {
        /// The run.
        run: String,
        /// The reserved prefix: the id of the run and `/`.
        prefix: String,
    },
    /// The host was opened outside a tokio runtime.
    #[error(
        "no tokio runtime: open the host inside one that has timers (`#[tokio::main]`, or a `Builder` with `enable_time`)"
    )]
    NoTokio,
    /// The clock is far from the newest record of the journal, so it is probably wrong;
    /// [`Options::accept_clock`](crate::Options::accept_clock) accepts it.
    #[error(transparent)]
    WrongClock(#[from] WrongClock),
    /// The charter was not added and is not in the journal.
    #[error("unknown charter {0}: add it before a run of it starts")]
    UnknownCharter(Digest),
    /// The host does not accept the charter.
    #[error("cannot run the charter `{charter}` on this host: {why}")]
    Charter {
        /// The id of the charter.
        charter: String,
        /// Why the host does not accept it.
        why: String,
    },
    /// Another event with this id and different content is already recorded (code `stale`).
    #[error("the event id `{id}` belongs to another event of run `{run}` (record {seq}); use a new id")]
    IdTaken {
        /// The run.
        run: String,
        /// The id.
        id: String,
        /// The sequence number of its record.
        seq: u64,
    },
    /// A limit of the host was exceeded.
    #[error("{what}: the limit `{limit}` of this host is {value}")]
    Limit {
        /// The name of the limit in [`crate::Limits`].
        limit: &'static str,
        /// The value of the limit.
        value: u64,
        /// What exceeds the limit.
        what: String,
    },
    /// There is no open task with this id.
    #[error("run `{run}`: no open invocation `{task}`")]
    NoTask {
        /// The run.
        run: String,
        /// The effect of the task.
        task: String,
    },
    /// The principal has none of the roles that may answer the task.
    #[error("run `{run}`: the invocation `{task}` requires one of the roles {roles}; `{by}` has none of them")]
    NotYours {
        /// The run.
        run: String,
        /// The effect of the task.
        task: String,
        /// The roles that may answer the task, separated by commas.
        roles: String,
        /// The principal that tried.
        by: String,
    },
    /// The task is for persons only, and the principal is not one. The code of the refusal is
    /// `authority`, its rule `persons-only`.
    #[error("run `{run}`: the invocation `{task}` is for persons only; `{by}` is of kind `{kind}`")]
    PersonsOnly {
        /// The run.
        run: String,
        /// The effect of the task.
        task: String,
        /// The principal that tried.
        by: String,
        /// What it is.
        kind: PrincipalKind,
    },
    /// There is nothing to allow.
    #[error("nothing to allow: run `{run}` was started in this journal, or is allowed already")]
    NothingToAllow {
        /// The run.
        run: String,
    },
    /// The run denies the input for another reason.
    #[error("run `{run}`: {why}")]
    Denied {
        /// The run.
        run: String,
        /// Why.
        why: String,
    },
    /// The connection to the process that hosts the run was lost before it answered. Whether it did
    /// what was requested is not known.
    #[error("the connection to process {pid}, which holds the journal, was lost")]
    Lost {
        /// The process.
        pid: u32,
    },
    /// A host in another process reports another error.
    #[error("{0}")]
    Remote(String),
    /// The host is shutting down, or has shut down.
    #[error("the host is shutting down and accepts no more events")]
    Closing,
}

impl RuntimeError {
    /// The refusal code that a transition would give for the same reason, and its rule. Like
    /// [`Denied::code`].
    #[must_use]
    pub fn code(&self) -> Option<(Code, Option<&'static str>)> {
        match self {
            RuntimeError::NotYours { .. } => Some((Code::Authority, None)),
            RuntimeError::PersonsOnly { .. } => Some((Code::Authority, Some(PERSONS_ONLY))),
            _ => None,
        }
    }

    /// Says for a run why one of its inputs has no record.
    #[must_use]
    pub fn denied(run: &str, denied: Denied) -> RuntimeError {
        let run = run.to_owned();
        match denied {
            Denied::NeverStarted => RuntimeError::NeverStarted(run),
            Denied::RunExists => RuntimeError::RunExists(run),
            Denied::IdTaken { id, seq } => RuntimeError::IdTaken { run, id, seq },
            Denied::IdReserved { prefix } => RuntimeError::IdReserved { run, prefix },
            Denied::DataTooLarge { event, limit } => RuntimeError::Limit {
                limit: "data_bytes",
                value: limit,
                what: format!("the data of `{event}` is too large"),
            },
            Denied::RecordTooLarge { seq, size, limit } => StoreError::TooLarge { run, seq, size, limit }.into(),
            Denied::TooManyRecords { limit } => RuntimeError::Limit {
                limit: "records_per_run",
                value: limit,
                what: format!("run `{run}` has too many records; `charter.cancel` still ends it"),
            },
            Denied::NoTask { task } => RuntimeError::NoTask { run, task },
            Denied::NotYours { task, roles, by } => RuntimeError::NotYours { run, task, roles: roles.join(", "), by },
            Denied::PersonsOnly { task, by, kind } => RuntimeError::PersonsOnly { run, task, by, kind },
            Denied::NothingToAllow => RuntimeError::NothingToAllow { run },
            other => RuntimeError::Denied { run, why: other.to_string() },
        }
    }
}
