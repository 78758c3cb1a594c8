//! Executor for kind `model`: reads the actor's configuration, asks the model on a blocking thread,
//! and stores the exchange.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use charter_actors::{
    Beside, BoxFuture, Call, ConfigError, Estimate, Executor, Fault, Folder, NamedFile, Outcome, Secrets, Shown,
    StoreError, UsageRow,
};
use charter_kernel::Digest;
use charter_kernel::definition::ActorDecl;
use serde_json::{Value as Json, json};

use crate::act;
use crate::actor::{KEYS, ModelActor, Progress, Source};
use crate::ask::POLL;
use crate::attachments;
use crate::codes;
use crate::exchange::{Exchange, Usage};
use crate::kept_round::{Earlier, KeptRound, Place};
use crate::ledger::{Account, Budgets, Ledger, TokenRequest};
use crate::model::Model;
use crate::offline_tools;
use crate::open::{self, OpenRequest, OpenRequests, WriteOnDrop};
use crate::providers::{self, Providers, Selection};
use crate::settings;
use crate::tools::{self, Tool, ToolCall, ToolResult, Toolbox};
use crate::transport::Transport;
use crate::watcher::Granted;

/// How much longer a request may take than the host waits for it.
const SLACK: Duration = Duration::from_secs(2);

/// Executor for actors of kind `model`. [`crate::actor`] describes the keys of the configuration.
///
/// The requests and responses are stored as a blob in the journal: `{"effect", "actor", "attempt",
/// "exchanges"}`; the details of a fault contain its digest as `exchange`. The answer itself is in
/// the record. Asking a model has no side effects, so an interrupted call is repeated.
#[derive(Clone)]
pub struct Models {
    providers: Option<(Arc<Providers>, Arc<dyn Transport>)>,
    ledger: Arc<Ledger>,
}

impl Models {
    /// Creates an executor that answers with the charter's offline rules.
    #[must_use]
    pub fn offline() -> Models {
        Models { providers: None, ledger: Arc::default() }
    }

    /// Creates an executor that asks one model for all actors, whichever they name.
    #[must_use]
    pub fn asking(model: Model, transport: impl Transport + 'static) -> Models {
        Models::of(Providers { default: Some(model), ..Providers::default() }, transport)
    }

    /// Creates an executor that asks the models that actors name.
    #[must_use]
    pub fn of(providers: Providers, transport: impl Transport + 'static) -> Models {
        Models { providers: Some((Arc::new(providers), Arc::new(transport))), ledger: Arc::default() }
    }

    /// Whether a cassette answers: nothing is spent.
    fn replays(&self) -> bool {
        self.providers.as_ref().is_some_and(|(providers, _)| providers.recorded.is_some())
    }

    fn ask(&self, call: &Call, stopped: Arc<AtomicBool>, open: &OpenRequests) -> Result<Json, Fault> {
        let actor = ModelActor::read(call.actor(), call.folder())?;
        let models = match &self.providers {
            Some((providers, _)) => providers.models(&actor.selection)?,
            None => Vec::new(),
        };
        let tools = match &actor.toolbox {
            Some(toolbox) if !models.is_empty() => {
                let machine = call.host().machine(&call.run)?;
                toolbox.tools(|event| machine.definition().events.get(event))?
            }
            _ => Vec::new(),
        };
        let source = match (models.split_first(), &self.providers) {
            (Some((model, fallback)), Some((_, transport))) => {
                Source::Model(model, fallback, transport.as_ref(), &tools)
            }
            _ => Source::Offline,
        };
        let none = Budgets::default();
        let counted = self.providers.as_ref().filter(|_| !self.replays());
        let budgets = counted.map_or(&none, |(providers, _)| &providers.budgets);
        let account = self.ledger.account(budgets, call);
        let threads = tokio::runtime::Handle::current();
        // Pauses must not outlast the time that the charter gives the invocation.
        let snapshot = call.host().snapshot(&call.run)?;
        let deadline = snapshot.timeout_of(call.effect_id);
        let owner = snapshot.invocations().find(|(_, invocation)| invocation.effect == call.effect_id);
        let asker = format!("{}/{}", owner.map_or("", |(actor, _)| actor.id()), call.invocation);
        let until = deadline.map_or(call.deadline, |due| due.min(call.deadline));
        let within = Duration::from_millis(u64::try_from(until.since(call.clock().now()).0).unwrap_or(0));
        open.begin(until);
        // If the host ends the request, the error is that of the host.
        let slack = if within <= actor.budget.time { SLACK } else { Duration::ZERO };
        let open = counted.map(|_| open);
        let progress = Observer { call, asker, shown: Shown::default(), stopped, account, threads, open, slack };
        let (answer, exchanges) = actor.answer(source, &call.input, within, &progress);
        answer.map_err(|fault| {
            let of_fault = |exchange: &&Exchange| exchange.fault.as_ref() == Some(&fault.code);
            match exchanges.iter().rev().find(of_fault).or(exchanges.last()).and_then(|exchange| exchange.stored) {
                Some(digest) => fault.with("exchange", digest.to_string()),
                None => fault,
            }
        })
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((providers, _)) = &self.providers else {
            return f.write_str("Models(offline)");
        };
        match providers.default.as_ref().or(providers.recorded.as_ref()) {
            Some(model) => write!(f, "Models({} at {})", model.title(), model.base_url),
            None => f.write_str("Models(of each actor)"),
        }
    }
}

impl Executor for Models {
    fn check(&self, _: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), ConfigError> {
        let keys: Vec<&str> = KEYS
            .into_iter()
            .chain(settings::KEYS)
            .chain(providers::KEYS)
            .chain(tools::KEYS)
            .chain([attachments::KEY, offline_tools::KEY])
            .collect();
        charter_actors::check_keys(actor, &keys)?;
        let read = ModelActor::read(actor, folder)?;
        let models = match &self.providers {
            Some((providers, _)) => providers.models(&read.selection)?,
            None => Vec::new(),
        };
        if models.is_empty() && !read.has_offline_rules() {
            return Err(ConfigError::Other("no model is configured, and the actor has no `offline` rules".into()));
        }
        let counted = self.providers.as_ref().filter(|_| !self.replays());
        if counted.is_some() {
            read.settings.check(&models)?;
        }
        match counted.and_then(|(providers, _)| providers.budgets.lacks_price(&models)) {
            Some(why) => Err(ConfigError::Other(why)),
            None => Ok(()),
        }
    }

    fn files(&self, _: &str, actor: &ActorDecl, _: &Beside<'_>) -> Result<Vec<NamedFile>, ConfigError> {
        let prompt = actor.config.get("prompt").and_then(Json::as_str);
        let attached = attachments::files(actor);
        Ok(prompt.map(str::to_owned).into_iter().chain(attached).map(NamedFile::Read).collect())
    }

    fn models(&self, _: &str, actor: &ActorDecl, _: &Beside<'_>) -> Result<Vec<String>, ConfigError> {
        let Some((providers, _)) = &self.providers else {
            return Ok(Vec::new());
        };
        let models = providers.named_by(&Selection::read(actor)?)?;
        Ok(models.iter().map(|model| format!("{} at {}", model.title(), model.base_url)).collect())
    }

    fn sends(&self, actor: &ActorDecl) -> Result<Vec<String>, ConfigError> {
        Ok(Toolbox::read(actor)?.map(|toolbox| toolbox.events.into_keys().collect()).unwrap_or_default())
    }

    fn secrets_of(&self, _: &ActorDecl) -> Secrets {
        self.providers.as_ref().map(|(providers, _)| providers.secrets()).unwrap_or_default()
    }

    fn estimate(&self, actor: &ActorDecl, folder: &Folder, input: &Json) -> Result<Option<Estimate>, Fault> {
        let read = ModelActor::read(actor, folder)?;
        match &self.providers {
            Some((providers, _)) if !providers.models(&read.selection)?.is_empty() => read.estimate(input),
            _ => Ok(None),
        }
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
            let open = Arc::new(OpenRequests::default());
            let write = WriteOnDrop { call: call.clone(), open: open.clone() };
            let within = tracing::Span::current();
            let asking = move || within.in_scope(|| models.ask(&call, stopped, &open));
            let result = tokio::task::spawn_blocking(asking).await;
            drop((stop, write));
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

struct Observer<'a> {
    call: &'a Call,
    /// The invocation and its actor: the same in a replay, whatever else the run does meanwhile.
    asker: String,
    shown: Shown,
    stopped: Arc<AtomicBool>,
    account: Account<'a>,
    threads: tokio::runtime::Handle,
    /// `None`: nothing is spent.
    open: Option<&'a OpenRequests>,
    slack: Duration,
}

impl Progress for Observer<'_> {
    fn run(&self) -> &str {
        &self.call.run
    }
    fn asker(&self, call: usize) -> String {
        format!("{}/{call}", self.asker)
    }
    fn go_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }
    fn sends(&self, call: usize, model: &Model, request: &Arc<OpenRequest>) {
        self.shown.begin(call);
        if let Some(open) = self.open {
            open.add(call, model, request);
        }
    }
    fn slack(&self) -> Duration {
        self.slack
    }
    fn received(&self, call: usize, bytes: usize, piece: &str) {
        self.shown.arrived(self.call, call, bytes, piece, &self.threads);
    }
    fn note(&self, call: usize, sentence: &str) {
        self.shown.note(self.call, call, sentence);
    }
    fn grant(&self, call: usize, model: &Model, spent: Usage, question: u64, wanted: u32) -> Result<Granted, Fault> {
        let wanted = TokenRequest { call, model, spent, question, tokens: wanted };
        let mut told = false;
        loop {
            if let Some(granted) = self.account.grant(wanted)? {
                return Ok(granted);
            }
            if self.call.left().is_zero() || !self.go_on() {
                return Err(Fault::new(codes::BUDGET, "open questions have reserved the rest of a budget").retryable());
            }
            if !std::mem::replace(&mut told, true) {
                self.note(call, "waiting: open questions have reserved the rest of a budget");
            }
            std::thread::sleep(POLL);
        }
    }
    fn earlier(&self, call: usize) -> Result<Earlier, Fault> {
        let has_tools = self.call.config(tools::KEY).is_some();
        if has_tools { Earlier::find(self.call, call) } else { Ok(Earlier::default()) }
    }
    fn keep_round(&self, round: KeptRound) -> Result<Option<Digest>, Fault> {
        let host = self.call.host();
        if !host.stores_blobs() {
            return Ok(None);
        }
        let round = KeptRound { effect: self.call.effect.to_string(), attempt: self.call.attempt, ..round };
        let unwritten = |why: String| Fault::new("journal", why).retryable();
        let text = serde_json::to_vec(&round).map_err(|e| unwritten(e.to_string()))?;
        host.put_blob(&text).map(Some).map_err(|e| unwritten(e.to_string()))
    }
    fn attached(&self, content: &[u8]) -> Result<(), Fault> {
        let host = self.call.host();
        let unwritten = |e: StoreError| Fault::new("journal", e.to_string()).retryable();
        if host.stores_blobs() { host.put_blob(content).map(drop).map_err(unwritten) } else { Ok(()) }
    }
    fn act(&self, place: Place, tool: &Tool, call: ToolCall, data: Json) -> Result<ToolResult, Fault> {
        let go_on = || self.go_on();
        self.threads.block_on(act::act(self.call, place, &tool.event, data, &go_on)).map(|acted| acted.of(call))
    }
    fn keep(&self, model: &Model, exchange: &mut Exchange, has_ended: bool) -> Result<(), Fault> {
        if has_ended {
            exchange.stored = store(self.call, exchange);
        }
        let (_, requests, millis) = exchange.written;
        let (mut requests, mut taken) = (exchange.sent.saturating_sub(requests), exchange.unwritten());
        let mut open = self.open.map(OpenRequests::lock);
        let written = open.as_mut().and_then(|open| open.end(exchange.call));
        if let Some(written) = written {
            // The rest of a request that was written when its call was dropped.
            (requests, taken) = (requests.saturating_sub(1), taken.minus(written));
        }
        let is_last = has_ended && exchange.sent > 0 && written.is_none();
        if requests > 0 || taken.total() > 0 || is_last {
            let row = UsageRow {
                answered_as: exchange.answered_as.clone(),
                requests,
                millis: exchange.millis.saturating_sub(millis),
                outcome: match has_ended {
                    true => exchange.fault.clone().unwrap_or_else(|| "answered".to_owned()),
                    false => "open".to_owned(),
                },
                exchange: exchange.stored,
                ..open::row(self.call, exchange.call, model, taken)
            };
            let failed = |e: StoreError| Fault::new("journal", e.to_string()).retryable();
            self.call.host().put_usage(vec![row]).map_err(failed)?;
        }
        drop(open);
        exchange.wrote();
        self.account.written(exchange.call, model);
        Ok(())
    }
}

/// Stores an exchange and returns the digest of the blob. If that fails, the answer is still valid.
fn store(call: &Call, exchange: &Exchange) -> Option<Digest> {
    let blob = json!({
        "effect": call.effect.as_ref(),
        "actor": call.name(),
        "attempt": call.attempt,
        "exchanges": [exchange.json()],
    });
    call.host().put_blob(blob.to_string().as_bytes()).ok()
}
