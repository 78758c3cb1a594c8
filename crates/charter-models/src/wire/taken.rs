//! The tokens that an answer took, although it cannot be used: it broke off, it cannot be read, or
//! it ends with an error. No I/O.

use serde_json::{Deserializer, Value as Json};

use super::counts::{Counts, places};
use super::{count, piece};
use crate::exchange::Usage;
use crate::model::Provider;
use crate::sse;

/// The largest count of tokens that a server can mean.
pub(crate) const MAX_USAGE: u64 = 100_000_000;
/// Maximum number of values that are read one after another in a body that is no stream.
const MAX_VALUES: usize = 1_000;

/// What was received of an answer.
#[derive(Debug, Default)]
pub(crate) struct Received {
    counts: Counts,
    /// Whether `output` is the count of the whole answer.
    is_whole: bool,
    /// About as many tokens as were received.
    written: u64,
    /// Whether a text of the model is in it.
    has_text: bool,
}

impl Received {
    /// Reads what was received, however broken it is.
    pub(crate) fn read(provider: Provider, body: &str) -> Received {
        let body = body.trim_start_matches(['\u{feff}', '\n', '\r', ' ', '\t']);
        let mut received = Received::default();
        let (mut events, mut said) = (0u64, 0usize);
        for line in sse::lines(body).filter(|line| line.starts_with("data:")) {
            events = events.saturating_add(1);
            said = said.saturating_add(piece(provider, line).len());
        }
        let values: Vec<Json> = match events {
            0 => Deserializer::from_str(body).into_iter().map_while(Result::ok).take(MAX_VALUES).collect(),
            _ => sse::events(body).iter().filter_map(|(_, data)| serde_json::from_str(data).ok()).collect(),
        };
        received.has_text = said > 0;
        received.is_whole = events == 0;
        // A stream has at least about one token in each event.
        received.written = if events == 0 { tokens(body.len()) } else { tokens(said).max(events) };
        for value in &values {
            let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            list.iter().for_each(|value| received.note(provider, value));
        }
        if !received.reports() {
            received.search(provider, body);
        }
        received
    }

    /// Whether the server reports tokens, or a text of the model has arrived.
    pub(crate) fn says_anything(&self) -> bool {
        self.has_text || self.reports()
    }

    fn reports(&self) -> bool {
        self.counts.input.is_some() || self.counts.output.is_some()
    }

    /// The tokens. What the server does not report is an estimate, of a request of about so many.
    pub(crate) fn taken(&self, question: u64) -> Usage {
        let output = match (self.counts.output, self.is_whole) {
            (Some(output), true) => output,
            // What was reported at the beginning of a stream, and what came after it.
            (output, _) => output.unwrap_or_default().max(self.written),
        };
        let counted = self.counts.usage_or(question, output);
        let reported = Usage { output, estimated: counted.estimated || counted.output != output, ..counted };
        match reported.plausible() {
            usage if usage.total() <= MAX_USAGE => usage,
            _ => Usage { input: question, output: self.written, estimated: true, ..Usage::default() },
        }
    }

    /// Notes what one value of the body reports.
    fn note(&mut self, provider: Provider, value: &Json) {
        for place in places(provider) {
            if let Some(usage) = value.pointer(place) {
                self.add(provider, usage);
                let ends = value.pointer("/candidates/0/finishReason").is_some_and(Json::is_string);
                self.is_whole |= match provider {
                    Provider::OpenAi | Provider::Azure => self.counts.output.is_some(),
                    Provider::Anthropic => *place == "/usage" && count(usage, "/output_tokens").is_some(),
                    Provider::Gemini => ends,
                };
            }
        }
    }

    fn add(&mut self, provider: Provider, usage: &Json) {
        self.counts = self.counts.larger(Counts::read(provider, usage));
    }

    /// Searches a body that cannot be parsed. Within a text of JSON, the quotes of such a key would
    /// be escaped.
    fn search(&mut self, provider: Provider, body: &str) {
        let key = if provider == Provider::Gemini { "\"usageMetadata\"" } else { "\"usage\"" };
        for (at, _) in body.match_indices(key).take(MAX_VALUES) {
            let rest = body.get(at.saturating_add(key.len())..).unwrap_or_default().trim_start();
            let Some(rest) = rest.strip_prefix(':') else { continue };
            if let Some(Ok(usage)) = Deserializer::from_str(rest).into_iter::<Json>().next() {
                self.add(provider, &usage);
            }
        }
    }
}

/// Returns what a value of the body reports as a number of tokens, if that is no count.
pub(crate) fn no_count(provider: Provider, value: &Json) -> Option<&Json> {
    let counts: &[&str] = match provider {
        Provider::OpenAi | Provider::Azure => {
            &["/prompt_tokens", "/completion_tokens", "/prompt_tokens_details/cached_tokens"]
        }
        Provider::Anthropic => {
            &["/input_tokens", "/output_tokens", "/cache_read_input_tokens", "/cache_creation_input_tokens"]
        }
        Provider::Gemini => &[
            "/promptTokenCount",
            "/candidatesTokenCount",
            "/thoughtsTokenCount",
            "/toolUsePromptTokenCount",
            "/cachedContentTokenCount",
        ],
    };
    let usages = places(provider).iter().filter_map(|place| value.pointer(place));
    let mut found = usages.flat_map(|usage| counts.iter().filter_map(|count| usage.pointer(count)));
    found.find(|count| !count.is_null() && !count.is_u64())
}

/// Estimates the number of tokens in a text from its size in bytes.
pub(crate) fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}
