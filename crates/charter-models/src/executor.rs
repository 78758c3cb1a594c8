//! Kind `model` for the host: reads the actor, asks in a thread of its own, keeps what was said.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use charter_kernel::definition::ActorDecl;
use charter_runtime::{BoxFuture, Call, Executor, Folder, Outcome};
use serde_json::{Value as Json, json};

use crate::actor::{Actor, KEYS, Progress, Source};
use crate::exchange::Exchange;
use crate::fault::codes;
use crate::model::Model;
use crate::transport::Transport;

/// Keys that every kind of actor understands.
const COMMON: [&str; 5] = ["idempotent", "retry", "attemptTimeout", "as", "id"];

/// Hears how questions go: for a line on a terminal, never for the record.
pub trait Listener: Send + Sync + 'static {
    /// So many bytes of an answer have come. `call` is the place among the calls of the actor.
    fn received(&self, run: &str, actor: &str, call: usize, bytes: usize) {
        let _ = (run, actor, call, bytes);
    }
    /// Something happens that costs time: a retry, a repair.
    fn note(&self, run: &str, actor: &str, call: usize, sentence: &str) {
        let _ = (run, actor, call, sentence);
    }
}

/// Nobody listens.
impl Listener for () {}

/// Executor of actors of kind `model`. The keys of the configuration are those of [`crate::actor`].
///
/// What was said is kept as a blob of the journal: `{"effect", "actor", "attempt", "exchanges"}`; its digest is `exchange` in the details of a
/// fault. The answer itself stands in the record. Asking a model twice changes nothing in the world, so an interrupted call is made again.
#[derive(Clone)]
pub struct Models {
    choice: Option<(Arc<Model>, Arc<dyn Transport>)>,
    listener: Arc<dyn Listener>,
}

impl Models {
    /// The charter's offline rules answer.
    #[must_use]
    pub fn offline() -> Models {
        Models { choice: None, listener: Arc::new(()) }
    }

    /// A model answers.
    #[must_use]
    pub fn asking(model: Model, transport: impl Transport + 'static) -> Models {
        Models { choice: Some((Arc::new(model), Arc::new(transport))), listener: Arc::new(()) }
    }

    /// With somebody who hears how it goes.
    #[must_use]
    pub fn listener(mut self, listener: impl Listener) -> Models {
        self.listener = Arc::new(listener);
        self
    }

    fn ask(&self, call: &Call, stopped: Arc<AtomicBool>) -> Result<Json, charter_runtime::Fault> {
        let read = |name: &str| call.folder().read(name);
        let actor = Actor::read(call.actor(), &read).map_err(|why| charter_runtime::Fault::new(codes::CONFIG, &why))?;
        let source = match &self.choice {
            None => Source::Offline,
            Some((model, transport)) => Source::Model(model, transport.as_ref()),
        };
        let hearing = Hearing { call, listener: self.listener.as_ref(), stopped };
        let within = Duration::from_millis(call.left());
        let (answer, exchanges) = actor.answer(source, &call.input, within, &hearing);
        let kept = keep(call, &exchanges);
        answer.map_err(|fault| {
            let mut out = charter_runtime::Fault::new(fault.code, &fault.message);
            out.retryable = fault.retryable;
            out.details = fault.details;
            match kept {
                Some(digest) => out.with("exchange", digest),
                None => out,
            }
        })
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.choice {
            None => f.write_str("Models(offline)"),
            Some((model, _)) => write!(f, "Models({} at {})", model.title(), model.base_url),
        }
    }
}

impl Executor for Models {
    fn check(&self, _: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), String> {
        let known = KEYS.iter().chain(&COMMON).copied();
        if let Some(key) = actor.config.keys().find(|k| !known.clone().any(|n| n == k.as_str())) {
            let near = charter_expr::nearest(key, known).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            return Err(format!("it has no key `{key}`{near}"));
        }
        let read = Actor::read(actor, &|name| folder.read(name))?;
        if self.choice.is_none() && !read.has_offline_rules() {
            return Err("no model is configured, and it has no `offline` rules".into());
        }
        Ok(())
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, charter_runtime::Fault>> {
        let models = self.clone();
        Box::pin(async move {
            let stopped = Arc::new(AtomicBool::new(false));
            // If nobody waits any more this future is dropped, and the thread stops at the next line or pause.
            let stop = Stop(stopped.clone());
            let within = tracing::Span::current();
            let asking = move || within.in_scope(|| models.ask(&call, stopped));
            let result = tokio::task::spawn_blocking(asking).await;
            drop(stop);
            let broken = || charter_runtime::Fault::new("failed", "the call was broken off").retryable();
            result.unwrap_or_else(|_| Err(broken())).map(Outcome::Done)
        })
    }
}

struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Hearing<'a> {
    call: &'a Call,
    listener: &'a dyn Listener,
    stopped: Arc<AtomicBool>,
}

impl Progress for Hearing<'_> {
    fn run(&self) -> &str {
        &self.call.run
    }
    fn go_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }
    fn received(&self, call: usize, bytes: usize) {
        self.listener.received(&self.call.run, self.call.name(), call, bytes);
    }
    fn note(&self, call: usize, sentence: &str) {
        self.listener.note(&self.call.run, self.call.name(), call, sentence);
    }
}

/// Keeps what was said; gives its digest. An answer is worth more than its history: if that cannot be kept, the answer stands.
fn keep(call: &Call, exchanges: &[Exchange]) -> Option<String> {
    if exchanges.is_empty() {
        return None;
    }
    let said: Vec<Json> = exchanges.iter().map(Exchange::json).collect();
    let kept = json!({
        "effect": call.effect.as_ref(),
        "actor": call.name(),
        "attempt": call.attempt,
        "exchanges": said,
    });
    let digest = call.store().put_blob(kept.to_string().as_bytes()).ok()?;
    Some(digest.to_string())
}
