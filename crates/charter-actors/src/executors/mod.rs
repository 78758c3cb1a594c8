//! The standard executors.

mod exec;
mod http;
mod human;
mod journal;
mod script;
mod scripted;
#[cfg(unix)]
mod workspace;

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_kernel::Millis;
use charter_kernel::definition::ActorDecl;

use crate::error::ConfigError;
use crate::executor::{Executor, Executors, Fault};

pub use exec::Exec;
pub use http::Http;
pub use human::Human;
pub use journal::Journal;
pub use scripted::Scripted;
#[cfg(unix)]
pub use workspace::Workspaces;

/// The executors that every host has: `exec`, `http`, `human`, `journal` and `scripted`, with their
/// default settings.
#[must_use]
pub fn standard() -> Executors {
    BTreeMap::from([
        ("exec".to_owned(), Arc::new(Exec::default()) as Arc<dyn Executor>),
        ("http".to_owned(), Arc::new(Http::default())),
        ("human".to_owned(), Arc::new(Human)),
        ("journal".to_owned(), Arc::new(Journal)),
        ("scripted".to_owned(), Arc::new(Scripted)),
    ])
}

/// Default time limit of an attempt of `exec` and `http`: ten minutes.
const ATTEMPT: Millis = Millis(600_000);

/// The default environment of commands: `PATH=/usr/local/bin:/usr/bin:/bin` and `LANG=C.UTF-8`.
#[must_use]
pub fn default_env() -> BTreeMap<String, String> {
    let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8")];
    env.map(|(k, v)| (k.to_owned(), v.to_owned())).into()
}

/// Keys that every kind of actor has.
const COMMON: [&str; 5] = ["idempotent", "retry", "attemptTimeout", "as", "id"];

/// Checks that a configuration has only the keys of the kind (`keys`) and those that every kind
/// has.
///
/// # Errors
/// The configuration has an unknown key; the error names the first one.
pub fn check_keys(actor: &ActorDecl, keys: &[&str]) -> Result<(), ConfigError> {
    let known = keys.iter().chain(&COMMON).copied();
    match actor.config.keys().find(|key| !known.clone().any(|k| k == key.as_str())) {
        None => Ok(()),
        Some(key) => Err(ConfigError::unknown_key(key, known)),
    }
}

/// Runs a blocking function on a thread for blocking work.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Fault> + Send + 'static) -> Result<T, Fault> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|_| Err(Fault::new("failed", "the call was interrupted").retryable()))
}
