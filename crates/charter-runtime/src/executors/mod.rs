//! The executors that every host has: `exec`, `http`, `scripted`, `human`, `journal`.

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

use crate::call::Executor;

pub use exec::Exec;
pub use http::Http;
pub use human::Human;
pub use journal::Journal;
pub use scripted::Scripted;
#[cfg(unix)]
pub use workspace::Workspaces;

/// The executors of [`crate::Options::default`].
pub(crate) fn standard() -> BTreeMap<String, Arc<dyn Executor>> {
    BTreeMap::from([
        ("exec".to_owned(), Arc::new(Exec::default()) as Arc<dyn Executor>),
        ("http".to_owned(), Arc::new(Http::default())),
        ("human".to_owned(), Arc::new(Human)),
        ("journal".to_owned(), Arc::new(Journal)),
        ("scripted".to_owned(), Arc::new(Scripted)),
    ])
}

/// How long a command or a server may take for an attempt, unless the actor says otherwise: ten minutes, in milliseconds.
const ATTEMPT: i64 = 600_000;

/// Keys that every kind of actor understands.
const COMMON: [&str; 5] = ["idempotent", "retry", "attemptTimeout", "as", "id"];

/// Refuses a configuration with keys that a kind does not know.
fn known(config: &indexmap::IndexMap<String, serde_json::Value>, keys: &[&str]) -> Result<(), String> {
    for key in config.keys() {
        if !keys.contains(&key.as_str()) && !COMMON.contains(&key.as_str()) {
            let all = keys.iter().chain(&COMMON).copied();
            let near = charter_expr::nearest(key, all).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            return Err(format!("it has no key `{key}`{near}"));
        }
    }
    Ok(())
}
