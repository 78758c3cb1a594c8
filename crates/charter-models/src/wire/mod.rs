//! The wire formats: a conversation to a request, an answer's bytes to text and usage. No I/O.

mod anthropic;
mod gemini;
mod openai;

use serde_json::Value as Json;

use crate::codes;
use crate::exchange::Usage;
use crate::model::{Model, Provider};
use crate::sse;
use crate::transport::{Request, Response};
use charter_actors::Fault;

/// What is said to a model in one request.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// Instruction.
    pub system: &'a str,
    /// What the user and the model have said in turn; the user begins and ends.
    pub turns: &'a [String],
    /// The JSON Schema of the answer, with an object on top and no references.
    pub schema: &'a Json,
    /// The most tokens of the answer.
    pub most_tokens: u32,
}

/// What a model said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// Its text: JSON, one hopes.
    pub text: String,
    /// Tokens, if the server said so.
    pub usage: Option<Usage>,
    /// What the model calls itself.
    pub model: Option<String>,
    /// How it ended.
    pub end: End,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum End {
    /// It is whole.
    #[default]
    Whole,
    /// It reached the most tokens.
    CutOff,
    /// The model, or what guards it, refused, with these words.
    Declined(String),
    /// The stream ended without its end.
    Broken,
}

/// The request for a conversation.
#[must_use]
pub fn request(model: &Model, talk: &Conversation<'_>) -> Request {
    match model.provider {
        Provider::OpenAi => openai::request(model, talk),
        Provider::Anthropic => anthropic::request(model, talk),
        Provider::Gemini => gemini::request(model, talk),
    }
}

/// What a successful answer says.
///
/// # Errors
/// It is not the provider's wire format, or it is an error after all.
pub fn reply(provider: Provider, response: &Response) -> Result<Reply, Fault> {
    let streamed = response.content_type.starts_with("text/event-stream")
        || response.body.starts_with("data:")
        || response.body.starts_with("event:");
    let chunks = if streamed {
        let mut chunks = Vec::new();
        for (_, data) in sse::events(&response.body) {
            if data.trim() == "[DONE]" {
                chunks.push(Json::Null);
                continue;
            }
            chunks.push(parse(&data)?);
        }
        chunks
    } else {
        vec![parse(&response.body)?]
    };
    for chunk in &chunks {
        if let Some(message) = error_message(chunk) {
            return Err(Fault::new(codes::UNAVAILABLE, format!("the model's server gave up: {message}")).retryable());
        }
    }
    match (provider, streamed) {
        (Provider::OpenAi, true) => openai::stream(&chunks),
        (Provider::OpenAi, false) => openai::whole(chunks.first()),
        (Provider::Anthropic, true) => anthropic::stream(&chunks),
        (Provider::Anthropic, false) => anthropic::whole(chunks.first()),
        (Provider::Gemini, _) => gemini::chunks(&chunks, streamed),
    }
}

/// What an unsuccessful answer says: code, sentence, whether trying again may help.
#[must_use]
pub fn refusal(model: &Model, response: &Response) -> Fault {
    let said = serde_json::from_str::<Json>(&response.body)
        .ok()
        .and_then(|body| error_message(&body))
        .unwrap_or_else(|| response.body.trim().chars().take(200).collect());
    let said = model.key.as_ref().map_or(said.clone(), |key| key.redact(&said));
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let (status, title) = (response.status, model.title());
    match status {
        401 | 403 => Fault::new(
            codes::AUTHENTICATION,
            format!("the server of `{title}` does not take the key (status {status}){said}"),
        ),
        408 | 409 | 425 | 500..=599 => Fault::new(
            codes::UNAVAILABLE,
            format!("the server of `{title}` is not able to answer (status {status}){said}"),
        )
        .retryable(),
        429 => Fault::new(
            codes::RATE_LIMITED,
            format!("the server of `{title}` wants fewer requests (status 429){said}"),
        )
        .retryable(),
        300..=399 => Fault::new(
            codes::REQUEST,
            format!("the server of `{title}` sends elsewhere (status {status}); give the right base URL, a key follows no redirect"),
        ),
        _ => Fault::new(
            codes::REQUEST,
            format!("the server of `{title}` does not take the request (status {status}){said}"),
        ),
    }
    .with("status", status)
}

fn parse(text: &str) -> Result<Json, Fault> {
    serde_json::from_str(text).map_err(|e| {
        let begin: String = text.trim().chars().take(80).collect();
        protocol(&format!("it is no JSON ({e}); it begins with `{begin}`"))
    })
}

fn protocol(why: &str) -> Fault {
    Fault::new(codes::PROTOCOL, format!("the answer of the model's server cannot be read: {why}")).retryable()
}

/// `{"error": {"message"}}` of all three, also in a list of one (Gemini) and as a text (some local servers).
fn error_message(body: &Json) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    match body.get("error")? {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        error => Some(
            error
                .get("message")
                .and_then(Json::as_str)
                .map_or_else(|| error.to_string(), str::to_owned)
                .chars()
                .take(500)
                .collect(),
        ),
    }
}

fn text<'j>(value: &'j Json, pointer: &str) -> Option<&'j str> {
    value.pointer(pointer).and_then(Json::as_str)
}

fn count(value: &Json, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Json::as_u64)
}
