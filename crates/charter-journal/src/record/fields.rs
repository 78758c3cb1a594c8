//! The fields of a record, as 04 names them. Additions to 04: `answers`, `approvals`,
//! `expected_seq`, `forked_from`, `ledger`, `notes`, `source`, `status`, `timers`.

use std::borrow::Cow;

use charter_kernel::{Digest, Principal, RefusalDetails, Status};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

use super::{FORMAT, RecordError, TimerField, text, timestamp};

/// What a record says. Fields that say nothing (no effects: still `[]`; no refusal, no timers, ...)
/// are left out of the text as noted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Fields<'a> {
    /// Version of the format: 2.
    pub v: u32,
    /// The run.
    pub run: Cow<'a, str>,
    /// Its place in the run, dense from 0.
    pub seq: u64,
    /// When, in milliseconds since 1970; in the text RFC 3339 with milliseconds, UTC.
    #[serde(deserialize_with = "at")]
    pub at: i64,
    /// The sender's idempotency key, or `RUN/SEQ`.
    pub id: Cow<'a, str>,
    /// Digest of the charter.
    pub charter: Digest,
    /// The actor it was for; for answers and timers: whose invocation or timer it is.
    pub to: Cow<'a, str>,
    /// Who.
    pub by: Cow<'a, Principal>,
    /// How it came, so that the envelope can be made again.
    #[serde(borrow)]
    pub source: Source<'a>,
    /// What happened.
    pub event: EventField<'a>,
    /// The last sequence number the sender had seen; left out if not said.
    #[serde(default, deserialize_with = "maybe_whole")]
    pub expected_seq: Option<u64>,
    /// What became of it.
    pub verdict: Verdict,
    /// Why it was refused; left out otherwise.
    #[serde(default)]
    pub refusal: Option<Box<RefusalDetails>>,
    /// Active atomic states of the actor before, as paths, in document order.
    pub from: Vec<Cow<'a, str>>,
    /// The same afterwards.
    pub state: Vec<Cow<'a, str>>,
    /// Names of the transitions that were taken; those of another actor with its id and a colon in
    /// front.
    pub transitions: Vec<Cow<'a, str>>,
    /// What the host was asked to do.
    pub effects: Vec<Json>,
    /// What happened to timers; left out if nothing.
    #[serde(default)]
    pub timers: Vec<TimerField<'a>>,
    /// Ledger entries that are new or have changed: `{"kind", "key", "status", "uses", "expires",
    /// "due", "data", "how"}`; left out if none.
    #[serde(default)]
    pub ledger: Vec<Json>,
    /// Approvals that were given; left out if none.
    #[serde(default)]
    pub approvals: Vec<Approval<'a>>,
    /// Conditions that failed to evaluate, events inside the run that nobody took: `{"actor", "at",
    /// "message"}`; left out if none.
    #[serde(default)]
    pub notes: Vec<Json>,
    /// The effect that this answers; left out if it is no answer, or of nothing that is awaited.
    #[serde(default)]
    pub answers: Option<String>,
    /// Status of the run afterwards; left out if the start was refused.
    #[serde(default)]
    pub status: Option<Status>,
    /// In record 0 of a fork: where it comes from.
    #[serde(default)]
    pub forked_from: Option<Origin<'a>>,
    /// Digest of the snapshot afterwards; if the start was refused, of `null`.
    pub snapshot: Digest,
    /// Hash of the record before.
    pub prev: Digest,
    /// SHA-256 over the canonical JSON of the record without this field.
    pub hash: Digest,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Transitions were taken (or a control event did its work).
    Accepted,
    /// Nothing has changed.
    Refused,
    /// Nothing takes it: not strict, or a platform event.
    Ignored,
    /// A vote towards a quorum.
    Vote,
    /// An answer to a cancelled or earlier invocation.
    Late,
}

impl Verdict {
    /// The word in the text.
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

/// How an event came, exactly as its envelope said it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Source<'a> {
    /// Which kind of event.
    pub kind: SourceKind,
    /// The actor that the sender named; none if it left that open.
    #[serde(default, borrow)]
    pub to: Option<Cow<'a, str>>,
    /// Of an answer: the invocation.
    #[serde(default, borrow)]
    pub invocation: Option<Cow<'a, str>>,
    /// Of an answer: the effect, if it was named; `RUN/SEQ/INDEX`.
    #[serde(default, borrow)]
    pub effect: Option<Cow<'a, str>>,
    /// Of a timer: its id.
    #[serde(default, borrow)]
    pub timer: Option<Cow<'a, str>>,
    /// Of a timer: its generation.
    #[serde(default, deserialize_with = "maybe_whole")]
    pub generation: Option<u64>,
    /// The time in milliseconds since 1970, if it lies outside the years 1 to 9999 and so cannot
    /// stand in `at`.
    #[serde(default, deserialize_with = "maybe_signed")]
    pub at: Option<i64>,
}

impl Source<'_> {
    /// What most events say.
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
pub enum SourceKind {
    /// The start of the run.
    Start,
    /// Sent by a principal.
    External,
    /// An actor has answered.
    Done,
    /// An actor has failed.
    Error,
    /// An attempt of an actor has failed, and another one follows.
    Attempt,
    /// A timer was due.
    Timer,
}

impl SourceKind {
    /// The word in the text.
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

/// `event` of a record.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EventField<'a> {
    /// Event type.
    pub r#type: Cow<'a, str>,
    /// Event data: what was sent; the input of a start; `{"output"}` or `{"error"}` of an answer;
    /// `{"attempt", "error", "retryAt"}` of an attempt; `{}` of a timer.
    #[serde(default)]
    pub data: Cow<'a, Json>,
    /// In place of `data`, if it was refused at the door and not kept.
    #[serde(default)]
    pub withheld: Option<Redacted>,
}

/// Data that was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Redacted {
    /// SHA-256 of its text: canonical JSON, but integers with all their digits.
    pub digest: Digest,
    /// Length of that text, in bytes.
    pub size: u64,
}

/// An approval: with `by` and `at` of the record it says who approved what, and when.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Approval<'a> {
    /// The actor whose transition it was.
    pub actor: Cow<'a, str>,
    /// The transition.
    pub transition: Cow<'a, str>,
    /// What was approved, as the charter writes it (`context.changeset`).
    pub approves: Cow<'a, str>,
    /// Digest of what was approved, as the sender was shown it and the kernel has checked it.
    pub digest: Cow<'a, str>,
}

/// Where a fork comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Origin<'a> {
    /// The run.
    pub run: Cow<'a, str>,
    /// Its last record that is shared.
    pub seq: u64,
    /// The hash of that record.
    pub hash: Digest,
}

impl Fields<'static> {
    /// Reads a record, whatever its keys' order.
    pub(crate) fn read(line: &str) -> Result<Fields<'static>, RecordError> {
        if text::depth(line) > text::MAX_DEPTH {
            return Err(RecordError::NotARecord(format!("it nests deeper than {}", text::MAX_DEPTH)));
        }
        let mut reader = serde_json::Deserializer::from_str(line);
        reader.disable_recursion_limit();
        let mut fields = Fields::deserialize(&mut reader)
            .and_then(|f| reader.end().map(|()| f))
            .map_err(|e| version_error(line).unwrap_or_else(|| RecordError::NotARecord(e.to_string())))?;
        if fields.v != FORMAT {
            return Err(unknown_version(fields.v.into()));
        }
        // Numbers mean what they say, however they are written (a double of 1e17 is written as an
        // integer).
        charter_expr::json::normalize(fields.event.data.to_mut());
        for value in fields.effects.iter_mut().chain(&mut fields.ledger) {
            charter_expr::json::normalize(value);
        }
        Ok(fields.owned())
    }
}

impl Fields<'_> {
    /// The same, borrowed from nothing.
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
                withheld: self.event.withheld,
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
            status: self.status,
            forked_from: self.forked_from.map(|o| Origin { run: own(o.run), seq: o.seq, hash: o.hash }),
            snapshot: self.snapshot,
            prev: self.prev,
            hash: self.hash,
        }
    }

    /// When, as the text has it: RFC 3339, UTC, milliseconds.
    #[must_use]
    pub fn at_text(&self) -> String {
        timestamp::text(self.at)
    }

    /// Whether the sender gave the id.
    #[must_use]
    pub fn has_given_id(&self) -> bool {
        let own = self.id.strip_prefix(self.run.as_ref()).and_then(|rest| rest.strip_prefix('/'));
        own.is_none_or(|seq| seq != self.seq.to_string())
    }

    /// Status of the run afterwards, in a word; `refused` if its start was.
    #[must_use]
    pub fn status_word(&self) -> &'static str {
        self.status.map_or("refused", Status::word)
    }
}

/// The error of a text that is a record of another version.
fn version_error(line: &str) -> Option<RecordError> {
    let version = text::json_of(line).ok()?.get("v")?.as_u64()?;
    (version != u64::from(FORMAT)).then(|| unknown_version(version))
}

fn unknown_version(version: u64) -> RecordError {
    match version {
        1 => RecordError::PreRelease,
        _ => RecordError::NotARecord(format!("record version {version}; this program reads version {FORMAT}")),
    }
}

pub(super) fn at<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let written = <Cow<'de, str>>::deserialize(deserializer)?;
    timestamp::read(&written).ok_or_else(|| {
        serde::de::Error::custom(format!("`at` is not a moment such as 2026-11-21T10:00:00.000Z: `{written}`"))
    })
}

pub(super) fn maybe_whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let signed = deserializer.deserialize_any(Whole)?;
    u64::try_from(signed).map(Some).map_err(|_| serde::de::Error::custom("a number is out of range"))
}

pub(super) fn maybe_signed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let wide = deserializer.deserialize_any(Whole)?;
    i64::try_from(wide).map(Some).map_err(|_| serde::de::Error::custom("a number is out of range"))
}

/// An integer that is written as a number within ±(2^53-1), and as a string beyond.
struct Whole;

impl serde::de::Visitor<'_> for Whole {
    type Value = i128;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an integer, or one in a string")
    }
    fn visit_i64<E>(self, v: i64) -> Result<i128, E> {
        Ok(v.into())
    }
    fn visit_u64<E>(self, v: u64) -> Result<i128, E> {
        Ok(v.into())
    }
    fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<i128, E> {
        v.parse().map_err(|_| E::custom("an integer, or one in a string, was expected"))
    }
}
