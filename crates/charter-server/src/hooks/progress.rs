//! What is kept of hooks beside the records: secrets, how far each hook is, dead letters.

use std::collections::BTreeMap;

use charter_journal::StateChange;
use charter_kernel::Timestamp;
use charter_runtime::RuntimeError;
use charter_runtime::backend::Backend;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::sign::HookSecret;

/// Hook id -> secret.
const SECRETS: &str = "hook-secret";
/// Hook id -> [`Progress`].
const PROGRESS: &str = "hook-progress";
/// Dead letters of a hook that are kept.
pub(super) const MAX_DEAD: usize = 1_000;

/// Position -> [`Dead`], of one hook.
fn dead_area(hook: &str) -> String {
    format!("hook-dead:{hook}")
}

/// How far a hook is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Everything up to this position is delivered, a dead letter, or not for this hook.
    pub(super) cursor: u64,
    /// The position of the message that was tried last.
    #[serde(default)]
    pub(super) pending: u64,
    /// Failed attempts for it.
    #[serde(default)]
    pub(super) attempts: u32,
    /// When the next attempt is due.
    #[serde(default)]
    pub(super) next: Option<Timestamp>,
    /// Why the last attempt failed; `None` if it did not.
    #[serde(default)]
    pub(super) error: Option<String>,
    /// When a message was delivered last.
    #[serde(default)]
    pub(super) delivered: Option<Timestamp>,
    /// How many requests to try again have been carried out.
    #[serde(default)]
    pub(super) retries: u64,
    /// Dead letters that were dropped because there were too many.
    #[serde(default)]
    pub(super) dropped: u64,
}

/// A message that was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Dead {
    /// The position of its record.
    pub(super) position: u64,
    pub(super) run: String,
    pub(super) seq: u64,
    /// The event, such as `task`.
    pub(super) event: String,
    /// The id of the message.
    pub(super) id: String,
    pub(super) attempts: u32,
    /// Why the last attempt failed.
    pub(super) error: String,
    /// The time of the last attempt.
    pub(super) at: Timestamp,
}

fn json<T: Serialize>(area: &str, name: &str, value: Option<&T>) -> StateChange {
    // Plain data, which can always be written.
    let value = value.map(|value| serde_json::to_string(value).unwrap_or_default());
    StateChange { area: area.to_owned(), name: name.to_owned(), value }
}

/// Reads the values of an area. One that cannot be read is left out.
async fn read<T: DeserializeOwned>(backend: &dyn Backend, area: &str) -> Result<BTreeMap<String, T>, RuntimeError> {
    let entries = backend.host_state(area.to_owned()).await?;
    Ok(entries.into_iter().filter_map(|(name, text)| Some((name, serde_json::from_str(&text).ok()?))).collect())
}

/// Keeps the secret of a hook that is about to be added, and where it begins: after the last
/// record.
pub(crate) async fn prepare(backend: &dyn Backend, hook: &str, secret: &HookSecret) -> Result<(), RuntimeError> {
    let progress = Progress { cursor: backend.last_position().await?, ..Progress::default() };
    let secret = StateChange { area: SECRETS.into(), name: hook.into(), value: Some(secret.reveal().to_owned()) };
    backend.put_host_state(vec![secret, json(PROGRESS, hook, Some(&progress))]).await
}

/// Removes everything that is kept of a hook.
pub(crate) async fn forget(backend: &dyn Backend, hook: &str) -> Result<(), RuntimeError> {
    let area = dead_area(hook);
    let dead = backend.host_state(area.clone()).await?;
    let remove = |area: &str, name: &str| StateChange { area: area.to_owned(), name: name.to_owned(), value: None };
    let mut changes = vec![remove(SECRETS, hook), remove(PROGRESS, hook)];
    changes.extend(dead.iter().map(|(name, _)| remove(&area, name)));
    backend.put_host_state(changes).await
}

/// The hooks of which something is kept.
pub(super) async fn known(backend: &dyn Backend) -> Result<Vec<String>, RuntimeError> {
    let mut names: Vec<String> = Vec::new();
    for area in [SECRETS, PROGRESS] {
        names.extend(backend.host_state(area.to_owned()).await?.into_iter().map(|(name, _)| name));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// The secret of a hook, if it is in this journal.
pub(super) async fn secret(backend: &dyn Backend, hook: &str) -> Result<Option<HookSecret>, RuntimeError> {
    let secrets = backend.host_state(SECRETS.to_owned()).await?;
    Ok(secrets.into_iter().find(|(name, _)| name == hook).and_then(|(_, text)| HookSecret::read(&text)))
}

/// How far each hook is.
pub(super) async fn all(backend: &dyn Backend) -> Result<BTreeMap<String, Progress>, RuntimeError> {
    read(backend, PROGRESS).await
}

/// The dead letters of a hook, oldest first.
pub(super) async fn dead(backend: &dyn Backend, hook: &str) -> Result<Vec<Dead>, RuntimeError> {
    Ok(read(backend, &dead_area(hook)).await?.into_values().collect())
}

/// Writes how far a hook is.
pub(super) fn put(hook: &str, progress: &Progress) -> StateChange {
    json(PROGRESS, hook, Some(progress))
}

/// Keeps a dead letter, or changes it.
pub(super) fn bury(hook: &str, dead: &Dead) -> StateChange {
    json(&dead_area(hook), &name_of(dead.position), Some(dead))
}

/// Removes a dead letter.
pub(super) fn unbury(hook: &str, position: u64) -> StateChange {
    json::<Dead>(&dead_area(hook), &name_of(position), None)
}

/// Sorts as the position does.
fn name_of(position: u64) -> String {
    format!("{position:020}")
}
