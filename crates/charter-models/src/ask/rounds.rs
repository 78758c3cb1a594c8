//! Rounds of tools: the model calls some, the run judges each call, and the model gets the results.

use std::borrow::Cow;

use charter_actors::Fault;
use serde_json::{Value as Json, json};

use super::Asking;
use crate::codes;
use crate::tools::{ToolCall, ToolResult};
use crate::wire::Reply;

/// Maximum number of calls in one round; further ones are not made.
const MAX_CALLS: usize = 16;
/// Maximum size of the result of a call, in bytes.
const MAX_RESULT: usize = 64 << 10;

impl Asking<'_> {
    /// Makes the calls of a round, one after another.
    pub(super) fn round(&mut self, round: u32, calls: Vec<ToolCall>) -> Result<Vec<ToolResult>, Fault> {
        let allowed = self.question.rounds;
        if round >= allowed {
            let message =
                format!("the model called tools in {allowed} rounds, and again instead of an answer; raise `rounds`");
            return Err(Fault::new(codes::ROUNDS, message).with("rounds", allowed));
        }
        let mut results = Vec::new();
        for (n, call) in calls.into_iter().enumerate() {
            self.time_left()?;
            let failed = |call: ToolCall, why: &str| ToolResult { call, content: json!({"error": why}), failed: true };
            let tool = self.question.tools.iter().find(|tool| tool.name == call.name);
            let mut result = match tool {
                _ if n >= MAX_CALLS => failed(call, "too many calls at once; call it again"),
                None => failed(call, "there is no such tool"),
                Some(tool) => match tool.data(&call.arguments) {
                    Err(why) => failed(call, &format!("the arguments cannot be read: {why}")),
                    Ok(data) => {
                        let result = self.watcher.act(&format!("{round}.{n}"), tool, call, data)?;
                        self.watcher.note(&told(&tool.event, &result));
                        result
                    }
                },
            };
            result.content = self.secrets.redact_json(result.content);
            shorten(&mut result.content);
            results.push(result);
        }
        Ok(results)
    }

    /// Removes keys from the calls of a reply, in which they may have come in pieces.
    pub(super) fn redact_calls(&mut self, reply: &mut Reply) {
        for call in &mut reply.calls {
            if let Cow::Owned(redacted) = self.secrets.redact(&call.arguments) {
                self.exchange.replace_last_response(&redacted);
                call.arguments = redacted;
            }
        }
        if !reply.message.is_null() {
            reply.message = self.secrets.redact_json(std::mem::take(&mut reply.message));
        }
    }
}

fn told(event: &str, result: &ToolResult) -> String {
    let refused = result.content.get("refused").and_then(Json::as_str);
    match (refused, result.failed) {
        (Some(code), _) => format!("the model sends {event}: refused ({code})"),
        (None, true) => format!("the model sends {event}: it failed"),
        (None, false) => format!("the model sends {event}: accepted"),
    }
}

/// Replaces what is too long by its beginning.
fn shorten(content: &mut Json) {
    let text = content.to_string();
    if text.len() > MAX_RESULT {
        let mut end = MAX_RESULT;
        while !text.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        let begin = text.get(..end).unwrap_or_default();
        *content = json!({"cut": format!("{} bytes; only the beginning follows", text.len()), "begin": begin});
    }
}
