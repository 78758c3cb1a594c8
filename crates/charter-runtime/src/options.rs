//! How a runtime is set up: clock, ids, executors, limits, faults for tests.

use std::sync::Arc;

use charter_actors::{Clock, Executor, Executors, Folder, SystemClock};
use charter_journal::StoredCharter;

/// Makes ids of runs.
pub type NewId = Arc<dyn Fn() -> String + Send + Sync>;
/// Finds the folder of a charter that the journal knows and nobody has added since the runtime was opened.
pub type FindFolder = Arc<dyn Fn(&StoredCharter) -> Folder + Send + Sync>;

/// How a runtime is set up. [`Options::default`] is right for a program on one machine.
#[derive(Clone)]
pub struct Options {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where ids of runs come from; default: UUIDs of version 7, which sort by time.
    pub new_id: NewId,
    /// Who does the work of actors, by `kind`. Default: `exec`, `http`, `scripted`, `human`.
    pub executors: Executors,
    /// The folder of a charter from the journal. Default: the one that its name (a path) lies in, if there is one.
    pub find_folder: FindFolder,
    /// Bounds.
    pub limits: Limits,
    /// Faults that tests ask for.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            clock: Arc::new(SystemClock),
            new_id: Arc::new(|| uuid::Uuid::now_v7().to_string()),
            executors: charter_actors::standard(),
            find_folder: Arc::new(|stored| {
                let path = std::path::Path::new(&stored.name);
                match path.parent() {
                    Some(dir) if path.is_file() => Folder::Dir(dir.to_owned()),
                    _ => Folder::None,
                }
            }),
            limits: Limits::default(),
            faults: Faults::default(),
        }
    }
}

impl Options {
    /// Adds or replaces the executor of a kind.
    #[must_use]
    pub fn executor(mut self, kind: &str, executor: impl Executor) -> Options {
        self.executors.insert(kind.into(), Arc::new(executor));
        self
    }

    /// With another clock.
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

/// Bounds of a host. 0 means: none. Reaching one is [`crate::RuntimeError::Limit`], which names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Records of a run. Events from outside are refused from here on (but `charter.cancel`); answers and timers until twice as many.
    pub records_per_run: u64,
    /// Bytes of data that an event may carry, on top of what the charter says.
    pub data_bytes: u64,
    /// Events per second that a principal may send, on average; twice as many at once.
    pub events_per_second: u32,
    /// The most that a charter may ask for as `limits.actors`.
    pub actors_per_run: u32,
    /// The most that a charter may ask for as `limits.timers`.
    pub timers_per_run: u32,
    /// Actors at work at the same time, over all runs; others wait for their turn.
    pub calls_at_once: u32,
    /// Events that may wait for one run.
    pub mailbox: u32,
    /// Runs that are kept in memory; others are made again from the journal when something happens to them.
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

/// Faults that tests ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Every effect is executed twice, and both answers are given.
    pub twice: bool,
}
