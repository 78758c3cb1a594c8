//! The service `Actor`: makes attempts of invocations.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use charter_actors::{ActorConfig, Call, Executor, Fault, perform};
use charter_kernel::Timestamp;
use charter_run::{Input, InvocationRequest};
use charter_runtime::Charter;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::actor_host::ActorHost;
use crate::charters::Charters;
use crate::object::RunsClient;
use crate::wire::{AnswerRequest, Attempt, Doc, Outcome, WaitsRequest};

/// The end of an attempt, as the engine keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Ended {
    at: Timestamp,
    /// `None`: the answer comes from elsewhere.
    outcome: Option<Outcome>,
    again_at: Option<Timestamp>,
}

/// Who has begun an attempt that must not be made twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Begun {
    process: String,
    attempt: String,
}

/// Makes attempts.
#[derive(Clone)]
pub(crate) struct Actors {
    charters: Arc<Charters>,
    host: Arc<ActorHost>,
    /// The id of this process; each start has another one.
    process: Arc<str>,
    /// The attempts that this process has begun and that must not be made twice.
    begun: Arc<Mutex<BTreeSet<String>>>,
    permits: Arc<Semaphore>,
}

impl Actors {
    pub(crate) fn new(charters: Arc<Charters>, host: Arc<ActorHost>) -> Actors {
        let at_once = charters.options.limits.calls_at_once;
        let permits = Arc::new(Semaphore::new(usize::try_from(at_once).unwrap_or(Semaphore::MAX_PERMITS)));
        let process = uuid::Uuid::now_v7().to_string().into();
        Actors { charters, host, process, begun: Arc::default(), permits }
    }
}

#[restate_sdk::service(
    name = "Actor",
    ingress_private,
    journal_retention = "0s",
    inactivity_timeout = "1 day",
    abort_timeout = "1 day",
    client_visibility = "pub(crate)",
    invocation_retry_policy(
        initial_interval = "50ms",
        factor = 2.0,
        max_interval = "2s",
        max_attempts = 9007199254740991
    )
)]
impl Actors {
    /// Makes one attempt, and gives its result to the run.
    #[handler]
    async fn perform(&self, ctx: Context<'_>, Json(attempt): Json<Attempt>) -> HandlerResult<()> {
        let work = self.work(attempt.clone(), ctx.invocation_id())?;
        let begun = match work.idempotent {
            true => None,
            // The engine repeats interrupted work without saying so. This names the process that
            // does it, durably and before it begins.
            false => {
                let mine = Begun { process: self.process.to_string(), attempt: ctx.invocation_id().to_owned() };
                let Json(begun) = ctx.run(|| async { Ok(Json(mine)) }).name("begin").await?;
                Some(begun)
            }
        };
        let Json(ended) = ctx.run(|| async { Ok(Json(work.make(begun).await)) }).name("attempt").await?;
        if let Some(outcome) = ended.outcome {
            let Ended { at, again_at, .. } = ended;
            let Attempt { effect, attempt: number, run, .. } = attempt;
            let answer = AnswerRequest { at, effect, attempt: number, outcome, again_at };
            ctx.object_client::<RunsClient>(run).answer(Json(answer)).send();
        }
        Ok(())
    }
}

/// An attempt that can be made.
struct Work {
    actors: Actors,
    charter: Arc<Charter>,
    request: InvocationRequest,
    /// The invocation of the engine that makes it.
    engine_id: String,
    run: Arc<str>,
    executor: Result<(Arc<ActorConfig>, Arc<dyn Executor>), Fault>,
    idempotent: bool,
}

impl Actors {
    fn work(&self, attempt: Attempt, invocation_id: &str) -> HandlerResult<Work> {
        let Attempt { run, charter, effect, invocation, src, input: Doc(input), attempt } = attempt;
        let charter = self.charters.get(charter).cloned().ok_or_else(|| {
            std::io::Error::other(format!("no endpoint serves the charter {charter} of the run `{run}`"))
        })?;
        let executor = self.executor(&charter, &src);
        let idempotent = executor
            .as_ref()
            .map_or(true, |(actor, executor)| actor.policy.idempotent.unwrap_or_else(|| executor.is_idempotent()));
        let request = InvocationRequest {
            effect: effect.id(),
            invocation: invocation.into(),
            src: src.into(),
            input: Arc::new(input),
            attempt,
            not_before: Timestamp::MIN,
        };
        let (run, engine_id) = (run.into(), invocation_id.to_owned());
        Ok(Work { actors: self.clone(), charter, request, engine_id, run, executor, idempotent })
    }

    fn executor(&self, charter: &Charter, src: &str) -> Result<(Arc<ActorConfig>, Arc<dyn Executor>), Fault> {
        let decl = charter.machine().definition().actors.get(src);
        let decl = decl.ok_or_else(|| Fault::new("config", format!("the charter has no actor `{src}`")))?;
        let actor = ActorConfig::read(src, decl)?;
        let executor = self.charters.options.executors.get(&*actor.kind).cloned();
        let executor = executor.ok_or_else(|| Fault::no_executor(src, &actor.kind))?;
        Ok((Arc::new(actor), executor))
    }

    /// Whether this process begins the attempt now, for the first time.
    fn begins(&self, begun: &Begun) -> bool {
        let mut known = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        *begun.process == *self.process && known.insert(begun.attempt.clone())
    }
}

impl Work {
    async fn make(self, begun: Option<Begun>) -> Ended {
        let result = match &begun {
            Some(begun) if !self.actors.begins(begun) => Err(Fault::unknown(&self.request.src)),
            _ => {
                let (effect, attempt) = (self.request.effect.into(), self.request.attempt);
                let asked = WaitsRequest { effect, attempt, invocation: self.engine_id.clone() };
                tokio::select! {
                    result = self.attempt() => result,
                    // Dropping the attempt stops it.
                    () = self.actors.host.clone().not_awaited(self.run.clone(), asked) => {
                        return Ended { at: self.actors.host.now(), outcome: None, again_at: None };
                    }
                }
            }
        };
        let at = self.actors.host.now();
        let result = match result {
            Ok(charter_actors::Outcome::Waits) => return Ended { at, outcome: None, again_at: None },
            Ok(charter_actors::Outcome::Done(output)) => Ok(output),
            Err(fault) => Err(fault),
        };
        match Input::attempted(self.charter.machine(), &self.run, &self.request, result, at) {
            Input::Outcome { outcome, again_at, .. } => Ended { at, outcome: Some(outcome.into()), again_at },
            _ => Ended { at, outcome: None, again_at: None },
        }
    }

    /// Calls the executor, within its time limit.
    async fn attempt(&self) -> Result<charter_actors::Outcome, Fault> {
        let (actor, executor) = self.executor.clone()?;
        let Ok(_permit) = self.actors.permits.acquire().await else {
            return Err(Fault::new("closing", "this endpoint ends").retryable());
        };
        let InvocationRequest { effect, invocation, input, attempt, .. } = self.request.clone();
        let (host, folder) = (self.actors.host.clone(), Arc::new(self.charter.folder().clone()));
        let mut call = Call::new(host, actor.clone(), folder, self.run.clone(), effect, invocation, input);
        call.attempt = attempt;
        let limit = actor.policy.attempt_timeout.or(executor.attempt_timeout());
        call.deadline = limit.map_or(Timestamp::MAX, |ms| self.actors.host.now().saturating_add(ms));
        let mut work = perform(executor.as_ref(), call);
        let guarded =
            std::future::poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
                Ok(poll) => poll,
                Err(_) => Poll::Ready(Err(Fault::new("panic", "the executor panicked; this is a bug in it"))),
            });
        let Some(limit) = limit else {
            return guarded.await;
        };
        let limit = Duration::from_millis(u64::try_from(limit.0).unwrap_or_default());
        tokio::time::timeout(limit, guarded).await.unwrap_or_else(|_| {
            let message = format!("an attempt of `{}` exceeded its time limit (`attemptTimeout`)", actor.name);
            Err(Fault::new("timeout", message).retryable())
        })
    }
}
