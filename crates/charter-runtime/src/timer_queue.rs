//! The timers of all runs: one entry per run, for its next timer. One task waits for the earliest.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use charter_actors::{ActivityGuard, Clock};
use charter_kernel::Timestamp;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::sync::lock;

#[derive(Default)]
pub(crate) struct TimerQueue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    by_time: BTreeSet<(Timestamp, Arc<str>)>,
    by_run: FxHashMap<Arc<str>, Timestamp>,
    /// Guards the time from the arrival of a new earliest timer until the task has seen it.
    unseen: Option<ActivityGuard>,
}

impl TimerQueue {
    /// Sets the next timer of a run, or removes it if `due` is `None`.
    pub(crate) fn set(&self, run: &Arc<str>, due: Option<Timestamp>, activity: impl FnOnce() -> ActivityGuard) {
        self.set_in(&mut lock(&self.state), run, due, activity);
    }

    fn set_in(
        &self,
        state: &mut State,
        run: &Arc<str>,
        due: Option<Timestamp>,
        activity: impl FnOnce() -> ActivityGuard,
    ) {
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
                state.unseen.get_or_insert_with(activity);
                self.changed.notify_one();
            }
        }
    }

    /// Sets the next timer of a run that has none: its own timers are newer.
    pub(crate) fn arm(&self, run: &Arc<str>, due: Timestamp, activity: impl FnOnce() -> ActivityGuard) {
        let mut state = lock(&self.state);
        if !state.by_run.contains_key(run) {
            self.set_in(&mut state, run, Some(due), activity);
        }
    }

    /// Removes the timers that are due. Returns their runs, the time of the next timer, and the
    /// activity guard of a new earliest timer.
    fn take_due(&self, now: Timestamp) -> (Vec<Arc<str>>, Timestamp, Option<ActivityGuard>) {
        let mut state = lock(&self.state);
        let mut runs = Vec::new();
        while let Some((due, run)) = state.by_time.first().cloned() {
            if due > now {
                break;
            }
            state.by_time.remove(&(due, run.clone()));
            state.by_run.remove(&run);
            runs.push(run);
        }
        let next = state.by_time.first().map_or(Timestamp::MAX, |(due, _)| *due);
        (runs, next, state.unseen.take())
    }

    /// Waits for timers until `fire` returns false. `fire` tells a run to fire its timers.
    pub(crate) async fn run(self: Arc<Self>, clock: Arc<dyn Clock>, fire: impl Fn(&Arc<str>) -> bool) {
        let _activity = clock.work();
        loop {
            let sleep = {
                let (runs, next, _unseen) = self.take_due(clock.now());
                if !runs.iter().all(&fire) {
                    return;
                }
                clock.sleep_until(next)
            };
            tokio::select! {
                () = sleep => {}
                () = self.changed.notified() => {}
            }
        }
    }
}
