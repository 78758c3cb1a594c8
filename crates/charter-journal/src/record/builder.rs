//! Builds a record from a step or a refusal of the kernel.

use std::borrow::Cow;

use charter_kernel::{
    Actor, Cause, Code, Digest, EffectId, Entry, Envelope, Event, Machine, Note, Refusal, RefusalDetails, Snapshot,
    Status, Step, Timestamp, canonical,
};
use serde_json::{Value as Json, json};

use super::fields::{Approval, EventField, Fields, Origin, Redacted, Source, SourceKind, Verdict};
use super::{FORMAT, GENESIS, Manifest, Record, TimerField};

/// Maximum nesting of recorded data, equal to the limit of the kernel.
const MAX_DATA_DEPTH: usize = 128;

/// The inputs of a record.
#[derive(Debug, Clone)]
pub struct RecordBuilder<'a> {
    /// The charter.
    pub machine: &'a Machine,
    /// The run.
    pub run: &'a str,
    /// The event id that the sender chose.
    pub id: Option<&'a str>,
    /// Hash of the previous record.
    pub prev: Digest,
    /// The envelope.
    pub envelope: &'a Envelope,
    /// The snapshot to which it was applied; `None` for the start.
    pub before: Option<&'a Snapshot>,
    /// The step or refusal.
    pub outcome: &'a Result<Step, Refusal>,
    /// Digest of the snapshot after the event, if already known; computed otherwise.
    pub snapshot: Option<Digest>,
    /// The origin, for record 0 of a fork.
    pub forked_from: Option<Origin<'a>>,
    /// The files that the run may use, for record 0.
    pub manifest: Option<Box<Manifest>>,
}

impl<'a> RecordBuilder<'a> {
    /// Builds the record.
    #[must_use]
    pub fn record(self) -> Record {
        let mut fields = self.fields().owned();
        if !charter_expr::json::is_canonical(&fields.event.data) {
            charter_expr::json::normalize(fields.event.data.to_mut());
        }
        RecordBuilder::finish(fields)
    }

    /// Hashes the fields and builds the record.
    pub(crate) fn finish(mut fields: Fields<'static>) -> Record {
        let mut text = String::with_capacity(1_024);
        fields.write_hashed(&mut text);
        Record::new(fields, text)
    }

    /// Computes the fields except for the hash, borrowing as much as possible.
    pub(crate) fn fields(self) -> Fields<'a> {
        let RecordBuilder { machine, run, id, prev, envelope, before, outcome, snapshot, forked_from, manifest } = self;
        let step = outcome.as_ref().ok();
        let after = step.map(|s| &s.snapshot).or(before);
        let to = addressee(envelope, before);
        let states = |s: Option<&'a Snapshot>| -> Vec<Cow<'a, str>> {
            s.and_then(|s| s.actor(&to)).map(|a| a.state().map(Cow::Borrowed).collect()).unwrap_or_default()
        };
        let (event, source) = (event_field(envelope, before, outcome), source(run, envelope));
        let from = states(before);
        Fields {
            v: FORMAT,
            run: run.into(),
            seq: envelope.seq,
            at: envelope.at.clamp(Timestamp::FIRST, Timestamp::LAST),
            id: id.map_or_else(|| format!("{run}/{}", envelope.seq).into(), Cow::Borrowed),
            charter: machine.digest(),
            by: Cow::Borrowed(&envelope.by),
            source,
            event,
            expected_seq: envelope.expected_seq,
            verdict: step.map_or(Verdict::Refused, |s| s.verdict.into()),
            refusal: outcome
                .as_ref()
                .err()
                .map(|refusal| Box::new(refusal_details(machine, before, envelope, refusal))),
            state: if step.is_some() { states(after) } else { from.clone() },
            from,
            transitions: step.map(|s| machine.transition_names(s, &to).collect()).unwrap_or_default(),
            effects: step.map(|s| s.effects.iter().map(|e| e.json(run)).collect()).unwrap_or_default(),
            timers: step.map(|s| timers(envelope, before, s)).unwrap_or_default(),
            ledger: step.map(|s| ledger(before, s)).unwrap_or_default(),
            approvals: step.map(|s| approvals(machine, envelope, s)).unwrap_or_default(),
            notes: step.map(|s| s.notes.iter().map(note).collect()).unwrap_or_default(),
            answers: answered(envelope, before).map(|effect| effect.text(run)),
            // Only events from outside have a key.
            unique: envelope
                .unique
                .as_ref()
                .filter(|_| matches!(envelope.event, Event::External { .. }))
                .map(|unique| Box::new(unique.clone())),
            status: after.map(Snapshot::status),
            forked_from,
            manifest,
            snapshot: snapshot
                .unwrap_or_else(|| after.map_or_else(|| Digest::of_json(&Json::Null), |s| machine.snapshot_digest(s))),
            prev,
            hash: GENESIS,
            to,
        }
    }
}

/// Finds the invocation to which an answer belongs, by the same rules as the kernel. Returns its
/// owner and the effect that requested it.
fn awaited<'s>(envelope: &Envelope, before: Option<&'s Snapshot>) -> Option<(&'s Actor, EffectId)> {
    let (invocation, effect) = match &envelope.event {
        Event::Done { invocation, effect, .. } | Event::Failed { invocation, effect, .. } => (invocation, *effect),
        Event::Attempt { invocation, effect, .. } => (invocation, Some(*effect)),
        Event::Start { .. } | Event::External { .. } | Event::Timer { .. } => return None,
    };
    let fits = |(actor, i): &(&Actor, &charter_kernel::Invocation)| {
        actor.status() == Status::Active
            && !i.is_machine()
            && i.id.as_ref() == invocation
            && effect.is_none_or(|e| e == i.effect)
            && envelope.to.as_deref().is_none_or(|to| to == actor.id())
    };
    before?.invocations().find(fits).map(|(actor, i)| (actor, i.effect))
}

fn answered(envelope: &Envelope, before: Option<&Snapshot>) -> Option<EffectId> {
    if matches!(envelope.event, Event::Attempt { .. }) {
        // The answer is still awaited.
        return None;
    }
    awaited(envelope, before).map(|(_, effect)| effect)
}

fn addressee<'a>(envelope: &'a Envelope, before: Option<&'a Snapshot>) -> Cow<'a, str> {
    let found = match &envelope.event {
        Event::Start { .. } | Event::External { .. } => None,
        Event::Done { .. } | Event::Failed { .. } => awaited(envelope, before).map(|(actor, _)| actor.id()),
        Event::Attempt { .. } => awaited(envelope, before).map(|(actor, _)| actor.id()),
        Event::Timer { timer, generation } => pending(before, timer, *generation).map(|t| t.actor.as_ref()),
    };
    found.or(envelope.to.as_deref()).unwrap_or("root").into()
}

fn pending<'s>(snapshot: Option<&'s Snapshot>, id: &str, generation: u64) -> Option<&'s charter_kernel::Timer> {
    snapshot?.timers().iter().find(|t| t.id.as_ref() == id && t.generation == generation).map(AsRef::as_ref)
}

fn source<'a>(run: &str, envelope: &'a Envelope) -> Source<'a> {
    let kind = match &envelope.event {
        Event::Start { .. } => SourceKind::Start,
        Event::External { .. } => SourceKind::External,
        Event::Done { .. } => SourceKind::Done,
        Event::Failed { .. } => SourceKind::Error,
        Event::Attempt { .. } => SourceKind::Attempt,
        Event::Timer { .. } => SourceKind::Timer,
    };
    let (invocation, effect) = match &envelope.event {
        Event::Done { invocation, effect, .. } | Event::Failed { invocation, effect, .. } => {
            (Some(Cow::Borrowed(invocation.as_str())), *effect)
        }
        Event::Attempt { invocation, effect, .. } => (Some(Cow::Borrowed(invocation.as_str())), Some(*effect)),
        _ => (None, None),
    };
    let (timer, generation) = match &envelope.event {
        Event::Timer { timer, generation } => (Some(Cow::Borrowed(timer.as_str())), Some(*generation)),
        _ => (None, None),
    };
    Source {
        kind,
        to: envelope.to.as_deref().map(Cow::Borrowed),
        invocation,
        effect: effect.map(|e| e.text(run).into()),
        timer,
        generation,
        at: (!envelope.at.is_in_range()).then_some(envelope.at),
    }
}

/// Returns the part of the event that is recorded. Data that passed validation is recorded
/// completely; of other data, only the digest and size are recorded.
fn event_field<'a>(
    envelope: &'a Envelope,
    before: Option<&'a Snapshot>,
    outcome: &Result<Step, Refusal>,
) -> EventField<'a> {
    let r#type = envelope.event.type_name(before);
    let data = sent(&envelope.event);
    // Data within the limits is recorded, even if handling it would build too much, or if it is the
    // name of its sender that is too long.
    let of_data = |r: &Refusal| !matches!(r.cause(), Some(Cause::Bytes { .. } | Cause::PrincipalId { .. }));
    let too_large = outcome.as_ref().is_err_and(|r| r.code == Code::TooLarge && of_data(r));
    if too_large || (outcome.is_err() && !survives_json(&data)) {
        return EventField { r#type, data: Cow::Owned(Json::Null), redacted: Some(redacted(&data)) };
    }
    EventField { r#type, data, redacted: None }
}

/// Whether a record is of this event, regardless of its time and `expected_seq`.
pub(super) fn is_of(r: &Fields<'_>, envelope: &Envelope) -> bool {
    let said = source(&r.run, envelope);
    let root = |to: &Option<Cow<'_, str>>| to.as_deref().unwrap_or("root").to_owned();
    let same_source = said.kind == r.source.kind
        && root(&said.to) == root(&r.source.to)
        && said.invocation == r.source.invocation
        && said.effect == r.source.effect
        && said.timer == r.source.timer
        && said.generation == r.source.generation;
    let same_type = match &envelope.event {
        Event::External { r#type, .. } => *r#type == r.event.r#type,
        // For other sources, the source determines the type.
        _ => true,
    };
    same_source && same_type && envelope.by == *r.by && {
        let data = sent(&envelope.event);
        match r.event.redacted {
            Some(recorded) => redacted(&data) == recorded,
            None => survives_json(&data) && *canonically(&data) == *r.event.data,
        }
    }
}

fn canonically(data: &Json) -> Cow<'_, Json> {
    if charter_expr::json::is_canonical(data) {
        return Cow::Borrowed(data);
    }
    let mut data = data.clone();
    charter_expr::json::normalize(&mut data);
    Cow::Owned(data)
}

fn redacted(data: &Json) -> Redacted {
    let mut exact = String::new();
    canonical::write_exact(&mut exact, data);
    Redacted { digest: Digest::of_bytes(exact.as_bytes()), size: exact.len().try_into().unwrap_or(u64::MAX) }
}

/// The data of an event, in its recorded form.
fn sent(event: &Event) -> Cow<'_, Json> {
    match event {
        Event::Start { input } => Cow::Borrowed(input),
        Event::External { data, .. } => Cow::Borrowed(data),
        Event::Done { output, .. } => Cow::Owned(json!({"output": output})),
        Event::Failed { error, .. } => Cow::Owned(json!({"error": error})),
        Event::Attempt { attempt, error, retry_at, .. } => {
            Cow::Owned(json!({"attempt": attempt, "error": error, "retryAt": retry_at}))
        }
        Event::Timer { .. } => Cow::Owned(json!({})),
    }
}

/// Whether data survives a round trip through JSON: no integer beyond 2^53-1, no excessive nesting.
/// Not recursive.
fn survives_json(data: &Json) -> bool {
    let safe = |n: &serde_json::Number| match (n.as_i64(), n.is_f64()) {
        (Some(i), _) => i.unsigned_abs() < 1 << 53,
        (None, is_double) => is_double,
    };
    let mut level = vec![data];
    for _ in 0..=MAX_DATA_DEPTH {
        let mut next = Vec::new();
        for value in level {
            match value {
                Json::Number(n) if !safe(n) => return false,
                Json::Array(items) => next.extend(items),
                Json::Object(map) => next.extend(map.values()),
                _ => {}
            }
        }
        if next.is_empty() {
            return true;
        }
        level = next;
    }
    false
}

/// Computes the details of a refusal from the recorded form of the event, so that a replay computes
/// the same details.
fn refusal_details(
    machine: &Machine,
    before: Option<&Snapshot>,
    envelope: &Envelope,
    refusal: &Refusal,
) -> RefusalDetails {
    let mut kept = Cow::Borrowed(envelope);
    let data = match &envelope.event {
        Event::Start { input } => Some(input),
        Event::External { data, .. } => Some(data),
        Event::Done { output, .. } => Some(output),
        Event::Failed { error, .. } | Event::Attempt { error, .. } => Some(error),
        Event::Timer { .. } => None,
    };
    if refusal.code != Code::TooLarge && data.is_some_and(|d| !charter_expr::json::is_canonical(d) && survives_json(d))
    {
        match &mut kept.to_mut().event {
            Event::Start { input: data }
            | Event::External { data, .. }
            | Event::Done { output: data, .. }
            | Event::Failed { error: data, .. }
            | Event::Attempt { error: data, .. } => {
                charter_expr::json::normalize(data);
            }
            Event::Timer { .. } => {}
        }
    }
    machine.refusal_details(before, &kept, refusal)
}

fn timers<'a>(envelope: &'a Envelope, before: Option<&Snapshot>, step: &'a Step) -> Vec<TimerField<'a>> {
    let mut out = Vec::new();
    if let Event::Timer { timer, generation } = &envelope.event
        && pending(before, timer, *generation).is_some()
        && pending(Some(&step.snapshot), timer, *generation).is_none()
    {
        out.push(TimerField::fired(timer, *generation));
    }
    out.extend(step.timers.iter().map(TimerField::of));
    out
}

fn ledger(before: Option<&Snapshot>, step: &Step) -> Vec<Json> {
    let Some(ledger) = step.snapshot.ledger() else {
        return Vec::new();
    };
    ledger.changes(before.and_then(Snapshot::ledger)).map(|(kind, key, entry)| entry_json(kind, key, entry)).collect()
}

fn entry_json(kind: &str, key: &str, e: &Entry) -> Json {
    let mut out = json!({"kind": kind, "key": key, "status": e.status.word(), "data": *e.data});
    if let Json::Object(map) = &mut out {
        let optional = [
            ("uses", e.uses.map(Json::from)),
            ("expires", e.expires.map(|t| t.0.into())),
            ("due", e.due.map(|t| t.0.into())),
            ("how", e.how.as_deref().cloned()),
        ];
        map.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))));
    }
    out
}

fn approvals<'a>(machine: &'a Machine, envelope: &'a Envelope, step: &'a Step) -> Vec<Approval<'a>> {
    let Event::External { data, .. } = &envelope.event else {
        return Vec::new();
    };
    let digest = data.get("digest").and_then(Json::as_str).unwrap_or_default();
    let approval = |(actor, transition, approves)| Approval {
        actor: Cow::Borrowed(actor),
        transition: Cow::Borrowed(transition),
        approves: Cow::Borrowed(approves),
        digest: digest.into(),
    };
    machine.approvals(step).map(approval).collect()
}

fn note(n: &Note) -> Json {
    // Plain data with string keys always serializes.
    let mut note = serde_json::to_value(&n.kind).unwrap_or_default();
    if let Json::Object(map) = &mut note {
        map.insert("actor".into(), n.actor.as_ref().into());
        map.extend(n.at.as_ref().map(|at| ("at".to_string(), at.as_ref().into())));
    }
    note
}
