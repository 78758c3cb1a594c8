//! Resuming what a journal has open when it is opened: timers with their deadlines, and calls of
//! actors.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_actors::Fault;
use charter_journal::{OpenEffect, SourceKind};
use charter_kernel::{EffectId, Event, Timestamp};

use crate::calls::registry::InvocationRequest;
use crate::error::RuntimeError;
use crate::inner::Inner;
use crate::mailbox::run::RunState;

/// Effects and records that are read at a time.
const PAGE: usize = 1_000;

/// What was found open when a journal was opened.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Effects that are executed again, because their actors are idempotent.
    pub resumed: Vec<String>,
    /// Effects whose outcome is unknown, because their actors are not idempotent. The run receives
    /// `error.invoke.ID` with the code `unknown`.
    pub unknown: Vec<String>,
    /// Runs with timers.
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

/// Runs with open invocations of actors.
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
    let Some(snapshot) = &state.snapshot else {
        return;
    };
    let open: Vec<_> = snapshot.invocations().filter(|(_, i)| !i.is_machine()).map(|(_, i)| i.clone()).collect();
    for i in open {
        let actor = state.charter.actors.get(i.src.as_ref());
        let executor = actor.and_then(|a| inner.executors.get(a.kind.as_ref()));
        let declared = actor.and_then(|a| a.policy.idempotent);
        // An actor without an executor has not run on this host; it fails like a new call of it.
        let idempotent = declared.or_else(|| executor.map(|e| e.is_idempotent())).unwrap_or(true);
        let effect = i.effect.text(run);
        let (attempt, not_before) = match attempts(inner, run, i.effect).await {
            Ok(found) => found,
            Err(e) => {
                recovery.failed.push((run.to_string(), e));
                return;
            }
        };
        // No attempt was running during the pause between two attempts.
        let paused = attempt > 1 && not_before > inner.clock.now();
        if idempotent || paused {
            recovery.resumed.push(effect);
            let request = InvocationRequest {
                effect: i.effect,
                invocation: i.id.clone(),
                src: i.src.clone(),
                input: i.input.clone(),
                attempt,
                not_before,
            };
            inner.invoke(&state.charter, run, request);
        } else {
            let fault = Fault::new(
                "unknown",
                format!("the host stopped during a call of `{}`; whether the call took effect is unknown", i.src),
            );
            recovery.unknown.push(effect);
            inner.give(run, &i.id, i.effect, Err(fault.json())).await;
        }
    }
}

/// The next attempt of an effect and its earliest start, according to the records of its run.
async fn attempts(inner: &Arc<Inner>, run: &Arc<str>, effect: EffectId) -> Result<(u32, Timestamp), RuntimeError> {
    let run = run.clone();
    let read = move |inner: &Inner| {
        let name = effect.text(&run);
        let (mut next, mut not_before) = (1, Timestamp::MIN);
        let mut from = effect.seq;
        loop {
            let page = inner.store.records(&run, from, PAGE)?;
            for record in &page {
                let source = &record.source;
                if source.kind != SourceKind::Attempt || source.effect.as_deref() != Some(&name) {
                    continue;
                }
                if let Ok(Event::Attempt { attempt, retry_at, .. }) = record.envelope().map(|e| e.event) {
                    next = attempt.saturating_add(1);
                    not_before = retry_at;
                }
            }
            match page.last() {
                Some(last) => from = last.seq.saturating_add(1),
                None => return Ok((next, not_before)),
            }
        }
    };
    inner.with_store(read).await?
}
