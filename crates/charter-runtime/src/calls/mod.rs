//! Calls of executors: they start after the record that requests them is committed, failed attempts
//! are repeated, and calls that the run no longer waits for are stopped.

mod attempts;
pub(crate) mod registry;

use std::sync::Arc;

use charter_actors::{Call, Fault};
use charter_journal::StoreError;
use charter_kernel::{EffectId, Timestamp};
use serde_json::Value as Json;

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::events::Working;
use crate::inner::{Inner, RETRY_WRITE};
use crate::request::{Input, Receipt};
use attempts::Work;
use registry::InvocationRequest;

impl Inner {
    /// Starts the call of an actor.
    pub(crate) fn invoke(self: &Arc<Self>, charter: &Arc<Charter>, run: &Arc<str>, request: InvocationRequest) {
        if self.is_closing() {
            // It is open in the journal, and resumed when that is opened again.
            return;
        }
        let InvocationRequest { effect, invocation, src, input, attempt, not_before } = request;
        let found = charter.actors.get(src.as_ref()).map(|a| (a.clone(), self.executors.get(a.kind.as_ref()).cloned()));
        let Some((actor, Some(executor))) = found else {
            let kind = found.map(|(a, _)| a.kind.to_string()).unwrap_or_default();
            let fault = Fault::new("no-executor", format!("this host has no executor for `{src}` (kind `{kind}`)"));
            let (inner, run) = (self.clone(), run.clone());
            let activity = self.clock.work();
            self.handle.spawn(async move {
                inner.give(&run, &invocation, effect, Err(fault.json())).await;
                drop(activity);
            });
            return;
        };
        let folder = charter.folder.clone();
        let mut call = Call::new(self.clone(), actor.clone(), folder, run.clone(), effect, invocation, input);
        call.attempt = attempt;
        let working = Working {
            run: run.clone(),
            effect: call.effect.clone(),
            invocation: call.invocation.clone(),
            src,
            kind: actor.kind.clone(),
            attempt,
            since: self.clock.now(),
        };
        let max_data = charter.machine.definition().limits.data;
        let work = Work { inner: self.clone(), call, actor, executor, max_data };
        self.calls.register(effect, working, |registration| {
            // Dropped in this order, also if the task never runs: when the last registration is
            // gone, nothing is left of the calls.
            let parts = (work, self.clock.work(), registration);
            let task = self.handle.spawn(async move {
                let (work, activity, registration) = parts;
                work.run(not_before, activity).await;
                drop(registration);
            });
            task.abort_handle()
        });
    }

    /// Gives an answer to a run. An answer that the run refuses becomes a failure, so that the
    /// charter can react to it.
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
            // The work is done, so its answer waits until there is space for the record.
            let later = self.clock.now().saturating_add(RETRY_WRITE);
            self.clock.sleep_until(later).await;
            answer = self.answer(run, invocation, effect, outcome.clone()).await;
        }
        let fault = match answer {
            Ok(receipt) if receipt.is_refused() => {
                let why = receipt.explanation(None).map(|r| format!("{} ({})", r.message, r.code)).unwrap_or_default();
                Fault::new("refused", format!("the run refused the answer: {why}"))
            }
            Ok(_) => return,
            Err(RuntimeError::Store(StoreError::TooLarge { size, limit, .. })) => Fault::new(
                "too-large",
                format!("the record of the answer would have {size} bytes; the limit is {limit}"),
            ),
            // The mailbox has reported it.
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
                "the run refuses both the answer of `{invocation}` and its failure, and keeps waiting: {}",
                fault.message
            ),
        );
    }

    /// Records that an attempt has failed.
    async fn note(self: &Arc<Self>, call: &Call, error: Json, retry_at: Timestamp) -> Result<Receipt, RuntimeError> {
        let (invocation, effect, attempt) = (call.invocation.to_string(), call.effect_id, call.attempt);
        self.ask_self(&call.run, |reply| Input::Attempt { invocation, effect, attempt, error, retry_at, reply }).await
    }

    async fn answer(
        self: &Arc<Self>,
        run: &Arc<str>,
        invocation: &str,
        effect: EffectId,
        outcome: Result<Json, Json>,
    ) -> Result<Receipt, RuntimeError> {
        let invocation = invocation.to_owned();
        self.ask_self(run, |reply| Input::Answer { invocation, effect, outcome, person: None, reply }).await
    }
}
