//! Google's Gemini API (API reference, "models.streamGenerateContent"). The key is sent in a
//! header, never in the address.

use std::sync::Arc;

use charter_actors::Fault;
use serde_json::{Value as Json, json};

use super::counts::Counts;
use super::{Conversation, End, Reply, Turn, add, protocol, text};
use crate::attachments::Attachment;
use crate::model::{Model, Provider};
use crate::schema::plain;
use crate::settings::OutputMode;
use crate::tools::{Tool, ToolCall, ToolResult};
use crate::transport::Request;

/// What stands for a call that cannot be read.
const BROKEN_CALL: &str = "(a call that cannot be read)";

pub(super) fn request(model: &Model, talk: &Conversation<'_>) -> Request {
    let result = |result: &ToolResult| {
        let mut response = json!({"name": result.call.name, "response": {"result": result.content}});
        add(&mut response, "id", (!result.call.id.is_empty()).then(|| result.call.id.clone()));
        json!({"functionResponse": response})
    };
    let content = |turn: &Turn| match turn {
        Turn::Task(text, attachments) => {
            let text = json!({"text": text});
            let parts: Json = attachments.iter().map(inline).chain([text]).collect();
            json!({"role": "user", "parts": parts})
        }
        Turn::User(text) => json!({"role": "user", "parts": [{"text": text}]}),
        Turn::Model(text) => json!({"role": "model", "parts": [{"text": text}]}),
        Turn::Calls(parts) => json!({"role": "model", "parts": parts}),
        Turn::Results(results) => json!({"role": "user", "parts": results.iter().map(result).collect::<Vec<_>>()}),
    };
    let contents: Vec<Json> = talk.turns.iter().map(content).collect();
    let mut config = json!({"maxOutputTokens": talk.max_tokens});
    let json = (talk.mode != OutputMode::Text).then_some("application/json");
    add(&mut config, "responseMimeType", json);
    add(&mut config, "responseJsonSchema", (talk.mode == OutputMode::JsonSchema).then(|| plain(talk.schema)));
    add(&mut config, "temperature", talk.settings.temperature);
    let thoughts = talk.settings.thoughts(model.provider, talk.max_tokens);
    add(&mut config, "thinkingConfig", thoughts.map(|tokens| json!({"thinkingBudget": tokens})));
    let mut body = json!({
        "systemInstruction": {"parts": [{"text": talk.system}]},
        "contents": contents,
        "generationConfig": config,
    });
    let tools: Vec<Json> = talk
        .tools
        .iter()
        .map(|tool| {
            let schema = plain(&tool.schema);
            json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": schema})
        })
        .collect();
    if !tools.is_empty() {
        add(&mut body, "tools", Some(json!([{"functionDeclarations": tools}])));
        let mode = if talk.last { "NONE" } else { "AUTO" };
        add(&mut body, "toolConfig", Some(json!({"functionCallingConfig": {"mode": mode}})));
    }
    Request {
        url: format!("{}/models/{}:streamGenerateContent?alt=sse", model.base_url, model.name),
        headers: vec![("content-type".into(), "application/json".into())],
        secrets: model.key.iter().map(|key| ("x-goog-api-key", key.clone())).collect(),
        body: body.to_string(),
        hidden: Vec::new(),
        attached: Arc::default(),
        asker: String::new(),
    }
}

fn inline(attachment: &Attachment) -> Json {
    json!({"inlineData": {"mimeType": attachment.media_type, "data": attachment.data}})
}

/// Parses the chunks of a response. A response that is not streamed has a single chunk.
pub(super) fn chunks(chunks: &[Json], streamed: bool, tools: &[Tool]) -> Result<Reply, Fault> {
    let mut reply = Reply::default();
    let (mut reason, mut seen, mut blocking) = (None, false, None);
    let (mut calls, mut said) = (Vec::new(), Vec::new());
    for chunk in chunks {
        if let Some(blocked) = text(chunk, "/promptFeedback/blockReason") {
            blocking = Some(blocked);
        }
        seen |= chunk.get("candidates").is_some();
        let parts = chunk.pointer("/candidates/0/content/parts").and_then(Json::as_array);
        for part in parts.into_iter().flatten() {
            said.push(part.clone());
            if let Some(call) = part.get("functionCall") {
                let of = |pointer: &str| text(call, pointer).unwrap_or_default().to_owned();
                let arguments = call.get("args").map_or_else(|| "{}".to_owned(), Json::to_string);
                calls.push(ToolCall { id: of("/id"), name: of("/name"), arguments });
            }
            // Thoughts are not part of the answer.
            if part.get("thought") != Some(&Json::Bool(true)) {
                reply.text.push_str(text(part, "/text").unwrap_or_default());
            }
        }
        reason = text(chunk, "/candidates/0/finishReason").or(reason);
        if let Some(model) = text(chunk, "/modelVersion") {
            reply.model = Some(model.to_owned());
        }
        if let Some(usage) = chunk.get("usageMetadata") {
            reply.counts = reply.counts.larger(Counts::read(Provider::Gemini, usage));
        }
    }
    if reply.counts.input.is_some() && said.is_empty() {
        // Nothing was written, and there is no count of it.
        reply.counts.output.get_or_insert(0);
    }
    reply.called(calls, || Json::Array(said), tools);
    if let Some(blocked) = blocking {
        reply.end = End::Declined(format!("the prompt was blocked ({blocked})"));
        return Ok(reply);
    }
    if !seen {
        return Err(protocol("it has no `candidates`"));
    }
    reply.end = match reason {
        Some("STOP") => End::Complete,
        Some("MAX_TOKENS") => End::CutOff,
        // No call and no answer: as an answer that does not match, it is repaired.
        Some("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL") if reply.calls.is_empty() => {
            reply.text = BROKEN_CALL.to_owned();
            End::Complete
        }
        Some(other) => End::Declined(format!("it stopped with `{other}`")),
        None if streamed => End::Broken,
        None => End::Complete,
    };
    Ok(reply)
}
