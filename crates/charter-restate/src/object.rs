//! The object `Run`: applies the inputs of one run, one at a time.

use std::sync::Arc;
use std::time::Duration;

use charter_journal::{Record, RunInfo};
use charter_kernel::{EffectId, Timestamp};
use charter_run::{
    Action, Bounds, EventInput, Handled, IdState, Input, InvocationRequest, Kept, Known, Reply, Run as State, Task,
    tasks,
};
use charter_runtime::{Charter, RuntimeError};
use restate_sdk::prelude::*;

use crate::actor::ActorsClient;
use crate::charters::Charters;
use crate::wire::{
    Answer, AnswerRequest, Attempt, Doc, DueRequest, EventRequest, Head, SettleRequest, StartRequest, WaitsRequest,
};

/// State key of the run between two inputs.
pub(crate) const HEAD: &str = "head";
/// State key of what lists of runs show.
pub(crate) const INFO: &str = "info";
/// State key of the open tasks; none if there are none.
pub(crate) const TASKS: &str = "tasks";

/// State key of a record.
pub(crate) fn record_key(seq: u64) -> String {
    format!("r/{seq:012}")
}

fn work_key(effect: EffectId) -> String {
    format!("w/{}/{}", effect.seq, effect.index)
}

/// Runs, as objects of the engine.
#[derive(Clone)]
pub(crate) struct Runs {
    pub(crate) charters: Arc<Charters>,
}

#[restate_sdk::object(
    name = "Run",
    lazy_state,
    journal_retention = "0s",
    client_visibility = "pub(crate)",
    invocation_retry_policy(
        initial_interval = "50ms",
        factor = 2.0,
        max_interval = "2s",
        max_attempts = 9007199254740991
    )
)]
impl Runs {
    #[handler]
    async fn start(&self, ctx: ObjectContext<'_>, Json(r): Json<StartRequest>) -> HandlerResult<Json<Answer>> {
        let Some(charter) = self.charters.get(r.charter) else {
            return Ok(Json(failed(&RuntimeError::UnknownCharter(r.charter))));
        };
        let input = Input::Start { input: r.input.0, by: r.by, manifest: charter.manifest() };
        self.apply(&ctx, r.at, Some(charter.clone()), input).await
    }

    #[handler]
    async fn event(&self, ctx: ObjectContext<'_>, Json(r): Json<EventRequest>) -> HandlerResult<Json<Answer>> {
        let EventRequest { at, to, r#type, data: Doc(data), by, id, host_id, expected_seq } = r;
        self.apply(&ctx, at, None, Input::Event(EventInput { to, r#type, data, by, id, host_id, expected_seq })).await
    }

    #[handler]
    async fn settle(&self, ctx: ObjectContext<'_>, Json(r): Json<SettleRequest>) -> HandlerResult<Json<Answer>> {
        let input = Input::Settled { effect: r.effect.id(), outcome: r.outcome.result(), by: r.by };
        self.apply(&ctx, r.at, None, input).await
    }

    #[handler(ingress_private)]
    async fn answer(&self, ctx: ObjectContext<'_>, Json(r): Json<AnswerRequest>) -> HandlerResult<Json<Answer>> {
        let AnswerRequest { at, effect, attempt, outcome, again_at } = r;
        let input = Input::Outcome { effect: effect.id(), attempt, outcome: outcome.result(), again_at };
        self.apply(&ctx, at, None, input).await
    }

    #[handler(ingress_private)]
    async fn due(&self, ctx: ObjectContext<'_>, Json(r): Json<DueRequest>) -> HandlerResult<Json<Answer>> {
        self.apply(&ctx, r.at, None, Input::Due).await
    }

    /// Whether the run waits for an attempt. The engine's cancellation reaches a call only when it
    /// is over, so calls ask.
    #[handler]
    async fn waits(&self, ctx: SharedObjectContext<'_>, Json(r): Json<WaitsRequest>) -> HandlerResult<Json<bool>> {
        let effect = r.effect.id();
        let under_way: Option<String> = ctx.get(&work_key(effect)).await?;
        if under_way.is_some_and(|invocation| invocation == r.invocation) {
            return Ok(Json(true));
        }
        // A call may begin before its run has noted it.
        let head: Option<Json<Head>> = ctx.get(HEAD).await?;
        let Some(Json(head)) = head else {
            return Ok(Json(true));
        };
        let Some(charter) = self.charters.get(head.charter) else {
            return Ok(Json(true));
        };
        let run = State::restore(charter.machine(), ctx.key(), 0, Kept::read(head.kept)?)?;
        let next = run.request(effect).filter(|_| run.waits_for(effect));
        Ok(Json(next.is_some_and(|request| request.attempt == r.attempt)))
    }

    #[handler]
    async fn head(&self, ctx: SharedObjectContext<'_>) -> HandlerResult<Json<Option<Head>>> {
        let head: Option<Json<Head>> = ctx.get(HEAD).await?;
        Ok(Json(head.map(Json::into_inner)))
    }
}

fn failed(error: &RuntimeError) -> Answer {
    Answer { error: Some(error.into()), ..Answer::default() }
}

/// Everything that an input needs; the engine repeats it as it was.
struct Applying<'a, 'c> {
    ctx: &'a ObjectContext<'c>,
    charter: &'a Charter,
    at: Timestamp,
    /// The time for which the run has asked to be woken before.
    due: Option<Timestamp>,
    /// The time of its first record.
    started: Option<Timestamp>,
}

impl Runs {
    /// Applies an input that arrives `at`. A function of the input and the stored state: after a
    /// crash, the engine calls it again and compares what it writes.
    async fn apply(
        &self,
        ctx: &ObjectContext<'_>,
        at: Timestamp,
        start: Option<Arc<Charter>>,
        input: Input,
    ) -> HandlerResult<Json<Answer>> {
        let head: Option<Json<Head>> = ctx.get(HEAD).await?;
        let head = head.map(Json::into_inner);
        let charter = match (&head, start) {
            // The engine calls again until a deployment serves the charter; `status` shows it.
            (Some(head), _) => self.charters.get(head.charter).cloned().ok_or_else(|| {
                std::io::Error::other(format!("no endpoint serves the charter {} of this run", head.charter))
            })?,
            (None, Some(charter)) => charter,
            (None, None) => return Ok(Json(failed(&RuntimeError::UnknownRun(ctx.key().to_owned())))),
        };
        let (due, started, kept) = match head {
            Some(head) => (head.due, head.started, Kept::read(head.kept)?),
            None => (None, None, Kept::default()),
        };
        let last = kept.last.clone();
        let mut run = State::restore(charter.machine(), ctx.key(), 0, kept)?;
        let limits = &self.charters.options.limits;
        let bounds = Bounds { records: limits.records_per_run, data_bytes: limits.data_bytes };
        let known = known(ctx, &run, &input).await?;
        let before = tasks_of(&charter, &run);
        let is_due = matches!(input, Input::Due);
        let answered = if let Input::Outcome { effect, .. } = &input { Some(*effect) } else { None };
        let sender_id = if let Input::Event(EventInput { id, .. }) = &input { id.clone() } else { None };
        let handled = run.handle(charter.machine(), &bounds, at, input, known);
        let applying = Applying { ctx, charter: &charter, at, due, started };
        let answer = applying.write(&run, &handled, last, is_due, sender_id.as_deref());
        let after = tasks_of(&charter, &run);
        match (before == after, after.is_empty()) {
            (true, _) => {}
            (false, true) => ctx.clear(TASKS),
            (false, false) => ctx.set(TASKS, Json(after)),
        }
        for action in handled.appended.into_iter().flat_map(|appended| appended.actions) {
            applying.carry_out(action).await?;
        }
        if let Some(effect) = answered.filter(|effect| !run.waits_for(*effect)) {
            ctx.clear(&work_key(effect));
        }
        Ok(Json(answer))
    }
}

/// Looks up what is known about an input.
async fn known(ctx: &ObjectContext<'_>, run: &State, input: &Input) -> HandlerResult<Known> {
    let mut known = Known::default();
    match input {
        Input::Start { .. } if run.exists() => known.first = record(ctx, 0).await?,
        Input::Event(EventInput { id: Some(id), .. }) if run.id_state(id) != IdState::New => {
            let seq: Option<u64> = ctx.get(&format!("i/{id}")).await?;
            if let Some(seq) = seq {
                known.same = record(ctx, seq).await?;
            }
        }
        _ => {}
    }
    Ok(known)
}

async fn record(ctx: &ObjectContext<'_>, seq: u64) -> HandlerResult<Option<Record>> {
    let bytes: Option<Vec<u8>> = ctx.get(&record_key(seq)).await?;
    let text = bytes.map(String::from_utf8).transpose()?;
    Ok(text.as_deref().map(Record::read).transpose()?)
}

fn tasks_of(charter: &Charter, run: &State) -> Vec<Task> {
    run.snapshot().map(|snapshot| tasks(charter.machine(), snapshot, false)).unwrap_or_default()
}

impl Applying<'_, '_> {
    /// Writes the records and the state after them, asks to be woken, and makes the answer.
    fn write(
        &self,
        run: &State,
        handled: &Handled,
        before: Option<Record>,
        is_due: bool,
        sender_id: Option<&str>,
    ) -> Answer {
        let (ctx, due) = (self.ctx, self.due);
        let records = || handled.appended.iter().map(|appended| &appended.append.record);
        for record in records() {
            ctx.set(&record_key(record.seq), record.text().as_bytes().to_vec());
            if sender_id.is_some_and(|id| *id == *record.id) {
                ctx.set(&format!("i/{}", record.id), record.seq);
            }
        }
        let next = run.next_due();
        let made = records().next().is_some();
        if made || !handled.troubles.is_empty() || next != due {
            let last = records().last().cloned().or(before);
            let kept = run.kept(self.charter.machine(), last.clone()).json();
            let started = self.started.or_else(|| records().next().map(|first| first.at));
            ctx.set(HEAD, Json(Head { charter: self.charter.digest(), due: next, started, kept }));
            if let Some(last) = last.filter(|_| made) {
                let (run, charter, started) = (run.id().to_owned(), self.charter.digest(), started.unwrap_or(last.at));
                let (status, seq, hash, updated) = (last.status, last.seq, last.hash, last.at);
                ctx.set(INFO, Json(RunInfo { run, charter, status, seq, hash, started, updated }));
            }
        }
        if let Some(due) = next.filter(|next| due != Some(*next) || (is_due && *next <= self.at)) {
            // Nothing cancels it: one that is too early makes no record.
            let wait = delay(self.at, due);
            let _ = ctx.object_client::<RunsClient>(ctx.key()).due(Json(DueRequest { at: due })).send_after(wait);
        }
        let record =
            |record: &Record, repeated| Answer { record: Some(record.text().to_owned()), repeated, error: None };
        match &handled.reply {
            Reply::Made(index) => records().nth(*index).map(|made| record(made, false)).unwrap_or_default(),
            Reply::Repeated(first) => record(first, true),
            Reply::Denied(denied) => failed(&RuntimeError::denied(run.id(), denied.clone())),
            Reply::NotAwaited => failed(&RuntimeError::NotAwaited(run.id().to_owned())),
            _ => Answer::default(),
        }
    }

    async fn carry_out(&self, action: Action) -> HandlerResult<()> {
        match action {
            Action::Invoke(request) => self.invoke(request).await,
            Action::Stop(effect) | Action::Hold(effect) => {
                let key = work_key(effect);
                let invocation: Option<String> = self.ctx.get(&key).await?;
                if let Some(invocation) = invocation {
                    self.ctx.invocation_handle(invocation).cancel();
                    self.ctx.clear(&key);
                }
                Ok(())
            }
            // The records have what the charter emits and logs.
            _ => Ok(()),
        }
    }

    async fn invoke(&self, request: InvocationRequest) -> HandlerResult<()> {
        let InvocationRequest { effect, invocation, src, input, attempt, not_before } = request;
        let decl = self.charter.machine().definition().actors.get(src.as_ref());
        if decl.is_some_and(|decl| decl.kind == "human") {
            return Ok(());
        }
        let attempt = Attempt {
            run: self.ctx.key().to_owned(),
            charter: self.charter.digest(),
            effect: effect.into(),
            invocation: invocation.to_string(),
            src: src.to_string(),
            input: Doc((*input).clone()),
            attempt,
        };
        let call = self.ctx.service_client::<ActorsClient>().perform(Json(attempt));
        let sent = call.send_after(delay(self.at, not_before)).await?;
        self.ctx.set(&work_key(effect), sent.invocation_id().to_owned());
        Ok(())
    }
}

fn delay(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(to.since(from).0).unwrap_or_default())
}
