//! Tasks of people: what waits, and their answers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use charter_journal::RunFilter;
use charter_kernel::Status;
use charter_runtime::backend::TaskAnswer;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, may_see};
use super::body::Body;
use super::events::acknowledged;
use super::named::Named;
use super::problem::Problem;
use crate::identity::Caller;

/// Tasks in an answer, and runs that are looked at for it.
const MAX_TASKS: usize = 1_000;
const MAX_RUNS: usize = 10_000;

/// `GET /v1/tasks`
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    let filter = RunFilter { status: Some(Status::Active), limit: MAX_RUNS, ..RunFilter::default() };
    let runs = app.backend.runs(filter).await?;
    let all = runs.len() < MAX_RUNS;
    let mut tasks = Vec::new();
    for info in runs {
        let charter = app.charter(info.charter).await?;
        let definition = charter.machine().definition();
        let has_tasks = definition.actors.values().any(|actor| actor.kind == "human");
        if !has_tasks || !may_see(&caller, &charter, &info.run) {
            continue;
        }
        let by = caller.principal(&definition.id, Some(&info.run), definition.roles.keys());
        let view = app.backend.view(info.run).await?;
        tasks.extend(view.tasks.into_iter().filter(|task| task.is_for(&by)));
        if tasks.len() >= MAX_TASKS {
            break;
        }
    }
    let all = all && tasks.len() < MAX_TASKS;
    tasks.truncate(MAX_TASKS);
    Ok(Json(json!({"tasks": tasks, "all": all})).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerBody {
    /// The effect of the task, `RUN/SEQ/INDEX`.
    task: String,
    output: Option<Value>,
    /// Why the task is declined.
    declined: Option<String>,
}

/// `POST /v1/runs/{run}/answers`
pub(super) async fn answer(
    State(app): State<Arc<App>>,
    caller: Caller,
    Named(run): Named,
    Body(body): Body<AnswerBody>,
) -> Result<Response, Problem> {
    let seen = app.own_run(&caller, &run).await?;
    let of_run = body.task.strip_prefix(run.as_str()).is_some_and(|rest| rest.starts_with('/'));
    if !of_run {
        return Err(Problem::request(format!("`{}` is not a task of run `{run}`", body.task)));
    }
    let answer = match (body.output, body.declined) {
        (Some(output), None) => TaskAnswer::Output(output),
        (None, Some(reason)) => TaskAnswer::Declined(reason),
        _ => return Err(Problem::request("give either `output`, the answer, or `declined`, the reason why not")),
    };
    let done = app.backend.answer(body.task, answer, seen.by).await?;
    acknowledged(&done, Some(seen.charter.machine()), StatusCode::OK)
}
