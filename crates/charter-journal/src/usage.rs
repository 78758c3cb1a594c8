//! What models were asked, and what that cost: kept in a store beside the records.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_kernel::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

/// Picodollars in a dollar (10^12). A price in dollars per million tokens with up to six decimal
/// places is a whole number of picodollars per token.
pub const PICODOLLARS: u64 = 1_000_000_000_000;

/// One question to one model, its retries and its repair included. It is written when the question
/// has ended, whatever its outcome, and before the answer becomes a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageRow {
    /// The run that asked.
    pub run: String,
    /// The invocation, `RUN/SEQ/INDEX`.
    pub effect: String,
    /// The actor.
    pub actor: String,
    /// The attempt of the invocation; the first is 1.
    pub attempt: u32,
    /// Index among the parallel calls of the actor.
    pub call: u32,
    /// When the question had ended.
    pub at: Timestamp,
    /// `PROVIDER:NAME` of the model that was asked.
    pub model: String,
    /// Address of its server.
    pub address: String,
    /// The name under which the server answered, if it said one.
    pub answered_as: Option<String>,
    /// The number of requests sent.
    pub requests: u32,
    /// Tokens read by the model, cached ones included.
    pub input: u64,
    /// Tokens written by the model, its thoughts included.
    pub output: u64,
    /// Tokens read from the provider's cache, a part of `input`.
    pub cached: u64,
    /// Tokens written to the provider's cache, a part of `input`.
    pub cache_written: u64,
    /// Whether a part of the tokens is an estimate.
    pub estimated: bool,
    /// How long the question took, in milliseconds.
    pub millis: u64,
    /// What it cost, in [picodollars](PICODOLLARS); `None`: the host had no price of the model.
    pub cost: Option<u64>,
    /// `answered`, or the code of the fault.
    pub outcome: String,
    /// The blob with the requests and answers.
    pub exchange: Option<Digest>,
}

/// Selects questions; a question must meet all conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageFilter {
    /// Of this run.
    pub run: Option<Arc<str>>,
    /// Of this actor.
    pub actor: Option<Arc<str>>,
    /// That ended at this time or later.
    pub since: Option<Timestamp>,
}

impl UsageFilter {
    /// Selects the questions of a run.
    #[must_use]
    pub fn run(run: &str) -> UsageFilter {
        UsageFilter { run: Some(run.into()), ..UsageFilter::default() }
    }
}

/// Sums of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UsageTotals {
    /// Number of questions.
    pub questions: u64,
    /// Number of questions without a price, which `cost` does not include.
    pub unpriced: u64,
    /// Number of requests.
    pub requests: u64,
    /// Tokens read by models, cached ones included.
    pub input: u64,
    /// Tokens written by models.
    pub output: u64,
    /// Tokens read from caches, a part of `input`.
    pub cached: u64,
    /// Cost in [picodollars](PICODOLLARS).
    #[serde(rename = "picodollars")]
    pub cost: u64,
    /// Whether a part of the tokens is an estimate.
    pub estimated: bool,
}

impl UsageTotals {
    /// Tokens read and written.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds a question.
    fn add(&mut self, row: &UsageRow) {
        let plus = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        plus(&mut self.questions, 1);
        plus(&mut self.unpriced, row.cost.is_none().into());
        plus(&mut self.requests, row.requests.into());
        plus(&mut self.input, row.input);
        plus(&mut self.output, row.output);
        plus(&mut self.cached, row.cached);
        plus(&mut self.cost, row.cost.unwrap_or_default());
        self.estimated |= row.estimated;
    }
}

/// The model that an actor of a run asked last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastModel {
    /// The actor.
    pub actor: String,
    /// `PROVIDER:NAME` of the model.
    pub model: String,
    /// Address of its server.
    pub address: String,
}

impl LastModel {
    /// The last model of each actor of a run.
    pub(crate) fn of(run: &str, rows: &[UsageRow]) -> Vec<LastModel> {
        let last: BTreeMap<&str, &UsageRow> =
            rows.iter().filter(|row| row.run == run).map(|row| (row.actor.as_str(), row)).collect();
        let one = |row: &UsageRow| LastModel {
            actor: row.actor.clone(),
            model: row.model.clone(),
            address: row.address.clone(),
        };
        last.into_values().map(one).collect()
    }
}

impl UsageFilter {
    /// Adds up the questions that meet the conditions.
    pub(crate) fn totals(&self, rows: &[UsageRow]) -> UsageTotals {
        let mut totals = UsageTotals::default();
        let is_meant = |row: &&UsageRow| {
            self.run.as_deref().is_none_or(|run| run == row.run)
                && self.actor.as_deref().is_none_or(|actor| actor == row.actor)
                && self.since.is_none_or(|since| since <= row.at)
        };
        rows.iter().filter(is_meant).for_each(|row| totals.add(row));
        totals
    }
}
