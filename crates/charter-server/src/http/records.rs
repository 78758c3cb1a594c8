//! Records: list, explain, and the run as it was after one.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use charter_journal::Record;
use serde::Deserialize;
use serde_json::json;

use super::app::App;
use super::named::{Named, Numbered};
use super::problem::Problem;
use super::runs::described;
use crate::identity::Caller;

/// Records of a page, at most and by default; and their bytes.
const MAX_PAGE: usize = 1_000;
const PAGE: usize = 100;
const MAX_BYTES: usize = 8 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// The last record that the client has.
    after: Option<u64>,
    limit: Option<usize>,
}

/// `GET /v1/runs/{run}/records`
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Named(run): Named,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|e| Problem::request(e.body_text()))?;
    let seen = app.run(&caller, &run).await?;
    let from = query.after.map_or(0, |seq| seq.saturating_add(1));
    let limit = query.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let records = app.backend.records(run, from, limit).await?;
    let mut body = String::from("{\"records\":[");
    let mut last = None;
    for record in &records {
        if last.is_some() && body.len().saturating_add(record.text().len()) > MAX_BYTES {
            break;
        }
        if last.is_some() {
            body.push(',');
        }
        body.push_str(record.text());
        last = Some(record.seq);
    }
    body.push(']');
    if let Some(last) = last.filter(|last| *last < seen.info.seq) {
        body.push_str(&format!(",\"after\":{last}"));
    }
    body.push('}');
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// `GET /v1/runs/{run}/at/{seq}`
pub(super) async fn at(
    State(app): State<Arc<App>>,
    caller: Caller,
    Numbered(run, seq): Numbered,
) -> Result<Response, Problem> {
    let seen = app.run(&caller, &run).await?;
    let view = app.backend.at(run, seq).await?;
    // As it was shown then: expressions of the page may ask for the time.
    let record = record(&app, &seen.info.run, seq).await?;
    Ok(described(&seen.info, &view, (seq, record.hash), record.at))
}

pub(super) async fn record(app: &App, run: &str, seq: u64) -> Result<Record, Problem> {
    let found = app.backend.records(run.to_owned(), seq, 1).await?.into_iter().next();
    found.filter(|record| record.seq == seq).ok_or_else(|| Problem::no_record(run, seq))
}

/// `GET /v1/runs/{run}/explain/{seq}`
pub(super) async fn explain(
    State(app): State<Arc<App>>,
    caller: Caller,
    Numbered(run, seq): Numbered,
) -> Result<Response, Problem> {
    let seen = app.run(&caller, &run).await?;
    let record = record(&app, &run, seq).await?;
    let machine = seen.charter.machine();
    let transitions: Vec<_> = record.transitions.iter().collect();
    let body = json!({
        "run": run, "seq": seq, "verdict": record.verdict.word(), "type": record.event.r#type, "by": record.by,
        "transitions": transitions,
        "refusal": record.explanation(Some(machine)),
        "notes": record.note_messages().collect::<Vec<_>>(),
    });
    Ok(Json(body).into_response())
}
