//! Executes an attempt of an invocation.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use charter_actors::{ActivityGuard, ActorConfig, Call, Executor, Fault, Outcome, perform};
use charter_kernel::{Machine, Timestamp};
use charter_run::after_failure;
use serde_json::Value as Json;
use tracing::Instrument as _;

use crate::events::RuntimeEvent;
use crate::inner::Inner;

/// An attempt that is requested.
pub(crate) struct Work {
    pub(crate) inner: Arc<Inner>,
    /// The attempt.
    pub(crate) call: Call,
    pub(crate) actor: Arc<ActorConfig>,
    pub(crate) executor: Arc<dyn Executor>,
    /// The machine of the run's charter.
    pub(crate) machine: Arc<Machine>,
    /// Whether it may be noted that the attempt waits.
    pub(crate) waits: bool,
}

impl Work {
    /// Makes the attempt, which starts no earlier than `not_before`, and gives its result to the
    /// run: the answer, or a failure after which the run requests the next attempt.
    pub(crate) async fn run(mut self, not_before: Timestamp, activity: ActivityGuard) {
        let inner = self.inner.clone();
        let clock = &inner.clock;
        let policy = &self.actor.clone().policy;
        let mut activity = Some(activity);
        if not_before > clock.now() {
            clock.sleep_until(not_before).await;
        }
        let permit = match inner.calls.permits.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                // Waiting for a permit does not count as activity.
                activity.take();
                let Ok(permit) = inner.calls.permits.acquire().await else {
                    return;
                };
                activity = Some(clock.work());
                permit
            }
        };
        if self.waits && !inner.note_begin(&self.call.run, self.call.effect_id).await {
            return;
        }
        let now = clock.now();
        let call = &mut self.call;
        let Some(working) = inner.calls.begin_attempt(&call.run, call.effect_id, call.attempt, now) else {
            return;
        };
        inner.publisher.publish(RuntimeEvent::Began(working.clone()));
        let limit = policy.attempt_timeout.or(self.executor.attempt_timeout());
        call.deadline = limit.map_or(Timestamp::MAX, |ms| now.saturating_add(ms));
        let span = crate::trace::attempt(&working);
        let result = self.attempt().instrument(span.clone()).await;
        crate::trace::ended(&span, &result);
        drop(span);
        let mut results = vec![result];
        if inner.inject.twice {
            results.push(self.attempt().await);
        }
        drop(permit);
        let call = &mut self.call;
        let mut answers: Vec<Result<Outcome, Json>> = Vec::new();
        let mut again = None;
        for result in results {
            answers.push(result.map_err(|fault| {
                let (error, at) = after_failure(&policy.retry, &call.effect, call.attempt, fault, clock.now());
                if answers.is_empty() {
                    again = at;
                }
                error
            }));
        }
        if let (Some(Err(error)), Some(at)) = (answers.first(), again) {
            let paused = inner.view_in_memory(&call.run).is_some_and(|seen| seen.snapshot.paused_at().is_some());
            let start = if paused { Timestamp::MAX } else { at };
            inner.publisher.publish(RuntimeEvent::Retrying { work: working, error: error.clone(), at: start });
            // The record requests the next attempt.
            inner.note(call, error, at).await;
            drop(activity);
            return;
        }
        if answers.iter().any(|a| matches!(a, Ok(Outcome::Waits))) {
            inner.publisher.publish(RuntimeEvent::Waiting(working));
            return;
        }
        let mut answers = answers.into_iter().map(|answer| {
            answer.map(|outcome| match outcome {
                Outcome::Done(output) => output,
                Outcome::Waits => Json::Null,
            })
        });
        let give = |outcome| inner.give(&call.run, call.effect_id, call.attempt, outcome);
        match (answers.next(), answers.next()) {
            (Some(first), Some(second)) => drop(tokio::join!(give(first), give(second))),
            (Some(only), None) => give(only).await,
            (None, _) => {}
        }
        drop(activity);
    }

    /// Makes one attempt within its time limit, and checks the answer.
    async fn attempt(&self) -> Result<Outcome, Fault> {
        let call = &self.call;
        let mut alarm = self.inner.clock.alarm_at(call.deadline);
        let mut work = perform(self.executor.as_ref(), call.clone());
        let guarded =
            std::future::poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
                Ok(poll) => poll,
                Err(_) => Poll::Ready(Err(Fault::new("panic", "the executor panicked; this is a bug in it"))),
            });
        let result = tokio::select! {
            biased;
            result = guarded => Some(result),
            () = &mut alarm => None,
        };
        // Drop the work before the alarm: a virtual clock does not advance until the alarm is
        // dropped.
        drop(work);
        drop(alarm);
        let Some(result) = result else {
            let message = format!("an attempt of `{}` exceeded its time limit (`attemptTimeout`)", call.name());
            return Err(Fault::new("timeout", &message).retryable());
        };
        let outcome = result?;
        if let Outcome::Done(output) = &outcome {
            self.machine.check_answer(call.name(), output)?;
        }
        Ok(outcome)
    }
}
