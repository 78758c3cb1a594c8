//! The fields of a record.

use std::borrow::Cow;

use charter_kernel::{Digest, Principal, RefusalDetails, Status, Timestamp, Unique};
use serde::Deserialize;
use serde_json::Value as Json;

use super::values::{at, far_timestamp, maybe_whole};
use super::{FORMAT, Manifest, RecordError, TimerField, json, timestamp};

/// The content of a record. The text omits some fields if they are empty, as noted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with the fields of a record")]
pub struct Fields<'a> {
    /// Version of the format: 2.
    pub v: u32,
    /// The run.
    pub run: Cow<'a, str>,
    /// Sequence number in the run, consecutive from 0.
    pub seq: u64,
    /// The time of the event; in the text, RFC 3339 with milliseconds, in UTC.
    #[serde(deserialize_with = "at")]
    pub at: Timestamp,
    /// The event id that the sender chose, or `RUN/SEQ`.
    pub id: Cow<'a, str>,
    /// Digest of the charter.
    pub charter: Digest,
    /// The addressed actor; for answers and timers, the owner of the invocation or timer.
    pub to: Cow<'a, str>,
    /// The principal.
    pub by: Cow<'a, Principal>,
    /// The source of the event, from which the envelope can be restored.
    #[serde(borrow)]
    pub source: Source<'a>,
    /// The event.
    pub event: EventField<'a>,
    /// The last sequence number that the sender had seen; omitted if not given.
    #[serde(default, deserialize_with = "maybe_whole")]
    pub expected_seq: Option<u64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why the event was refused; omitted if it was not.
    #[serde(default)]
    pub refusal: Option<Box<RefusalDetails>>,
    /// Active atomic states of the actor before the event, as paths, in document order.
    pub from: Vec<Cow<'a, str>>,
    /// Active atomic states of the actor after the event.
    pub state: Vec<Cow<'a, str>>,
    /// Names of the transitions taken, prefixed with `ACTOR:` if another actor took them.
    pub transitions: Vec<Cow<'a, str>>,
    /// Effects requested from the host.
    pub effects: Vec<Json>,
    /// Changes of timers; omitted if there are none.
    #[serde(default)]
    pub timers: Vec<TimerField<'a>>,
    /// New and changed ledger entries: `{"kind", "key", "status", "uses", "expires", "due", "data",
    /// "how"}`; omitted if there are none.
    #[serde(default)]
    pub ledger: Vec<Json>,
    /// Approvals; omitted if there are none.
    #[serde(default)]
    pub approvals: Vec<Approval<'a>>,
    /// Failed conditions and unhandled internal events: `{"actor", "at", "message"}`, or omitted.
    #[serde(default)]
    pub notes: Vec<Json>,
    /// The effect that this event answers; omitted if it does not answer an awaited effect.
    #[serde(default)]
    pub answers: Option<String>,
    /// The unique key of the event, and the run that had it already; omitted if it has none.
    #[serde(default)]
    pub unique: Option<Box<Unique>>,
    /// Status of the run after the event; omitted if the start was refused.
    #[serde(default)]
    pub status: Option<Status>,
    /// The origin of a fork, in its record 0.
    #[serde(default)]
    pub forked_from: Option<Origin<'a>>,
    /// The files that the run may use, in record 0; omitted if there are none.
    #[serde(default)]
    pub manifest: Option<Box<Manifest>>,
    /// Digest of the snapshot after the event; if the start was refused, the digest of `null`.
    pub snapshot: Digest,
    /// Hash of the previous record.
    pub prev: Digest,
    /// SHA-256 of the canonical JSON of the record without this field.
    pub hash: Digest,
}

/// The verdict on an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verdict {
    /// Transitions were taken, or a control event took effect.
    Accepted,
    /// The event was refused; nothing has changed.
    Refused,
    /// No transition handles the event, and it is a platform event or the charter is not strict.
    Ignored,
    /// A vote toward a quorum.
    Vote,
    /// An answer to a cancelled or earlier invocation.
    Late,
}

impl Verdict {
    /// The value in the text of a record.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::Refused => "refused",
            Verdict::Ignored => "ignored",
            Verdict::Vote => "vote",
            Verdict::Late => "late",
        }
    }
}

impl From<charter_kernel::Verdict> for Verdict {
    fn from(v: charter_kernel::Verdict) -> Verdict {
        match v {
            charter_kernel::Verdict::Accepted => Verdict::Accepted,
            charter_kernel::Verdict::Vote => Verdict::Vote,
            charter_kernel::Verdict::Ignored => Verdict::Ignored,
            charter_kernel::Verdict::Late => Verdict::Late,
        }
    }
}

/// The source of an event, exactly as in its envelope.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object with `kind`")]
pub struct Source<'a> {
    /// The kind of event.
    pub kind: SourceKind,
    /// The actor named by the sender, if any.
    #[serde(default, borrow)]
    pub to: Option<Cow<'a, str>>,
    /// For an answer: the invocation.
    #[serde(default, borrow)]
    pub invocation: Option<Cow<'a, str>>,
    /// For an answer: the effect (`RUN/SEQ/INDEX`), if named.
    #[serde(default, borrow)]
    pub effect: Option<Cow<'a, str>>,
    /// For a timer: its id.
    #[serde(default, borrow)]
    pub timer: Option<Cow<'a, str>>,
    /// For a timer: its generation.
    #[serde(default, deserialize_with = "maybe_whole")]
    pub generation: Option<u64>,
    /// The time, if it is outside the years 1 to 9999, which `at` cannot represent.
    #[serde(default, deserialize_with = "far_timestamp")]
    pub at: Option<Timestamp>,
}

impl Source<'_> {
    /// The source of an external event without optional fields.
    pub(super) const EXTERNAL: Source<'static> = Source {
        kind: SourceKind::External,
        to: None,
        invocation: None,
        effect: None,
        timer: None,
        generation: None,
        at: None,
    };
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SourceKind {
    /// The start of the run.
    Start,
    /// Sent by a principal.
    External,
    /// An actor's answer.
    Done,
    /// An actor's failure.
    Error,
    /// A failed attempt of an actor that will be retried.
    Attempt,
    /// A timer was due.
    Timer,
}

impl SourceKind {
    /// The value in the text of a record.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            SourceKind::Start => "start",
            SourceKind::External => "external",
            SourceKind::Done => "done",
            SourceKind::Error => "error",
            SourceKind::Attempt => "attempt",
            SourceKind::Timer => "timer",
        }
    }
}

/// The field `event` of a record.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with `type`, `data`")]
pub struct EventField<'a> {
    /// Event type.
    pub r#type: Cow<'a, str>,
    /// Event data: the data sent; for a start, its input; for an answer, `{"output"}` or
    /// `{"error"}`; for an attempt, `{"attempt", "error", "retryAt"}`; for a timer, `{}`.
    #[serde(default)]
    pub data: Cow<'a, Json>,
    /// Replaces `data` if the data is redacted because validation refused the event.
    #[serde(default, rename = "withheld")]
    pub redacted: Option<Redacted>,
}

/// Redacted data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object with `digest`, `size`")]
pub struct Redacted {
    /// SHA-256 of the data as canonical JSON, except that integers are written with all their
    /// digits.
    pub digest: Digest,
    /// Length of that text, in bytes.
    pub size: u64,
}

/// An approval. The fields `by` and `at` of the record say who approved and when.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object with `approves`, `digest`")]
pub struct Approval<'a> {
    /// The actor whose transition was approved.
    pub actor: Cow<'a, str>,
    /// The transition.
    pub transition: Cow<'a, str>,
    /// What was approved, as written in the charter (`context.changeset`).
    pub approves: Cow<'a, str>,
    /// Digest of the approved value, as shown to the sender and checked by the kernel.
    pub digest: Cow<'a, str>,
}

/// The origin of a fork.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object with the run and the record of a fork")]
pub struct Origin<'a> {
    /// The run.
    pub run: Cow<'a, str>,
    /// The last shared record.
    pub seq: u64,
    /// The hash of that record.
    pub hash: Digest,
    /// Whether the fork is dry: no actor is called for it; answers come from the past of the other
    /// run, or from persons.
    #[serde(default)]
    pub dry: bool,
}

impl Origin<'_> {
    /// Converts the origin to owned data.
    #[must_use]
    pub fn owned(self) -> Origin<'static> {
        let Origin { run, seq, hash, dry } = self;
        Origin { run: run.into_owned().into(), seq, hash, dry }
    }
}

impl Fields<'static> {
    /// Parses a record with its keys in any order.
    pub(crate) fn read(line: &str) -> Result<Fields<'static>, RecordError> {
        if json::depth(line) > json::MAX_DEPTH {
            return Err(RecordError::NotARecord(format!("nested deeper than {} levels", json::MAX_DEPTH)));
        }
        let mut reader = serde_json::Deserializer::from_str(line);
        reader.disable_recursion_limit();
        let mut fields = Fields::deserialize(&mut reader)
            .and_then(|f| reader.end().map(|()| f))
            .map_err(|e| version_error(line).unwrap_or_else(|| RecordError::NotARecord(json::why(&e))))?;
        if fields.v != FORMAT {
            return Err(unknown_version(fields.v.into()));
        }
        // Numbers are compared by value, not by notation (the double 1e17 is written as an
        // integer).
        charter_expr::json::normalize(fields.event.data.to_mut());
        let misfits = fields.refusal.iter_mut().flat_map(|refusal| &mut refusal.misfits);
        let misfits = misfits.flat_map(|misfit| [&mut misfit.limit, &mut misfit.value]);
        for value in fields.effects.iter_mut().chain(&mut fields.ledger).chain(misfits) {
            charter_expr::json::normalize(value);
        }
        Ok(fields.owned())
    }
}

impl Fields<'_> {
    /// Converts the fields to owned data.
    pub(crate) fn owned(self) -> Fields<'static> {
        let own = |s: Cow<'_, str>| Cow::Owned(s.into_owned());
        let all = |list: Vec<Cow<'_, str>>| list.into_iter().map(own).collect();
        Fields {
            v: self.v,
            run: own(self.run),
            seq: self.seq,
            at: self.at,
            id: own(self.id),
            charter: self.charter,
            to: own(self.to),
            by: Cow::Owned(self.by.into_owned()),
            source: Source {
                kind: self.source.kind,
                to: self.source.to.map(own),
                invocation: self.source.invocation.map(own),
                effect: self.source.effect.map(own),
                timer: self.source.timer.map(own),
                generation: self.source.generation,
                at: self.source.at,
            },
            event: EventField {
                r#type: own(self.event.r#type),
                data: Cow::Owned(self.event.data.into_owned()),
                redacted: self.event.redacted,
            },
            expected_seq: self.expected_seq,
            verdict: self.verdict,
            refusal: self.refusal,
            from: all(self.from),
            state: all(self.state),
            transitions: all(self.transitions),
            effects: self.effects,
            timers: self.timers.into_iter().map(TimerField::owned).collect(),
            ledger: self.ledger,
            approvals: self
                .approvals
                .into_iter()
                .map(|a| Approval {
                    actor: own(a.actor),
                    transition: own(a.transition),
                    approves: own(a.approves),
                    digest: own(a.digest),
                })
                .collect(),
            notes: self.notes,
            answers: self.answers,
            unique: self.unique,
            status: self.status,
            forked_from: self.forked_from.map(Origin::owned),
            manifest: self.manifest,
            snapshot: self.snapshot,
            prev: self.prev,
            hash: self.hash,
        }
    }

    /// The time as in the text: RFC 3339 with milliseconds, in UTC.
    #[must_use]
    pub fn at_text(&self) -> String {
        timestamp::text(self.at)
    }

    /// Whether the id was given by the sender.
    #[must_use]
    pub fn has_given_id(&self) -> bool {
        let own = self.id.strip_prefix(self.run.as_ref()).and_then(|rest| rest.strip_prefix('/'));
        own.is_none_or(|seq| seq != self.seq.to_string())
    }

    /// Status of the run after the event, as text; `refused` if its start was refused.
    #[must_use]
    pub fn status_word(&self) -> &'static str {
        self.status.map_or("refused", Status::word)
    }
}

/// Returns the error for a record of another version, or `None` if the text is not such a record.
fn version_error(line: &str) -> Option<RecordError> {
    let version = json::json_of(line).ok()?.get("v")?.as_u64()?;
    (version != u64::from(FORMAT)).then(|| unknown_version(version))
}

fn unknown_version(version: u64) -> RecordError {
    match version {
        1 => RecordError::PreRelease,
        _ => RecordError::NotARecord(format!("record version {version}; this program reads version {FORMAT}")),
    }
}
