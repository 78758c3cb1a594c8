//! Resumes the open timers and actor calls in a journal when it is opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_journal::OpenEffect;
use charter_kernel::{EffectId, Timestamp};
use charter_run::{Resume, after_restart};

use crate::error::RuntimeError;
use crate::inner::Inner;
use crate::mailbox::run::RunState;

/// Maximum number of effects or records that are read at a time.
const PAGE: usize = 1_000;

/// What was open in the journal when it was opened.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Effects that are executed again, because their actors are idempotent.
    pub resumed: Vec<String>,
    /// Effects whose outcome is unknown, because their actors are not idempotent. The run receives
    /// `error.invoke.ID` with the code `unknown`.
    pub unknown: Vec<String>,
    /// Number of runs with timers.
    pub timers: usize,
    /// Runs that could not be resumed, and why.
    pub failed: Vec<(String, RuntimeError)>,
}

pub(crate) async fn recover(inner: &Arc<Inner>) -> Result<Recovery, RuntimeError> {
    let mut recovery = Recovery::default();
    let timers = inner.with_store(|inner| inner.store.pending_timers(Timestamp::MAX, usize::MAX >> 1)).await??;
    let mut next: BTreeMap<String, Timestamp> = BTreeMap::new();
    for timer in timers {
        let due = next.entry(timer.run).or_insert(timer.due);
        *due = timer.due.min(*due);
    }
    recovery.timers = next.len();
    for (run, due) in next {
        inner.timers.set(&run.as_str().into(), Some(due), || inner.clock.work());
    }
    for run in runs_with_open_effects(inner).await? {
        match inner.load(&run).await {
            Ok(state) => resume(inner, &run.as_str().into(), &state, &mut recovery).await,
            Err(e) => recovery.failed.push((run, e)),
        }
    }
    Ok(recovery)
}

/// Returns the runs with open invocations of actors.
pub(crate) async fn runs_with_open_effects(inner: &Arc<Inner>) -> Result<Vec<String>, RuntimeError> {
    let read = |inner: &Inner| {
        let mut runs: Vec<String> = Vec::new();
        let mut after: Option<OpenEffect> = None;
        loop {
            let page = inner.store.open_effects(after.as_ref(), PAGE)?;
            for effect in &page {
                if runs.last() != Some(&effect.run) {
                    runs.push(effect.run.clone());
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.clone()),
                _ => return Ok(runs),
            }
        }
    };
    inner.with_store(read).await?
}

/// Resumes the open invocations of a run.
async fn resume(inner: &Arc<Inner>, run: &Arc<str>, state: &RunState, recovery: &mut Recovery) {
    for mut request in state.run.open() {
        let actor = state.charter.actors.get(request.src.as_ref());
        let executor = actor.and_then(|a| inner.executors.get(a.kind.as_ref()));
        let declared = actor.and_then(|a| a.policy.idempotent);
        // An actor without an executor has never run on this host, so it may be called: the call
        // fails like any other call without an executor.
        let idempotent = declared.or_else(|| executor.map(|e| e.is_idempotent())).unwrap_or(true);
        match next_attempt(inner, run, request.effect).await {
            Ok(Some(next)) => (request.attempt, request.not_before) = next,
            Ok(None) => {}
            Err(e) => {
                recovery.failed.push((run.to_string(), e));
                return;
            }
        }
        let (effect, attempt) = (request.effect, request.attempt);
        match after_restart(request, idempotent, inner.clock.now()) {
            Resume::Again(request) => {
                recovery.resumed.push(effect.text(run));
                inner.invoke(&state.charter, run, request);
            }
            Resume::Unknown(fault) => {
                recovery.unknown.push(effect.text(run));
                inner.give(run, effect, attempt, Err(fault.json())).await;
            }
        }
    }
}

/// Returns the next attempt of an effect and its earliest start time, from the records of its run.
async fn next_attempt(
    inner: &Arc<Inner>,
    run: &Arc<str>,
    effect: EffectId,
) -> Result<Option<(u32, Timestamp)>, RuntimeError> {
    let run = run.clone();
    let read = move |inner: &Inner| {
        let (mut next, mut from) = (None, effect.seq);
        loop {
            let page = inner.store.records(&run, from, PAGE)?;
            next = charter_run::next_attempt(&run, effect, &page).or(next);
            match page.last() {
                Some(last) if page.len() == PAGE => from = last.seq.saturating_add(1),
                _ => return Ok(next),
            }
        }
    };
    inner.with_store(read).await?
}
