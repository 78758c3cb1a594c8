//! Rounds of tools: the model calls some, the run judges each call, and the model gets the results.

use std::borrow::Cow;
use std::time::Instant;

use charter_actors::Fault;
use charter_kernel::Digest;
use serde_json::{Value as Json, json};

use super::Asking;
use crate::codes;
use crate::kept_round::{KeptRound, MAX_CALLS, Place};
use crate::prompt::data;
use crate::tools::{ANSWER, ToolCall, ToolResult};
use crate::wire::{Reply, Turn};

/// Maximum size of the result of a call, in bytes.
const MAX_RESULT: usize = 64 << 10;
/// The result of an answer in the same reply as calls.
const EARLY: &str = "this answer came before the results of the other calls; answer again, knowing them";

impl Asking<'_> {
    /// Goes on after the rounds that the question has had before, and returns their number. The
    /// model does not call again what it has called; what was not sent yet is sent now.
    pub(super) fn go_on_after(&mut self, turns: &mut Vec<Turn>) -> Result<u32, Fault> {
        let rounds = &self.earlier.rounds;
        // Each provider takes only its own replies.
        let is_own = rounds.iter().all(|(_, kept)| kept.model == self.exchange.model);
        let mut made = Vec::new();
        for (digest, kept) in rounds {
            let results = self.make(kept.round, *digest, kept.calls.clone())?;
            match is_own {
                true => turns.extend([Turn::Calls(kept.message.clone()), Turn::Results(results)]),
                // Records do not tell the calls that sent nothing.
                false => made.extend(results.into_iter().filter(|r| !r.call.name.is_empty() && r.call.name != ANSWER)),
            }
        }
        if let Some(Turn::Task(text, _)) = turns.first_mut().filter(|_| !made.is_empty()) {
            let calls = made.into_iter().map(|result| {
                json!({"tool": result.call.name, "arguments": result.call.arguments, "result": result.content})
            });
            let calls = data("calls", &calls.collect());
            text.push_str("\n\nThese tools were called for you before. Do not call them again for the same:\n");
            text.push_str(&calls);
        }
        Ok(rounds.last().map_or(0, |(_, kept)| kept.round.saturating_add(1)))
    }

    /// Makes the calls of a round, which is kept before. `before` is the round before it.
    pub(super) fn round(
        &mut self,
        round: u32,
        reply: &Reply,
        before: &mut Option<Digest>,
    ) -> Result<Vec<ToolResult>, Fault> {
        let allowed = self.question.rounds;
        if round >= allowed {
            let message =
                format!("the model called tools in {allowed} rounds, and again instead of an answer; raise `rounds`");
            return Err(Fault::new(codes::ROUNDS, message).with("rounds", allowed));
        }
        let mut taken = self.earlier.taken;
        taken.add(self.exchange.usage);
        let (calls, message, model) = (reply.calls.clone(), reply.message.clone(), self.exchange.model.clone());
        let (effect, call, attempt) = (String::new(), 0, 0);
        let kept = KeptRound { effect, call, round, attempt, model, calls, message, taken, before: *before };
        *before = self.watcher.keep_round(kept)?;
        self.make(round, *before, reply.calls.clone())
    }

    /// Makes calls, one after another.
    fn make(&mut self, round: u32, kept: Option<Digest>, calls: Vec<ToolCall>) -> Result<Vec<ToolResult>, Fault> {
        let begun = Instant::now();
        let results = self.make_in_turn(round, kept, calls);
        self.acted = self.acted.saturating_add(begun.elapsed());
        results
    }

    fn make_in_turn(&self, round: u32, kept: Option<Digest>, calls: Vec<ToolCall>) -> Result<Vec<ToolResult>, Fault> {
        let mut results = Vec::new();
        for (index, call) in calls.into_iter().enumerate() {
            self.time_for_tools()?;
            let failed = |call: ToolCall, why: &str| {
                let content = json!({"error": why});
                ToolResult { call, content, failed: true, repeated: false }
            };
            let tool = self.question.tools.iter().find(|tool| tool.name == call.name);
            let mut result = match tool {
                _ if index >= MAX_CALLS => failed(call, "too many calls at once; call it again"),
                None if call.name == ANSWER => failed(call, EARLY),
                None => failed(call, "there is no such tool"),
                Some(tool) => match tool.data(&call.arguments) {
                    Err(why) => failed(call, &format!("the arguments cannot be read: {why}")),
                    Ok(data) => {
                        let result = self.watcher.act(Place { call: 0, round, index, kept }, tool, call, data)?;
                        if !result.repeated {
                            self.watcher.note(&result.told("the model sends", &tool.event));
                        }
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
