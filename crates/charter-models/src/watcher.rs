//! What a question tells its host, and what the host decides about it.

use std::sync::Arc;
use std::time::Duration;

use charter_actors::Fault;
use charter_kernel::Digest;
use serde_json::Value as Json;

use crate::codes;
use crate::exchange::{Exchange, Usage};
use crate::kept_round::{Earlier, KeptRound, Place};
use crate::model::Model;
use crate::open::OpenRequest;
use crate::tools::{Tool, ToolCall, ToolResult};
#[cfg(doc)]
use crate::transport::Request;

/// Observes a question and may stop it.
pub trait Watcher {
    /// Id of the run that asks, for spans.
    fn run(&self) -> &str {
        ""
    }
    /// Who asks, so that a cassette tells equal requests apart: see [`Request::asker`].
    fn asker(&self) -> String {
        String::new()
    }
    /// Whether the answer is still wanted.
    fn go_on(&self) -> bool {
        true
    }
    /// A request is sent; what was received for the one before does not count any more.
    fn sends(&self, model: &Model, request: &Arc<OpenRequest>) {
        let _ = (model, request);
    }
    /// How much longer than the time of the question a request may take, because the host ends it.
    fn slack(&self) -> Duration {
        Duration::ZERO
    }
    /// So many bytes have arrived, and in them a piece of the text of the answer.
    fn received(&self, bytes: usize, piece: &str) {
        let _ = (bytes, piece);
    }
    /// Called when an answer is delayed by a retry or a repair.
    fn note(&self, sentence: &str) {
        let _ = sentence;
    }
    /// Grants tokens for the answer to a request, at most `wanted`. `spent` is what the question
    /// has taken and is not written down yet, and `question` the estimated tokens of the request.
    ///
    /// # Errors
    /// A budget of the host does not allow the request.
    fn grant(&self, model: &Model, spent: Usage, question: u64, wanted: u32) -> Result<Granted, Fault> {
        let _ = (model, spent, question);
        Ok(Granted { tokens: wanted, short: None })
    }
    /// Returns the rounds of tools that the question has had before.
    ///
    /// # Errors
    /// They cannot be read.
    fn earlier(&self) -> Result<Earlier, Fault> {
        Ok(Earlier::default())
    }
    /// Keeps a round before its calls are made; `None`: the host keeps none.
    ///
    /// # Errors
    /// It cannot be written, so its calls must not be made.
    fn keep_round(&self, round: KeptRound) -> Result<Option<Digest>, Fault> {
        let _ = round;
        Ok(None)
    }
    /// Makes a call of a tool with these data. A call at the same place, in a later attempt, gets
    /// the first result.
    ///
    /// # Errors
    /// The call was not made; the question ends.
    fn act(&self, place: Place, tool: &Tool, call: ToolCall, data: Json) -> Result<ToolResult, Fault> {
        let _ = (place, call, data);
        Err(Fault::new(codes::CONFIG, format!("this host offers no tools, such as `{}`", tool.name)))
    }
    /// Writes down what a question has taken since the last time, before it goes on, or after it
    /// has ended.
    ///
    /// # Errors
    /// It cannot be written, so the question must not go on, and its answer does not count.
    fn keep(&self, model: &Model, exchange: &mut Exchange, has_ended: bool) -> Result<(), Fault> {
        let _ = (model, exchange, has_ended);
        Ok(())
    }
}

/// Observes nothing.
impl Watcher for () {}

/// The tokens that a host grants for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The number of tokens.
    pub tokens: u32,
    /// Why there are fewer than wanted, and what to do about it.
    pub short: Option<String>,
}
