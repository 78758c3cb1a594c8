//! The Candid types of the canister's interface. Times are milliseconds since 1970; JSON is in
//! strings.

mod journal;
mod state;

use candid::{CandidType, Principal};
use serde::Deserialize;

pub(crate) use journal::limit;
pub use journal::{
    Check, Events, ExportArgs, ExportPart, NewSkill, Page, Projection, Reason, Record, Refusals, Refused, Setting,
    Skill, Soul, Task, Turn, Turns, TurnsQuery, Work,
};
pub use state::{LastError, Outcome, Runtime, TurnEnd, TurnInFlight};

/// Maximum size of the text in a call, in bytes; longer input is rejected before any work.
pub const MAX_INPUT_BYTES: usize = 65_536;

/// Maximum size of an event id, in bytes.
pub const MAX_ID_BYTES: usize = 256;

/// Maximum number of records or rows on a page.
pub const MAX_PAGE: u32 = 200;

/// Default number of records or rows on a page.
pub const USUAL_PAGE: u32 = 20;

/// Approximate maximum size of a page, in bytes; the Internet Computer limits a response to 2 MiB.
pub const PAGE_BYTES: usize = 1 << 20;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub enum Error {
    /// Only a controller may do this; nothing was written.
    Unauthorized {
        /// The caller.
        caller: Principal,
    },
    /// The input is too large; nothing was written.
    TooLarge {
        /// The part that is too large.
        what: String,
        /// Its size in bytes.
        bytes: u64,
        /// The upper limit in bytes.
        most: u64,
    },
    /// The charter refuses the event; the refusal is in the log.
    Refused(Refusal),
    /// The input is not possible, so it has no record: its event id belongs to another event or is
    /// reserved, or the task is for others.
    Denied {
        /// The message.
        message: String,
    },
    /// Not found; nothing was written.
    NotFound {
        /// The message.
        message: String,
    },
    /// The canister failed; the message says why.
    Failed {
        /// The message.
        message: String,
    },
}

/// Why the charter refused an event.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Refusal {
    /// The record of the refusal.
    pub seq: u64,
    /// Stable: `unhandled`, `guard`, `schema`, `authority`, ...
    pub code: String,
    /// The message, for people.
    pub message: String,
    /// Active states.
    pub state: Vec<String>,
    /// Events that would be legal now for the caller.
    pub legal: Vec<String>,
}

/// The initial configuration of an automaton. Every field is optional.
#[derive(Debug, Clone, PartialEq, Default, CandidType, Deserialize)]
pub struct InitArgs {
    /// Its soul, until the first `update_soul`.
    pub soul: Option<String>,
    /// The input of its first turn; without it, the loop or a controller wakes it.
    pub wake: Option<String>,
    /// Whether a timer wakes it (default: true).
    pub looping: Option<bool>,
    /// The inference adapter.
    pub inference: Option<Inference>,
    /// The amount of history to keep.
    pub history: Option<History>,
}

/// An adapter of the inference port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, CandidType, Deserialize)]
pub enum Inference {
    /// A fixed, deterministic rule.
    #[serde(rename = "mock")]
    Mock,
    /// Answers that no adapter is configured.
    #[serde(rename = "stub")]
    Stub,
}

/// The size of the history: four segments; the oldest is dropped when a fifth would begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, CandidType, Deserialize)]
pub struct History {
    /// Upper limit of records in a segment (default 8,192).
    pub segment_records: u64,
    /// Size of a segment in bytes after which the next one begins (default 16 MiB).
    pub segment_bytes: u64,
}

/// The result of an accepted event.
#[derive(Debug, Clone, PartialEq, Eq, CandidType, Deserialize)]
pub struct Receipt {
    /// Its record.
    pub seq: u64,
    /// The hash of that record.
    pub hash: String,
    /// Active states after it.
    pub state: Vec<String>,
    /// Whether the event was recorded earlier under the same id; if so, this call changed nothing.
    pub repeated: bool,
}

/// Arguments of `wake`.
#[derive(Debug, Clone, PartialEq, Eq, Default, CandidType, Deserialize)]
pub struct WakeArgs {
    /// The reason (default: `by hand`).
    pub reason: Option<String>,
    /// The input of the turn.
    pub input: Option<String>,
    /// The event id: a repeated call with the same id starts no other turn.
    pub id: Option<String>,
}
