//! Kind `model` as an executor: reads the actor's configuration, asks on a blocking thread, stores
//! the exchange.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use charter_actors::{BoxFuture, Call, ConfigError, Executor, Fault, Folder, Outcome};
use charter_kernel::definition::ActorDecl;
use serde_json::{Value as Json, json};

use crate::actor::{KEYS, ModelActor, Progress, Source};
use crate::exchange::Exchange;
use crate::model::Model;
use crate::transport::Transport;

/// Receives the progress of requests, for a line on a terminal. It is never recorded.
pub trait Listener: Send + Sync + 'static {
    /// Bytes of an answer received so far. `call` is the index among the calls of the actor.
    fn received(&self, run: &str, actor: &str, call: usize, bytes: usize) {
        let _ = (run, actor, call, bytes);
    }
    /// Something costs time: a retry, a repair.
    fn note(&self, run: &str, actor: &str, call: usize, sentence: &str) {
        let _ = (run, actor, call, sentence);
    }
}

/// Ignores progress.
impl Listener for () {}

/// Executor of actors of kind `model`. The keys of the configuration are those of [`crate::actor`].
///
/// The requests and responses are stored as a blob of the journal: `{"effect", "actor", "attempt",
/// "exchanges"}`; its digest is `exchange` in the details of a fault. The answer itself is in the
/// record. Asking a model has no effect on anything else, so an interrupted call is repeated.
#[derive(Clone)]
pub struct Models {
    model: Option<(Arc<Model>, Arc<dyn Transport>)>,
    listener: Arc<dyn Listener>,
}

impl Models {
    /// Answers with the charter's offline rules.
    #[must_use]
    pub fn offline() -> Models {
        Models { model: None, listener: Arc::new(()) }
    }

    /// Answers with a model.
    #[must_use]
    pub fn asking(model: Model, transport: impl Transport + 'static) -> Models {
        Models { model: Some((Arc::new(model), Arc::new(transport))), listener: Arc::new(()) }
    }

    /// Reports progress to a listener.
    #[must_use]
    pub fn listener(mut self, listener: impl Listener) -> Models {
        self.listener = Arc::new(listener);
        self
    }

    fn ask(&self, call: &Call, stopped: Arc<AtomicBool>) -> Result<Json, Fault> {
        let actor = ModelActor::read(call.actor(), call.folder())?;
        let source = match &self.model {
            None => Source::Offline,
            Some((model, transport)) => Source::Model(model, transport.as_ref()),
        };
        let progress = CallProgress { call, listener: self.listener.as_ref(), stopped };
        let within = call.left();
        let (answer, exchanges) = actor.answer(source, &call.input, within, &progress);
        let stored = store(call, &exchanges);
        answer.map_err(|fault| match stored {
            Some(digest) => fault.with("exchange", digest),
            None => fault,
        })
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.model {
            None => f.write_str("Models(offline)"),
            Some((model, _)) => write!(f, "Models({} at {})", model.title(), model.base_url),
        }
    }
}

impl Executor for Models {
    fn check(&self, _: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), ConfigError> {
        charter_actors::check_keys(actor, &KEYS)?;
        let read = ModelActor::read(actor, folder)?;
        if self.model.is_none() && !read.has_offline_rules() {
            return Err(ConfigError::Other("no model is configured, and the actor has no `offline` rules".into()));
        }
        Ok(())
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let models = self.clone();
        Box::pin(async move {
            let stopped = Arc::new(AtomicBool::new(false));
            // If the run no longer waits, this future is dropped, and the thread stops at the next
            // line or pause.
            let stop = StopOnDrop(stopped.clone());
            let within = tracing::Span::current();
            let asking = move || within.in_scope(|| models.ask(&call, stopped));
            let result = tokio::task::spawn_blocking(asking).await;
            drop(stop);
            let interrupted = || Fault::new("failed", "the call was interrupted").retryable();
            result.unwrap_or_else(|_| Err(interrupted())).map(Outcome::Done)
        })
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct CallProgress<'a> {
    call: &'a Call,
    listener: &'a dyn Listener,
    stopped: Arc<AtomicBool>,
}

impl Progress for CallProgress<'_> {
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

/// Stores the exchanges and returns the digest of the blob. If that fails, the answer is still
/// good.
fn store(call: &Call, exchanges: &[Exchange]) -> Option<String> {
    if exchanges.is_empty() {
        return None;
    }
    let exchanges: Vec<Json> = exchanges.iter().map(Exchange::json).collect();
    let blob = json!({
        "effect": call.effect.as_ref(),
        "actor": call.name(),
        "attempt": call.attempt,
        "exchanges": exchanges,
    });
    let digest = call.host().put_blob(blob.to_string().as_bytes()).ok()?;
    Some(digest.to_string())
}
