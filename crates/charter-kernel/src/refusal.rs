//! Why an event was refused: a code on the hot path, the whole story when somebody asks ([`crate::Machine::explain`]).

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::schema::Misfit;

/// Stable refusal codes (03, "Refusal codes"); each has a page in `docs/codes/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Code {
    /// The event is larger than `limits.data`, or nested deeper than 128.
    #[serde(rename = "too-large")]
    TooLarge,
    /// The snapshot belongs to another charter.
    #[serde(rename = "charter-mismatch")]
    CharterMismatch,
    /// Only the platform makes events of this type.
    #[serde(rename = "reserved")]
    Reserved,
    /// The event is not declared under `events`.
    #[serde(rename = "unknown-event")]
    UnknownEvent,
    /// The run (or the actor) has ended.
    #[serde(rename = "finished")]
    Finished,
    /// The run is paused.
    #[serde(rename = "paused")]
    Paused,
    /// No actor of that id.
    #[serde(rename = "unknown-actor")]
    UnknownActor,
    /// What the sender has seen, or approves, is not what is there now.
    #[serde(rename = "stale")]
    Stale,
    /// The principal's roles do not allow it.
    #[serde(rename = "authority")]
    Authority,
    /// The data does not fit its schema.
    #[serde(rename = "schema")]
    Schema,
    /// No active state has a transition for the event.
    #[serde(rename = "unhandled")]
    Unhandled,
    /// A condition does not hold.
    #[serde(rename = "guard")]
    Guard,
    /// A rule of the charter forbids it.
    #[serde(rename = "rule")]
    Rule,
    /// The permit was never granted.
    #[serde(rename = "permit.missing")]
    PermitMissing,
    /// The permit was revoked.
    #[serde(rename = "permit.revoked")]
    PermitRevoked,
    /// The permit's time is over.
    #[serde(rename = "permit.expired")]
    PermitExpired,
    /// The permit has no uses left.
    #[serde(rename = "permit.exhausted")]
    PermitExhausted,
    /// The permit does not cover this.
    #[serde(rename = "permit.scope")]
    PermitScope,
    /// The obligation is not open.
    #[serde(rename = "obligation.missing")]
    ObligationMissing,
    /// An obligation is still open.
    #[serde(rename = "obligation.open")]
    ObligationOpen,
    /// An action failed and nothing handled the error.
    #[serde(rename = "execution")]
    Execution,
    /// More microsteps than `limits.microsteps`.
    #[serde(rename = "runaway")]
    Runaway,
    /// The actors of the run would not be compatible with each other.
    #[serde(rename = "interlock")]
    Interlock,
}

impl Code {
    /// All codes, in the order in which they are checked.
    pub const ALL: [Code; 23] = [
        Code::TooLarge,
        Code::CharterMismatch,
        Code::Reserved,
        Code::UnknownEvent,
        Code::Finished,
        Code::Paused,
        Code::UnknownActor,
        Code::Stale,
        Code::Authority,
        Code::Schema,
        Code::Unhandled,
        Code::Guard,
        Code::Rule,
        Code::PermitMissing,
        Code::PermitRevoked,
        Code::PermitExpired,
        Code::PermitExhausted,
        Code::PermitScope,
        Code::ObligationMissing,
        Code::ObligationOpen,
        Code::Execution,
        Code::Runaway,
        Code::Interlock,
    ];

    /// The word used in records and in the API.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Code::TooLarge => "too-large",
            Code::CharterMismatch => "charter-mismatch",
            Code::Reserved => "reserved",
            Code::UnknownEvent => "unknown-event",
            Code::Finished => "finished",
            Code::Paused => "paused",
            Code::UnknownActor => "unknown-actor",
            Code::Stale => "stale",
            Code::Authority => "authority",
            Code::Schema => "schema",
            Code::Unhandled => "unhandled",
            Code::Guard => "guard",
            Code::Rule => "rule",
            Code::PermitMissing => "permit.missing",
            Code::PermitRevoked => "permit.revoked",
            Code::PermitExpired => "permit.expired",
            Code::PermitExhausted => "permit.exhausted",
            Code::PermitScope => "permit.scope",
            Code::ObligationMissing => "obligation.missing",
            Code::ObligationOpen => "obligation.open",
            Code::Execution => "execution",
            Code::Runaway => "runaway",
            Code::Interlock => "interlock",
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// An event was refused and nothing has changed. Small on purpose: [`crate::Machine::explain`] says the rest.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("refused: {code}")]
pub struct Refusal {
    /// Why.
    pub code: Code,
    /// What cannot be found out again by looking at the snapshot.
    pub(crate) detail: Option<Box<Detail>>,
}

/// What went wrong inside the macrostep.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Detail {
    pub(crate) message: String,
    /// Transition that was being taken, interlock that does not hold.
    pub(crate) subject: Option<String>,
    /// JSON pointer into the core form.
    pub(crate) at: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: Code) -> Refusal {
        Refusal { code, detail: None }
    }
    pub(crate) fn with(code: Code, subject: Option<String>, message: String) -> Refusal {
        Refusal { code, detail: Some(Box::new(Detail { message, subject, at: None })) }
    }
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Refusal {
        Refusal::new(code)
    }
}

/// The whole story of a refusal, as it stands in the record (03, "Refusal codes").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Why.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// The entry of the charter's `rules` in whose name it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The transitions that were considered, innermost state first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Where the data does not fit its schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misfits: Vec<Misfit>,
    /// The interlock that would not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interlock: Option<String>,
    /// Event types that this principal may send now.
    pub legal: Vec<String>,
}

/// A transition that was considered, and why it was not taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name, e.g. `human_review/on/HUMAN_APPROVED/0`.
    pub transition: String,
    /// What failed.
    pub failed: Code,
    /// The entry of the charter's `rules` that it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The expression that decided, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// The values it read, by path; `null` where there was none.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub read: serde_json::Map<String, Json>,
    /// One sentence.
    pub message: String,
}
