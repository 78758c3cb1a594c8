//! Kind `human`: a task that waits until a person answers it or the charter continues without an
//! answer.

use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;

use crate::call::Call;
use crate::clock::BoxFuture;
use crate::error::ConfigError;
use crate::executor::{Executor, Fault, Outcome};
use crate::folder::Folder;
use charter_run::texts;

/// Kind `human`. Configuration: `title` (what the task is about), `by` (roles that may answer;
/// default: anyone), `agents` (whether agents and services may answer too; default: persons only).
///
/// The executor itself does nothing: the invocation stays open and is listed as a task. It ends
/// when someone completes or declines the task, when the invocation times out, or when the charter
/// leaves the state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Human;

impl Executor for Human {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), ConfigError> {
        super::check_keys(actor, &["title", "by", "agents"])?;
        if let Some(by) = actor.config.get("by") {
            texts("by", by)?;
        }
        if let Some(other) = actor.config.get("agents").filter(|value| !value.is_boolean()) {
            return Err(ConfigError::invalid("agents", "`true` or `false`", other));
        }
        match actor.config.get("title") {
            Some(Json::String(title)) if title.starts_with("= ") => Err(ConfigError::Other(format!(
                "`title`: `{title}` is not evaluated: a title is a text; give what the task is about as `input`, which is shown with it"
            ))),
            None | Some(Json::String(_)) => Ok(()),
            Some(other) => Err(ConfigError::invalid("title", "a string", other)),
        }
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn call(&self, _: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        Box::pin(async { Ok(Outcome::Waits) })
    }
}
