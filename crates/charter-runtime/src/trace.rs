//! Spans for whoever watches the host (`tracing`): one for each record and for each attempt of an actor. Names, ids and numbers only, never data:
//! what events, inputs and answers hold stays in the journal, which is the record; this is not.

use charter_actors::{Fault, Outcome};
use charter_journal::Record;
use tracing::Span;
use tracing::field::Empty;

use crate::publish::Working;

/// A record is durable.
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
    // It has no duration: the commit is over.
    drop(span.entered());
}

/// Around one attempt of an actor.
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

/// How it ended.
pub(crate) fn ended(span: &Span, result: &Result<Outcome, Fault>) {
    if let Err(fault) = result {
        span.record("error.type", fault.code.as_str());
        span.record("otel.status_code", "ERROR");
    }
}
