//! A refusal with its messages, for people.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::Code;
use crate::schema::Misfit;

/// A refusal with its messages, for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The refusal code.
    pub code: Code,
    /// The message, in one sentence.
    pub message: String,
    /// The entry of the charter's `rules` that requires the refusal, or one of
    /// [`SENDER_RULES`](crate::SENDER_RULES).
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
    /// The code of the check that failed.
    pub failed: Code,
    /// The entry of the charter's `rules` that the failed check names, or one of
    /// [`SENDER_RULES`](crate::SENDER_RULES).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The expression that decided, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// Whether the expression is a condition that was evaluated and does not hold. Otherwise it is
    /// a key or a value to approve, or it could not be evaluated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub does_not_hold: bool,
    /// The values that the expression read, by path; `null` where there was no value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub read: Map<String, Json>,
    /// The message, in one sentence.
    pub message: String,
}
