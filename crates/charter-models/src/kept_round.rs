//! Rounds of tools that a question has had before: in an earlier attempt, in a process that ended,
//! or with another model. A round is kept before its calls are made, and the question goes on after
//! it, so that no event is sent twice, whatever the model would call if it was asked again.

use charter_actors::{Call, Fault};
use charter_kernel::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::exchange::Usage;
use crate::tools::ToolCall;

/// Records that are read at a time.
const PAGE: usize = 256;
/// Maximum number of rounds that are read: more than a question has.
const MAX_ROUNDS: usize = 256;

/// A round: the calls of one reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptRound {
    /// The effect of the question.
    pub effect: String,
    /// Index among the parallel calls of the actor.
    pub call: usize,
    /// Number of the round, from 0.
    pub round: u32,
    /// The attempt.
    pub attempt: u32,
    /// `PROVIDER:NAME` of the model.
    pub model: String,
    /// The calls of tools.
    pub calls: Vec<ToolCall>,
    /// The reply in the provider's form.
    pub message: Json,
    /// Tokens that the attempt had taken.
    pub taken: Usage,
    /// The round before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
}

/// The rounds that a question has had before.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Earlier {
    /// The rounds in order, each with the digest of its blob.
    pub rounds: Vec<(Digest, KeptRound)>,
    /// Tokens that this attempt has taken in them.
    pub taken: Usage,
}

impl Earlier {
    /// Finds the rounds of one of the parallel calls. The id of an event that a model sent names
    /// its round, and each round the one before it.
    ///
    /// # Errors
    /// The journal cannot be read, or lacks a round.
    pub(crate) fn find(call: &Call, index: usize) -> Result<Earlier, Fault> {
        let host = call.host();
        let unreadable = |e: charter_actors::StoreError| Fault::new("journal", e.to_string()).retryable();
        let prefix = format!("{}/{}", call.effect, prefix(index));
        let (mut from, mut last) = (call.effect_id.seq.saturating_add(1), None::<Digest>);
        loop {
            let page = host.records(&call.run, from, PAGE).map_err(unreadable)?;
            for record in &page {
                let named = record.id.strip_prefix(&prefix).and_then(|rest| rest.split_once('/'));
                last = named.and_then(|(_, digest)| serde_json::from_value(digest.into()).ok()).or(last);
                from = record.seq.saturating_add(1);
            }
            if page.len() < PAGE {
                break;
            }
        }
        let mut earlier = Earlier::default();
        while let Some(digest) = last.filter(|_| earlier.rounds.len() < MAX_ROUNDS) {
            let lacks = || {
                let message = format!("the journal lacks a reply of the model ({digest}), whose events are recorded");
                Fault::new("journal", message)
            };
            let text = host.blob(digest).map_err(unreadable)?.ok_or_else(lacks)?;
            let round: KeptRound = serde_json::from_slice(&text).map_err(|_| lacks())?;
            if round.effect != *call.effect {
                return Err(lacks());
            }
            last = round.before;
            earlier.rounds.push((digest, round));
        }
        earlier.rounds.reverse();
        let latest = earlier.rounds.last().filter(|(_, round)| round.attempt == call.attempt);
        earlier.taken = latest.map(|(_, round)| round.taken).unwrap_or_default();
        Ok(earlier)
    }
}

/// How the keys of the events begin that one of the parallel calls sends.
fn prefix(index: usize) -> String {
    format!("tool/{index}.")
}

/// Which call of which round of a question it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index among the parallel calls of the actor.
    pub call: usize,
    /// The round.
    pub round: u32,
    /// Index in the round.
    pub index: usize,
    /// The blob of the round; `None`: the host keeps none.
    pub kept: Option<Digest>,
}

impl Place {
    /// The key of the event that is sent there.
    pub(crate) fn key(self, event: &str, data: &Json) -> String {
        let Place { call, round, index, kept } = self;
        let what = match kept {
            Some(digest) => digest.to_string(),
            None => {
                let digest = Digest::of_json(&serde_json::json!([event, data])).hex();
                digest.get(..16).unwrap_or_default().to_owned()
            }
        };
        format!("{}{round}.{index}/{what}", prefix(call))
    }
}
