//! The JSON form of a snapshot, for reading; `write` writes the same fields.

use serde::Deserialize;
use serde_json::Value as Json;

use crate::digest::Digest;
use crate::snapshot::Status;
use crate::time::Timestamp;

pub(super) type Names<T> = std::collections::BTreeMap<String, T>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotForm {
    pub(super) v: u32,
    pub(super) run: String,
    pub(super) charter: Digest,
    pub(super) seq: u64,
    pub(super) status: Status,
    #[serde(default)]
    pub(super) paused_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "present")]
    pub(super) output: Option<Json>,
    pub(super) actors: Vec<ActorForm>,
    #[serde(default)]
    pub(super) timers: Vec<TimerForm>,
    #[serde(default)]
    pub(super) ledger: Names<Names<EntryForm>>,
    #[serde(default)]
    pub(super) held: Vec<HeldForm>,
    pub(super) counter: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActorForm {
    pub(super) id: String,
    pub(super) machine: String,
    #[serde(default)]
    pub(super) parent: Option<String>,
    #[serde(default)]
    pub(super) invoked: bool,
    pub(super) status: Status,
    /// All active states except the root of the chart.
    pub(super) active: Vec<String>,
    #[serde(default)]
    pub(super) history: Names<Vec<String>>,
    pub(super) context: serde_json::Map<String, Json>,
    pub(super) input: Json,
    #[serde(default, deserialize_with = "present")]
    pub(super) output: Option<Json>,
    #[serde(default)]
    pub(super) invocations: Vec<InvocationForm>,
    #[serde(default)]
    pub(super) votes: Vec<VoteForm>,
    #[serde(default)]
    pub(super) bound: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InvocationForm {
    pub(super) id: String,
    pub(super) src: String,
    /// `None` for an invoked machine, which is an actor itself.
    #[serde(default)]
    pub(super) effect: Option<String>,
    #[serde(default)]
    pub(super) state: Option<String>,
    pub(super) input: Json,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VoteForm {
    pub(super) transition: String,
    pub(super) digest: Digest,
    pub(super) by: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TimerForm {
    pub(super) id: String,
    pub(super) generation: u64,
    pub(super) due: Timestamp,
    pub(super) actor: String,
    pub(super) what: WhatForm,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum WhatForm {
    After { state: String, index: u32 },
    Send { to: String, r#type: String, data: Json, id: Option<String> },
    Timeout { invocation: String, effect: Option<String> },
    Due { kind: String, key: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntryForm {
    pub(super) status: String,
    #[serde(default)]
    pub(super) uses: Option<u64>,
    #[serde(default)]
    pub(super) expires: Option<Timestamp>,
    #[serde(default)]
    pub(super) due: Option<Timestamp>,
    pub(super) data: Json,
    #[serde(default, deserialize_with = "present")]
    pub(super) how: Option<Json>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeldForm {
    pub(super) actor: String,
    pub(super) invocation: String,
    pub(super) effect: String,
    #[serde(default, deserialize_with = "present")]
    pub(super) done: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    pub(super) error: Option<Json>,
}

/// Deserializes a field that is present as `Some`, even if its value is null.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}
