//! A refusal as a record stores it: codes and values, no messages.

use charter_expr::{EvalDetail, EvalError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::{Cause, Code};
use crate::schema::MisfitDetails;

/// A refusal as a record stores it: codes and values, no messages. [`RefusalDetails::explain`]
/// renders the messages when the refusal is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(expecting = "an object with `code`, `legal`")]
pub struct RefusalDetails {
    /// The refusal code.
    pub code: Code,
    /// The entry of the charter's `rules` that requires the refusal, or one of
    /// [`SENDER_RULES`](crate::SENDER_RULES).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The interlock that would not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interlock: Option<String>,
    /// Details beyond the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The roles that may send the event, if it was refused for lack of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The values that the rule's message depends on, by path.
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
    /// Creates details with only a code.
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

/// Why an expression could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with `error`")]
pub struct ExpressionError {
    /// The code of the error, e.g. `no-such-field`.
    pub error: String,
    /// The expression, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// The part of the expression that failed; `None` if the whole expression failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The values that it failed on and what was expected, unless the code says it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<EvalDetail>,
}

impl From<&EvalError> for ExpressionError {
    fn from(e: &EvalError) -> ExpressionError {
        let part = e.part().filter(|part| e.expression() != Some(part));
        ExpressionError {
            error: e.kind().code().to_string(),
            expression: e.expression().map(str::to_string),
            part: part.map(str::to_string),
            detail: e.detail().cloned(),
        }
    }
}

/// A transition that was considered, and the check that it failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(expecting = "an object with `transition`, `at`, `failed`")]
pub struct CandidateDetails {
    /// Its name, e.g. `human_review/on/HUMAN_APPROVED/0`.
    pub transition: String,
    /// JSON pointer to it in the core form of the charter.
    pub at: String,
    /// The code of the check that failed.
    pub failed: Code,
    /// The entry of the charter's `rules` that the failed check names, or one of
    /// [`SENDER_RULES`](crate::SENDER_RULES).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The named guard that the expression belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// The expression that decided, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// Why the expression could not be evaluated; `None` if it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExpressionError>,
    /// The values that the expression and the rule's message depend on, by path; `null` where there
    /// was no value. Long values are truncated.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub read: Map<String, Json>,
    /// The roles that the transition requires, if the sender has none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// For a quorum: the number of principals that it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// For an approval: the digests that do not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalDetails>,
    /// For a requirement: the ledger entry that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerDetails>,
}

/// The digests of an approval that does not name the current value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with `sent`, `current`")]
pub struct ApprovalDetails {
    /// The `digest` that the event contained, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// The digest of the current value, if it could be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
}

/// The ledger entry that a requirement names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with `kind`")]
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
