//! A summary of the run for callers.

use serde::{Deserialize, Serialize};

/// A summary for callers, stored with the kernel's snapshot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RuntimeView {
    /// Active states.
    pub state: Vec<String>,
    /// The turn in progress, with its lease.
    pub turn: Option<TurnInFlight>,
    /// Whether a timer wakes the automaton.
    pub looping: bool,
    /// The number of turns that began.
    pub turns: u64,
    /// The turn that ended last.
    pub last_turn: Option<LastTurn>,
    /// The last error; reset when a turn begins.
    pub last_error: Option<LastError>,
}

/// The turn in progress.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TurnInFlight {
    /// `RUN/turn-NUMBER`.
    pub id: String,
    /// Counted from 1.
    pub number: u64,
    /// Why the automaton woke.
    pub reason: String,
    /// When it began, RFC 3339.
    pub began: String,
    /// When its lease ends, RFC 3339.
    pub until: String,
}

/// A turn that ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LastTurn {
    /// `RUN/turn-NUMBER`.
    pub id: String,
    /// Counted from 1.
    pub number: u64,
    /// `completed` or `failed`.
    pub outcome: String,
    /// Its reply.
    pub reply: Option<String>,
    /// Why it failed.
    pub failure: Option<String>,
    /// When it began, RFC 3339.
    pub began: String,
    /// When it ended, RFC 3339.
    pub ended: String,
    /// The record that ended it.
    pub seq: u64,
}

/// The last error.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LastError {
    /// Why.
    pub reason: String,
    /// The turn; `None` if it was at the start.
    pub turn: Option<u64>,
    /// When, RFC 3339.
    pub at: String,
}
