//! Calls of agents that a client asks about over HTTP (`type: http` hooks of Claude Code).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use charter_guard::client::{self, Answer, Client, Manner};
use charter_guard::gate::{self, Place};

use super::app::App;
use super::body;
use super::named::OfClient;
use super::problem::Problem;
use crate::identity::Caller;

/// `POST /v1/runs/{run}/hook/{client}`. To a client, an error status is no decision, and the tool
/// would be used; so whatever keeps a caller who is known from a decision is answered with a denial
/// in the shape of the client.
pub(super) async fn hook(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfClient(run, client): OfClient,
    request: Request,
) -> Response {
    let answer = match decided(&app, &caller, &run, client, request).await {
        Ok(answer) => answer,
        Err(problem) => client::denial(client, &problem.detail),
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    match answer.stdout.is_empty() {
        true => StatusCode::NO_CONTENT.into_response(),
        false => (StatusCode::OK, kind, answer.stdout).into_response(),
    }
}

async fn decided(app: &App, caller: &Caller, run: &str, client: Client, request: Request) -> Result<Answer, Problem> {
    let bytes = body::bytes(request, app).await?;
    let request = client::read(Some(client), &bytes).map_err(|e| Problem::request(e.to_string()))?;
    let seen = app.own_run(caller, run).await?;
    let place = Place::Page(app.url());
    let here = app.options.here.clone();
    let decision = gate::decide(app.backend.as_ref(), run, &request, here, seen.by, &place).await;
    let decision = decision.map_err(|e| Problem::internal(e.to_string()))?;
    Ok(client::answer(&request, &decision, Manner::default()))
}
