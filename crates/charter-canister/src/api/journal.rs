//! Pages of records and turns, settings, skills, the projection and the export.

use candid::CandidType;
use serde::Deserialize;

use super::{MAX_PAGE, Outcome, USUAL_PAGE};

/// A page of a numbered list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, CandidType, Deserialize)]
pub struct Page {
    /// The first number (default: the first stored one).
    pub from: Option<u64>,
    /// Number of entries (default 20, at most 200).
    pub limit: Option<u32>,
}

impl Page {
    /// The number of entries.
    #[must_use]
    pub fn limit(&self) -> u32 {
        limit(self.limit)
    }
}

pub(crate) fn limit(wanted: Option<u32>) -> u32 {
    wanted.unwrap_or(USUAL_PAGE).clamp(1, MAX_PAGE)
}

/// Records.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Events {
    /// The records, in order.
    pub events: Vec<Record>,
    /// Start of the next page; `null` if this is the last one.
    pub next: Option<u64>,
    /// Number of the first stored record.
    pub first: u64,
    /// Number of the next record.
    pub end: u64,
}

/// A record of the journal.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Record {
    /// Its number.
    pub seq: u64,
    /// The event id that its sender chose, or `RUN/SEQ`.
    pub id: String,
    /// Time of the record.
    pub at_ms: u64,
    /// Type of the event.
    pub kind: String,
    /// Its data, as JSON.
    pub data: String,
    /// Id of the principal.
    pub by: String,
    /// Its roles.
    pub roles: Vec<String>,
    /// What it is: `person`, `agent` or `service`.
    pub by_kind: String,
    /// How it was authenticated: `key`, `none`, ...
    pub by_auth: String,
    /// `accepted`, `refused`, `late`, `ignored` or `vote`.
    pub verdict: String,
    /// Active states before.
    pub from: Vec<String>,
    /// Active states after.
    pub state: Vec<String>,
    /// The transitions taken.
    pub transitions: Vec<String>,
    /// Why the event was refused.
    pub refusal: Option<Reason>,
    /// Hash of the previous record.
    pub prev: String,
    /// Hash of this record.
    pub hash: String,
}

/// Why an event was refused.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Reason {
    /// Stable: `unhandled`, `guard`, `schema`, `authority`, ...
    pub code: String,
    /// The message, for people.
    pub message: String,
}

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Setting {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// Selects turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, CandidType, Deserialize)]
pub struct TurnsQuery {
    /// Only turns with this outcome.
    pub outcome: Option<Outcome>,
    /// Only turns after this number, or before it with `newest_first`.
    pub after: Option<u64>,
    /// Whether the newest turns come first.
    pub newest_first: Option<bool>,
    /// Number of entries (default 20, at most 200).
    pub limit: Option<u32>,
}

/// Turns, from the projection.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Turns {
    /// The turns, in the requested order.
    pub turns: Vec<Turn>,
    /// `after` of the next page; `null` if this is the last one.
    pub next: Option<u64>,
}

/// A row of `turn_projection`.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Turn {
    /// The record that ended it.
    pub seq: u64,
    /// Counted from 1.
    pub turn: u64,
    /// `RUN/turn-NUMBER`.
    pub id: String,
    /// Why the automaton woke.
    pub reason: String,
    /// Its input.
    pub input: Option<String>,
    /// When it began, RFC 3339.
    pub began: String,
    /// When it ended, RFC 3339.
    pub ended: String,
    /// Its duration in milliseconds.
    pub duration_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed.
    pub failure: Option<String>,
    /// The version of the soul at its start.
    pub soul_version: u64,
    /// Digest of its context.
    pub context_digest: Option<String>,
    /// The inference adapter.
    pub adapter: Option<String>,
    /// Its thought.
    pub thought: Option<String>,
    /// Its reply.
    pub reply: Option<String>,
    /// The requested actions, as JSON.
    pub actions: Option<String>,
    /// Their results, as JSON.
    pub results: Option<String>,
}

/// Refused events, from the projection.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Refusals {
    /// The refused events, in order.
    pub refusals: Vec<Refused>,
    /// `from` of the next page; `null` if this is the last one.
    pub next: Option<u64>,
}

/// A refused event.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Refused {
    /// Its record.
    pub seq: u64,
    /// Time, RFC 3339.
    pub at: String,
    /// Type of the event.
    pub kind: String,
    /// Who sent it.
    pub by: String,
    /// The code of the refusal.
    pub code: String,
    /// The message of the refusal.
    pub message: String,
}

/// The soul: the identity of the automaton.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Soul {
    /// Its text.
    pub text: String,
    /// Counted from 1.
    pub version: u64,
}

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Skill {
    /// `[a-z][a-z0-9-]*`.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// What to do.
    pub instructions: String,
    /// Whether it is part of the context of a turn.
    pub enabled: bool,
    /// Its source.
    pub source: String,
    /// Its version.
    pub version: String,
}

/// A skill to install, new or in a new version.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct NewSkill {
    /// `[a-z][a-z0-9-]*`.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// What to do.
    pub instructions: String,
    /// Whether it is part of the context of a turn (default: true).
    pub enabled: Option<bool>,
    /// Its version (default `1`).
    pub version: Option<String>,
}

/// The state of the SQL projection.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Projection {
    /// Digest of the table definitions.
    pub schema: String,
    /// The first record it covers.
    pub from: u64,
    /// The first record it does not cover yet.
    pub to: u64,
    /// Number of the first record in the log.
    pub first: u64,
    /// Number of the next record in the log.
    pub end: u64,
    /// Whether it covers the whole log.
    pub current: bool,
    /// How many times it was rebuilt.
    pub replays: u64,
    /// Rows of `turn_projection`.
    pub turns: u64,
    /// Rows of `transitions`.
    pub transitions: u64,
    /// Rows of `refusals`.
    pub refusals: u64,
    /// Digest of all rows, if they are few enough to be read at once. A rebuilt projection has the
    /// same digest.
    pub digest: Option<String>,
    /// The error that stopped it, if any.
    pub error: Option<String>,
}

/// Whether the stored data agrees with the run.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Check {
    /// Settings and skills that differ from the run, as `config: KEY` or `skills: NAME`.
    pub differences: Vec<String>,
    /// Whether the snapshot is the one that the last record names.
    pub snapshot: bool,
    /// Whether the chain of the last 100 records is intact.
    pub chain: bool,
}

/// A part of the exported journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, CandidType, Deserialize)]
pub struct ExportArgs {
    /// The first record; `null` for the start, with the header line of the file.
    pub from: Option<u64>,
    /// The record to stop before: `to` of the first part.
    pub to: Option<u64>,
}

/// A part of the exported journal. The concatenated parts are the file that `charter verify` and
/// `charter import` read.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct ExportPart {
    /// Complete lines.
    pub text: String,
    /// `from` of the next part; `null` if this is the last one.
    pub next: Option<u64>,
    /// `to` of the next part.
    pub to: u64,
}

/// A task that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Task {
    /// Its id, `RUN/SEQ/INDEX`, for `complete` and `decline`.
    pub id: String,
    /// The actor of the run that waits.
    pub actor: String,
    /// The entry of `actors`.
    pub src: String,
    /// What it is about.
    pub title: Option<String>,
    /// Roles that may answer; empty: all callers of `complete`.
    pub roles: Vec<String>,
    /// The input, as JSON, for the person to read.
    pub input: String,
    /// The JSON Schema of the answer.
    pub output: Option<String>,
}

/// The answer to an invocation (only for the canister itself).
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub enum Work {
    /// Its output, as JSON.
    Done(String),
    /// Its error, as JSON.
    Error(String),
    /// The run no longer waits for it.
    Gone,
}
