//! One of several parallel calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use charter_actors::Fault;
use charter_kernel::Digest;
use serde_json::Value as Json;

use crate::actor::Progress;
use crate::exchange::{Exchange, Usage};
use crate::kept_round::{Earlier, KeptRound, Place};
use crate::model::Model;
use crate::open::OpenRequest;
use crate::tools::{Tool, ToolCall, ToolResult};
use crate::watcher::{Granted, Watcher};

/// Observes one of several parallel calls, and stops it when another one has failed.
pub(crate) struct Watching<'a> {
    pub(crate) call: usize,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) failed: &'a AtomicBool,
}

impl Watcher for Watching<'_> {
    fn run(&self) -> &str {
        self.progress.run()
    }
    fn asker(&self) -> String {
        self.progress.asker(self.call)
    }
    fn go_on(&self) -> bool {
        self.progress.go_on() && !self.failed.load(Ordering::Relaxed)
    }
    fn sends(&self, model: &Model, request: &Arc<OpenRequest>) {
        self.progress.sends(self.call, model, request);
    }
    fn slack(&self) -> Duration {
        self.progress.slack()
    }
    fn received(&self, bytes: usize, piece: &str) {
        self.progress.received(self.call, bytes, piece);
    }
    fn note(&self, sentence: &str) {
        self.progress.note(self.call, sentence);
    }
    fn grant(&self, model: &Model, spent: Usage, question: u64, wanted: u32) -> Result<Granted, Fault> {
        self.progress.grant(self.call, model, spent, question, wanted)
    }
    fn earlier(&self) -> Result<Earlier, Fault> {
        self.progress.earlier(self.call)
    }
    fn keep_round(&self, round: KeptRound) -> Result<Option<Digest>, Fault> {
        self.progress.keep_round(KeptRound { call: self.call, ..round })
    }
    fn act(&self, place: Place, tool: &Tool, call: ToolCall, data: Json) -> Result<ToolResult, Fault> {
        self.progress.act(Place { call: self.call, ..place }, tool, call, data)
    }
    fn keep(&self, model: &Model, exchange: &mut Exchange, has_ended: bool) -> Result<(), Fault> {
        exchange.call = self.call;
        self.progress.keep(model, exchange, has_ended)
    }
}
