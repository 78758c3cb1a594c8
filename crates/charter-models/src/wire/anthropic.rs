//! Anthropic's Messages API (API reference, "Messages", "Streaming messages"). The answer is the
//! input of a tool that the model has to use, so that it follows the schema.

use charter_actors::Fault;
use serde_json::{Value as Json, json};

use super::{Conversation, End, Reply, add, count, protocol, text, usage};
use crate::exchange::Usage;
use crate::model::Model;
use crate::settings::OutputMode;
use crate::transport::Request;

const VERSION: &str = "2023-06-01";
const TOOL: &str = "answer";

pub(super) fn request(model: &Model, talk: &Conversation<'_>) -> Request {
    let messages: Vec<Json> = talk
        .turns
        .iter()
        .enumerate()
        .map(|(i, turn)| {
            let role = if i % 2 == 0 { "user" } else { "assistant" };
            json!({"role": role, "content": turn})
        })
        .collect();
    let mut body = json!({
        "model": model.name,
        "max_tokens": talk.max_tokens,
        "system": system(talk),
        "messages": messages,
        "stream": true,
    });
    // Thoughts need room for the answer behind them, and leave neither the choice of the tool nor
    // the temperature to us.
    let thoughts = talk.settings.effort.map(|effort| effort.tokens().min(talk.max_tokens / 2)).filter(|n| *n >= 1_024);
    if talk.mode == OutputMode::Tool {
        let tools = json!([{"name": TOOL, "description": "Takes your answer.", "input_schema": talk.schema}]);
        add(&mut body, "tools", Some(tools));
        let choice = if thoughts.is_some() { json!({"type": "auto"}) } else { json!({"type": "tool", "name": TOOL}) };
        add(&mut body, "tool_choice", Some(choice));
    }
    add(&mut body, "temperature", talk.settings.temperature.filter(|_| thoughts.is_none()));
    add(&mut body, "thinking", thoughts.map(|n| json!({"type": "enabled", "budget_tokens": n})));
    Request {
        url: format!("{}/messages", model.base_url),
        headers: vec![("content-type".into(), "application/json".into()), ("anthropic-version".into(), VERSION.into())],
        secrets: model.key.iter().map(|key| ("x-api-key", key.clone())).collect(),
        body: body.to_string(),
    }
}

/// The instructions. With a mark, the provider keeps what comes before it, tools included.
fn system(talk: &Conversation<'_>) -> Json {
    match talk.settings.prompt_caching && !talk.system.is_empty() {
        true => json!([{"type": "text", "text": talk.system, "cache_control": {"type": "ephemeral"}}]),
        false => json!(talk.system),
    }
}

pub(super) fn complete(body: Option<&Json>) -> Result<Reply, Fault> {
    let body = body.ok_or_else(|| protocol("it is empty"))?;
    let content = body.get("content").and_then(Json::as_array).ok_or_else(|| protocol("it has no `content`"))?;
    let tool =
        content.iter().find(|block| text(block, "/type") == Some("tool_use")).and_then(|block| block.get("input"));
    let spoken: String = content.iter().filter_map(|block| text(block, "/text")).collect();
    let mut reply = Reply { text: tool.map_or(spoken, Json::to_string), ..Reply::default() };
    reply.usage = counted(body.get("usage"), count(body, "/usage/output_tokens"));
    reply.model = text(body, "/model").map(str::to_owned);
    reply.end = end(text(body, "/stop_reason"));
    Ok(reply)
}

pub(super) fn stream(chunks: &[Json]) -> Result<Reply, Fault> {
    let mut reply = Reply { end: End::Broken, ..Reply::default() };
    let (mut spoken, mut tool) = (String::new(), String::new());
    let (mut read, mut output) = (None, None);
    for chunk in chunks {
        match text(chunk, "/type").unwrap_or_default() {
            "message_start" => {
                reply.model = text(chunk, "/message/model").map(str::to_owned);
                read = chunk.pointer("/message/usage");
                output = count(chunk, "/message/usage/output_tokens");
            }
            "content_block_delta" => {
                spoken.push_str(text(chunk, "/delta/text").unwrap_or_default());
                tool.push_str(text(chunk, "/delta/partial_json").unwrap_or_default());
            }
            "message_delta" => {
                output = count(chunk, "/usage/output_tokens").or(output);
                reply.end = end(text(chunk, "/delta/stop_reason"));
            }
            _ => {}
        }
    }
    reply.text = if tool.is_empty() { spoken } else { tool };
    reply.usage = counted(read, output);
    Ok(reply)
}

/// Anthropic counts cached tokens separately.
fn counted(read: Option<&Json>, output: Option<u64>) -> Option<Usage> {
    let read = read?;
    let cached = count(read, "/cache_read_input_tokens").unwrap_or_default();
    let written = count(read, "/cache_creation_input_tokens").unwrap_or_default();
    let input = count(read, "/input_tokens")?.saturating_add(cached).saturating_add(written);
    usage(Some(input), output, Some(cached)).map(|usage| Usage { cache_written: written, ..usage })
}

fn end(reason: Option<&str>) -> End {
    match reason {
        Some("max_tokens") => End::CutOff,
        Some("refusal") => End::Declined("the model refused".into()),
        _ => End::Complete,
    }
}
