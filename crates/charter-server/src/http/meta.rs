//! Health, metrics, the description of the API, the pages of codes.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::app::App;
use super::named::Named;
use super::problem::Problem;
use crate::identity::Caller;

/// `GET /`
pub(super) async fn home(State(app): State<Arc<App>>) -> Response {
    let body = json!({
        "charter": app.options.version, "api": "/openapi.json", "runs": "/v1/runs", "tasks": "/v1/tasks", "stream": "/v1/stream",
    });
    Json(body).into_response()
}

/// `GET /healthz`: the process answers.
pub(super) async fn health() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the journal can be read, and the server takes writes.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    app.writable()?;
    app.backend.last_position().await.map_err(|e| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", format!("the journal cannot be read: {e}"))
    })?;
    Ok("ready\n")
}

/// `GET /metrics`. On a server with keys, it needs one.
pub(super) async fn metrics(State(app): State<Arc<App>>, caller: Result<Caller, Problem>) -> Result<Response, Problem> {
    if app.office.directory().has_keys() {
        caller?;
    }
    let text = app.metrics.text(app.feed.position(), &app.hooks);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// `GET /codes/{code}`: what a code means, as Markdown.
pub(super) async fn code(State(app): State<Arc<App>>, Named(code): Named) -> Result<Response, Problem> {
    let page = (app.options.code_page)(&code)
        .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "no-such-page", "there is no page of this code"))?;
    Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], page).into_response())
}

/// `GET /openapi.json`
pub(super) async fn openapi(State(app): State<Arc<App>>, caller: Result<Caller, Problem>) -> Response {
    Json(crate::openapi::document(&app, caller.ok().as_ref())).into_response()
}
