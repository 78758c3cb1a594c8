//! What an executor is, what it is asked, what it may answer.

use std::sync::Arc;

use charter_kernel::definition::ActorDecl;
use charter_kernel::{BadAnswer, EffectId, Principal};
use serde_json::{Map, Value as Json};

use crate::charter::{Charter, Folder, Service};
use crate::clock::{BoxFuture, Clock};
use crate::error::RuntimeError;
use crate::publish::Subscription;
use crate::runtime::{Inner, Receipt};

/// Does the work of actors of one kind. A charter chooses it by the actor's `kind`; the host says which kinds there are.
///
/// Called after the commit of the record that asks, and maybe more than once for the same effect: [`Call::effect`] is the
/// idempotency key, the same each time. When nobody waits for the answer any more, the future is dropped; it must clean up after
/// itself then.
pub trait Executor: Send + Sync + 'static {
    /// Looks at the configuration of an actor before a run of its charter starts.
    ///
    /// # Errors
    /// One sentence that names the key.
    fn check(&self, name: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), String> {
        let _ = (name, actor, folder);
        Ok(())
    }

    /// Whether a call that was interrupted may be made again although the charter does not say so (`idempotent`).
    fn is_idempotent(&self) -> bool {
        false
    }

    /// How long an attempt may take if the actor does not say (`attemptTimeout`), in milliseconds; none: as long as the invocation.
    fn attempt_timeout(&self) -> Option<i64> {
        None
    }

    /// Does the work once.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>>;
}

/// What an executor is asked.
#[derive(Clone)]
pub struct Call {
    /// The run.
    pub run: Arc<str>,
    /// The effect, `RUN/SEQ/INDEX`: the idempotency key.
    pub effect: Arc<str>,
    /// Id of the invocation.
    pub invocation: Arc<str>,
    /// Which attempt; the first is 1.
    pub attempt: u32,
    /// The input; it fits the actor's schema.
    pub input: Arc<Json>,
    /// When the attempt has to be over, milliseconds since 1970.
    pub deadline: i64,
    pub(crate) id: EffectId,
    pub(crate) charter: Arc<Charter>,
    pub(crate) service: Arc<Service>,
    pub(crate) inner: Arc<Inner>,
}

impl Call {
    /// The entry of `actors`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.service.name
    }

    /// What the charter says about the actor.
    #[must_use]
    pub fn actor(&self) -> &ActorDecl {
        &self.service.decl
    }

    /// A key of the actor's configuration.
    #[must_use]
    pub fn config(&self, key: &str) -> Option<&Json> {
        self.service.decl.config.get(key).filter(|v| !v.is_null())
    }

    /// The files beside the charter.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        self.charter.folder()
    }

    /// The host's clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// The journal that the run is in: what earlier runs have left. An executor only reads it, or keeps blobs in it.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn charter_journal::Store> {
        &self.inner.store
    }

    /// Milliseconds that are left for the attempt.
    #[must_use]
    pub fn left(&self) -> u64 {
        u64::try_from(self.deadline.saturating_sub(self.inner.clock.now())).unwrap_or(0)
    }

    /// How many invocations of this actor the run has asked for before this one.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn earlier(&self) -> Result<usize, Fault> {
        let mut count = 0usize;
        let mut from = 0u64;
        loop {
            let page =
                self.inner.store.records(&self.run, from, 256).map_err(|e| Fault::new("journal", &e.to_string()))?;
            for record in &page {
                for (effect, index) in record.effects.iter().zip(0u32..) {
                    if (record.seq, index) >= (self.id.seq, self.id.index) {
                        return Ok(count);
                    }
                    let word = |key: &str| effect.get(key).and_then(Json::as_str);
                    if word("kind") == Some("invoke") && word("src") == Some(self.name()) {
                        count = count.saturating_add(1);
                    }
                }
            }
            match page.last() {
                Some(last) => from = last.seq.saturating_add(1),
                None => return Ok(count),
            }
        }
    }

    /// Who the actor is when it sends events: its id, and the roles that the charter gives it (`as`).
    #[must_use]
    pub fn principal(&self) -> Principal {
        let conduct = &self.service.conduct;
        Principal { id: conduct.id.clone().unwrap_or_else(|| self.name().to_owned()), roles: conduct.roles.clone() }
    }

    /// Sends an event to the run through the ordinary door, as [`Call::principal`]. `key` tells the events of one call apart: the
    /// same key gives the first answer again, also after a restart.
    ///
    /// # Errors
    /// As [`crate::Runtime::send`]; a refusal is no error.
    pub async fn send(&self, key: &str, to: Option<String>, r#type: &str, data: Json) -> Result<Receipt, RuntimeError> {
        let send = crate::SendEvent {
            run: self.run.to_string(),
            to,
            r#type: r#type.to_owned(),
            data,
            by: self.principal(),
            id: Some(format!("{}/{key}", self.effect)),
            expected_seq: None,
        };
        self.inner.send(send).await
    }

    /// What happens in the run from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.inner.publisher.subscribe(Some(&self.run))
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Call({}, {}, attempt {})", self.effect, self.service.name, self.attempt)
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The answer.
    Done(Json),
    /// The answer comes from outside: from a person, through [`crate::Runtime::complete`], or never.
    Waits,
}

/// A call failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Stable, for conditions in charters (`docs/actors.md` lists them).
    pub code: String,
    /// One sentence.
    pub message: String,
    /// Whether trying again may help.
    pub retryable: bool,
    /// What else is known; goes into `event.error` beside code and message.
    pub details: Map<String, Json>,
}

impl Fault {
    /// A failure that another attempt would not mend.
    #[must_use]
    pub fn new(code: &str, message: &str) -> Fault {
        Fault { code: code.into(), message: message.into(), retryable: false, details: Map::new() }
    }

    /// Another attempt may help.
    #[must_use]
    pub fn retryable(mut self) -> Fault {
        self.retryable = true;
        self
    }

    /// With something else that is known.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Fault {
        self.details.insert(key.into(), value.into());
        self
    }

    /// As the charter sees it: `{code, message, retryable, ...}`.
    #[must_use]
    pub fn json(&self) -> Json {
        let mut map = self.details.clone();
        map.insert("code".into(), self.code.as_str().into());
        map.insert("message".into(), self.message.as_str().into());
        map.insert("retryable".into(), self.retryable.into());
        Json::Object(map)
    }
}

impl From<BadAnswer> for Fault {
    fn from(why: BadAnswer) -> Fault {
        let fault = Fault::new(why.code, &why.message).retryable();
        match why.misfits.is_empty() {
            true => fault,
            false => fault.with("misfits", serde_json::to_value(why.misfits).unwrap_or_default()),
        }
    }
}
