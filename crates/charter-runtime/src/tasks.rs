//! Tasks for people across all runs, and their answers.

use charter_kernel::{EffectId, Principal};
use charter_run::Task;
use serde_json::Value as Json;

use crate::error::RuntimeError;
use crate::mailbox::run::Seen;
use crate::recovery;
use crate::request::Receipt;
use crate::runtime::Runtime;

impl Runtime {
    /// Answers a task ([`Task::effect`]). The output is checked against the actor's schema; if it
    /// does not match, the answer is refused and the task remains open.
    ///
    /// # Errors
    /// There is no such task, or it is for other roles. See also [`Runtime::send`].
    pub async fn complete(&self, task: &str, output: Json, by: Principal) -> Result<Receipt, RuntimeError> {
        self.answer_task(task, Ok(output), by).await
    }

    /// Declines a task: its invocation fails with the code `declined`.
    ///
    /// # Errors
    /// See [`Runtime::complete`].
    pub async fn decline(&self, task: &str, reason: &str, by: Principal) -> Result<Receipt, RuntimeError> {
        let error = charter_actors::Fault::declined(reason, &by).json();
        self.answer_task(task, Err(error), by).await
    }

    async fn answer_task(
        &self,
        task: &str,
        outcome: Result<Json, Json>,
        by: Principal,
    ) -> Result<Receipt, RuntimeError> {
        let inner = &self.inner;
        inner.open_for(&by)?;
        let no_task = || RuntimeError::NoTask { run: String::new(), task: task.into() };
        let (run, effect) = run_of(task).ok_or_else(no_task)?;
        inner.ask(run, charter_run::Input::Settled { effect, outcome, by }).await
    }

    /// Lists at most `limit` tasks, across all runs, that a principal may answer.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn tasks(&self, by: &Principal, limit: usize) -> Result<Vec<Task>, RuntimeError> {
        let mut out = Vec::new();
        for run in recovery::runs_with_open_effects(&self.inner).await? {
            let Ok(Seen { charter, snapshot, dry, .. }) = self.inner.look(&run).await else {
                continue;
            };
            out.extend(charter_run::tasks(&charter.machine, &snapshot, dry).into_iter().filter(|t| t.is_for(by)));
            if out.len() >= limit {
                out.truncate(limit);
                break;
            }
        }
        Ok(out)
    }
}

/// Parses `RUN/SEQ/INDEX`.
fn run_of(effect: &str) -> Option<(&str, EffectId)> {
    let id = EffectId::parse(effect)?;
    let run = effect.rsplitn(3, '/').nth(2)?;
    Some((run, id))
}
