//! Tasks of people: who may see and settle them, and how an answer finds its run.

use charter_kernel::{EffectId, Principal, Snapshot, Status};
use serde_json::Value as Json;

use super::request::{Input, Receipt, Task};
use super::{Inner, Runtime};
use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::recovery;

impl Runtime {
    /// Answers a task that waits for a person ([`Task::effect`]). The output is checked against the actor's schema; one that does not
    /// fit is refused, and the task goes on waiting.
    ///
    /// # Errors
    /// There is no such task, it is for other roles, or as [`Runtime::send`].
    pub async fn complete(&self, task: &str, output: Json, by: Principal) -> Result<Receipt, RuntimeError> {
        self.settle_task(task, Ok(output), by).await
    }

    /// Declines a task that waits for a person: its invocation fails with the code `declined`.
    ///
    /// # Errors
    /// As [`Runtime::complete`].
    pub async fn decline(&self, task: &str, reason: &str, by: Principal) -> Result<Receipt, RuntimeError> {
        let error = charter_actors::Fault::new("declined", reason).with("by", by.id.as_str()).json();
        self.settle_task(task, Err(error), by).await
    }

    async fn settle_task(
        &self,
        task: &str,
        outcome: Result<Json, Json>,
        by: Principal,
    ) -> Result<Receipt, RuntimeError> {
        let inner = &self.inner;
        inner.open_for(&by)?;
        let no_task = || RuntimeError::NoTask { run: String::new(), task: task.into() };
        let (run, effect) = run_of(task).ok_or_else(no_task)?;
        inner
            .ask(run, |reply| Input::Answer { invocation: String::new(), effect, outcome, person: Some(by), reply })
            .await
    }

    /// Tasks that wait for a person with these roles, over all runs, at most `limit`.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn tasks(&self, by: &Principal, limit: usize) -> Result<Vec<Task>, RuntimeError> {
        let mut out = Vec::new();
        for run in recovery::runs_with_open_effects(&self.inner).await? {
            let Ok((charter, snapshot)) = self.inner.look(&run).await else {
                continue;
            };
            let tasks = self.inner.tasks_of(&charter, &snapshot);
            out.extend(tasks.into_iter().filter(|t| may(&t.by, by)));
            if out.len() >= limit {
                out.truncate(limit);
                break;
            }
        }
        Ok(out)
    }
}

impl Inner {
    /// What of a snapshot waits for a person.
    pub(crate) fn tasks_of(&self, charter: &Charter, snapshot: &Snapshot) -> Vec<Task> {
        if snapshot.status() != Status::Active {
            return Vec::new();
        }
        let task = |(actor, i): (&charter_kernel::Actor, &charter_kernel::Invocation)| {
            let service =
                charter.actors.get(i.src.as_ref()).filter(|s| s.kind.as_ref() == "human" && !i.is_machine())?;
            let config = &service.decl.config;
            Some(Task {
                run: snapshot.run().to_owned(),
                effect: i.effect.text(snapshot.run()),
                actor: actor.id().to_owned(),
                invocation: i.id.to_string(),
                src: i.src.to_string(),
                title: config.get("title").and_then(Json::as_str).map(str::to_owned),
                by: task_roles(charter, &i.src),
                input: (*i.input).clone(),
                output: service.decl.output.clone(),
            })
        };
        snapshot.invocations().filter_map(task).collect()
    }
}

/// Roles that may answer a task of an actor.
pub(crate) fn task_roles(charter: &Charter, src: &str) -> Vec<String> {
    let config = charter.actors.get(src).and_then(|s| s.decl.config.get("by"));
    config.and_then(|by| charter_actors::texts("by", by).ok()).unwrap_or_default()
}

/// Whether a principal has one of the roles; an empty list asks for none.
pub(crate) fn may(roles: &[String], by: &Principal) -> bool {
    roles.is_empty() || roles.iter().any(|r| by.roles.contains(r))
}

/// `RUN/SEQ/INDEX`.
fn run_of(effect: &str) -> Option<(&str, EffectId)> {
    let id = EffectId::parse(effect)?;
    let run = effect.rsplitn(3, '/').nth(2)?;
    Some((run, id))
}
