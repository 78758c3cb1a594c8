//! Why an event was refused, in three forms: [`Refusal`], a code, on the hot path;
//! [`RefusalDetails`], what a record holds, without a sentence; [`Explanation`], what people read.

use charter_expr::EvalError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::schema::{Misfit, MisfitDetails};

/// Stable refusal codes; each has a page in `docs/codes/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Code {
    /// The event is larger than `limits.data`, or nested deeper than 128.
    #[serde(rename = "too-large")]
    TooLarge,
    /// The snapshot belongs to another charter.
    #[serde(rename = "charter-mismatch")]
    CharterMismatch,
    /// Events of this type come from the platform only.
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
    /// The run has changed since the sender looked, or the value to approve is another one now.
    #[serde(rename = "stale")]
    Stale,
    /// The sender does not have the roles.
    #[serde(rename = "authority")]
    Authority,
    /// The data does not match its schema.
    #[serde(rename = "schema")]
    Schema,
    /// No active state has a transition for the event.
    #[serde(rename = "unhandled")]
    Unhandled,
    /// A guard does not hold.
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
    /// The permit has expired.
    #[serde(rename = "permit.expired")]
    PermitExpired,
    /// The permit has no uses left.
    #[serde(rename = "permit.exhausted")]
    PermitExhausted,
    /// The permit does not cover this.
    #[serde(rename = "permit.scope")]
    PermitScope,
    /// No such obligation is open.
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
    /// An interlock between the actors of the run would not hold.
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

/// An event was refused and nothing has changed. Small on purpose: [`crate::Machine::explain`]
/// gives the reasons.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("refused: {code}")]
pub struct Refusal {
    /// Why.
    pub code: Code,
    /// What the snapshot and the envelope alone do not tell.
    pub(crate) detail: Option<Box<Detail>>,
}

/// What was found inside the step.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Detail {
    pub(crate) rule: Option<String>,
    pub(crate) interlock: Option<String>,
    /// Values that the rule's sentence reads.
    pub(crate) read: Map<String, Json>,
    pub(crate) cause: Option<Cause>,
}

impl Refusal {
    pub(crate) fn with(code: Code, detail: Detail) -> Refusal {
        Refusal { code, detail: Some(Box::new(detail)) }
    }

    pub(crate) fn because(code: Code, cause: Cause) -> Refusal {
        Refusal::with(code, Detail { cause: Some(cause), ..Detail::default() })
    }
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Refusal {
        Refusal { code, detail: None }
    }
}

/// A refusal as a record holds it: codes and values, no sentence. [`RefusalDetails::explain`] makes
/// the sentences when it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusalDetails {
    /// Why.
    pub code: Code,
    /// The entry of the charter's `rules` that asks for the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The interlock that would not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interlock: Option<String>,
    /// What the code alone does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The roles that may send the event, if it was refused for lack of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Values that the rule's sentence reads, by path.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub read: Map<String, Json>,
    /// The transitions that were considered, innermost state first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateDetails>,
    /// Where the data does not match its schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misfits: Vec<MisfitDetails>,
    /// Event types that the sender may send now.
    pub legal: Vec<String>,
}

impl RefusalDetails {
    /// Details with nothing but a code.
    #[must_use]
    pub fn new(code: Code) -> RefusalDetails {
        RefusalDetails {
            code,
            rule: None,
            interlock: None,
            cause: None,
            roles: Vec::new(),
            read: Map::new(),
            candidates: Vec::new(),
            misfits: Vec::new(),
            legal: Vec::new(),
        }
    }
}

/// What the code of a refusal alone does not tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Cause {
    /// `too-large`: the data has more bytes than this.
    Size {
        /// `limits.data`.
        limit: u64,
    },
    /// `too-large`: the data nests deeper than this.
    Depth {
        /// The limit.
        limit: u64,
    },
    /// `schema`: the time of the event is outside the years 1 to 9999.
    Time,
    /// `schema`: the data has an integer that JSON readers do not all keep.
    Number {
        /// JSON pointer to it.
        at: String,
    },
    /// `runaway`: the event would take more microsteps than this.
    Microsteps {
        /// `limits.microsteps`.
        limit: u64,
    },
    /// `runaway`: the event would run more actions than this.
    Actions {
        /// The limit.
        limit: u64,
    },
    /// `interlock`: an assertion does not hold.
    Assertion {
        /// Its expression.
        expression: String,
        /// Why it could not be evaluated, if so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ExpressionError>,
        /// The values it read.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        read: Map<String, Json>,
    },
    /// `interlock`: the table does not allow a state.
    Table {
        /// The actor that would be in the state.
        actor: String,
        /// The state.
        state: String,
        /// The actor whose state selects the rows.
        given: String,
        /// Its states.
        given_states: Vec<String>,
        /// The states that these rows allow.
        allowed: Vec<String>,
    },
    /// `unhandled`: the run is not paused, so it cannot be resumed.
    NotPaused,
    /// `permit.*`: another transition of the same step took the last use.
    Permit {
        /// Its kind.
        #[serde(rename = "ledger")]
        kind: String,
        /// Its key.
        key: String,
    },
    /// `execution`: no transition takes this error event.
    Unhandled {
        /// Its type.
        event: String,
        /// Its `error`.
        error: Json,
    },
    /// `finished`: the status of the run or of the actor.
    Finished {
        /// The actor; none: the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        /// The status.
        status: String,
    },
    /// `unknown-actor`: the actors of the run, at most ten.
    Actors {
        /// Their ids.
        known: Vec<String>,
    },
    /// `stale`: the last record that changed the run, or the last record at all if the sender
    /// claims to have seen a later one.
    Changed {
        /// Its sequence number.
        last: u64,
    },
    /// `stale`: the event id belongs to another event.
    IdReused {
        /// The id.
        id: String,
        /// The record of the other event.
        seq: u64,
    },
}

/// Why an expression could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpressionError {
    /// The code of the error, e.g. `no-such-field`.
    pub error: String,
    /// The expression, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// The part of it that failed, where that is not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

impl From<&EvalError> for ExpressionError {
    fn from(e: &EvalError) -> ExpressionError {
        let part = e.part().filter(|part| e.expression() != Some(part));
        ExpressionError {
            error: e.kind().code().to_string(),
            expression: e.expression().map(str::to_string),
            part: part.map(str::to_string),
        }
    }
}

/// A transition that was considered, and the check that it failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CandidateDetails {
    /// Its name, e.g. `human_review/on/HUMAN_APPROVED/0`.
    pub transition: String,
    /// JSON pointer to it in the core form of the charter.
    pub at: String,
    /// What failed.
    pub failed: Code,
    /// The entry of the charter's `rules` that it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The named guard that the expression belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// The expression that decided, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// Why it could not be evaluated, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExpressionError>,
    /// The values that the expression and the rule's sentence read, by path; `null` where there was
    /// none. Long values are cut.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub read: Map<String, Json>,
    /// The roles that it needs, if the sender has none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Of a quorum: how many principals it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// Of an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalDetails>,
    /// Of a requirement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerDetails>,
}

/// The digests of an approval that does not name the current value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalDetails {
    /// `digest` of the event, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// The digest of the value as it is now, if it could be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
}

/// The ledger entry that a requirement names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerDetails {
    /// Its kind.
    pub kind: String,
    /// Its key, if it could be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Keys of the obligations that are still open, if there must be none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
}

/// A refusal as people read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Why.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// The entry of the charter's `rules` that asks for the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The transitions that were considered, innermost state first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Where the data does not match its schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misfits: Vec<Misfit>,
    /// The interlock that would not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interlock: Option<String>,
    /// Event types that the sender may send now.
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
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub read: Map<String, Json>,
    /// One sentence.
    pub message: String,
}
