//! The timers of all runs: one entry for each run, its next one. One task waits for the earliest.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use charter_actors::ActivityGuard;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::runtime::{Inner, Input};

#[derive(Default)]
pub(crate) struct TimerQueue {
    state: Mutex<State>,
    kick: Notify,
}

#[derive(Default)]
struct State {
    by_time: BTreeSet<(i64, Arc<str>)>,
    by_run: FxHashMap<Arc<str>, i64>,
    /// Held by whoever has brought an earlier timer until the task has seen it.
    kick: Option<ActivityGuard>,
}

impl TimerQueue {
    /// The next timer of a run; none: it has none.
    pub(crate) fn set(&self, run: &Arc<str>, due: Option<i64>, work: impl FnOnce() -> ActivityGuard) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let old = match due {
            Some(due) => state.by_run.insert(run.clone(), due),
            None => state.by_run.remove(run),
        };
        if old == due {
            return;
        }
        if let Some(old) = old {
            state.by_time.remove(&(old, run.clone()));
        }
        if let Some(due) = due {
            let earliest = state.by_time.first().is_none_or(|(first, _)| due < *first);
            state.by_time.insert((due, run.clone()));
            if earliest {
                state.kick.get_or_insert_with(work);
                self.kick.notify_one();
            }
        }
    }

    /// Runs with timers that are due, and when the next one is.
    fn due(&self, now: i64) -> (Vec<Arc<str>>, i64, Option<ActivityGuard>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut runs = Vec::new();
        while let Some((due, run)) = state.by_time.first().cloned() {
            if due > now {
                break;
            }
            state.by_time.remove(&(due, run.clone()));
            state.by_run.remove(&run);
            runs.push(run);
        }
        let next = state.by_time.first().map_or(i64::MAX, |(due, _)| *due);
        (runs, next, state.kick.take())
    }

    /// Waits for timers, for ever. Each run fires its own.
    pub(crate) async fn turn(inner: Weak<Inner>) {
        let mut _work = ActivityGuard::default();
        let mut first = true;
        loop {
            let (sleep, wheel) = {
                let Some(inner) = inner.upgrade() else { return };
                if first {
                    _work = inner.clock.work();
                    first = false;
                }
                let (runs, next, kick) = inner.wheel.due(inner.clock.now());
                for run in runs {
                    inner.post(&run, Input::Due);
                }
                let sleep = inner.clock.sleep_until(next);
                drop(kick);
                (sleep, inner.wheel.clone())
            };
            tokio::select! {
                () = sleep => {}
                () = wheel.kick.notified() => {}
            }
        }
    }
}
