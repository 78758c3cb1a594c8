//! What is stored, before it is validated.

use crate::record::Record;

/// A stored record: its columns and its text. Neither has been validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// Position in the store, across all runs.
    pub place: i64,
    /// The run.
    pub run: &'a str,
    /// Sequence number.
    pub seq: i64,
    /// Id.
    pub id: &'a str,
    /// Time, as text.
    pub at: &'a str,
    /// Event type.
    pub r#type: &'a str,
    /// Verdict.
    pub verdict: &'a str,
    /// Hash.
    pub hash: &'a str,
    /// The record.
    pub text: &'a [u8],
}

impl Row<'_> {
    /// Visits the row that a store without columns would have for a record; `visit` is for
    /// [`Store::scan`](crate::Store::scan).
    pub fn of_record(place: i64, record: &Record, visit: &mut dyn FnMut(&Row<'_>) -> bool) -> bool {
        visit(&Row {
            place,
            run: &record.run,
            seq: i64::try_from(record.seq).unwrap_or(i64::MAX),
            id: &record.id,
            at: &record.at_text(),
            r#type: &record.event.r#type,
            verdict: record.verdict.word(),
            hash: &record.hash.to_string(),
            text: record.text().as_bytes(),
        })
    }
}

/// The stored head of a run. It has not been validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunRow<'a> {
    /// The run.
    pub run: &'a str,
    /// Digest of its charter.
    pub charter: &'a str,
    /// Status, as text.
    pub status: &'a str,
    /// Sequence number of its last record.
    pub seq: i64,
    /// Hash of its last record.
    pub hash: &'a str,
    /// Time of its first record, as text.
    pub started: &'a str,
    /// Time of its last record, as text.
    pub updated: &'a str,
}
