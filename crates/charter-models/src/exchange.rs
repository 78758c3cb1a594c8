//! The exchange with a model, stored with the effect: requests and responses up to a size limit,
//! and never a key.

use charter_kernel::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// Maximum size of a stored text, in bytes; only the beginning and the end of a longer text are
/// stored.
const MAX_TEXT: usize = 64 << 10;
/// Maximum number of stored requests; further ones are only counted.
const MAX_MESSAGES: usize = 32;

/// Numbers of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens read by the model, cached ones included.
    pub input: u64,
    /// Tokens written by the model, its thoughts included.
    pub output: u64,
    /// Tokens read from the provider's cache, a part of `input`.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Tokens written to the provider's cache, a part of `input`.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// Whether a part is an estimate (four bytes per token), because the server did not report it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// The total number of tokens.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The counts of a server, with parts of `input` that are not larger than it.
    pub(crate) fn plausible(self) -> Usage {
        let cached = self.cached.min(self.input);
        let cache_written = self.cache_written.min(self.input.saturating_sub(cached));
        let is_lower = (cached, cache_written) != (self.cached, self.cache_written);
        Usage { cached, cache_written, estimated: self.estimated || is_lower, ..self }
    }

    /// What is left without a part of it.
    pub(crate) fn minus(self, part: Usage) -> Usage {
        Usage {
            input: self.input.saturating_sub(part.input),
            output: self.output.saturating_sub(part.output),
            cached: self.cached.saturating_sub(part.cached),
            cache_written: self.cache_written.saturating_sub(part.cache_written),
            estimated: self.estimated,
        }
    }

    pub(crate) fn add(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.estimated |= other.estimated;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A request and its response.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The body of the request.
    pub request: String,
    /// HTTP status; `None` if there was no response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body of the response, or why there is none.
    pub response: String,
}

/// The requests and responses of one question.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exchange {
    /// `PROVIDER:NAME` of the model that was asked.
    pub model: String,
    /// Address of the server.
    pub base_url: String,
    /// The name that the model reports, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_as: Option<String>,
    /// SHA-256 of the first prompt.
    pub prompt: String,
    /// Tokens of all requests together.
    pub usage: Usage,
    /// Number of requests sent.
    pub requests: u32,
    /// The requests and responses, in order.
    #[serde(rename = "said")]
    pub messages: Vec<Message>,
    /// The part of `usage` that was paid for: not that of a cassette.
    #[serde(skip)]
    pub spent: Usage,
    /// The part of `requests` that was sent.
    #[serde(skip)]
    pub sent: u32,
    /// The part of `spent`, of `sent` and of `millis` that has been written down.
    #[serde(skip)]
    pub(crate) written: (Usage, u32, u64),
    /// Whether a part of `spent` that is not written down yet is an estimate.
    #[serde(skip)]
    pub(crate) estimates: bool,
    /// The digest of the blob with this exchange.
    #[serde(skip)]
    pub(crate) stored: Option<Digest>,
    /// Index among the parallel calls of the actor.
    #[serde(skip)]
    pub call: usize,
    /// How long it took, in milliseconds.
    #[serde(skip)]
    pub millis: u64,
    /// The code of the fault; `None`: it was answered.
    #[serde(skip)]
    pub fault: Option<String>,
    /// What it cost in picodollars, if the price of the model is known.
    #[serde(skip)]
    pub cost: Option<u64>,
}

impl Exchange {
    /// The part of `spent` that is not written down yet.
    pub(crate) fn unwritten(&self) -> Usage {
        Usage { estimated: self.estimates, ..self.spent.minus(self.written.0) }
    }

    /// Notes that everything is written down.
    pub(crate) fn wrote(&mut self) {
        self.written = (self.spent, self.sent, self.millis);
        self.estimates = false;
    }

    /// Counts tokens, and whether they were paid for.
    pub(crate) fn count(&mut self, usage: Usage, sent: bool) {
        self.usage.add(usage);
        if sent {
            self.spent.add(usage);
            self.estimates |= usage.estimated;
        }
    }

    pub(crate) fn push(&mut self, request: &str, status: Option<u16>, response: &str) {
        self.requests = self.requests.saturating_add(1);
        if self.messages.len() < MAX_MESSAGES {
            self.messages.push(Message { request: shorten(request), status, response: shorten(response) });
        }
    }

    /// Replaces the stored response of the last request.
    pub(crate) fn replace_last_response(&mut self, response: &str) {
        // Later requests are only counted.
        let stored = usize::try_from(self.requests).is_ok_and(|count| count == self.messages.len());
        if let Some(last) = self.messages.last_mut().filter(|_| stored) {
            last.response = shorten(response);
        }
    }

    /// Converts the exchange to JSON, to be stored.
    #[must_use]
    pub fn json(&self) -> Json {
        serde_json::to_value(self).unwrap_or_else(|e| json!({"error": e.to_string()}))
    }
}

/// Keeps the beginning and the end, and states the size of the gap.
fn shorten(text: &str) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let half = MAX_TEXT / 2;
    let head = text.get(..floor(text, half)).unwrap_or_default();
    let tail = text.get(floor(text, text.len().saturating_sub(half))..).unwrap_or_default();
    let missing = text.len().saturating_sub(head.len()).saturating_sub(tail.len());
    format!("{head}[… {missing} bytes …]{tail}")
}

fn floor(text: &str, mut at: usize) -> usize {
    while at > 0 && !text.is_char_boundary(at) {
        at = at.saturating_sub(1);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::{Exchange, MAX_TEXT, Usage};

    #[test]
    fn an_estimate_is_noted_in_its_own_row_only() {
        let mut exchange = Exchange::default();
        exchange.count(Usage { input: 9, estimated: true, ..Usage::default() }, true);
        assert!(exchange.unwritten().estimated);
        exchange.wrote();
        exchange.count(Usage { input: 10, ..Usage::default() }, true);
        assert_eq!(exchange.unwritten(), Usage { input: 10, ..Usage::default() });
        assert!(exchange.usage.estimated, "of both together");
    }

    #[test]
    fn sizes_are_bounded() {
        let mut exchange = Exchange::default();
        let long = "ä".repeat(MAX_TEXT);
        for _ in 0..100 {
            exchange.push(&long, Some(200), "ok");
        }
        assert_eq!((exchange.requests, exchange.messages.len()), (100, 32));
        let kept = &exchange.messages[0].request;
        assert!(kept.len() < MAX_TEXT + 64, "{}", kept.len());
        assert!(kept.contains("[… 65536 bytes …]"), "{}", &kept[MAX_TEXT / 2 - 10..MAX_TEXT / 2 + 40]);
    }
}
