//! What was said, kept with the effect: every request and every answer, up to a size, never a key.

use serde::Serialize;
use serde_json::{Value as Json, json};

/// The largest text of a request or an answer that is kept, in bytes; the beginning and the end of a longer one.
const MAX_TEXT: usize = 64 << 10;
/// How many requests are kept in full; further ones are only counted.
const MAX_SAID: usize = 32;

/// Tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// Read by the model.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Some of it is an estimate, because the server did not say (four bytes a token).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    pub(crate) fn add(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.estimated |= other.estimated;
    }
}

/// A request and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// The body of the request.
    pub request: String,
    /// HTTP status; none: nothing came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body of the answer, or why there is none.
    pub response: String,
}

/// All that was said about one question.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exchange {
    /// `PROVIDER:NAME` of the model that was asked.
    pub model: String,
    /// Where.
    pub base_url: String,
    /// The model's own name of itself, if it said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_as: Option<String>,
    /// SHA-256 of the first prompt.
    pub prompt: String,
    /// Tokens of all requests.
    pub usage: Usage,
    /// How many requests were sent.
    pub requests: u32,
    /// The requests and answers, in order.
    pub said: Vec<Said>,
}

impl Exchange {
    pub(crate) fn said(&mut self, request: &str, status: Option<u16>, response: &str) {
        self.requests = self.requests.saturating_add(1);
        if self.said.len() < MAX_SAID {
            self.said.push(Said { request: shorten(request), status, response: shorten(response) });
        }
    }

    /// As JSON, to be kept.
    #[must_use]
    pub fn json(&self) -> Json {
        serde_json::to_value(self).unwrap_or_else(|e| json!({"error": e.to_string()}))
    }
}

/// The beginning and the end, and how much is missing between them.
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
    use super::{Exchange, MAX_TEXT};

    #[test]
    fn sizes_are_bounded() {
        let mut exchange = Exchange::default();
        let long = "ä".repeat(MAX_TEXT);
        for _ in 0..100 {
            exchange.said(&long, Some(200), "ok");
        }
        assert_eq!((exchange.requests, exchange.said.len()), (100, 32));
        let kept = &exchange.said[0].request;
        assert!(kept.len() < MAX_TEXT + 64, "{}", kept.len());
        assert!(kept.contains("[… 65536 bytes …]"), "{}", &kept[MAX_TEXT / 2 - 10..MAX_TEXT / 2 + 40]);
    }
}
