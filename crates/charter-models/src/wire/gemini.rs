//! Google's Gemini API (API reference, "models.streamGenerateContent"). The key is sent in a
//! header, never in the address.

use charter_actors::Fault;
use serde_json::{Value as Json, json};

use super::{Conversation, End, Reply, add, count, protocol, text, usage};
use crate::model::Model;
use crate::schema::plain;
use crate::settings::OutputMode;
use crate::transport::Request;

pub(super) fn request(model: &Model, talk: &Conversation<'_>) -> Request {
    let contents: Vec<Json> = talk
        .turns
        .iter()
        .enumerate()
        .map(|(i, turn)| {
            let role = if i % 2 == 0 { "user" } else { "model" };
            json!({"role": role, "parts": [{"text": turn}]})
        })
        .collect();
    let mut config = json!({"maxOutputTokens": talk.max_tokens});
    let json = (talk.mode != OutputMode::Text).then_some("application/json");
    add(&mut config, "responseMimeType", json);
    add(&mut config, "responseJsonSchema", (talk.mode == OutputMode::JsonSchema).then(|| plain(talk.schema)));
    add(&mut config, "temperature", talk.settings.temperature);
    let thoughts = talk.settings.effort.map(|effort| json!({"thinkingBudget": effort.tokens()}));
    add(&mut config, "thinkingConfig", thoughts);
    let body = json!({
        "systemInstruction": {"parts": [{"text": talk.system}]},
        "contents": contents,
        "generationConfig": config,
    });
    Request {
        url: format!("{}/models/{}:streamGenerateContent?alt=sse", model.base_url, model.name),
        headers: vec![("content-type".into(), "application/json".into())],
        secrets: model.key.iter().map(|key| ("x-goog-api-key", key.clone())).collect(),
        body: body.to_string(),
    }
}

/// Parses the chunks of a response. A response that is not streamed has a single chunk.
pub(super) fn chunks(chunks: &[Json], streamed: bool) -> Result<Reply, Fault> {
    let mut reply = Reply::default();
    let (mut reason, mut seen) = (None, false);
    // An answer that is given as a call of a tool.
    let mut called: Option<String> = None;
    for chunk in chunks {
        if let Some(blocked) = text(chunk, "/promptFeedback/blockReason") {
            reply.end = End::Declined(format!("the prompt was blocked ({blocked})"));
            return Ok(reply);
        }
        seen |= chunk.get("candidates").is_some();
        let parts = chunk.pointer("/candidates/0/content/parts").and_then(Json::as_array);
        for part in parts.into_iter().flatten() {
            if let Some(arguments) = part.pointer("/functionCall/args") {
                called.get_or_insert_with(|| arguments.to_string());
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
        if let Some(input) = count(chunk, "/usageMetadata/promptTokenCount") {
            let written = count(chunk, "/usageMetadata/candidatesTokenCount").unwrap_or(0);
            let thoughts = count(chunk, "/usageMetadata/thoughtsTokenCount").unwrap_or(0);
            let cached = count(chunk, "/usageMetadata/cachedContentTokenCount");
            reply.usage = usage(Some(input), Some(written.saturating_add(thoughts)), cached);
        }
    }
    reply.text = called.unwrap_or(reply.text);
    if !seen {
        return Err(protocol("it has no `candidates`"));
    }
    reply.end = match reason {
        Some("STOP") => End::Complete,
        Some("MAX_TOKENS") => End::CutOff,
        Some(other) => End::Declined(format!("it stopped with `{other}`")),
        None if streamed => End::Broken,
        None => End::Complete,
    };
    Ok(reply)
}
