//! What callers send and get: the Candid types of the canister. Times are milliseconds since 1970; JSON is text.

use candid::{CandidType, Principal};
use serde::Deserialize;

/// Bytes of text that a call may bring in all; what is larger is turned away before any work.
pub const MAX_INPUT_BYTES: usize = 65_536;

/// Records or rows of a page, at most.
pub const MAX_PAGE: u32 = 200;

/// Records or rows of a page, if nobody says how many.
pub const USUAL_PAGE: u32 = 20;

/// Bytes of a page, about: an answer of the Internet Computer has 2 MiB at most.
pub const PAGE_BYTES: usize = 1 << 20;

/// Why a call was not done.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub enum Error {
    /// Only a controller may; nothing was written.
    Unauthorized {
        /// Who called.
        caller: Principal,
    },
    /// More than is taken; nothing was written.
    TooLarge {
        /// What is too large.
        what: String,
        /// How many bytes it has.
        bytes: u64,
        /// How many it may have.
        most: u64,
    },
    /// The charter refuses; the refusal is in the log.
    Refused(Refusal),
    /// There is no such thing; nothing was written.
    NotFound {
        /// One sentence.
        message: String,
    },
    /// The canister could not, and what it says is why.
    Failed {
        /// One sentence.
        message: String,
    },
}

/// Why the charter refused an event.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Refusal {
    /// The record of it.
    pub seq: u64,
    /// Stable: `unhandled`, `guard`, `schema`, `authority`, ...
    pub code: String,
    /// In words.
    pub message: String,
    /// Active states.
    pub state: Vec<String>,
    /// Events that would be legal now for the caller.
    pub legal: Vec<String>,
}

/// What a new automaton starts with. Everything may be left out.
#[derive(Debug, Clone, PartialEq, Default, CandidType, Deserialize)]
pub struct InitArgs {
    /// Who it is, until the first `update_soul`.
    pub soul: Option<String>,
    /// What its first turn is about; without it the loop or a controller wakes it.
    pub wake: Option<String>,
    /// Whether a timer wakes it (default: yes).
    pub looping: Option<bool>,
    /// Who thinks.
    pub inference: Option<Inference>,
    /// How much history is kept.
    pub history: Option<History>,
}

/// An adapter of the inference port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, CandidType, Deserialize)]
pub enum Inference {
    /// A fixed rule; deterministic.
    #[serde(rename = "mock")]
    Mock,
    /// Answers that nothing is configured.
    #[serde(rename = "stub")]
    Stub,
}

/// How much history is kept: four segments; the oldest is dropped when a fifth would begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, CandidType, Deserialize)]
pub struct History {
    /// Records of a segment, at most (default 8,192).
    pub segment_records: u64,
    /// Bytes of a segment, after which the next one begins (default 16 MiB).
    pub segment_bytes: u64,
}

/// An event was taken.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Receipt {
    /// Its record.
    pub seq: u64,
    /// The hash of that record.
    pub hash: String,
    /// Active states afterwards.
    pub state: Vec<String>,
}

/// Wakes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, CandidType, Deserialize)]
pub struct WakeArgs {
    /// Why (default: `by hand`).
    pub reason: Option<String>,
    /// What the turn is about.
    pub input: Option<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, CandidType, Deserialize)]
pub enum Outcome {
    /// It went to its end.
    #[serde(rename = "completed")]
    Completed,
    /// It did not.
    #[serde(rename = "failed")]
    Failed,
}

impl Outcome {
    /// The word of the charter.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
        }
    }

    pub(crate) fn of(word: &str) -> Outcome {
        match word {
            "completed" => Outcome::Completed,
            _ => Outcome::Failed,
        }
    }
}

/// A turn that ended.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct TurnEnd {
    /// From 1.
    pub number: u64,
    /// `RUN/turn-NUMBER`.
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What it said.
    pub reply: Option<String>,
    /// Why it failed.
    pub failure: Option<String>,
    /// When it began, RFC 3339.
    pub began: String,
    /// When it ended, RFC 3339.
    pub ended: String,
    /// How long it took.
    pub duration_ms: u64,
    /// The record that ended it.
    pub seq: u64,
}

/// The turn in flight: the lock.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct TurnInFlight {
    /// From 1.
    pub number: u64,
    /// `RUN/turn-NUMBER`.
    pub id: String,
    /// Why it woke.
    pub reason: String,
    /// When it began, RFC 3339.
    pub began: String,
    /// When its lease ends, RFC 3339: then it fails.
    pub until: String,
}

/// What went wrong last; gone when a turn begins.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct LastError {
    /// Why.
    pub reason: String,
    /// In which turn; none: at the start.
    pub turn: Option<u64>,
    /// When, RFC 3339.
    pub at: String,
}

/// How it is.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Runtime {
    /// Id of the run: the canister's.
    pub run: String,
    /// Digest of the charter that it follows.
    pub charter: String,
    /// Digest of the charter that is built into this canister; another one after an upgrade that brought a new one: a run keeps its charter.
    pub built_in: String,
    /// Active states.
    pub state: Vec<String>,
    /// The turn in flight.
    pub turn: Option<TurnInFlight>,
    /// Whether the loop wakes it.
    pub looping: bool,
    /// Turns that began.
    pub turns: u64,
    /// The turn that ended last.
    pub last_turn: Option<TurnEnd>,
    /// What went wrong last.
    pub last_error: Option<LastError>,
    /// The version of its soul.
    pub soul_version: u64,
    /// When the charter's next timer is due.
    pub next_due_ms: Option<u64>,
    /// Number of the first record that is kept.
    pub first: u64,
    /// Number that the next record will have.
    pub end: u64,
    /// Hash of the last record.
    pub head: String,
    /// Events that a controller may send now.
    pub legal: Vec<String>,
}

/// A page of something with numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, CandidType, Deserialize)]
pub struct Page {
    /// The first number (default: the first that is kept).
    pub from: Option<u64>,
    /// How many (default 20, at most 200).
    pub limit: Option<u32>,
}

impl Page {
    /// How many.
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
    /// In order.
    pub events: Vec<Record>,
    /// Where the next page begins; none: there is no more.
    pub next: Option<u64>,
    /// Number of the first record that is kept.
    pub first: u64,
    /// Number that the next record will have.
    pub end: u64,
}

/// A record of the journal.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Record {
    /// Its number.
    pub seq: u64,
    /// When.
    pub at_ms: u64,
    /// Type of the event.
    pub kind: String,
    /// Its data, as JSON.
    pub data: String,
    /// Who.
    pub by: String,
    /// As what.
    pub roles: Vec<String>,
    /// `accepted`, `refused`, `late`, `ignored`, `vote`.
    pub verdict: String,
    /// Active states before.
    pub from: Vec<String>,
    /// Active states after.
    pub state: Vec<String>,
    /// Transitions that were taken.
    pub transitions: Vec<String>,
    /// Why it was refused.
    pub refusal: Option<Reason>,
    /// Hash of the record before.
    pub prev: String,
    /// Hash of this one.
    pub hash: String,
}

/// Why an event was refused.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Reason {
    /// Stable: `unhandled`, `guard`, `schema`, `authority`, ...
    pub code: String,
    /// In words.
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

/// Which turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, CandidType, Deserialize)]
pub struct TurnsQuery {
    /// Only those that ended so.
    pub outcome: Option<Outcome>,
    /// Only those after this number; in the other order, before it.
    pub after: Option<u64>,
    /// The last ones first.
    pub newest_first: Option<bool>,
    /// How many (default 20, at most 200).
    pub limit: Option<u32>,
}

/// Turns, from the projection.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Turns {
    /// In the order that was asked for.
    pub turns: Vec<Turn>,
    /// `after` of the next page; none: there is no more.
    pub next: Option<u64>,
}

/// A row of `turn_projection`.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Turn {
    /// The record that ended it.
    pub seq: u64,
    /// From 1.
    pub turn: u64,
    /// `RUN/turn-NUMBER`.
    pub id: String,
    /// Why it woke.
    pub reason: String,
    /// What it was about.
    pub input: Option<String>,
    /// When it began, RFC 3339.
    pub began: String,
    /// When it ended, RFC 3339.
    pub ended: String,
    /// How long it took.
    pub duration_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed.
    pub failure: Option<String>,
    /// The version of the soul that it began with.
    pub soul_version: u64,
    /// Digest of what it knew.
    pub context_digest: Option<String>,
    /// Who thought.
    pub adapter: Option<String>,
    /// What it thought.
    pub thought: Option<String>,
    /// What it said.
    pub reply: Option<String>,
    /// What it wanted to do, as JSON.
    pub actions: Option<String>,
    /// What became of it, as JSON.
    pub results: Option<String>,
}

/// Refused events, from the projection.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Refusals {
    /// In order.
    pub refusals: Vec<Refused>,
    /// `from` of the next page; none: there is no more.
    pub next: Option<u64>,
}

/// A refused event.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Refused {
    /// Its record.
    pub seq: u64,
    /// When, RFC 3339.
    pub at: String,
    /// Type of the event.
    pub kind: String,
    /// Who sent it.
    pub by: String,
    /// Why: the code.
    pub code: String,
    /// Why: in words.
    pub message: String,
}

/// Who it is.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Soul {
    /// In words.
    pub text: String,
    /// From 1.
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
    /// Where it comes from.
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
    /// Whether it is part of the context of a turn (default: yes).
    pub enabled: Option<bool>,
    /// Its version (default `1`).
    pub version: Option<String>,
}

/// How far the SQL projection is.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Projection {
    /// Digest of its tables' definition.
    pub schema: String,
    /// The first record that it covers.
    pub from: u64,
    /// The first record that it does not cover yet.
    pub to: u64,
    /// The first record of the log.
    pub first: u64,
    /// The end of the log.
    pub end: u64,
    /// Whether it covers the whole log.
    pub current: bool,
    /// How often it was made anew.
    pub replays: u64,
    /// Rows: turns, transitions, refusals.
    pub turns: u64,
    /// Rows of `transitions`.
    pub transitions: u64,
    /// Rows of `refusals`.
    pub refusals: u64,
    /// Digest of all rows, if they are few enough to be read at once (a projection that was made anew has the same).
    pub digest: Option<String>,
    /// Why it could not go on, if it could not.
    pub error: Option<String>,
}

/// Whether what is kept beside the run agrees with it.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Check {
    /// Settings and skills that differ from the run: `config: KEY`, `skills: NAME`.
    pub differences: Vec<String>,
    /// Whether the run's snapshot is the one that its last record names.
    pub snapshot: bool,
    /// Whether the log's chain holds together, as far as it was looked at (the last 100 records).
    pub chain: bool,
}

/// A part of the exported journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, CandidType, Deserialize)]
pub struct ExportArgs {
    /// The record to begin with; none: from the start, with the first line of the file.
    pub from: Option<u64>,
    /// Up to which record, it excluded; what the first part said.
    pub to: Option<u64>,
}

/// A part of the exported journal: the parts in order, one after the other, are the file that `charter verify` and `charter import` read.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct ExportPart {
    /// Lines, each with its line end.
    pub text: String,
    /// `from` of the next part; none: this was the last.
    pub next: Option<u64>,
    /// `to` of the next part.
    pub to: u64,
}

/// What is asked of an actor (only by the canister itself).
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub enum Work {
    /// Its output, as JSON.
    Done(String),
    /// Its error, as JSON.
    Error(String),
    /// Nobody waits for it any more.
    Gone,
}
