//! The interface of executors: the calls that they receive and the answers that they give.

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
use crate::kept::NamedFile;
use crate::secret::Secrets;

/// Executors by actor kind.
pub type Executors = BTreeMap<String, Arc<dyn Executor>>;

/// Looks up a secret by its name. Charters name secrets; the host holds them.
pub type FindSecret = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Executes the invocations of actors of one kind. A charter selects the executor by the actor's
/// `kind`; the host decides which kinds exist.
///
/// The host calls the executor after the record with the request is committed, possibly more than
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

    /// Returns the files of the charter's folder that the configuration of an actor names. The host
    /// puts them into the manifest of the runs that it starts; an executor can read no others.
    ///
    /// # Errors
    /// The configuration cannot be used.
    fn files(&self, name: &str, actor: &ActorDecl, beside: &Beside<'_>) -> Result<Vec<NamedFile>, ConfigError> {
        let _ = (name, actor, beside);
        Ok(Vec::new())
    }

    /// Returns the models that an actor asks on this host, the first one first, each as
    /// `PROVIDER:NAME at ADDRESS`. The host puts them into the manifest of the runs that it starts.
    ///
    /// # Errors
    /// The configuration cannot be used.
    fn models(&self, name: &str, actor: &ActorDecl, beside: &Beside<'_>) -> Result<Vec<String>, ConfigError> {
        let _ = (name, actor, beside);
        Ok(Vec::new())
    }

    /// Returns the types of the events that the configuration lets the actor send to its run. A
    /// charter that does not declare them is refused.
    ///
    /// # Errors
    /// The configuration cannot be used.
    fn sends(&self, actor: &ActorDecl) -> Result<Vec<String>, ConfigError> {
        let _ = actor;
        Ok(Vec::new())
    }

    /// Estimates a question before it is asked; `None`: it costs nothing, or nobody knows.
    ///
    /// # Errors
    /// The question can never be asked.
    fn estimate(&self, actor: &ActorDecl, folder: &Folder, input: &Json) -> Result<Option<Estimate>, Fault> {
        let _ = (actor, folder, input);
        Ok(None)
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

    /// The secrets that a call of this actor is given. Hosts remove them from what it answers.
    fn secrets_of(&self, actor: &ActorDecl) -> Secrets {
        let _ = actor;
        Secrets::default()
    }

    /// Makes one attempt. Hosts use [`perform`](crate::perform), which also removes the secrets.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>>;
}

/// What a question takes of the budget of its actor, about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Tokens of the question, without its answer.
    pub question: u64,
    /// Tokens that question and answer may take together.
    pub budget: u64,
}

impl Estimate {
    /// Whether the budget leaves something for an answer.
    #[must_use]
    pub fn fits(self) -> bool {
        self.question < self.budget
    }
}

/// What is beside an actor: the files of its charter and the executors of its host.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Beside<'a> {
    /// The files next to the charter.
    pub folder: &'a Folder,
    /// The executors of the host.
    pub executors: &'a Executors,
}

impl<'a> Beside<'a> {
    /// Combines a folder and executors.
    #[must_use]
    pub fn new(folder: &'a Folder, executors: &'a Executors) -> Beside<'a> {
        Beside { folder, executors }
    }
}

impl std::fmt::Debug for Beside<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Beside({:?}, {:?})", self.folder, self.executors.keys())
    }
}

/// The result of a call that did not fail.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The answer.
    Done(Json),
    /// The answer arrives later from another source, such as a person.
    Waits,
}

/// The fault has the code `config`.
impl From<ConfigError> for Fault {
    fn from(error: ConfigError) -> Fault {
        Fault::new("config", error.to_string())
    }
}
