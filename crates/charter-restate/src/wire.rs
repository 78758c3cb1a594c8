//! What gateways, runs and actors send each other.

use charter_kernel::{Digest, EffectId, Principal, Timestamp};
use charter_runtime::{ErrorText, parse_json};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

/// JSON in a string: event data is nested deeper than some readers of JSON follow.
#[derive(Debug, Clone, PartialEq)]
pub struct Doc(pub Json);

impl Serialize for Doc {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for Doc {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Doc, D::Error> {
        let text = String::deserialize(from)?;
        parse_json(&text).map(Doc).map_err(serde::de::Error::custom)
    }
}

/// The result of an attempt, or the answer of a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    Output(Doc),
    Error(Doc),
}

impl Outcome {
    pub(crate) fn result(self) -> Result<Json, Json> {
        match self {
            Outcome::Output(Doc(output)) => Ok(output),
            Outcome::Error(Doc(error)) => Err(error),
        }
    }
}

impl From<Result<Json, Json>> for Outcome {
    fn from(result: Result<Json, Json>) -> Outcome {
        result.map_or_else(|error| Outcome::Error(Doc(error)), |output| Outcome::Output(Doc(output)))
    }
}

/// Starts a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StartRequest {
    pub(crate) at: Timestamp,
    pub(crate) charter: Digest,
    pub(crate) input: Doc,
    pub(crate) by: Principal,
}

/// Sends an event to a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EventRequest {
    pub(crate) at: Timestamp,
    pub(crate) to: Option<String>,
    pub(crate) r#type: String,
    pub(crate) data: Doc,
    pub(crate) by: Principal,
    pub(crate) id: Option<String>,
    /// Whether the host made the id.
    #[serde(default)]
    pub(crate) host_id: bool,
    pub(crate) expected_seq: Option<u64>,
}

/// Gives a run the answer of a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SettleRequest {
    pub(crate) at: Timestamp,
    pub(crate) effect: Effect,
    pub(crate) outcome: Outcome,
    pub(crate) by: Principal,
}

/// An attempt is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AnswerRequest {
    pub(crate) at: Timestamp,
    pub(crate) effect: Effect,
    pub(crate) attempt: u32,
    pub(crate) outcome: Outcome,
    pub(crate) again_at: Option<Timestamp>,
}

/// A timer may be due.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DueRequest {
    pub(crate) at: Timestamp,
}

/// Requests an attempt of an invocation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) run: String,
    pub(crate) charter: Digest,
    pub(crate) effect: Effect,
    pub(crate) invocation: String,
    pub(crate) src: String,
    pub(crate) input: Doc,
    pub(crate) attempt: u32,
}

/// Asks whether a run still waits for an attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WaitsRequest {
    pub(crate) effect: Effect,
    pub(crate) attempt: u32,
    /// The invocation of the engine that makes it.
    pub(crate) invocation: String,
}

/// An effect: sequence number of its record, and its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Effect(u64, u32);

impl Effect {
    pub(crate) fn id(self) -> EffectId {
        EffectId { seq: self.0, index: self.1 }
    }
}

impl From<EffectId> for Effect {
    fn from(id: EffectId) -> Effect {
        Effect(id.seq, id.index)
    }
}

/// The answer of a run: a record, or why there is none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) record: Option<String>,
    #[serde(default)]
    pub(crate) repeated: bool,
    pub(crate) error: Option<ErrorText>,
}

/// A run as it is stored between two inputs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) charter: Digest,
    /// The time for which the run has asked to be woken.
    pub(crate) due: Option<Timestamp>,
    /// The time of the first record.
    pub(crate) started: Option<Timestamp>,
    /// [`charter_run::Kept`], as JSON.
    pub(crate) kept: Json,
}
