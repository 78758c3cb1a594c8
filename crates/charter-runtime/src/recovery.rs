//! Resumes the open timers and actor calls in a journal when it is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use charter_actors::{Executor, Executors};
use charter_journal::{OpenEffect, Store, StoreError, waiting_attempts};
use charter_kernel::{EffectId, Machine, Timestamp};
use charter_run::{ActorPolicy, NextAttempt, Resume, Run};

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::inner::Inner;
use crate::mailbox::run::RunState;
use crate::options::ResumeRuns;
use crate::sync::lock;

/// Maximum number of effects that are read at a time.
const PAGE: usize = 1_000;

/// What was open in the journal when it was opened.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Effects that are executed again, because their actors are idempotent.
    pub resumed: Vec<String>,
    /// Effects that would be executed again, but whose run is paused: they wait for
    /// `charter.resume`.
    pub held: Vec<String>,
    /// Effects whose outcome is unknown, because their actors are not idempotent. The run receives
    /// `error.invoke.ID` with the code `unknown`.
    pub unknown: Vec<String>,
    /// Number of runs with timers.
    pub timers: usize,
    /// Runs that could not be resumed, and why.
    pub failed: Vec<(String, RuntimeError)>,
}

/// Resumes what the options say.
pub(crate) async fn recover(inner: &Arc<Inner>) -> Result<Recovery, RuntimeError> {
    let mut recovery = Recovery::default();
    match inner.resume {
        ResumeRuns::All => {
            recovery.timers = arm_timers(inner, Forks::GoOn).await?;
            for run in runs_with_open_effects(inner).await? {
                resume_all(inner, &run, &mut recovery).await;
            }
        }
        ResumeRuns::OnRequest => {
            let open = inner.with_store(open_effects).await??;
            let mut interrupted = lock(&inner.interrupted);
            for effect in open {
                let id = EffectId { seq: effect.seq, index: effect.index };
                interrupted.entry(effect.run).or_default().insert(id);
            }
        }
    }
    Ok(recovery)
}

/// What becomes of forks whose time stands still when timers are armed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forks {
    /// Their time goes on at once.
    GoOn,
    /// They wait until somebody resumes them or sends them something.
    Wait,
}

/// Arms the timers of all runs, and returns the number of runs with timers.
pub(crate) async fn arm_timers(inner: &Arc<Inner>, forks: Forks) -> Result<usize, RuntimeError> {
    let next = inner.with_store(move |inner| next_timers(inner.store.as_ref(), forks)).await??;
    for (run, due) in &next {
        inner.timers.arm(&run.as_str().into(), *due, || inner.clock.work());
    }
    Ok(next.len())
}

/// Reads the time of the next timer of each run. In a fork whose time stands still, the times of
/// the timers are those of the other run, so they say nothing.
fn next_timers(store: &dyn Store, forks: Forks) -> Result<BTreeMap<String, Timestamp>, StoreError> {
    let mut next: BTreeMap<String, Timestamp> = BTreeMap::new();
    for timer in store.pending_timers(Timestamp::MAX, usize::MAX >> 1)? {
        let due = next.entry(timer.run).or_insert(timer.due);
        *due = timer.due.min(*due);
    }
    let mut still = Vec::new();
    for run in next.keys() {
        if has_only_shared_records(store, run)? {
            still.push(run.clone());
        }
    }
    for run in still {
        match forks {
            Forks::GoOn => next.insert(run, Timestamp::MIN),
            Forks::Wait => next.remove(&run),
        };
    }
    Ok(next)
}

/// Whether a run is a fork without a record of its own.
fn has_only_shared_records(store: &dyn Store, run: &str) -> Result<bool, StoreError> {
    match charter_journal::origin(store, run)? {
        None => Ok(false),
        Some(origin) => Ok(store.run(run)?.is_some_and(|info| info.seq == origin.seq)),
    }
}

/// Reads a run whose actors are about to begin. Lets its time go on first, if it is a fork: an
/// actor has what is left of its `timeout` from the moment at which it begins.
async fn load_going_on(inner: &Arc<Inner>, run: &str) -> Result<Box<RunState>, RuntimeError> {
    let state = inner.load(run).await?;
    if !state.run.stands_still() {
        return Ok(state);
    }
    // This input has no reply.
    let _ = inner.ask_self(run, charter_run::Input::Due).await;
    inner.load(run).await
}

/// Resumes the invocations of a run that were open when the journal was opened and still are, and
/// the time of a fork.
pub(crate) async fn resume_interrupted(inner: &Arc<Inner>, run: &str) -> Recovery {
    let mut recovery = Recovery::default();
    lock(&inner.stopped).remove(run);
    let interrupted = lock(&inner.interrupted).remove(run);
    let id = run.to_owned();
    let stands_still = inner.with_store(move |inner| has_only_shared_records(inner.store.as_ref(), &id)).await;
    if interrupted.is_none() && !matches!(stands_still, Ok(Ok(true))) {
        return recovery;
    }
    let effects = interrupted.unwrap_or_default();
    match load_going_on(inner, run).await {
        Ok(mut state) => resume(inner, &run.into(), &mut state, &mut recovery, |e| effects.contains(&e)).await,
        Err(e) => recovery.failed.push((run.to_owned(), e)),
    }
    recovery
}

/// Notes the open invocations of a run that was written into the journal by a fork or an import.
pub(crate) async fn note_interrupted(inner: &Arc<Inner>, run: &str) -> Result<(), RuntimeError> {
    let state = inner.load(run).await?;
    let open: BTreeSet<EffectId> = state.run.open().into_iter().map(|request| request.effect).collect();
    // A host that was not asked to resume a fork lets its time stand still.
    let stands_still = state.run.stands_still() && inner.resume == ResumeRuns::OnRequest;
    if let Some(due) = state.run.next_due().filter(|_| !stands_still) {
        inner.timers.arm(&run.into(), due, || inner.clock.work());
    }
    if !open.is_empty() {
        lock(&inner.interrupted).insert(run.to_owned(), open);
    }
    Ok(())
}

async fn resume_all(inner: &Arc<Inner>, run: &str, recovery: &mut Recovery) {
    match load_going_on(inner, run).await {
        Ok(mut state) => resume(inner, &run.into(), &mut state, recovery, |_| true).await,
        Err(e) => recovery.failed.push((run.to_owned(), e)),
    }
}

/// Returns the runs with open invocations of actors.
pub(crate) async fn runs_with_open_effects(inner: &Arc<Inner>) -> Result<Vec<String>, RuntimeError> {
    let mut runs: Vec<String> = inner.with_store(open_effects).await??.into_iter().map(|e| e.run).collect();
    runs.dedup();
    Ok(runs)
}

/// Reads the open invocations of all runs.
fn open_effects(inner: &Inner) -> Result<Vec<OpenEffect>, RuntimeError> {
    let mut after: Option<OpenEffect> = None;
    let mut open = Vec::new();
    loop {
        let page = inner.store.open_effects(after.as_ref(), PAGE)?;
        let full = page.len() == PAGE;
        open.extend(page);
        match open.last() {
            Some(last) if full => after = Some(last.clone()),
            _ => return Ok(open),
        }
    }
}

/// Whether an interrupted call may be repeated. An actor without an executor has never run on this
/// host, so it may be called: the call fails like any other call without an executor.
fn is_idempotent(policy: Option<&ActorPolicy>, executor: Option<&Arc<dyn Executor>>) -> bool {
    policy.and_then(|p| p.idempotent).or_else(|| executor.map(|e| e.is_idempotent())).unwrap_or(true)
}

impl Inner {
    /// Whether an interrupted call of an actor may be repeated.
    pub(crate) fn may_repeat(&self, charter: &Charter, src: &str) -> bool {
        let actor = charter.actors.get(src);
        let executor = actor.and_then(|actor| self.executors.get(actor.kind.as_ref()));
        is_idempotent(actor.map(|actor| &actor.policy), executor)
    }
}

/// Reads from a journal what a host with these executors will do with the open invocations of a run
/// that no process executes, when it resumes them; by effect, `RUN/SEQ/INDEX`. With it the attempt
/// that waits, if one has failed or the run is paused.
///
/// # Errors
/// The journal cannot be read.
pub fn after_restart(
    store: &dyn Store,
    machine: &Machine,
    run: &str,
    executors: &Executors,
    now: Timestamp,
) -> Result<BTreeMap<String, (Resume, Option<NextAttempt>)>, RuntimeError> {
    let info = store.run(run)?.ok_or_else(|| RuntimeError::UnknownRun(run.to_owned()))?;
    let mut current = Run::loaded(charter_journal::load(store, machine, run)?, info.updated);
    current.note_attempts(machine, |from, limit| store.records(run, from, limit))?;
    let waiting = waiting_attempts(store, run)?;
    let mut found = BTreeMap::new();
    for request in current.open() {
        let not_begun = waiting.get(&request.effect) == Some(&request.attempt);
        let decl = machine.definition().actors.get(request.src.as_ref());
        let policy = decl.and_then(|decl| ActorPolicy::read(decl).ok());
        let executor = decl.and_then(|decl| executors.get(&decl.kind));
        let effect = request.effect.text(run);
        let again = not_begun || is_idempotent(policy.as_ref(), executor);
        let id = request.effect;
        let resume = current.after_restart(request, again, now);
        found.insert(effect, (resume, current.attempts().get(&id).copied()));
    }
    Ok(found)
}

/// Resumes the open invocations of a run.
async fn resume(
    inner: &Arc<Inner>,
    run: &Arc<str>,
    state: &mut RunState,
    recovery: &mut Recovery,
    wanted: impl Fn(EffectId) -> bool,
) {
    let id = run.to_string();
    // If it cannot be read, no attempt is known to wait.
    let waiting = inner.with_store(move |inner| waiting_attempts(inner.store.as_ref(), &id)).await;
    let waiting = waiting.ok().and_then(Result::ok).unwrap_or_default();
    for request in state.run.open() {
        // The record that resumed a paused run may have requested it.
        if !wanted(request.effect) || inner.calls.has(run, request.effect) {
            continue;
        }
        if state.repeats(&request.src) {
            inner.repeat(&state.charter, run, request);
            continue;
        }
        if !state.allows(&request.src) {
            inner.note_open(run, request.effect);
            recovery.failed.push((run.to_string(), RuntimeError::Untrusted { run: run.to_string() }));
            continue;
        }
        let idempotent = inner.may_repeat(&state.charter, &request.src);
        let (effect, attempt) = (request.effect, request.attempt);
        let not_begun = waiting.get(&effect) == Some(&attempt);
        match state.run.after_restart(request, idempotent || not_begun, inner.clock.now()) {
            Resume::Again(request) => {
                recovery.resumed.push(effect.text(run));
                inner.invoke(&state.charter, run, request, false);
            }
            Resume::Held => {
                recovery.held.push(effect.text(run));
                lock(&inner.held).entry(run.to_string()).or_default().insert(effect);
            }
            Resume::Unknown(fault) => {
                recovery.unknown.push(effect.text(run));
                inner.give(run, effect, attempt, Err(fault.json())).await;
            }
        }
    }
}
