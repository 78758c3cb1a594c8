//! Kind `human`: a task that waits until a person answers it, or until the charter goes on without.

use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;

use crate::call::{Call, Executor, Fault, Outcome};
use crate::charter::Folder;
use crate::clock::BoxFuture;
use crate::config::texts;

/// Kind `human`. Configuration: `title` (what the task is about), `by` (roles that may answer; default: anybody).
///
/// It does nothing by itself: the invocation stays open, is listed by [`crate::Runtime::tasks`], and ends with
/// [`crate::Runtime::complete`] or [`crate::Runtime::decline`], with its timeout, or when the charter leaves the state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Human;

impl Executor for Human {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), String> {
        super::known(&actor.config, &["title", "by"])?;
        if let Some(by) = actor.config.get("by") {
            texts("by", by)?;
        }
        match actor.config.get("title") {
            None | Some(Json::String(_)) => Ok(()),
            Some(other) => Err(format!("`title` is a text, not `{other}`")),
        }
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn call(&self, _: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        Box::pin(async { Ok(Outcome::Waits) })
    }
}
