//! Observes the parallel calls of an actor.

use std::sync::Arc;
use std::time::Duration;

use charter_actors::Fault;
use charter_kernel::Digest;
use serde_json::Value as Json;

use crate::exchange::{Exchange, Usage};
use crate::kept_round::{Earlier, KeptRound, Place};
use crate::model::Model;
use crate::open::OpenRequest;
use crate::tools::{Tool, ToolCall, ToolResult};
use crate::watcher::{Granted, Watcher};

/// Observes calls; `call` is the index in the list of calls.
pub trait Progress: Sync {
    /// Id of the run that asks, for spans.
    fn run(&self) -> &str {
        ""
    }
    /// See [`Watcher::asker`].
    fn asker(&self, call: usize) -> String {
        let _ = call;
        String::new()
    }
    /// Whether the answer is still wanted.
    fn go_on(&self) -> bool {
        true
    }
    /// See [`Watcher::sends`].
    fn sends(&self, call: usize, model: &Model, request: &Arc<OpenRequest>) {
        let _ = (call, model, request);
    }
    /// See [`Watcher::slack`].
    fn slack(&self) -> Duration {
        Duration::ZERO
    }
    /// See [`Watcher::received`].
    fn received(&self, call: usize, bytes: usize, piece: &str) {
        let _ = (call, bytes, piece);
    }
    /// Called when a call is delayed.
    fn note(&self, call: usize, sentence: &str) {
        let _ = (call, sentence);
    }
    /// See [`Watcher::grant`].
    ///
    /// # Errors
    /// A budget of the host does not allow the request.
    fn grant(&self, call: usize, model: &Model, spent: Usage, question: u64, wanted: u32) -> Result<Granted, Fault> {
        let _ = (call, model, spent, question);
        Ok(Granted { tokens: wanted, short: None })
    }
    /// See [`Watcher::earlier`].
    ///
    /// # Errors
    /// They cannot be read.
    fn earlier(&self, call: usize) -> Result<Earlier, Fault> {
        let _ = call;
        Watcher::earlier(&())
    }
    /// See [`Watcher::keep_round`].
    ///
    /// # Errors
    /// It cannot be written.
    fn keep_round(&self, round: KeptRound) -> Result<Option<Digest>, Fault> {
        Watcher::keep_round(&(), round)
    }
    /// Keeps the content of an attachment, before it is sent.
    ///
    /// # Errors
    /// It cannot be written.
    fn attached(&self, content: &[u8]) -> Result<(), Fault> {
        let _ = content;
        Ok(())
    }
    /// See [`Watcher::act`].
    ///
    /// # Errors
    /// The call was not made.
    fn act(&self, place: Place, tool: &Tool, call: ToolCall, data: Json) -> Result<ToolResult, Fault> {
        Watcher::act(&(), place, tool, call, data)
    }
    /// See [`Watcher::keep`].
    ///
    /// # Errors
    /// It cannot be written.
    fn keep(&self, model: &Model, exchange: &mut Exchange, has_ended: bool) -> Result<(), Fault> {
        Watcher::keep(&(), model, exchange, has_ended)
    }
}

impl Progress for () {}
