//! What happens after a failed attempt, and after a restart of the host.

use charter_journal::{Record, SourceKind};
use charter_kernel::{EffectId, Event, Timestamp};
use serde_json::Value as Json;

use crate::fault::Fault;
use crate::handled::InvocationRequest;
use crate::policy::Retry;

/// Returns the result of a failed attempt: the error that the charter sees, and when the next
/// attempt begins. The time is `None` if there is no further attempt, so that the error is the
/// answer.
#[must_use]
pub fn after_failure(
    retry: &Retry,
    effect: &str,
    attempt: u32,
    fault: Fault,
    now: Timestamp,
) -> (Json, Option<Timestamp>) {
    if fault.retryable && attempt < retry.attempts {
        return (fault.json(), Some(now.saturating_add(retry.pause(effect, attempt))));
    }
    let fault = if attempt > 1 { fault.with("attempts", attempt) } else { fault };
    (fault.json(), None)
}

/// What a host does with an open invocation after a restart.
#[derive(Debug, Clone, PartialEq)]
pub enum Resume {
    /// The host attempts it again.
    Again(InvocationRequest),
    /// It may have been interrupted and must not be repeated; this fault is its answer.
    Unknown(Fault),
}

/// Decides what a host does with an open invocation after a restart. `idempotent` means that an
/// interrupted call may be repeated.
#[must_use]
pub fn after_restart(request: InvocationRequest, idempotent: bool, now: Timestamp) -> Resume {
    // No attempt was running during the pause between two attempts.
    let paused = request.attempt > 1 && request.not_before > now;
    match idempotent || paused {
        true => Resume::Again(request),
        false => Resume::Unknown(Fault::unknown(&request.src)),
    }
}

/// Returns the next attempt of an effect and its earliest start, according to the records of its
/// run, in order.
pub fn next_attempt<'r>(
    run: &str,
    effect: EffectId,
    records: impl IntoIterator<Item = &'r Record>,
) -> Option<(u32, Timestamp)> {
    let name = effect.text(run);
    let attempts = records.into_iter().filter_map(|record| {
        let source = &record.source;
        if source.kind != SourceKind::Attempt || source.effect.as_deref() != Some(&name) {
            return None;
        }
        match record.envelope().ok()?.event {
            Event::Attempt { attempt, retry_at, .. } => Some((attempt.saturating_add(1), retry_at)),
            _ => None,
        }
    });
    attempts.last()
}
