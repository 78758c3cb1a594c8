//! The interface of executors: what they are asked, and what they answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_kernel::definition::ActorDecl;
use charter_kernel::{BadAnswer, Millis};
use serde_json::{Map, Value as Json};

use crate::call::Call;
use crate::clock::BoxFuture;
use crate::error::ConfigError;
use crate::folder::Folder;

/// Executors by the kind of actor that they work for.
pub type Executors = BTreeMap<String, Arc<dyn Executor>>;

/// Looks up a secret by its name. Charters name secrets; the host holds them.
pub type FindSecret = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Does the work of actors of one kind. A charter chooses it by the actor's `kind`; the host
/// decides which kinds exist.
///
/// The host calls it after the record that requests the work is committed, and possibly more than
/// once for the same effect: [`Call::effect`] is the idempotency key and is the same each time. If
/// the run no longer waits for the answer, the future is dropped and must clean up after itself.
pub trait Executor: Send + Sync + 'static {
    /// Checks the configuration of an actor before a run of its charter starts.
    ///
    /// # Errors
    /// The configuration cannot be used.
    fn check(&self, name: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), ConfigError> {
        let _ = (name, actor, folder);
        Ok(())
    }

    /// Whether an interrupted call may be repeated when the charter does not say (`idempotent`).
    fn is_idempotent(&self) -> bool {
        false
    }

    /// Time limit of an attempt if the actor has no `attemptTimeout`; none: as long as the
    /// invocation.
    fn attempt_timeout(&self) -> Option<Millis> {
        None
    }

    /// Does the work once.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>>;
}

/// The result of a call that did not fail.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The answer.
    Done(Json),
    /// The answer comes later and from elsewhere, such as from a person.
    Waits,
}

/// A call failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Stable code, for conditions in charters (`docs/actors.md` lists them).
    pub code: String,
    /// One sentence.
    pub message: String,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// Further members of `event.error`, beside code and message.
    pub details: Map<String, Json>,
}

impl Fault {
    /// A failure that another attempt would not fix.
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Fault {
        Fault { code: code.into(), message: message.into(), retryable: false, details: Map::new() }
    }

    /// Another attempt may succeed.
    #[must_use]
    pub fn retryable(mut self) -> Fault {
        self.retryable = true;
        self
    }

    /// Adds a member to `event.error`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Fault {
        self.details.insert(key.into(), value.into());
        self
    }

    /// The error as the charter sees it: `{code, message, retryable, ...}`.
    #[must_use]
    pub fn json(&self) -> Json {
        let mut map = self.details.clone();
        map.insert("code".into(), self.code.as_str().into());
        map.insert("message".into(), self.message.as_str().into());
        map.insert("retryable".into(), self.retryable.into());
        Json::Object(map)
    }
}

/// Code `config`.
impl From<ConfigError> for Fault {
    fn from(error: ConfigError) -> Fault {
        Fault::new("config", error.to_string())
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
