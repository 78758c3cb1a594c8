//! OpenAI's chat completions API (platform documentation, "Create chat completion"), which other
//! servers offer as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_actors::Fault;
use serde_json::{Value as Json, json};

use super::counts::Counts;
use super::{ANSWER_IS, Conversation, End, Reply, Turn, add, count, protocol, text};
use crate::attachments::Attachment;
use crate::model::{Model, Provider};
use crate::settings::{Effort, OutputMode};
use crate::tools::{ANSWER, Tool, ToolCall};
use crate::transport::Request;
use charter_actors::Secret;

pub(super) fn request(model: &Model, talk: &Conversation<'_>) -> Request {
    let mut messages = vec![json!({"role": "system", "content": talk.system})];
    for turn in talk.turns {
        match turn {
            Turn::Task(text, attachments) => messages.push(json!({"role": "user", "content": task(text, attachments)})),
            Turn::User(text) => messages.push(json!({"role": "user", "content": text})),
            Turn::Model(text) => messages.push(json!({"role": "assistant", "content": text})),
            Turn::Calls(message) => messages.push(message.clone()),
            Turn::Results(results) => messages.extend(results.iter().map(
                |result| json!({"role": "tool", "tool_call_id": result.call.id, "content": result.content.to_string()}),
            )),
        }
    }
    let mut body = json!({
        "model": model.name,
        "messages": messages,
        "stream": true,
    });
    add(&mut body, "stream_options", (!talk.dialect.no_stream_options).then(|| json!({"include_usage": true})));
    let format = match talk.mode {
        OutputMode::JsonSchema => {
            Some(json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": talk.schema}}))
        }
        OutputMode::JsonObject => Some(json!({"type": "json_object"})),
        OutputMode::Tool | OutputMode::Text => None,
    };
    add(&mut body, "response_format", format);
    let function = |name: &str, description: &str, parameters: &Json| json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}});
    let by_tool = talk.mode == OutputMode::Tool;
    let answer = by_tool.then(|| function(ANSWER, ANSWER_IS, talk.schema));
    let own = talk.tools.iter().map(|tool| function(&tool.name, &tool.description, &tool.schema));
    let tools: Vec<Json> = answer.into_iter().chain(own).collect();
    let choice = match (by_tool, talk.tools.is_empty() || talk.last) {
        (true, true) => Some(json!({"type": "function", "function": {"name": ANSWER}})),
        (true, false) => Some(json!("required")),
        (false, true) => (!tools.is_empty()).then(|| json!("none")),
        (false, false) => None,
    };
    add(&mut body, "tools", (!tools.is_empty()).then_some(tools));
    add(&mut body, "tool_choice", choice);
    add(&mut body, "temperature", talk.settings.temperature);
    add(&mut body, "reasoning_effort", talk.settings.effort.map(Effort::word));
    add(&mut body, talk.dialect.limit(model), Some(talk.max_tokens));
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
        hidden: Vec::new(),
        attached: Arc::default(),
        asker: String::new(),
    }
}

/// The content of the first message: a text, or parts if there are attachments.
fn task(text: &str, attachments: &[Attachment]) -> Json {
    if attachments.is_empty() {
        return json!(text);
    }
    let part = |attachment: &Attachment| {
        let url = format!("data:{};base64,{}", attachment.media_type, attachment.data);
        match attachment.is_document() {
            true => json!({"type": "file", "file": {"filename": "document.pdf", "file_data": url}}),
            false => json!({"type": "image_url", "image_url": {"url": url}}),
        }
    };
    let text = json!({"type": "text", "text": text});
    attachments.iter().map(part).chain([text]).collect()
}

pub(super) fn complete(body: Option<&Json>, tools: &[Tool]) -> Result<Reply, Fault> {
    let body = body.ok_or_else(|| protocol("it is empty"))?;
    let message = body.pointer("/choices/0/message").ok_or_else(|| protocol("it has no `choices[0].message`"))?;
    let mut reply = Reply { text: content(message), ..Reply::default() };
    let calls = message.get("tool_calls").and_then(Json::as_array);
    let calls = calls.into_iter().flatten().map(|call| {
        let of = |pointer: &str| text(call, pointer).unwrap_or_default().to_owned();
        ToolCall { id: of("/id"), name: of("/function/name"), arguments: of("/function/arguments") }
    });
    take_calls(&mut reply, calls.collect(), tools);
    about(&mut reply, body);
    reply.end =
        end(text(body, "/choices/0/finish_reason"), text(body, "/choices/0/message/refusal").unwrap_or_default());
    Ok(reply)
}

pub(super) fn stream(chunks: &[Json], tools: &[Tool]) -> Result<Reply, Fault> {
    let mut reply = Reply::default();
    let (mut refusal, mut reason, mut done) = (String::new(), None, false);
    let mut calls: BTreeMap<u64, ToolCall> = BTreeMap::new();
    for chunk in chunks {
        done |= chunk.is_null();
        reply.text.push_str(&chunk.pointer("/choices/0/delta").map(content).unwrap_or_default());
        let parts = chunk.pointer("/choices/0/delta/tool_calls").and_then(Json::as_array);
        for part in parts.into_iter().flatten() {
            let call = calls.entry(count(part, "/index").unwrap_or_default()).or_insert_with(|| ToolCall {
                id: String::new(),
                name: String::new(),
                arguments: String::new(),
            });
            call.id.push_str(text(part, "/id").unwrap_or_default());
            call.name.push_str(text(part, "/function/name").unwrap_or_default());
            call.arguments.push_str(text(part, "/function/arguments").unwrap_or_default());
        }
        refusal.push_str(text(chunk, "/choices/0/delta/refusal").unwrap_or_default());
        reason = text(chunk, "/choices/0/finish_reason").or(reason);
        about(&mut reply, chunk);
    }
    take_calls(&mut reply, calls.into_values().collect(), tools);
    reply.end = match reason {
        None if !done => End::Broken,
        reason => end(reason, &refusal),
    };
    Ok(reply)
}

/// The text of a message or a part of one: a text, or a list of parts, of which thoughts are none.
fn content(message: &Json) -> String {
    match message.get("content") {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Array(parts)) => {
            let said = parts.iter().filter(|part| text(part, "/type") == Some("text"));
            said.filter_map(|part| text(part, "/text")).collect()
        }
        _ => String::new(),
    }
}

/// The answer is the arguments of a tool call if there is one, or else what the model says.
fn take_calls(reply: &mut Reply, calls: Vec<ToolCall>, tools: &[Tool]) {
    let said = if reply.text.is_empty() { Json::Null } else { json!(reply.text) };
    let sent: Vec<Json> = calls
        .iter()
        .map(|call| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        })
        .collect();
    reply.called(calls, || json!({"role": "assistant", "content": said, "tool_calls": sent}), tools);
}

fn about(reply: &mut Reply, body: &Json) {
    if let Some(usage) = body.get("usage") {
        reply.counts = reply.counts.larger(Counts::read(Provider::OpenAi, usage));
    }
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
