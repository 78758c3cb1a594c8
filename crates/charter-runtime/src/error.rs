//! What can go wrong with a host. Refusals are no errors: they come as records.

use charter_journal::{ReplayError, StoreError};
use charter_kernel::Digest;

/// Why the runtime could not do what it was asked. Nothing was written, unless it says so.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RuntimeError {
    /// The journal.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A run could not be made again from its records.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// No such run.
    #[error("there is no run `{0}` in this journal")]
    UnknownRun(String),
    /// The run's start was refused; it never was.
    #[error("run `{0}` never started: its start was refused (record 0 says why)")]
    NeverStarted(String),
    /// A run of that id exists, and was not started with this.
    #[error("there is a run `{0}` already, started with something else; choose another id, or leave it out")]
    RunExists(String),
    /// The id of a run is not written like one.
    #[error("`{0}` cannot be the id of a run: 1 to 128 letters, digits, `-`, `_`, `.` or `:`")]
    BadRunId(String),
    /// It was opened by something else than a tokio runtime.
    #[error(
        "the host lives on a tokio runtime with timers: open it in one (`#[tokio::main]`, or a `Builder` with `enable_time`)"
    )]
    NoTokio,
    /// The charter was not given to the runtime, and is not in its journal.
    #[error("the charter {0} is not known here; add it before a run of it starts")]
    UnknownCharter(Digest),
    /// The charter cannot be hosted.
    #[error("the charter `{charter}` cannot be run here: {why}")]
    Charter {
        /// Its id.
        charter: String,
        /// Why.
        why: String,
    },
    /// An event with this id was recorded already, and said something else (code `stale`).
    #[error(
        "the event id `{id}` was used in run `{run}` for something else (record {seq}); an id belongs to one event"
    )]
    IdTaken {
        /// The run.
        run: String,
        /// The id.
        id: String,
        /// The record that has it.
        seq: u64,
    },
    /// A limit of the host. `limit` names the option, `value` is what it is set to.
    #[error("{what}: the limit `{limit}` of this host is {value}")]
    Limit {
        /// Its name in [`crate::Limits`].
        limit: &'static str,
        /// Its value.
        value: u64,
        /// What reached it.
        what: String,
    },
    /// There is nothing of that name that waits for a person.
    #[error("run `{run}`: no task `{task}` waits for a person")]
    NoTask {
        /// The run.
        run: String,
        /// The effect.
        task: String,
    },
    /// The task is for others.
    #[error("run `{run}`: the task `{task}` is for {roles}, and `{by}` is none of them")]
    NotYours {
        /// The run.
        run: String,
        /// The effect.
        task: String,
        /// Who may, in words.
        roles: String,
        /// Who tried.
        by: String,
    },
    /// The runtime is shutting down, or was.
    #[error("the host is shutting down and takes no more events")]
    Closing,
}
