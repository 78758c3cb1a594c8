//! The time of a query, which another thread can read, too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that a query has spent in SQLite.
///
/// SQLite looks at the clock between the steps of its machine, and one call of a function, such as
/// `instr` with large values, is one step. Who must not wait for it runs the query on another
/// thread and reads the clock.
#[derive(Debug, Clone, Default)]
pub struct QueryClock(Arc<Mutex<Spent>>);

#[derive(Debug, Default)]
struct Spent {
    before: Duration,
    /// Since when it is in SQLite again; `None` before it begins and while a row is visited.
    since: Option<Instant>,
}

impl QueryClock {
    /// The time so far.
    #[must_use]
    pub fn spent(&self) -> Duration {
        let spent = self.get();
        spent.before.saturating_add(spent.since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    pub(super) fn go(&self) {
        self.get().since = Some(Instant::now());
    }

    pub(super) fn stop(&self) {
        let mut spent = self.get();
        if let Some(since) = spent.since.take() {
            spent.before = spent.before.saturating_add(since.elapsed());
        }
    }

    fn get(&self) -> MutexGuard<'_, Spent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
