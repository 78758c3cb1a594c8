//! The interface of executors: their requests and their answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_kernel::Millis;
use charter_kernel::definition::ActorDecl;
pub(crate) use charter_run::Fault;
use serde_json::Value as Json;

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

    /// Whether an interrupted call may be repeated if the charter does not set `idempotent`.
    fn is_idempotent(&self) -> bool {
        false
    }

    /// Time limit of an attempt if the actor has no `attemptTimeout`. `None`: the time limit of the
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

/// Code `config`.
impl From<ConfigError> for Fault {
    fn from(error: ConfigError) -> Fault {
        Fault::new("config", error.to_string())
    }
}
