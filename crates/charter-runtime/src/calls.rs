//! Actors at work: started after the commit that asks for them, tried again when they fail, stopped when nobody waits any more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use charter_actors::{Call, Fault};
use charter_journal::StoreError;
use charter_kernel::EffectId;
use serde_json::Value as Json;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::AbortHandle;

use crate::attempts::Work;
use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::mailbox::{AGAIN, Queued};
use crate::publish::{Publisher, RuntimeEvent, Working};
use crate::runtime::{Inner, Input, Receipt, lock};
use crate::task_tracker::TaskTracker;

/// Actors at work.
pub(crate) struct Calls {
    live: Mutex<BTreeMap<(Arc<str>, EffectId), Live>>,
    pub(crate) tally: TaskTracker,
    pub(crate) permits: Semaphore,
}

struct Live {
    task: AbortHandle,
    working: Working,
}

const FIRST: EffectId = EffectId { seq: 0, index: 0 };
const LAST: EffectId = EffectId { seq: u64::MAX, index: u32::MAX };

impl Calls {
    pub(crate) fn new(at_once: u32) -> Calls {
        let permits = if at_once == 0 { Semaphore::MAX_PERMITS } else { at_once as usize };
        Calls { live: Mutex::default(), tally: TaskTracker::default(), permits: Semaphore::new(permits) }
    }

    /// What is at work for a run.
    pub(crate) fn of_run(&self, run: &str) -> Vec<Working> {
        let run: Arc<str> = run.into();
        lock(&self.live).range((run.clone(), FIRST)..=(run, LAST)).map(|(_, l)| l.working.clone()).collect()
    }

    /// Stops one.
    pub(crate) fn cancel(&self, run: &Arc<str>, effect: EffectId, publisher: &Publisher) {
        let stopped = lock(&self.live).remove(&(run.clone(), effect));
        if let Some(live) = stopped {
            live.task.abort();
            publisher.tell(RuntimeEvent::Stopped(live.working));
        }
    }

    /// Stops those of a run that are not wanted.
    pub(crate) fn keep(&self, run: &Arc<str>, publisher: &Publisher, wanted: impl Fn(EffectId) -> bool) {
        let unwanted: Vec<EffectId> = {
            let live = lock(&self.live);
            let of_run = live.range((run.clone(), FIRST)..=(run.clone(), LAST));
            of_run.map(|((_, effect), _)| *effect).filter(|e| !wanted(*e)).collect()
        };
        for effect in unwanted {
            // One whose answer has just been recorded is over, not stopped.
            let live = lock(&self.live).remove(&(run.clone(), effect));
            if let Some(live) = live.filter(|l| !l.task.is_finished()) {
                live.task.abort();
                publisher.tell(RuntimeEvent::Stopped(live.working));
            }
        }
    }

    pub(crate) fn abort_all(&self) {
        for live in lock(&self.live).values() {
            live.task.abort();
        }
    }

    pub(crate) fn attempt(&self, run: &Arc<str>, effect: EffectId, attempt: u32, since: i64) -> Option<Working> {
        let mut live = lock(&self.live);
        let working = &mut live.get_mut(&(run.clone(), effect))?.working;
        working.attempt = attempt;
        working.since = since;
        Some(working.clone())
    }
}

/// What a run asks of an actor.
pub(crate) struct InvocationRequest {
    pub(crate) effect: EffectId,
    pub(crate) invocation: Arc<str>,
    pub(crate) src: Arc<str>,
    pub(crate) input: Arc<Json>,
    /// The attempt to begin with.
    pub(crate) attempt: u32,
    /// When it may begin, milliseconds since 1970.
    pub(crate) not_before: i64,
}

/// Held by a call's task as long as it exists, however it ends.
struct Existing {
    calls: Arc<Calls>,
    key: (Arc<str>, EffectId),
}

impl Drop for Existing {
    fn drop(&mut self) {
        lock(&self.calls.live).remove(&self.key);
        self.calls.tally.down();
    }
}

impl Inner {
    /// Sets an actor to work.
    pub(crate) fn invoke(self: &Arc<Self>, charter: &Arc<Charter>, run: &Arc<str>, asked: InvocationRequest) {
        if self.is_closing() {
            // It is open in the journal, and taken up when that is opened again.
            return;
        }
        let InvocationRequest { effect: id, invocation, src, input, attempt, not_before } = asked;
        let found = charter.actors.get(src.as_ref()).map(|s| (s.clone(), self.executors.get(s.kind.as_ref()).cloned()));
        let Some((service, Some(executor))) = found else {
            let kind = found.map(|(s, _)| s.kind.to_string()).unwrap_or_default();
            let fault = Fault::new("no-executor", &format!("this host has no executor for `{src}` (kind `{kind}`)"));
            let (inner, run) = (self.clone(), run.clone());
            let work = self.clock.work();
            self.handle.spawn(async move {
                inner.give(&run, &invocation, id, Err(fault.json())).await;
                drop(work);
            });
            return;
        };
        let mut call =
            Call::new(self.clone(), service.clone(), charter.folder.clone(), run.clone(), id, invocation, input);
        call.attempt = attempt;
        let working = Working {
            run: run.clone(),
            effect: call.effect.clone(),
            invocation: call.invocation.clone(),
            src: src.clone(),
            kind: service.kind.clone(),
            attempt,
            since: self.clock.now(),
        };
        let max_data = charter.machine.definition().limits.data;
        let work = Work { inner: self.clone(), call, actor: service, executor, max_data };
        let key = (run.clone(), id);
        let mut live = lock(&self.calls.live);
        self.calls.tally.up();
        let existing = Existing { calls: self.calls.clone(), key: key.clone() };
        // Dropped in this order, also if the task never runs: whoever waits for the last call to end finds nothing left of it.
        let parts = (work, self.clock.work(), existing);
        let task = self.handle.spawn(async move {
            let (work, activity, existing) = parts;
            work.run(not_before, activity).await;
            drop(existing);
        });
        live.insert(key, Live { task: task.abort_handle(), working });
    }

    /// Gives an answer to a run. What the run refuses becomes a failure, so that the charter hears of it.
    pub(crate) async fn give(
        self: &Arc<Self>,
        run: &Arc<str>,
        invocation: &str,
        effect: EffectId,
        outcome: Result<Json, Json>,
    ) {
        let failed = outcome.is_err();
        let mut answer = self.answer(run, invocation, effect, outcome.clone()).await;
        while let Err(RuntimeError::Store(StoreError::NotWritten { .. })) = &answer {
            // The work is done: its answer waits until there is space for it.
            let later = self.clock.now().saturating_add(AGAIN);
            self.clock.sleep_until(later).await;
            answer = self.answer(run, invocation, effect, outcome.clone()).await;
        }
        let fault = match answer {
            Ok(receipt) if receipt.is_refused() => {
                let why = receipt.refusal().map(|r| format!("{} ({})", r.message, r.code)).unwrap_or_default();
                Fault::new("refused", &format!("the run refuses the answer: {why}"))
            }
            Ok(_) => return,
            Err(RuntimeError::Store(StoreError::TooLarge { size, limit, .. })) => Fault::new(
                "too-large",
                &format!("the record of the answer would have {size} bytes; the most is {limit}"),
            ),
            // Said already by whoever could not write it.
            Err(_) => return,
        };
        if !failed {
            let again = self.answer(run, invocation, effect, Err(fault.json())).await;
            if again.is_ok_and(|r| !r.is_refused()) {
                return;
            }
        }
        self.publisher.trouble(
            Some(run),
            format!(
                "the run takes neither the answer of `{invocation}` nor its failure; it waits on: {}",
                fault.message
            ),
        );
    }

    /// Tells the journal that an attempt has failed.
    pub(crate) async fn note(
        self: &Arc<Self>,
        call: &Call,
        error: Json,
        retry_at: i64,
    ) -> Result<Receipt, RuntimeError> {
        let (reply, receiver) = oneshot::channel();
        let mail = Input::Attempt {
            invocation: call.invocation.to_string(),
            effect: call.effect_id,
            attempt: call.attempt,
            error,
            retry_at,
            reply,
        };
        self.deliver(&call.run, Queued::new(mail, self.clock.work()), false)?;
        receiver.await.unwrap_or(Err(RuntimeError::Closing))
    }

    async fn answer(
        self: &Arc<Self>,
        run: &Arc<str>,
        invocation: &str,
        effect: EffectId,
        outcome: Result<Json, Json>,
    ) -> Result<Receipt, RuntimeError> {
        let (reply, receiver) = oneshot::channel();
        let mail = Input::Answer { invocation: invocation.to_owned(), effect, outcome, person: None, reply };
        self.deliver(run, Queued::new(mail, self.clock.work()), false)?;
        receiver.await.unwrap_or(Err(RuntimeError::Closing))
    }
}
