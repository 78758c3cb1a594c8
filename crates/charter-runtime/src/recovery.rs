//! What a journal says is still open, taken up when it is opened: timers with their deadlines, actors that were at work.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_actors::Fault;
use charter_journal::{OpenEffect, SourceKind};
use charter_kernel::{EffectId, Event};

use crate::calls::InvocationRequest;
use crate::error::RuntimeError;
use crate::mailbox::RunState;
use crate::runtime::{Inner, blocking};

/// Effects that are read from the journal at once.
const PAGE: usize = 1_000;

/// What was found open when a journal was opened.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Effects that are executed again: their actors are idempotent.
    pub resumed: Vec<String>,
    /// Effects whose outcome is not known: their actors are not idempotent, and the run is told so (`error.invoke.ID`, code `unknown`).
    pub unknown: Vec<String>,
    /// Runs with timers.
    pub timers: usize,
    /// Runs that could not be taken up, and why.
    pub failed: Vec<(String, RuntimeError)>,
}

pub(crate) async fn recover(inner: &Arc<Inner>) -> Result<Recovery, RuntimeError> {
    let mut recovery = Recovery::default();
    let host = inner.clone();
    let timers = blocking(move || host.store.pending_timers(i64::MAX, usize::MAX >> 1)).await??;
    let mut next: BTreeMap<String, i64> = BTreeMap::new();
    for timer in timers {
        let due = next.entry(timer.run).or_insert(timer.due);
        *due = timer.due.min(*due);
    }
    recovery.timers = next.len();
    for (run, due) in next {
        inner.wheel.set(&run.as_str().into(), Some(due), || inner.clock.work());
    }
    for run in runs_with_open_effects(inner).await? {
        match inner.load(&run).await {
            Ok(state) => resume(inner, &run.as_str().into(), &state, &mut recovery).await,
            Err(e) => recovery.failed.push((run, e)),
        }
    }
    Ok(recovery)
}

/// Runs in which an actor is at work, or should be.
pub(crate) async fn runs_with_open_effects(inner: &Arc<Inner>) -> Result<Vec<String>, RuntimeError> {
    let inner = inner.clone();
    blocking(move || {
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
    })
    .await?
}

/// Takes up what a run has asked for and got no answer to.
async fn resume(inner: &Arc<Inner>, run: &Arc<str>, state: &RunState, recovery: &mut Recovery) {
    let Some(snapshot) = &state.snapshot else {
        return;
    };
    let open: Vec<_> = snapshot.invocations().filter(|(_, i)| !i.is_machine()).map(|(_, i)| i.clone()).collect();
    for i in open {
        let service = state.charter.actors.get(i.src.as_ref());
        let executor = service.and_then(|s| inner.executors.get(s.kind.as_ref()));
        let asked = service.and_then(|s| s.policy.idempotent);
        // An actor that nobody can run here has certainly not been at work here; it fails as one does that is asked for now.
        let again = asked.or_else(|| executor.map(|e| e.is_idempotent())).unwrap_or(true);
        let effect = i.effect.text(run);
        let (attempt, not_before) = match attempts(inner, run, i.effect).await {
            Ok(found) => found,
            Err(e) => {
                recovery.failed.push((run.to_string(), e));
                return;
            }
        };
        // Between two attempts it was certainly not at work.
        let paused = attempt > 1 && not_before > inner.clock.now();
        if again || paused {
            recovery.resumed.push(effect);
            let asked = InvocationRequest {
                effect: i.effect,
                invocation: i.id.clone(),
                src: i.src.clone(),
                input: i.input.clone(),
                attempt,
                not_before,
            };
            inner.invoke(&state.charter, run, asked);
        } else {
            let fault = Fault::new(
                "unknown",
                &format!("the host stopped while `{}` was at work; whether it has done its work is not known", i.src),
            );
            recovery.unknown.push(effect);
            inner.give(run, &i.id, i.effect, Err(fault.json())).await;
        }
    }
}

/// Which attempt of an effect comes next, and when, as its run's records say.
async fn attempts(inner: &Arc<Inner>, run: &Arc<str>, effect: EffectId) -> Result<(u32, i64), RuntimeError> {
    let (inner, run) = (inner.clone(), run.clone());
    blocking(move || {
        let name = effect.text(&run);
        let (mut next, mut not_before) = (1, i64::MIN);
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
                    not_before = retry_at.0;
                }
            }
            match page.last() {
                Some(last) => from = last.seq.saturating_add(1),
                None => return Ok((next, not_before)),
            }
        }
    })
    .await?
}
