//! OpenAI's chat completions API (platform documentation, "Create chat completion"), which other
//! servers offer as well.

use charter_actors::Fault;
use serde_json::{Value as Json, json};

use super::{Conversation, End, Reply, add, count, protocol, text, usage};
use crate::model::{Model, Provider};
use crate::settings::{Effort, OutputMode};
use crate::transport::Request;
use charter_actors::Secret;

pub(super) fn request(model: &Model, talk: &Conversation<'_>) -> Request {
    let mut messages = vec![json!({"role": "system", "content": talk.system})];
    for (i, turn) in talk.turns.iter().enumerate() {
        let role = if i % 2 == 0 { "user" } else { "assistant" };
        messages.push(json!({"role": role, "content": turn}));
    }
    let mut body = json!({
        "model": model.name,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    let format = match talk.mode {
        OutputMode::JsonSchema => {
            Some(json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": talk.schema}}))
        }
        OutputMode::JsonObject => Some(json!({"type": "json_object"})),
        OutputMode::Tool | OutputMode::Text => None,
    };
    add(&mut body, "response_format", format);
    if talk.mode == OutputMode::Tool {
        let function = json!({"name": "answer", "description": "Takes your answer.", "parameters": talk.schema});
        add(&mut body, "tools", Some(json!([{"type": "function", "function": function}])));
        add(&mut body, "tool_choice", Some(json!({"type": "function", "function": {"name": "answer"}})));
    }
    add(&mut body, "temperature", talk.settings.temperature);
    add(&mut body, "reasoning_effort", talk.settings.effort.map(Effort::word));
    // OpenAI has renamed this parameter; other servers only know the old name.
    let renamed = model.provider == Provider::Azure || model.base_url == Provider::OpenAi.base_url();
    let limit = if renamed { "max_completion_tokens" } else { "max_tokens" };
    add(&mut body, limit, Some(talk.max_tokens));
    Request {
        url: format!("{}/chat/completions", model.base_url),
        headers: vec![("content-type".into(), "application/json".into())],
        secrets: model
            .key
            .iter()
            .map(|key| match model.provider {
                Provider::Azure => ("api-key", key.clone()),
                _ => ("authorization", Secret::new(format!("Bearer {}", key.expose()))),
            })
            .collect(),
        body: body.to_string(),
    }
}

pub(super) fn complete(body: Option<&Json>) -> Result<Reply, Fault> {
    let body = body.ok_or_else(|| protocol("it is empty"))?;
    if body.pointer("/choices/0/message").is_none() {
        return Err(protocol("it has no `choices[0].message`"));
    }
    let spoken = text(body, "/choices/0/message/content").unwrap_or_default();
    let called = text(body, "/choices/0/message/tool_calls/0/function/arguments");
    let mut reply = Reply { text: given(spoken, called.unwrap_or_default()), ..Reply::default() };
    about(&mut reply, body);
    reply.end =
        end(text(body, "/choices/0/finish_reason"), text(body, "/choices/0/message/refusal").unwrap_or_default());
    Ok(reply)
}

pub(super) fn stream(chunks: &[Json]) -> Result<Reply, Fault> {
    let mut reply = Reply::default();
    let (mut refusal, mut reason, mut done) = (String::new(), None, false);
    let mut called = String::new();
    for chunk in chunks {
        done |= chunk.is_null();
        reply.text.push_str(text(chunk, "/choices/0/delta/content").unwrap_or_default());
        let calls = chunk.pointer("/choices/0/delta/tool_calls").and_then(Json::as_array);
        for call in calls.into_iter().flatten().filter(|call| count(call, "/index").unwrap_or_default() == 0) {
            called.push_str(text(call, "/function/arguments").unwrap_or_default());
        }
        refusal.push_str(text(chunk, "/choices/0/delta/refusal").unwrap_or_default());
        reason = text(chunk, "/choices/0/finish_reason").or(reason);
        about(&mut reply, chunk);
    }
    reply.text = given(&reply.text, &called);
    reply.end = match reason {
        None if !done => End::Broken,
        reason => end(reason, &refusal),
    };
    Ok(reply)
}

/// The answer: the arguments of a tool call if there is one, or else what the model says.
fn given(spoken: &str, called: &str) -> String {
    let answer = if called.trim().is_empty() { spoken } else { called };
    answer.to_owned()
}

fn about(reply: &mut Reply, body: &Json) {
    let cached = count(body, "/usage/prompt_tokens_details/cached_tokens");
    let counted = usage(count(body, "/usage/prompt_tokens"), count(body, "/usage/completion_tokens"), cached);
    reply.usage = counted.or(reply.usage);
    if let Some(model) = text(body, "/model").filter(|m| !m.is_empty()) {
        reply.model = Some(model.to_owned());
    }
}

fn end(reason: Option<&str>, refusal: &str) -> End {
    match reason {
        _ if !refusal.is_empty() => End::Declined(refusal.to_owned()),
        Some("length") => End::CutOff,
        Some("content_filter") => End::Declined("a content filter removed the answer".into()),
        _ => End::Complete,
    }
}
