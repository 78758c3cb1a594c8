//! The setup of a host: clock, ids, executors, limits, injected faults.

use std::sync::Arc;

use charter_actors::{Clock, Executor, Executors, Folder, SystemClock};
use charter_journal::StoredCharter;

/// The id of the run that holds the keys of a journal, and of its charter: hosts that others reach
/// start it, and no other run has this id.
pub const HOST_RUN: &str = "host";

/// Generates run ids.
pub type NewId = Arc<dyn Fn() -> String + Send + Sync>;

/// Generates a version 7 UUID: a run id that sorts by time.
#[must_use]
pub fn new_run_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Finds the folder of a charter that is in the journal and has not been added since the host was
/// opened.
pub type FindFolder = Arc<dyn Fn(&StoredCharter) -> Folder + Send + Sync>;

/// The setup of a host. [`Options::default`] suits a program on one machine.
#[derive(Clone)]
pub struct Options {
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// Generates run ids; default: version 7 UUIDs, which sort by time.
    pub new_id: NewId,
    /// Executors of actors, by `kind`. Default: [`charter_actors::standard`].
    pub executors: Executors,
    /// Finds the folder of a charter from the journal, for commands and other data that runs use
    /// in place. Default: the folder of the charter's source file, if its path is absolute and the
    /// file exists. Runs read all other files from the journal.
    pub find_folder: FindFolder,
    /// Limits of the host.
    pub limits: Limits,
    /// What the host resumes when it opens a journal.
    pub resume: ResumeRuns,
    /// Whether the clock is accepted even if it is far from the newest record of the journal
    /// ([`RuntimeError::WrongClock`](crate::RuntimeError::WrongClock)).
    pub accept_clock: bool,
    /// Faults to inject in tests.
    pub inject: FaultInjection,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            clock: Arc::new(SystemClock),
            new_id: Arc::new(new_run_id),
            executors: charter_actors::standard(),
            find_folder: Arc::new(|stored| {
                let path = std::path::Path::new(&stored.name);
                match path.parent() {
                    Some(dir) if path.is_absolute() && path.is_file() => Folder::Dir(dir.to_owned()),
                    _ => Folder::None,
                }
            }),
            limits: Limits::default(),
            resume: ResumeRuns::default(),
            accept_clock: false,
            inject: FaultInjection::default(),
        }
    }
}

impl Options {
    /// Adds or replaces the executor of an actor kind.
    #[must_use]
    pub fn executor(mut self, kind: &str, executor: impl Executor) -> Options {
        self.executors.insert(kind.into(), Arc::new(executor));
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Options {
        self.clock = Arc::new(clock);
        self
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds: Vec<_> = self.executors.keys().collect();
        write!(f, "Options({kinds:?}, {:?})", self.limits)
    }
}

/// What a host resumes when it opens a journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResumeRuns {
    /// The open invocations and the timers of all runs.
    #[default]
    All,
    /// Nothing, until it is requested: [`Runtime::resume`](crate::Runtime::resume) for the open
    /// invocations of a run, [`Runtime::resume_timers`](crate::Runtime::resume_timers) for the
    /// timers of all runs. For a process that may end soon: what it does not start, it does not
    /// interrupt.
    OnRequest,
}

/// Limits of a host; 0 means no limit. If one is exceeded, the host returns
/// [`crate::RuntimeError::Limit`], which names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Records per run. Above it, events from outside are rejected, except `charter.cancel`;
    /// answers and timers are rejected above twice the limit.
    pub records_per_run: u64,
    /// Bytes of an event's data; the charter's own limit also applies.
    pub data_bytes: u64,
    /// Average number of events per second of a principal; bursts may have twice as many.
    pub events_per_second: u32,
    /// Maximum value of `limits.actors` in a charter.
    pub actors_per_run: u32,
    /// Maximum value of `limits.timers` in a charter.
    pub timers_per_run: u32,
    /// Concurrent calls of actors across all runs; further calls wait.
    pub calls_at_once: u32,
    /// Events that may be queued for one run.
    pub mailbox: u32,
    /// Runs in memory; others are restored from the journal when they receive an input.
    pub runs_in_memory: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            records_per_run: 1_000_000,
            data_bytes: 1 << 20,
            events_per_second: 200,
            actors_per_run: 10_000,
            timers_per_run: 10_000,
            calls_at_once: 64,
            mailbox: 1_000,
            runs_in_memory: 1_000,
        }
    }
}

/// Faults to inject in tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultInjection {
    /// Executes every effect twice and gives both answers to the run.
    pub twice: bool,
}
