//! What happens after a failed attempt, in a paused run, and after a restart of the host.

use std::collections::BTreeMap;

use charter_journal::{Record, SourceKind, Verdict};
use charter_kernel::{EffectId, Event, Millis, Status, Timestamp};
use serde_json::Value as Json;

use crate::fault::Fault;
use crate::handled::InvocationRequest;
use crate::policy::Retry;

/// Returns the result of a failed attempt: the error that the charter sees, and when the next
/// attempt begins. The time is `None` if there is no further attempt, so that the error is the
/// answer. `retryAfterMs` of the error is the pause that a server requests.
#[must_use]
pub fn after_failure(
    retry: &Retry,
    effect: &str,
    attempt: u32,
    fault: Fault,
    now: Timestamp,
) -> (Json, Option<Timestamp>) {
    let requested = fault.details.get("retryAfterMs").and_then(Json::as_u64).unwrap_or_default();
    let requested = Millis(i64::try_from(requested).unwrap_or(i64::MAX));
    if fault.retryable && attempt < retry.attempts && requested < retry.within {
        return (fault.json(), Some(now.saturating_add(retry.pause(effect, attempt).max(requested))));
    }
    let fault = if attempt > 1 { fault.with("attempts", attempt) } else { fault };
    (fault.json(), None)
}

/// What a host does with an open invocation after a restart.
#[derive(Debug, Clone, PartialEq)]
pub enum Resume {
    /// The host attempts it again.
    Again(InvocationRequest),
    /// The run is paused: the run requests the attempt again when it is resumed.
    Held,
    /// It may have been interrupted and must not be repeated; this fault is its answer.
    Unknown(Fault),
}

/// The next attempt of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextAttempt {
    /// Its number; the first is 1.
    pub attempt: u32,
    /// Its earliest start, as if the run had not been paused since `held_since`.
    pub not_before: Timestamp,
    /// Since when it waits for the run to be resumed; `None` if it does not.
    pub held_since: Option<Timestamp>,
}

impl NextAttempt {
    /// Its earliest start; [`Timestamp::MAX`] while it waits for the run to be resumed.
    pub(crate) fn earliest(&self) -> Timestamp {
        self.held_since.map_or(self.not_before, |_| Timestamp::MAX)
    }

    /// Holds it when the run is paused; returns false if it has begun, so that it continues.
    pub(crate) fn hold(&mut self, now: Timestamp) -> bool {
        let waits = self.not_before > now;
        if waits {
            self.held_since = Some(now);
        }
        waits
    }

    /// Lets it begin after the rest of its pause, when the run is resumed; returns false if it was
    /// not held.
    pub(crate) fn release(&mut self, now: Timestamp) -> bool {
        let held = self.held_since.take();
        if let Some(since) = held {
            self.not_before = self.not_before.saturating_add(now.since(since).max(Millis(0)));
        }
        held.is_some()
    }
}

/// Reads the next attempts of a run from its records, in order.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) attempts: BTreeMap<EffectId, NextAttempt>,
}

impl History {
    pub(crate) fn note(&mut self, run: &str, record: &Record) {
        match record.source.kind {
            SourceKind::Attempt => self.failed(run, record),
            _ if record.verdict != Verdict::Accepted => {}
            _ => match &*record.event.r#type {
                "charter.pause" => {
                    for next in self.attempts.values_mut() {
                        next.hold(record.at);
                    }
                }
                "charter.resume" => {
                    for next in self.attempts.values_mut() {
                        next.release(record.at);
                    }
                }
                _ => {}
            },
        }
    }

    fn failed(&mut self, run: &str, record: &Record) {
        let Some(Event::Attempt { effect, attempt, retry_at, .. }) = record.envelope().ok().map(|e| e.event) else {
            return;
        };
        if record.source.effect.as_deref() == Some(&effect.text(run)) {
            let held_since = (record.status == Some(Status::Paused)).then_some(record.at);
            let next = NextAttempt { attempt: attempt.saturating_add(1), not_before: retry_at, held_since };
            self.attempts.insert(effect, next);
        }
    }
}
