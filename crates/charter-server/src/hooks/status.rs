//! What there is to know about hooks: how far each one is, and its dead letters.

use charter_kernel::Timestamp;
use charter_runtime::RuntimeError;
use charter_runtime::backend::Backend;
use charter_scenario::timestamp;
use serde::{Deserialize, Serialize};

use super::Hook;
use super::event::HookEvent;
use super::progress::{self, Progress};
use crate::identity::Directory;

/// A hook, and how far it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HookStatus {
    /// Its id.
    pub hook: String,
    /// Where events are sent.
    pub url: String,
    /// Which events.
    pub on: Vec<HookEvent>,
    /// The charter whose runs it is about.
    pub charter: Option<String>,
    /// Whether the address may be one that is not public.
    pub allow_private: bool,
    /// A remark.
    pub note: Option<String>,
    /// Who added it.
    pub added_by: String,
    /// Why nothing is sent any more.
    pub closed: Option<String>,
    /// Records after the last one that it has dealt with.
    pub behind: u64,
    /// Failed attempts for the message that it sends now.
    pub attempts: u32,
    /// When the next attempt is due, as RFC 3339 text.
    pub next_attempt: Option<String>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// When a message was delivered last.
    pub last_delivered: Option<String>,
    /// Dead letters.
    pub dead: usize,
    /// Dead letters that were dropped because there were too many.
    pub dropped: u64,
}

/// A message that was not delivered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Its id, the value of `webhook-id`.
    pub id: String,
    /// The event, such as `task`.
    pub event: String,
    /// The run.
    pub run: String,
    /// The number of the record.
    pub seq: u64,
    /// Attempts to deliver it.
    pub attempts: u32,
    /// Why the last one failed.
    pub error: String,
    /// When that was.
    pub at: String,
}

fn text(at: Option<Timestamp>) -> Option<String> {
    at.map(timestamp::text)
}

/// The hooks of a journal that were not removed, by id.
///
/// # Errors
/// The journal cannot be read.
pub async fn statuses(backend: &dyn Backend, directory: &Directory) -> Result<Vec<HookStatus>, RuntimeError> {
    let last = backend.last_position().await?;
    let mut all = progress::all(backend).await?;
    let mut found = Vec::new();
    for (id, hook) in directory.hooks() {
        let dead = progress::dead(backend, id).await?.len();
        found.push(status(id, hook, all.remove(id), dead, last));
    }
    Ok(found)
}

fn status(id: &str, hook: &Hook, progress: Option<Progress>, dead: usize, last: u64) -> HookStatus {
    let absent = progress.is_none().then(|| "its secret is not in this journal; remove it and add it again".to_owned());
    let progress = progress.unwrap_or(Progress { cursor: last, ..Progress::default() });
    HookStatus {
        hook: id.to_owned(),
        url: hook.url.clone(),
        on: hook.on.clone(),
        charter: hook.charter.clone(),
        allow_private: hook.private,
        note: hook.note.clone(),
        added_by: hook.by.id.clone(),
        closed: hook.closed.clone().or(absent),
        behind: last.saturating_sub(progress.cursor),
        attempts: progress.attempts,
        next_attempt: text(progress.next),
        error: progress.error,
        last_delivered: text(progress.delivered),
        dead,
        dropped: progress.dropped,
    }
}

/// The dead letters of a hook, oldest first.
///
/// # Errors
/// The journal cannot be read.
pub async fn dead_letters(backend: &dyn Backend, hook: &str) -> Result<Vec<DeadLetter>, RuntimeError> {
    let dead = progress::dead(backend, hook).await?;
    let letter = |dead: progress::Dead| DeadLetter {
        id: dead.id,
        event: dead.event,
        run: dead.run,
        seq: dead.seq,
        attempts: dead.attempts,
        error: dead.error,
        at: timestamp::text(dead.at),
    };
    Ok(dead.into_iter().map(letter).collect())
}
