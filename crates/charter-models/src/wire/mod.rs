//! The wire formats: converts a conversation to a request, and a response to text and usage. No
//! I/O.

mod anthropic;
mod counts;
mod dialect;
mod gemini;
mod openai;
mod taken;

use std::sync::Arc;

use charter_actors::Fault;
use serde_json::Value as Json;

use crate::attachments::Attachment;
use crate::codes;
use crate::model::{Model, Provider};
use crate::settings::{OutputMode, Settings};
use crate::sse;
use crate::tools::{ANSWER, Tool, ToolCall, ToolResult};
use crate::transport::{Request, Response};
pub use counts::Counts;
pub use dialect::Dialect;
pub(crate) use taken::{MAX_USAGE, Received, no_count, tokens};

/// The content of one request.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// The messages. The first one is the user's.
    pub turns: &'a [Turn],
    /// The JSON Schema of the answer, with an object at the top and no references.
    pub schema: &'a Json,
    /// Maximum number of tokens in the answer.
    pub max_tokens: u32,
    /// How the actor wants to be answered.
    pub settings: &'a Settings,
    /// How the model is held to the schema.
    pub mode: OutputMode,
    /// The tools that the model may call before it answers.
    pub tools: &'a [Tool],
    /// Whether it must answer now.
    pub last: bool,
    /// What the server takes.
    pub dialect: Dialect,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// The task.
    Task(String, Arc<[Attachment]>),
    /// A text of the user.
    User(String),
    /// A text of the model.
    Model(String),
    /// Calls of tools by the model: [`Reply::message`].
    Calls(Json),
    /// What the calls gave, in their order.
    Results(Vec<ToolResult>),
}

impl Turn {
    /// The tokens of its attachments, about.
    pub(crate) fn attached(&self) -> u64 {
        match self {
            Turn::Task(_, attachments) => attachments.iter().map(Attachment::tokens).sum(),
            _ => 0,
        }
    }

    /// The size of its texts in bytes, about.
    pub(crate) fn size(&self) -> usize {
        match self {
            Turn::Task(text, _) | Turn::User(text) | Turn::Model(text) => text.len(),
            Turn::Calls(message) => message.to_string().len(),
            Turn::Results(results) => results.iter().map(|r| r.content.to_string().len()).sum(),
        }
    }
}

/// The reply of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// The text of the reply, which should be JSON.
    pub text: String,
    /// Numbers of tokens, as far as the server reports them.
    pub counts: Counts,
    /// The name that the model reports.
    pub model: Option<String>,
    /// How the reply ended.
    pub end: End,
    /// Calls of tools, if it is no answer.
    pub calls: Vec<ToolCall>,
    /// The reply in the provider's form, to be sent again with the results of the calls; null
    /// without calls.
    pub message: Json,
}

impl Reply {
    /// Sorts what a model called. If it has tools, only calls of `answer` are an answer, and only
    /// without others beside them, whose results it could not know. If it has none, any call is the
    /// answer; several become one text, of which only one value may match.
    fn called(&mut self, calls: Vec<ToolCall>, message: impl FnOnce() -> Json, tools: &[Tool]) {
        let is_answer = |call: &ToolCall| tools.is_empty() || call.name.is_empty() || call.name == ANSWER;
        if !calls.iter().all(is_answer) {
            (self.calls, self.message) = (calls, message());
            return;
        }
        let arguments = calls.iter().map(|call| call.arguments.as_str());
        let mut answers: Vec<&str> = arguments.filter(|text| !text.trim().is_empty()).collect();
        answers.dedup();
        if !answers.is_empty() {
            // Which of several answers counts is decided where they are read.
            self.text = answers.join("\n");
        }
    }
}

/// The description of the tool that takes the answer.
const ANSWER_IS: &str = "Takes your answer.";

/// How a reply ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum End {
    /// The reply is complete.
    #[default]
    Complete,
    /// The reply reached the token limit.
    CutOff,
    /// The context window of the model is full.
    NoRoom,
    /// The model or a filter refused, with this message.
    Declined(String),
    /// The stream ended early.
    Broken,
}

/// Says why a provider does not take an attachment; `None`: it does.
pub(crate) fn refuses(provider: Provider, attachment: &Attachment) -> Option<String> {
    let refused = provider == Provider::Gemini && attachment.media_type == "image/gif";
    refused.then(|| "Gemini takes no `image/gif`; attach `image/png`, `image/jpeg` or `image/webp`".to_owned())
}

/// Builds the request for a conversation.
#[must_use]
pub fn request(model: &Model, talk: &Conversation<'_>) -> Request {
    let mut request = match model.provider {
        Provider::OpenAi | Provider::Azure => openai::request(model, talk),
        Provider::Anthropic => anthropic::request(model, talk),
        Provider::Gemini => gemini::request(model, talk),
    };
    let further = model.headers.iter().map(|(name, value)| (name.clone().into(), value.clone()));
    request.headers.extend(further);
    if let Some(Turn::Task(_, attachments)) = talk.turns.first() {
        request.attached = attachments.clone();
    }
    request.hidden.extend(model.key.iter().chain(&model.others).cloned());
    request
}

/// Parses a successful response. Calls of `tools` are calls; those of other tools are answers.
///
/// # Errors
/// The response does not follow the provider's wire format, or it reports an error.
pub fn reply(provider: Provider, response: &Response, tools: &[Tool]) -> Result<Reply, Fault> {
    let streamed = response.is_stream();
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
            let message = format!("the model's server reports an error: {message}");
            // The types of Anthropic; whatever else breaks off a stream may pass.
            return Err(match chunk.pointer("/error/type").and_then(Json::as_str) {
                Some("invalid_request_error" | "not_found_error") => Fault::new(codes::REQUEST, message),
                Some("authentication_error" | "permission_error") => Fault::new(codes::AUTHENTICATION, message),
                Some("rate_limit_error") => Fault::new(codes::RATE_LIMITED, message).retryable(),
                _ => Fault::new(codes::UNAVAILABLE, message).retryable(),
            });
        }
    }
    if let Some(count) = chunks.iter().find_map(|chunk| no_count(provider, chunk)) {
        let shown: String = count.to_string().chars().take(40).collect();
        let message = format!("the server reports {shown} tokens for one request, which cannot be");
        return Err(Fault::new(codes::PROTOCOL, message));
    }
    match (provider, streamed) {
        (Provider::OpenAi | Provider::Azure, true) => openai::stream(&chunks, tools),
        (Provider::OpenAi | Provider::Azure, false) => openai::complete(chunks.first(), tools),
        (Provider::Anthropic, true) => anthropic::stream(&chunks, tools),
        (Provider::Anthropic, false) => anthropic::complete(chunks.first(), tools),
        (Provider::Gemini, _) => gemini::chunks(&chunks, streamed, tools),
    }
}

/// The piece of the text of an answer in a line of a streamed response, for display.
pub fn piece(provider: Provider, line: &str) -> String {
    let Some(chunk) = line.strip_prefix("data:").and_then(|data| serde_json::from_str::<Json>(data).ok()) else {
        return String::new();
    };
    let pieces: &[&str] = match provider {
        Provider::OpenAi | Provider::Azure => {
            &["/choices/0/delta/content", "/choices/0/delta/tool_calls/0/function/arguments"]
        }
        Provider::Anthropic => &["/content_block/text", "/delta/text", "/delta/partial_json"],
        Provider::Gemini => {
            let parts = chunk.pointer("/candidates/0/content/parts").and_then(Json::as_array);
            let said = parts.into_iter().flatten().filter(|part| part.get("thought") != Some(&Json::Bool(true)));
            return said.filter_map(|part| text(part, "/text")).collect();
        }
    };
    pieces.iter().filter_map(|pointer| text(&chunk, pointer)).collect()
}

/// Converts an unsuccessful response to a fault.
#[must_use]
pub fn refusal(model: &Model, response: &Response) -> Fault {
    let said = serde_json::from_str::<Json>(&response.body)
        .ok()
        .and_then(|body| error_message(&body))
        .unwrap_or_else(|| response.body.trim().chars().take(200).collect());
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let (status, title) = (response.status, model.title());
    match status {
        401 | 403 if model.key.is_none() => Fault::new(
            codes::AUTHENTICATION,
            format!(
                "the server of `{title}` wants a key (status {status}), and none was sent: set {}{said}",
                model.key_variable()
            ),
        ),
        401 | 403 => Fault::new(
            codes::AUTHENTICATION,
            format!("the server of `{title}` rejects the key (status {status}){said}"),
        ),
        408 | 409 | 425 | 500..=599 => Fault::new(
            codes::UNAVAILABLE,
            format!("the server of `{title}` is unavailable (status {status}){said}"),
        )
        .retryable(),
        429 => Fault::new(
            codes::RATE_LIMITED,
            format!("the server of `{title}` limits the rate of requests (status 429){said}"),
        )
        .retryable(),
        300..=399 => Fault::new(
            codes::REQUEST,
            format!("the server of `{title}` redirects (status {status}); redirects are not followed, to protect the key: set the right base URL"),
        ),
        _ => Fault::new(
            codes::REQUEST,
            format!("the server of `{title}` rejects the request (status {status}){said}"),
        ),
    }
    .with("status", status)
}

fn parse(text: &str) -> Result<Json, Fault> {
    charter_expr::strict_json::from_str(text).map_err(|e| {
        let begin: String = text.trim().chars().take(80).collect();
        protocol(&format!("it is not valid JSON ({e}); it begins with `{begin}`"))
    })
}

fn protocol(why: &str) -> Fault {
    Fault::new(codes::PROTOCOL, format!("cannot read the response of the model's server: {why}")).retryable()
}

/// Returns the error message of a body. All three providers use `{"error": {"message"}}`, also in a
/// list of one (Gemini) or as a string (some local servers).
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

/// Adds a member to a request, if there is a value.
fn add(body: &mut Json, key: &str, value: Option<impl Into<Json>>) {
    if let (Some(map), Some(value)) = (body.as_object_mut(), value) {
        map.insert(key.into(), value.into());
    }
}

fn text<'j>(value: &'j Json, pointer: &str) -> Option<&'j str> {
    value.pointer(pointer).and_then(Json::as_str)
}

fn count(value: &Json, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Json::as_u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Provider, piece};

    #[test]
    fn what_is_shown_has_all_pieces_of_the_text() {
        let of = |provider, chunk: serde_json::Value| piece(provider, &format!("data: {chunk}"));
        let begin = json!({"type": "content_block_start", "content_block": {"type": "text", "text": "a"}});
        assert_eq!(of(Provider::Anthropic, begin), "a");
        let parts = json!([{"text": "b"}, {"text": "hm", "thought": true}, {"text": "c", "thought": false}]);
        assert_eq!(of(Provider::Gemini, json!({"candidates": [{"content": {"parts": parts}}]})), "bc");
    }
}
