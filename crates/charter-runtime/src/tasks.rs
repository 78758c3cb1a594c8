//! Tasks of people: who may see and answer them, and how an answer reaches its run.

use charter_kernel::{EffectId, Principal, Snapshot, Status};
use serde_json::Value as Json;

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::recovery;
use crate::request::{Input, Receipt, Task};
use crate::runtime::Runtime;

impl Runtime {
    /// Answers a task ([`Task::effect`]). The output is checked against the actor's schema; if it
    /// does not match, the answer is refused and the task remains open.
    ///
    /// # Errors
    /// There is no such task, it is for other roles, or as [`Runtime::send`].
    pub async fn complete(&self, task: &str, output: Json, by: Principal) -> Result<Receipt, RuntimeError> {
        self.answer_task(task, Ok(output), by).await
    }

    /// Declines a task: its invocation fails with the code `declined`.
    ///
    /// # Errors
    /// As [`Runtime::complete`].
    pub async fn decline(&self, task: &str, reason: &str, by: Principal) -> Result<Receipt, RuntimeError> {
        let error = charter_actors::Fault::new("declined", reason).with("by", by.id.as_str()).json();
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
        inner
            .ask(run, |reply| Input::Answer { invocation: String::new(), effect, outcome, person: Some(by), reply })
            .await
    }

    /// At most `limit` tasks that a principal may answer, over all runs.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn tasks(&self, by: &Principal, limit: usize) -> Result<Vec<Task>, RuntimeError> {
        let mut out = Vec::new();
        for run in recovery::runs_with_open_effects(&self.inner).await? {
            let Ok((charter, snapshot)) = self.inner.look(&run).await else {
                continue;
            };
            out.extend(of(&charter, &snapshot).into_iter().filter(|t| may_answer(&t.by, by)));
            if out.len() >= limit {
                out.truncate(limit);
                break;
            }
        }
        Ok(out)
    }
}

/// The tasks of a run.
pub(crate) fn of(charter: &Charter, snapshot: &Snapshot) -> Vec<Task> {
    if snapshot.status() != Status::Active {
        return Vec::new();
    }
    let task = |(actor, i): (&charter_kernel::Actor, &charter_kernel::Invocation)| {
        let config = charter.actors.get(i.src.as_ref()).filter(|c| c.kind.as_ref() == "human" && !i.is_machine())?;
        Some(Task {
            run: snapshot.run().to_owned(),
            effect: i.effect.text(snapshot.run()),
            actor: actor.id().to_owned(),
            invocation: i.id.to_string(),
            src: i.src.to_string(),
            title: config.decl.config.get("title").and_then(Json::as_str).map(str::to_owned),
            by: roles(charter, &i.src),
            input: (*i.input).clone(),
            output: config.decl.output.clone(),
        })
    };
    snapshot.invocations().filter_map(task).collect()
}

/// The invocation of a task that a principal may answer.
pub(crate) fn invocation(
    run: &str,
    charter: &Charter,
    snapshot: &Snapshot,
    effect: EffectId,
    by: &Principal,
) -> Result<String, RuntimeError> {
    let task = effect.text(run);
    let human = |src: &str| charter.actors.get(src).is_some_and(|c| c.kind.as_ref() == "human");
    let found = snapshot.invocations().find(|(_, i)| i.effect == effect && !i.is_machine() && human(&i.src));
    let Some((_, i)) = found.filter(|_| !snapshot.status().is_finished()) else {
        return Err(RuntimeError::NoTask { run: run.into(), task });
    };
    let roles = roles(charter, &i.src);
    if !may_answer(&roles, by) {
        return Err(RuntimeError::NotYours { run: run.into(), task, roles: roles.join(", "), by: by.id.clone() });
    }
    Ok(i.id.to_string())
}

/// Roles that may answer a task of an actor; empty: anybody.
fn roles(charter: &Charter, src: &str) -> Vec<String> {
    let config = charter.actors.get(src).and_then(|c| c.decl.config.get("by"));
    config.and_then(|by| charter_actors::texts("by", by).ok()).unwrap_or_default()
}

fn may_answer(roles: &[String], by: &Principal) -> bool {
    roles.is_empty() || roles.iter().any(|r| by.roles.contains(r))
}

/// The parts of `RUN/SEQ/INDEX`.
fn run_of(effect: &str) -> Option<(&str, EffectId)> {
    let id = EffectId::parse(effect)?;
    let run = effect.rsplitn(3, '/').nth(2)?;
    Some((run, id))
}
