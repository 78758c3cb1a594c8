//! The codes of refusals.

use serde::{Deserialize, Serialize};

/// Stable refusal codes; each has a page in `docs/codes/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Code {
    /// The event is larger than `limits.data`, or nested deeper than 128; or handling it would
    /// build more than `limits.bytes`.
    #[serde(rename = "too-large")]
    TooLarge,
    /// The snapshot belongs to another charter.
    #[serde(rename = "charter-mismatch")]
    CharterMismatch,
    /// Only the platform generates events of this type.
    #[serde(rename = "reserved")]
    Reserved,
    /// The event is not declared under `events`.
    #[serde(rename = "unknown-event")]
    UnknownEvent,
    /// The run or the actor has ended.
    #[serde(rename = "finished")]
    Finished,
    /// The run is paused.
    #[serde(rename = "paused")]
    Paused,
    /// The run has no actor with this id.
    #[serde(rename = "unknown-actor")]
    UnknownActor,
    /// The run has changed since the sender read it, or the value to approve has changed.
    #[serde(rename = "stale")]
    Stale,
    /// The sender has none of the required roles.
    #[serde(rename = "authority")]
    Authority,
    /// The data does not match its schema.
    #[serde(rename = "schema")]
    Schema,
    /// A run of the journal has the unique key of the event already.
    #[serde(rename = "taken")]
    Taken,
    /// The host did not look up the unique key of the event.
    #[serde(rename = "unreserved")]
    Unreserved,
    /// No active state has a transition for the event.
    #[serde(rename = "unhandled")]
    Unhandled,
    /// A guard does not hold.
    #[serde(rename = "guard")]
    Guard,
    /// A rule of the charter forbids the event.
    #[serde(rename = "rule")]
    Rule,
    /// The permit was never granted.
    #[serde(rename = "permit.missing")]
    PermitMissing,
    /// The permit was revoked.
    #[serde(rename = "permit.revoked")]
    PermitRevoked,
    /// The permit has expired.
    #[serde(rename = "permit.expired")]
    PermitExpired,
    /// The permit has no uses left.
    #[serde(rename = "permit.exhausted")]
    PermitExhausted,
    /// The permit does not cover this use.
    #[serde(rename = "permit.scope")]
    PermitScope,
    /// The required obligation is not open.
    #[serde(rename = "obligation.missing")]
    ObligationMissing,
    /// An obligation is still open.
    #[serde(rename = "obligation.open")]
    ObligationOpen,
    /// An action failed and nothing handled the error.
    #[serde(rename = "execution")]
    Execution,
    /// The event would take more microsteps than `limits.microsteps`.
    #[serde(rename = "runaway")]
    Runaway,
    /// The event would cost more than `limits.fuel`.
    #[serde(rename = "too-costly")]
    TooCostly,
    /// An interlock between the actors of the run would not hold.
    #[serde(rename = "interlock")]
    Interlock,
}

impl Code {
    /// All codes, in the order in which they are checked.
    pub const ALL: [Code; 26] = [
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
        Code::Taken,
        Code::Unreserved,
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
        Code::TooCostly,
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
            Code::Taken => "taken",
            Code::Unreserved => "unreserved",
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
            Code::TooCostly => "too-costly",
            Code::Interlock => "interlock",
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
