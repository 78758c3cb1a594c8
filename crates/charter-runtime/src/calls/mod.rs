//! Calls of executors: a call starts after the record that requests it is committed, is repeated if
//! an attempt fails, and is stopped if the run no longer waits for it.

mod attempts;
pub(crate) mod registry;

use std::sync::Arc;

use charter_actors::{Call, Fault};
use charter_journal::{StoreError, attempt_waits, waiting_attempts};
use charter_kernel::{EffectId, Timestamp};
use serde_json::Value as Json;

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::events::Working;
use crate::inner::{Inner, RETRY_WRITE};
use crate::sync::lock;
use attempts::Work;
use charter_run::{Input, InvocationRequest};

impl Inner {
    /// Starts the call of an actor. `fresh`: the record that was just committed requests it, so
    /// that nothing is noted of it.
    pub(crate) fn invoke(
        self: &Arc<Self>,
        charter: &Arc<Charter>,
        run: &Arc<str>,
        request: InvocationRequest,
        fresh: bool,
    ) {
        if self.is_closing() {
            // The invocation stays open in the journal and is resumed when the journal is opened
            // again.
            return;
        }
        let InvocationRequest { effect, invocation, src, input, attempt, not_before } = request;
        if lock(&self.stopped).contains(run.as_ref()) {
            self.note_open(run, effect);
            return;
        }
        let found = charter.actors.get(src.as_ref()).map(|a| (a.clone(), self.executors.get(a.kind.as_ref()).cloned()));
        let Some((actor, Some(executor))) = found else {
            let kind = found.map(|(a, _)| a.kind.to_string()).unwrap_or_default();
            let fault = Fault::no_executor(&src, &kind);
            let (inner, run) = (self.clone(), run.clone());
            let activity = self.clock.work();
            self.handle.spawn(async move {
                inner.give(&run, effect, attempt, Err(fault.json())).await;
                drop(activity);
            });
            return;
        };
        let folder = charter.folder.clone();
        let mut call = Call::new(self.clone(), actor.clone(), folder, run.clone(), effect, invocation, input);
        call.attempt = attempt;
        let now = self.clock.now();
        let working = Working {
            run: run.clone(),
            effect: call.effect.clone(),
            invocation: call.invocation.clone(),
            src,
            kind: actor.kind.clone(),
            attempt,
            since: if not_before == Timestamp::MAX { now } else { now.max(not_before) },
        };
        let waits = !fresh && !self.may_repeat(charter, &working.src);
        let work = Work { inner: self.clone(), call, actor, executor, machine: charter.machine.clone(), waits };
        self.calls.register(effect, working, |registration| {
            let activity = self.clock.work();
            // Calls begin in the order in which they are requested.
            let turn = self.clock.turn();
            // These are dropped in this order, even if the task never runs: once the last
            // registration has been dropped, all calls have been cleaned up.
            let parts = (work, turn, activity, registration);
            let task = self.handle.spawn(async move {
                let (work, turn, activity, registration) = parts;
                turn.await;
                work.run(not_before, activity).await;
                drop(registration);
            });
            task.abort_handle()
        });
    }

    /// Notes that a waiting attempt begins: if this host ends now, nobody knows whether it took
    /// effect. Returns false if that cannot be written; then it must not begin.
    async fn note_begin(self: &Arc<Self>, run: &Arc<str>, effect: EffectId) -> bool {
        loop {
            let id = run.to_string();
            let note = move |inner: &Inner| match waiting_attempts(inner.store.as_ref(), &id)?.contains_key(&effect) {
                true => inner.store.put_host_state(vec![attempt_waits(&id, effect, None)]),
                false => Ok(()),
            };
            match self.with_store(note).await {
                Ok(Ok(())) => return true,
                Ok(Err(StoreError::NotWritten { .. })) => {
                    let later = self.clock.now().saturating_add(RETRY_WRITE);
                    self.clock.sleep_until(later).await;
                }
                Ok(Err(e)) => {
                    self.publisher.trouble(Some(run), e.to_string());
                    return false;
                }
                Err(_) => return false,
            }
        }
    }

    /// Notes an invocation that stays open until its run is resumed.
    pub(crate) fn note_open(&self, run: &str, effect: EffectId) {
        lock(&self.interrupted).entry(run.to_owned()).or_default().insert(effect);
    }

    /// Stops the calls of a run, and begins none until it is resumed.
    pub(crate) fn stop(&self, run: &Arc<str>) {
        lock(&self.stopped).insert(run.to_string());
        for effect in self.calls.stop(run) {
            self.note_open(run, effect);
        }
    }

    /// Delivers an answer to a run.
    pub(crate) async fn give(
        self: &Arc<Self>,
        run: &Arc<str>,
        effect: EffectId,
        attempt: u32,
        outcome: Result<Json, Json>,
    ) {
        self.calls.note_answer(run, effect, attempt);
        self.report(run, Input::Outcome { effect, attempt, outcome, again_at: None }).await;
    }

    /// Records that an attempt has failed and another one follows.
    async fn note(self: &Arc<Self>, call: &Call, error: &Json, again_at: Timestamp) {
        let (effect, attempt, outcome) = (call.effect_id, call.attempt, Err(error.clone()));
        self.report(&call.run, Input::Outcome { effect, attempt, outcome, again_at: Some(again_at) }).await;
    }

    async fn report(self: &Arc<Self>, run: &Arc<str>, input: Input) {
        loop {
            match self.ask_self(run, input.clone()).await {
                Err(RuntimeError::Store(StoreError::NotWritten { .. })) => {
                    // The work is done, so keep its result until there is space for the record.
                    let later = self.clock.now().saturating_add(RETRY_WRITE);
                    self.clock.sleep_until(later).await;
                }
                // Other errors have been reported by the mailbox.
                _ => return,
            }
        }
    }
}
