//! Spans (`tracing`): one for each record and for each attempt of an actor. They hold names, ids
//! and numbers, never data: the content of events, inputs and answers stays in the journal.

use charter_actors::{Fault, Outcome};
use charter_journal::Record;
use tracing::Span;
use tracing::field::Empty;

use crate::events::Working;

/// Emits the span of a durable record.
pub(crate) fn record(record: &Record) {
    let span = tracing::info_span!(
        "charter.record",
        otel.name = %record.event.r#type,
        charter.run = %record.run,
        charter.seq = record.seq,
        charter.actor = %record.to,
        charter.event = %record.event.r#type,
        charter.by = %record.by.id,
        charter.verdict = record.verdict.word(),
        charter.from = %record.from.join(", "),
        charter.to = %record.state.join(", "),
        charter.refusal = Empty,
    );
    if let Some(refusal) = &record.refusal {
        span.record("charter.refusal", tracing::field::display(refusal.code));
    }
    // Enter and leave the span at once: the commit has already happened.
    drop(span.entered());
}

/// Creates the span of one attempt of an actor.
pub(crate) fn attempt(working: &Working) -> Span {
    tracing::info_span!(
        "charter.call",
        otel.name = %format_args!("call {}", working.src),
        charter.run = %working.run,
        charter.effect = %working.effect,
        charter.src = %working.src,
        charter.kind = %working.kind,
        charter.attempt = working.attempt,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Records in the span how an attempt ended.
pub(crate) fn ended(span: &Span, result: &Result<Outcome, Fault>) {
    if let Err(fault) = result {
        span.record("error.type", fault.code.as_str());
        span.record("otel.status_code", "ERROR");
    }
}
