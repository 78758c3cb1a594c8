//! The record: one line of the journal, its fields and its text.

mod builder;
mod fields;
mod input;
mod scanner;
mod shown;
mod text;
mod timer;
pub(crate) mod timestamp;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use charter_kernel::{Digest, Envelope, Machine, Refusal, Snapshot, Step};

pub use builder::RecordBuilder;
pub use fields::{Approval, EventField, Fields, Origin, Redacted, Source, SourceKind, Verdict};
pub(crate) use input::RecordInput;
pub(crate) use text::{MAX_DEPTH, depth, json_of, rehash};
pub use timer::{TimerField, TimerWord};

/// The version of the record format.
pub const FORMAT: u32 = 2;

/// What record 0 has as `prev`: 64 zeros.
pub const GENESIS: Digest = Digest([0; 32]);

/// One line of the journal: its fields (by [`Deref`]) and its text, which is canonical JSON (RFC
/// 8785). Cheap to clone.
#[derive(Clone)]
pub struct Record {
    fields: Arc<Fields<'static>>,
    text: Arc<str>,
}

/// Why something is not a record, or cannot be turned back into what came in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The text is not a record of this version.
    #[error("this is not a record: {0}")]
    NotARecord(String),
    /// The record is of version 1, of which there was no release.
    #[error("journal made by a pre-release of Charter (record version 1); it cannot be read")]
    PreRelease,
    /// The data of the event was not kept, because it was refused at the door (too large, or
    /// numbers that JSON cannot keep).
    #[error(
        "the data of this event was not kept: the event was refused at the door; the record has its digest and size"
    )]
    Redacted,
}

impl Record {
    /// Makes the record of what became of an envelope. A pure function: the same envelopes give the
    /// same records on every host.
    ///
    /// `id` is the sender's idempotency key; without one the record is called `RUN/SEQ`. `prev` is
    /// the hash of the record before ([`GENESIS`] for the first), `before` the snapshot the
    /// envelope was applied to (none for the start).
    #[must_use]
    pub fn of(
        machine: &Machine,
        run: &str,
        id: Option<&str>,
        prev: Digest,
        envelope: &Envelope,
        before: Option<&Snapshot>,
        outcome: &Result<Step, Refusal>,
    ) -> Record {
        RecordBuilder { machine, run, id, prev, envelope, before, outcome, snapshot: None, forked_from: None }.record()
    }

    /// Reads a record. Whether it is what the kernel would have written is a question for
    /// verification.
    ///
    /// # Errors
    /// The text is not a record of this version.
    pub fn read(text: &str) -> Result<Record, RecordError> {
        let fields = Fields::read(text)?;
        Ok(Record { fields: Arc::new(fields), text: text.into() })
    }

    pub(crate) fn new(fields: Fields<'static>, text: String) -> Record {
        Record { fields: Arc::new(fields), text: text.into() }
    }

    /// The record as it is stored: canonical JSON (RFC 8785), one line.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What came in: give it to the kernel with the snapshot before, and the same comes out.
    ///
    /// # Errors
    /// The data of the event was not kept.
    pub fn envelope(&self) -> Result<Envelope, RecordError> {
        RecordInput::read(&self.text)?.envelope()
    }

    /// Whether `other` says the same thing: same addressee, event, data and sender. The time, and
    /// what the sender had seen, may differ. This is how a repeated event is told from another one
    /// under the same id.
    #[must_use]
    pub fn says_the_same(&self, other: &Record) -> bool {
        let (a, b) = (&self.fields, &other.fields);
        a.source.kind == b.source.kind
            && a.source.invocation == b.source.invocation
            && a.source.effect == b.source.effect
            && a.to == b.to
            && a.event == b.event
            && a.by == b.by
    }

    /// Whether this is the record of the same event: same addressee, type, data and sender. The
    /// time, and what the sender had seen, may differ. As [`Record::says_the_same`], but asked
    /// before the event is given to the kernel: if so, this record is its answer.
    #[must_use]
    pub fn is_of(&self, envelope: &Envelope) -> bool {
        builder::is_of(&self.fields, envelope)
    }

    /// Whether its own hash is right.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        text::rehash(&self.text).is_some_and(|hash| hash == self.hash)
    }
}

impl Deref for Record {
    type Target = Fields<'static>;
    fn deref(&self) -> &Fields<'static> {
        &self.fields
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        self.text == other.text
    }
}

impl Eq for Record {}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl serde::Serialize for Record {
    /// The object of the contract; a JSON serializer may reorder its keys.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json_of(&self.text).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}
