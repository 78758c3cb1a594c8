//! `/mcp/{run}`: a run for agents that speak MCP over HTTP, with a session or without one.

mod headers;
mod sessions;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use charter_mcp::{Connection, Endpoint, Listen, Message, RpcError, ToolSet, Version};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::body;
use super::caller::one;
use super::named::Named;
use super::problem::Problem;
use crate::identity::{Caller, HOST_RUN};

pub(crate) use sessions::AgentSessions;

/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// The routes. They are not in the description of the API, which MCP describes itself.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/mcp", any(nameless))
        .route("/mcp/{run}", post(receive).get(follow).delete(end))
        .route("/.well-known/oauth-protected-resource/mcp/{run}", get(metadata))
}

async fn nameless() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no-run-named", "name the run that the agent works in: `/mcp/RUN`")
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct McpQuery {
    tools: Option<String>,
}

/// What the methods of the endpoint have in common: who calls, and the run as it sees it.
struct Called {
    caller: Caller,
    endpoint: Endpoint,
}

impl FromRequestParts<Arc<App>> for Called {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Called, Response> {
        let Named(run) = Named::from_request_parts(parts, app).await.map_err(IntoResponse::into_response)?;
        let caller = Caller::from_request_parts(parts, app).await;
        let caller = caller.map_err(|problem| unauthenticated(app, problem, &run))?;
        let query = Query::<McpQuery>::from_request_parts(parts, app).await;
        let endpoint = endpoint(app, &caller, &run, query).await.map_err(IntoResponse::into_response)?;
        Ok(Called { caller, endpoint })
    }
}

async fn endpoint(
    app: &App,
    caller: &Caller,
    run: &str,
    query: Result<Query<McpQuery>, QueryRejection>,
) -> Result<Endpoint, Problem> {
    let Query(query) = query.map_err(|e| Problem::request(e.body_text()))?;
    let tools = match &query.tools {
        Some(word) => word.parse().map_err(|e: String| Problem::request(format!("`?tools=`: {e}")))?,
        None => ToolSet::default(),
    };
    let seen = app.own_run(caller, run).await?;
    if run == HOST_RUN {
        return Err(Problem::forbidden("the run `host` holds the keys of the server; it is not for agents"));
    }
    let clock = app.options.clock.0.clone();
    Ok(Endpoint::new(app.backend.clone(), clock, seen.charter, run, seen.by, tools))
}

/// The answer to somebody who could not be authenticated. With a provider of tokens, it says where
/// a client learns which.
fn unauthenticated(app: &App, problem: Problem, run: &str) -> Response {
    let status = problem.status;
    let mut response = problem.into_response();
    if status == StatusCode::UNAUTHORIZED && app.options.oidc.is_some() {
        let at = format!("{}/.well-known/oauth-protected-resource/mcp/{run}", app.url());
        let value = format!("Bearer realm=\"charter\", resource_metadata=\"{at}\"");
        // A run that cannot be in a header has no such address.
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
    }
    response
}

/// `GET /.well-known/oauth-protected-resource/mcp/{run}` (RFC 9728).
async fn metadata(State(app): State<Arc<App>>, Named(run): Named) -> Result<Response, Problem> {
    let Some(oidc) = &app.options.oidc else {
        let keys = "this server has no provider of tokens; it takes keys, as `Authorization: Bearer chk_...`";
        return Err(Problem::new(StatusCode::NOT_FOUND, "no-such-page", keys));
    };
    let body = json!({
        "resource": format!("{}/mcp/{run}", app.url()),
        "resource_name": "Charter",
        "authorization_servers": [oidc.issuer],
        "bearer_methods_supported": ["header"],
    });
    Ok(axum::Json(body).into_response())
}

/// An answer of the protocol.
fn message(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// An error of the protocol.
fn refused(status: StatusCode, error: &RpcError, id: Option<&Value>) -> Response {
    message(status, error.answer(id))
}

/// `POST /mcp/{run}`
async fn receive(State(app): State<Arc<App>>, called: Called, request: Request) -> Response {
    let headers = request.headers().clone();
    let bytes = match body::bytes(request, &app).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.into_response(),
    };
    let read = match charter_mcp::read(&bytes) {
        Ok(message) => message,
        Err((id, error)) => return refused(StatusCode::BAD_REQUEST, &error, id.as_ref()),
    };
    let id = match &read {
        Message::Request(request) => Some(request.id.clone()),
        _ => None,
    };
    match headers::version(&headers, &read) {
        Ok(Some(version)) if version.is_stateless() => alone(&app, called, &headers, read).await,
        Ok(version) => in_session(&app, called, &headers, version, read).await,
        Err(error) => refused(StatusCode::BAD_REQUEST, &error, id.as_ref()),
    }
}

/// A message of a client without a session.
async fn alone(app: &Arc<App>, called: Called, headers: &HeaderMap, read: Message) -> Response {
    let Message::Request(request) = read else { return StatusCode::ACCEPTED.into_response() };
    if let Err(error) = headers::check(headers, &request) {
        return refused(StatusCode::BAD_REQUEST, &error, Some(&request.id));
    }
    let answered = if request.method == "subscriptions/listen" {
        match Listen::new(&called.endpoint, &request).await {
            Ok(listen) => return stream::of_listen(app, called, headers, listen).into_response(),
            Err(error) => Err(error),
        }
    } else {
        called.endpoint.answer(Version::V2026, &request).await
    };
    match answered {
        Ok(result) => message(StatusCode::OK, charter_mcp::result(&request.id, &result)),
        Err(error) if error.code == RpcError::METHOD => refused(StatusCode::NOT_FOUND, &error, Some(&request.id)),
        Err(error) => refused(StatusCode::OK, &error, Some(&request.id)),
    }
}

/// A message of a client that has a session, or begins one.
async fn in_session(
    app: &Arc<App>,
    called: Called,
    headers: &HeaderMap,
    version: Option<Version>,
    read: Message,
) -> Response {
    let Called { caller, endpoint } = called;
    if matches!(&read, Message::Request(request) if request.method == "initialize") {
        let mut connection = Connection::default();
        let answers = connection.handle(&endpoint, read).await;
        let mut response = message(StatusCode::OK, answers.into_iter().next().unwrap_or_default());
        if connection.version().is_some() {
            let id = match app.agents.begin(&caller, endpoint.run(), connection, app.now()) {
                Ok(id) => id,
                Err(problem) => return problem.into_response(),
            };
            response.headers_mut().insert(SESSION, id);
        }
        return response;
    }
    let session = match session(app, &caller, &endpoint, headers, version) {
        Ok(session) => session,
        Err(response) => return response,
    };
    let answers = session.connection().await.handle(&endpoint, read).await;
    match answers.into_iter().next() {
        Some(answer) => message(StatusCode::OK, answer),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// The session that a request names.
fn session(
    app: &App,
    caller: &Caller,
    endpoint: &Endpoint,
    headers: &HeaderMap,
    version: Option<Version>,
) -> Result<Arc<sessions::Session>, Response> {
    let invalid = |status, what: &str| Err(refused(status, &RpcError::new(RpcError::INVALID, what), None));
    let id = match one(headers, SESSION) {
        Ok(Some(id)) => id,
        Ok(None) => {
            let what = "the header `Mcp-Session-Id` is missing: a session begins with `initialize`";
            return invalid(StatusCode::BAD_REQUEST, what);
        }
        Err(problem) => return Err(problem.into_response()),
    };
    let Some(session) = app.agents.find(id, caller, endpoint.run(), app.now()) else {
        return invalid(StatusCode::NOT_FOUND, "the session has ended, or is not yours: begin one with `initialize`");
    };
    match version {
        Some(version) if version != session.version() => {
            invalid(StatusCode::BAD_REQUEST, "`MCP-Protocol-Version` is not what `initialize` has agreed on")
        }
        _ => Ok(session),
    }
}

/// `GET /mcp/{run}`: the news of a session, as server-sent events.
async fn follow(State(app): State<Arc<App>>, called: Called, headers: HeaderMap) -> Response {
    match named_session(&app, &called, &headers, &Method::GET) {
        Ok(session) if headers::accepts_events(&headers) => {
            stream::of_session(&app, called, &headers, session).into_response()
        }
        Ok(_) => {
            let what = "the news of a session is a stream: send `Accept: text/event-stream`";
            Problem::new(StatusCode::NOT_ACCEPTABLE, "not-acceptable", what).into_response()
        }
        Err(response) => response,
    }
}

/// `DELETE /mcp/{run}`: ends a session.
async fn end(State(app): State<Arc<App>>, called: Called, headers: HeaderMap) -> Response {
    match named_session(&app, &called, &headers, &Method::DELETE) {
        Ok(session) => {
            app.agents.end(&session);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => response,
    }
}

/// The session of a request without a body; a generation without sessions has no such requests.
fn named_session(
    app: &App,
    called: &Called,
    headers: &HeaderMap,
    method: &Method,
) -> Result<Arc<sessions::Session>, Response> {
    match headers::named(headers) {
        Ok(Some(version)) if version.is_stateless() => {
            let what = format!("{} has no {method} here: subscribe with `subscriptions/listen`", version.text());
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", what);
            Err(([(header::ALLOW, "POST")], problem).into_response())
        }
        Ok(version) => session(app, &called.caller, &called.endpoint, headers, version),
        Err(error) => Err(refused(StatusCode::BAD_REQUEST, &error, None)),
    }
}
