//! Anthropic's Messages API (API reference, "Messages", "Streaming messages"). The answer is the
//! input of a tool that the model has to use, so that it follows the schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_actors::Fault;
use serde_json::{Value as Json, json};

use super::counts::Counts;
use super::{ANSWER_IS, Conversation, End, Reply, Turn, add, count, protocol, text};
use crate::attachments::Attachment;
use crate::model::{Model, Provider};
use crate::settings::OutputMode;
use crate::tools::{ANSWER, Tool, ToolCall, ToolResult};
use crate::transport::Request;

const VERSION: &str = "2023-06-01";

pub(super) fn request(model: &Model, talk: &Conversation<'_>) -> Request {
    let result = |result: &ToolResult| {
        let content = result.content.to_string();
        json!({"type": "tool_result", "tool_use_id": result.call.id, "content": content, "is_error": result.failed})
    };
    let message = |turn: &Turn| match turn {
        Turn::Task(text, attachments) => json!({"role": "user", "content": task(text, attachments)}),
        Turn::User(text) => json!({"role": "user", "content": text}),
        Turn::Model(text) => json!({"role": "assistant", "content": text}),
        Turn::Calls(blocks) => json!({"role": "assistant", "content": blocks}),
        Turn::Results(results) => json!({"role": "user", "content": results.iter().map(result).collect::<Vec<_>>()}),
    };
    let messages: Vec<Json> = talk.turns.iter().map(message).collect();
    let mut body = json!({
        "model": model.name,
        "max_tokens": talk.max_tokens,
        "system": system(talk),
        "messages": messages,
        "stream": true,
    });
    // Thoughts need room for the answer behind them, and leave neither the choice of the tool nor
    // the temperature to us.
    let thoughts = talk.settings.thoughts(model.provider, talk.max_tokens);
    let tool = |name: &str, description: &str, schema: &Json| json!({"name": name, "description": description, "input_schema": schema});
    let by_tool = talk.mode == OutputMode::Tool;
    let answer = by_tool.then(|| tool(ANSWER, ANSWER_IS, talk.schema));
    let own = talk.tools.iter().map(|own| tool(&own.name, &own.description, &own.schema));
    let tools: Vec<Json> = answer.into_iter().chain(own).collect();
    let choice = match (by_tool, talk.tools.is_empty() || talk.last) {
        (true, _) if thoughts.is_some() => json!({"type": "auto"}),
        (true, true) => json!({"type": "tool", "name": ANSWER}),
        (true, false) => json!({"type": "any"}),
        (false, true) => json!({"type": "none"}),
        (false, false) => json!({"type": "auto"}),
    };
    add(&mut body, "tool_choice", (!tools.is_empty()).then_some(choice));
    add(&mut body, "tools", (!tools.is_empty()).then_some(tools));
    add(&mut body, "temperature", talk.settings.temperature.filter(|_| thoughts.is_none()));
    add(&mut body, "thinking", thoughts.map(|n| json!({"type": "enabled", "budget_tokens": n})));
    Request {
        url: format!("{}/messages", model.base_url),
        headers: vec![("content-type".into(), "application/json".into()), ("anthropic-version".into(), VERSION.into())],
        secrets: model.key.iter().map(|key| ("x-api-key", key.clone())).collect(),
        body: body.to_string(),
        hidden: Vec::new(),
        attached: Arc::default(),
        asker: String::new(),
    }
}

/// The instructions. With a mark, the provider keeps what comes before it, tools included.
fn system(talk: &Conversation<'_>) -> Json {
    match talk.settings.prompt_caching && !talk.system.is_empty() {
        true => json!([{"type": "text", "text": talk.system, "cache_control": {"type": "ephemeral"}}]),
        false => json!(talk.system),
    }
}

/// The content of the first message: a text, or blocks if there are attachments.
fn task(text: &str, attachments: &[Attachment]) -> Json {
    if attachments.is_empty() {
        return json!(text);
    }
    let block = |attachment: &Attachment| {
        let kind = if attachment.is_document() { "document" } else { "image" };
        let source = json!({"type": "base64", "media_type": attachment.media_type, "data": attachment.data});
        json!({"type": kind, "source": source})
    };
    let text = json!({"type": "text", "text": text});
    attachments.iter().map(block).chain([text]).collect()
}

pub(super) fn complete(body: Option<&Json>, tools: &[Tool]) -> Result<Reply, Fault> {
    let body = body.ok_or_else(|| protocol("it is empty"))?;
    let content = body.get("content").and_then(Json::as_array).ok_or_else(|| protocol("it has no `content`"))?;
    let mut reply = Reply::default();
    take_blocks(&mut reply, content.clone(), tools);
    reply.counts = body.get("usage").map(counts).unwrap_or_default();
    reply.model = text(body, "/model").map(str::to_owned);
    reply.end = end(text(body, "/stop_reason"));
    Ok(reply)
}

pub(super) fn stream(chunks: &[Json], tools: &[Tool]) -> Result<Reply, Fault> {
    let mut reply = Reply { end: End::Broken, ..Reply::default() };
    let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
    for chunk in chunks {
        let at = count(chunk, "/index").unwrap_or_default();
        match text(chunk, "/type").unwrap_or_default() {
            "message_start" => {
                reply.model = text(chunk, "/message/model").map(str::to_owned);
                reply.counts = chunk.pointer("/message/usage").map(counts).unwrap_or_default();
            }
            "content_block_start" => {
                let begun = chunk.get("content_block").cloned().unwrap_or_default();
                blocks.entry(at).or_default().begun = begun;
            }
            "content_block_delta" => {
                let block = blocks.entry(at).or_default();
                block.text.push_str(text(chunk, "/delta/text").unwrap_or_default());
                block.input.push_str(text(chunk, "/delta/partial_json").unwrap_or_default());
                block.thinking.push_str(text(chunk, "/delta/thinking").unwrap_or_default());
                block.signature.push_str(text(chunk, "/delta/signature").unwrap_or_default());
            }
            "message_delta" => {
                let total = chunk.get("usage").map(counts).unwrap_or_default();
                reply.counts = reply.counts.larger(total);
                reply.end = end(text(chunk, "/delta/stop_reason"));
            }
            _ => {}
        }
    }
    // What is not JSON, because it was cut off, becomes no call, and is read as the answer.
    let broken = blocks.values().find(|block| !block.input.trim().is_empty() && block.parsed().is_none());
    let broken = broken.map(|block| block.input.clone());
    take_blocks(&mut reply, blocks.into_values().map(Block::whole).collect(), tools);
    if let Some(broken) = broken {
        (reply.text, reply.calls, reply.message) = (broken, Vec::new(), Json::Null);
    }
    Ok(reply)
}

/// A block of a stream.
#[derive(Default)]
struct Block {
    begun: Json,
    text: String,
    input: String,
    thinking: String,
    signature: String,
}

impl Block {
    fn parsed(&self) -> Option<Json> {
        charter_expr::strict_json::from_str(&self.input).ok()
    }

    /// The block as a response that is not streamed has it.
    fn whole(self) -> Json {
        let input = self.parsed();
        let mut block = if self.begun.is_object() { self.begun } else { json!({}) };
        if block.get("type").is_none() {
            add(&mut block, "type", Some(if self.input.is_empty() { "text" } else { "tool_use" }));
        }
        add(&mut block, "input", input);
        for (key, value) in [("text", self.text), ("thinking", self.thinking), ("signature", self.signature)] {
            let begun = block.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
            add(&mut block, key, (!value.is_empty()).then(|| begun + &value));
        }
        block
    }
}

/// The answer is the input of a tool if one is used, or else what the model says.
fn take_blocks(reply: &mut Reply, blocks: Vec<Json>, tools: &[Tool]) {
    reply.text = blocks.iter().filter_map(|block| text(block, "/text")).collect();
    let used = blocks.iter().filter(|block| text(block, "/type") == Some("tool_use"));
    let calls = used.map(|block| {
        let of = |pointer: &str| text(block, pointer).unwrap_or_default().to_owned();
        let arguments = block.get("input").map_or_else(String::new, Json::to_string);
        ToolCall { id: of("/id"), name: of("/name"), arguments }
    });
    reply.called(calls.collect(), || Json::Array(blocks), tools);
}

fn counts(usage: &Json) -> Counts {
    Counts::read(Provider::Anthropic, usage)
}

fn end(reason: Option<&str>) -> End {
    match reason {
        Some("max_tokens") => End::CutOff,
        Some("model_context_window_exceeded") => End::NoRoom,
        Some("refusal") => End::Declined("the model refused".into()),
        _ => End::Complete,
    }
}
