//! Details beyond the code of a refusal.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::details::ExpressionError;
use crate::budget::Work;

/// Details beyond the code of a refusal.
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
    /// `too-large`: the id of the sender has more bytes than this.
    PrincipalId {
        /// The limit.
        limit: u64,
    },
    /// `schema`: the time of the event is outside the years 1 to 9999.
    Time,
    /// `schema`: the data contains an integer that some JSON readers do not preserve.
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
    /// `too-costly`: the event would cost more than this.
    Fuel {
        /// `limits.fuel`.
        limit: u64,
        /// What would have exceeded it.
        work: Work,
    },
    /// `too-large`: the event would build more bytes than this.
    Bytes {
        /// `limits.bytes`.
        limit: u64,
        /// What would have exceeded it.
        work: Work,
    },
    /// `interlock`: an assertion does not hold.
    Assertion {
        /// Its expression.
        expression: String,
        /// Why the expression could not be evaluated; `None` if it could.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ExpressionError>,
        /// The values that the expression read.
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
        /// The active states of that actor.
        given_states: Vec<String>,
        /// The states that these rows allow.
        allowed: Vec<String>,
    },
    /// `taken`: the run that has the key.
    Taken {
        /// The key.
        key: Json,
        /// The run.
        run: String,
    },
    /// `schema`: the event has no unique key.
    Key {
        /// The expression of the key.
        expression: String,
        /// Why the expression could not be evaluated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ExpressionError>,
        /// What it gives instead of a key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<String>,
    },
    /// `unhandled`: the run is not paused, so it cannot be resumed.
    NotPaused,
    /// `permit.*`: another transition of the same step took the last use.
    Permit {
        /// The kind of the permit.
        #[serde(rename = "ledger")]
        kind: String,
        /// The key of the permit.
        key: String,
    },
    /// `execution`: no transition takes this error event.
    Unhandled {
        /// The type of the error event.
        event: String,
        /// The `error` of the event.
        error: Json,
    },
    /// `finished`: the status of the run or of the actor.
    Finished {
        /// The actor; `None`: the run.
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
    /// `stale`: the last record that changed the run. If the sender claims to have seen a record
    /// that does not exist yet, the last record of the run.
    Changed {
        /// The sequence number of that record.
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
