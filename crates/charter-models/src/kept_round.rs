//! Rounds of tools that a question has had before: in an earlier attempt, in a process that ended,
//! or with another model. A round is kept before its calls are made, and the question goes on after
//! it, so that no event is sent twice, whatever the model would call if it was asked again.

use std::collections::BTreeMap;

use charter_actors::{Call, Fault, Record, StoreError};
use charter_kernel::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::exchange::Usage;
use crate::tools::{Tool, ToolCall};

/// Records that are read at a time.
const PAGE: usize = 256;
/// Maximum number of rounds that are read: more than a question has.
const MAX_ROUNDS: usize = 256;
/// Maximum number of calls in one round; further ones are not made.
pub(crate) const MAX_CALLS: usize = 16;

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
    /// The rounds in order, each with the digest of its blob, if the host keeps blobs.
    pub rounds: Vec<(Option<Digest>, KeptRound)>,
    /// Tokens that this attempt has taken in them.
    pub taken: Usage,
}

impl Earlier {
    /// Finds the rounds of one of the parallel calls. The id of an event that a model sent names
    /// its round, and each round the one before it.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub(crate) fn find(call: &Call, index: usize) -> Result<Earlier, Fault> {
        let (mut has_events, mut last) = (false, None);
        each_event(call, index, &mut |place, _| {
            has_events = true;
            last = place.kept;
        })?;
        let mut rounds = Vec::new();
        while let Some(digest) = last.filter(|_| rounds.len() < MAX_ROUNDS) {
            let text = call.host().blob(digest).map_err(unreadable)?;
            let round = text.and_then(|text| serde_json::from_slice::<KeptRound>(&text).ok());
            let Some(round) = round.filter(|round| round.effect == *call.effect) else {
                rounds.clear();
                break;
            };
            last = round.before;
            rounds.push((Some(digest), round));
        }
        rounds.reverse();
        if rounds.is_empty() && has_events {
            rounds = from_records(call, index)?;
        }
        let latest = rounds.last().filter(|(_, round)| round.attempt == call.attempt);
        let taken = latest.map(|(_, round)| round.taken).unwrap_or_default();
        Ok(Earlier { rounds, taken })
    }
}

/// The rounds as far as the records tell them: without calls that sent nothing, and without the
/// replies. So it is if the host keeps no blobs, or has imported the run.
fn from_records(call: &Call, index: usize) -> Result<Vec<(Option<Digest>, KeptRound)>, Fault> {
    let mut rounds: BTreeMap<u32, (Option<Digest>, KeptRound)> = BTreeMap::new();
    each_event(call, index, &mut |place, record| {
        let (_, kept) = rounds.entry(place.round).or_insert_with(|| {
            let (effect, model, calls, message) = (call.effect.to_string(), String::new(), Vec::new(), Json::Null);
            let (round, taken, before) = (place.round, Usage::default(), None);
            (place.kept, KeptRound { effect, call: index, round, attempt: 0, model, calls, message, taken, before })
        });
        while kept.calls.len() <= place.index && place.index < MAX_CALLS {
            kept.calls.push(ToolCall { id: String::new(), name: String::new(), arguments: String::new() });
        }
        if let Some(call) = kept.calls.get_mut(place.index) {
            call.name = Tool::of(&record.event.r#type).name;
            call.arguments = record.event.data.to_string();
        }
    })?;
    Ok(rounds.into_values().collect())
}

/// Visits the records of the events that one of the parallel calls has sent.
fn each_event(call: &Call, index: usize, visit: &mut dyn FnMut(Place, &Record)) -> Result<(), Fault> {
    let prefix = format!("{}/{}", call.effect, prefix(index));
    let mut from = call.effect_id.seq.saturating_add(1);
    loop {
        let page = call.host().records(&call.run, from, PAGE).map_err(unreadable)?;
        for record in &page {
            let place = record.id.strip_prefix(&prefix).and_then(|rest| Place::read(index, rest));
            place.into_iter().for_each(|place| visit(place, record));
            from = record.seq.saturating_add(1);
        }
        if page.len() < PAGE {
            return Ok(());
        }
    }
}

fn unreadable(error: StoreError) -> Fault {
    Fault::new("journal", error.to_string()).retryable()
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
    /// Reads what follows the prefix in a key.
    fn read(call: usize, rest: &str) -> Option<Place> {
        let (place, what) = rest.split_once('/')?;
        let (round, index) = place.split_once('.')?;
        let kept = serde_json::from_value(what.into()).ok();
        Some(Place { call, round: round.parse().ok()?, index: index.parse().ok()?, kept })
    }

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
