//! The record: one entry of the journal, with its fields and its text.

mod builder;
mod fields;
mod input;
mod json;
mod manifest;
mod scanner;
mod shown;
mod text;
mod timer;
pub(crate) mod timestamp;
mod values;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use charter_kernel::{Digest, Envelope, Machine, Refusal, Snapshot, Step};

pub use builder::RecordBuilder;
pub use fields::{Approval, EventField, Fields, Origin, Redacted, Source, SourceKind, Verdict};
pub(crate) use input::RecordInput;
pub(crate) use json::{MAX_DEPTH, depth, json_of};
pub use manifest::Manifest;
pub(crate) use text::rehash;
pub use timer::{TimerField, TimerWord};

/// The version of the record format.
pub const FORMAT: u32 = 2;

/// The `prev` of record 0: 64 zeros.
pub const GENESIS: Digest = Digest([0; 32]);

/// One entry of the journal: its fields (through [`Deref`]) and its text, which is canonical JSON
/// (RFC 8785). Cheap to clone.
#[derive(Clone)]
pub struct Record {
    fields: Arc<Fields<'static>>,
    text: Arc<str>,
}

/// Why text is not a record, or why the envelope of a record cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The text is not a record of this version.
    #[error("not a record: {0}")]
    NotARecord(String),
    /// The record has version 1, which was never released.
    #[error("journal made by a pre-release of Charter (record version 1); it cannot be read")]
    PreRelease,
    /// The event data is redacted: validation refused the event (data too large, or numbers out of
    /// the range of JSON).
    #[error(
        "the data of this event is redacted: validation refused the event, and the record has only the digest and size of its data"
    )]
    Redacted,
}

impl Record {
    /// Builds the record of an envelope and its outcome. A pure function: the same inputs produce
    /// the same record on every host.
    ///
    /// `id` is the event id that the sender chose; without one, the id of the record is `RUN/SEQ`.
    /// `prev` is the hash of the previous record ([`GENESIS`] for the first), and `before` is the
    /// snapshot to which the envelope was applied (`None` for the start).
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
        let (snapshot, forked_from, manifest) = (None, None, None);
        RecordBuilder { machine, run, id, prev, envelope, before, outcome, snapshot, forked_from, manifest }.record()
    }

    /// Parses a record. Only verification checks whether the kernel produces the same record.
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

    /// The record in its stored form: canonical JSON (RFC 8785), one line.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Restores the envelope. Applied to the previous snapshot, it produces the recorded result.
    ///
    /// # Errors
    /// The event data is redacted.
    pub fn envelope(&self) -> Result<Envelope, RecordError> {
        RecordInput::read(&self.text)?.envelope()
    }

    /// Whether this is a record of the event in `envelope`: same addressee, type, data and sender.
    /// The time and `expected_seq` may differ. If true, the event is a repetition, and this record
    /// is its result.
    #[must_use]
    pub fn is_of(&self, envelope: &Envelope) -> bool {
        builder::is_of(&self.fields, envelope)
    }

    /// Whether the hash matches the content.
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
    /// Serializes the JSON object of the record; the serializer may reorder its keys.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json_of(&self.text).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}
