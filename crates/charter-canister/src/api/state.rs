//! The state of the automaton and of its turns.

use candid::CandidType;
use serde::Deserialize;

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, CandidType, Deserialize)]
pub enum Outcome {
    /// It completed.
    #[serde(rename = "completed")]
    Completed,
    /// It failed.
    #[serde(rename = "failed")]
    Failed,
}

impl Outcome {
    /// The name that the charter uses.
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
    /// Counted from 1.
    pub number: u64,
    /// `RUN/turn-NUMBER`.
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Its reply.
    pub reply: Option<String>,
    /// Why it failed.
    pub failure: Option<String>,
    /// When it began, RFC 3339.
    pub began: String,
    /// When it ended, RFC 3339.
    pub ended: String,
    /// Its duration in milliseconds.
    pub duration_ms: u64,
    /// The record that ended it.
    pub seq: u64,
}

/// The turn in progress, which locks out others.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct TurnInFlight {
    /// Counted from 1.
    pub number: u64,
    /// `RUN/turn-NUMBER`.
    pub id: String,
    /// Why the automaton woke.
    pub reason: String,
    /// When it began, RFC 3339.
    pub began: String,
    /// When its lease ends and it fails, RFC 3339.
    pub until: String,
}

/// The last error; reset when a turn begins.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct LastError {
    /// The reason.
    pub reason: String,
    /// The turn; `null` if it was at the start.
    pub turn: Option<u64>,
    /// Time, RFC 3339.
    pub at: String,
}

/// The state of the automaton.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Runtime {
    /// Id of the run, which is the canister's.
    pub run: String,
    /// Digest of the charter of the run.
    pub charter: String,
    /// Digest of the charter that is built into this canister. It differs from `charter` after an
    /// upgrade with a new charter, because a run keeps its charter.
    pub built_in: String,
    /// Active states.
    pub state: Vec<String>,
    /// The turn in progress.
    pub turn: Option<TurnInFlight>,
    /// Whether a timer wakes the automaton.
    pub looping: bool,
    /// The number of turns that began.
    pub turns: u64,
    /// The turn that ended last.
    pub last_turn: Option<TurnEnd>,
    /// The last error.
    pub last_error: Option<LastError>,
    /// The version of the soul.
    pub soul_version: u64,
    /// When the next timer, or the next attempt of an actor that has failed, is due.
    pub next_due_ms: Option<u64>,
    /// Number of the first stored record.
    pub first: u64,
    /// Number of the next record.
    pub end: u64,
    /// Hash of the last record.
    pub head: String,
    /// Events that a controller may send now.
    pub legal: Vec<String>,
}
