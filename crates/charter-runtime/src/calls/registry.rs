//! The calls that are running.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use charter_kernel::{EffectId, Timestamp};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::events::{Publisher, RuntimeEvent, Working};
use crate::sync::lock;
use crate::task_tracker::TaskTracker;

/// The running calls of a host, by run and effect.
pub(crate) struct Calls {
    running: Mutex<BTreeMap<(Arc<str>, EffectId), RunningCall>>,
    next: AtomicU64,
    pub(crate) tasks: TaskTracker,
    pub(crate) permits: Semaphore,
}

struct RunningCall {
    /// Tells calls of one effect apart: a call ends after the next one has been registered.
    number: u64,
    task: AbortHandle,
    working: Working,
    /// Whether the attempt has begun.
    begun: bool,
    /// Whether its answer is on its way to the run: it ends, and is not stopped.
    answered: bool,
}

impl RunningCall {
    /// Ends a call that its run no longer waits for. One that has answered was not stopped.
    fn end(self, publisher: &Publisher) {
        let has_ended = self.answered || self.task.is_finished();
        self.task.abort();
        if !has_ended {
            publisher.publish(RuntimeEvent::Stopped(self.working));
        }
    }
}

const FIRST: EffectId = EffectId { seq: 0, index: 0 };
const LAST: EffectId = EffectId { seq: u64::MAX, index: u32::MAX };

/// Held by the task of a call; removes the call when the task ends in any way.
pub(crate) struct Registration {
    calls: Arc<Calls>,
    key: (Arc<str>, EffectId),
    number: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut running = lock(&self.calls.running);
        if running.get(&self.key).is_some_and(|call| call.number == self.number) {
            running.remove(&self.key);
        }
        drop(running);
        self.calls.tasks.down();
    }
}

impl Calls {
    pub(crate) fn new(at_once: u32) -> Calls {
        let permits = if at_once == 0 { Semaphore::MAX_PERMITS } else { at_once as usize };
        Calls {
            running: Mutex::default(),
            next: AtomicU64::new(0),
            tasks: TaskTracker::default(),
            permits: Semaphore::new(permits),
        }
    }

    /// Registers a call, unless this attempt or a later one is registered. `spawn` starts its task,
    /// which holds the registration.
    pub(crate) fn register(
        self: &Arc<Self>,
        effect: EffectId,
        working: Working,
        spawn: impl FnOnce(Registration) -> AbortHandle,
    ) {
        let key = (working.run.clone(), effect);
        // Keep the map locked until the call is in it: its task may end at once.
        let mut running = lock(&self.running);
        if running.get(&key).is_some_and(|call| call.working.attempt >= working.attempt) {
            return;
        }
        self.tasks.up();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let task = spawn(Registration { calls: self.clone(), key: key.clone(), number });
        running.insert(key, RunningCall { number, task, working, begun: false, answered: false });
    }

    /// Whether an effect has a call.
    pub(crate) fn has(&self, run: &Arc<str>, effect: EffectId) -> bool {
        lock(&self.running).contains_key(&(run.clone(), effect))
    }

    /// Returns the running calls of a run.
    pub(crate) fn of_run(&self, run: &str) -> Vec<Working> {
        let run: Arc<str> = run.into();
        lock(&self.running).range((run.clone(), FIRST)..=(run, LAST)).map(|(_, c)| c.working.clone()).collect()
    }

    /// Returns the running calls of all runs.
    pub(crate) fn all(&self) -> Vec<Working> {
        lock(&self.running).values().map(|c| c.working.clone()).collect()
    }

    /// Records that an attempt begins. Returns `None` if the call has been stopped.
    pub(crate) fn begin_attempt(
        &self,
        run: &Arc<str>,
        effect: EffectId,
        attempt: u32,
        since: Timestamp,
    ) -> Option<Working> {
        let mut running = lock(&self.running);
        let call = running.get_mut(&(run.clone(), effect)).filter(|call| call.working.attempt == attempt)?;
        call.begun = true;
        call.working.since = since;
        Some(call.working.clone())
    }

    /// Notes that a call has an answer for its run.
    pub(crate) fn note_answer(&self, run: &Arc<str>, effect: EffectId, attempt: u32) {
        let mut running = lock(&self.running);
        let call = running.get_mut(&(run.clone(), effect)).filter(|call| call.working.attempt == attempt);
        call.into_iter().for_each(|call| call.answered = true);
    }

    /// Drops a call whose attempt has not begun.
    pub(crate) fn hold(&self, run: &Arc<str>, effect: EffectId) {
        let mut running = lock(&self.running);
        let key = (run.clone(), effect);
        if running.get(&key).is_some_and(|call| !call.begun)
            && let Some(call) = running.remove(&key)
        {
            call.task.abort();
        }
    }

    /// Stops a call.
    pub(crate) fn cancel(&self, run: &Arc<str>, effect: EffectId, publisher: &Publisher) {
        let stopped = lock(&self.running).remove(&(run.clone(), effect));
        if let Some(call) = stopped {
            call.end(publisher);
        }
    }

    /// Stops the calls of a run, and returns their effects.
    pub(crate) fn stop(&self, run: &Arc<str>) -> Vec<EffectId> {
        let mut running = lock(&self.running);
        let of_run = running.extract_if((run.clone(), FIRST)..=(run.clone(), LAST), |_, _| true);
        let stop = |((_, effect), call): (_, RunningCall)| {
            call.task.abort();
            effect
        };
        of_run.map(stop).collect()
    }

    /// Stops the calls of a run for which `wanted` returns false.
    pub(crate) fn retain(&self, run: &Arc<str>, publisher: &Publisher, wanted: impl Fn(EffectId) -> bool) {
        let unwanted: Vec<EffectId> = {
            let running = lock(&self.running);
            let of_run = running.range((run.clone(), FIRST)..=(run.clone(), LAST));
            of_run.map(|((_, effect), _)| *effect).filter(|e| !wanted(*e)).collect()
        };
        for effect in unwanted {
            self.cancel(run, effect, publisher);
        }
    }

    pub(crate) fn abort_all(&self) {
        for call in lock(&self.running).values() {
            call.task.abort();
        }
    }
}
