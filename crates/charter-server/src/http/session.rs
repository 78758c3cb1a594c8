//! Sessions of browsers, and who the caller is.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::app::App;
use super::body::Body;
use super::caller::{COOKIE, cookie};
use super::problem::Problem;
use crate::identity::{Caller, IDLE, Subject};

fn who(caller: &Caller) -> serde_json::Value {
    let roles = caller.grants.as_ref().map(|grants| grants.iter().map(ToString::to_string).collect::<Vec<_>>());
    json!({"id": caller.id, "kind": caller.kind, "auth": caller.auth, "roles": roles, "key": caller.key})
}

/// `GET /v1/me`
pub(super) async fn me(State(app): State<Arc<App>>, caller: Caller, headers: HeaderMap) -> Response {
    let mut body = who(&caller);
    let is_session = caller.auth == charter_kernel::Auth::Session;
    let session = cookie(&headers).filter(|_| is_session).and_then(|value| app.sessions.find(value, app.now()));
    if let (Some(session), Some(body)) = (session, body.as_object_mut()) {
        body.insert("csrf".to_owned(), session.csrf.into());
    }
    Json(body).into_response()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenBody {
    key: Option<String>,
    /// A code of [`crate::Server::login_link`].
    code: Option<String>,
}

fn set_cookie(app: &App, value: &str, seconds: i64) -> Result<HeaderValue, Problem> {
    let secure = if app.sites.secure { "; Secure" } else { "" };
    let text = format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&text).map_err(|_| Problem::internal("the cookie cannot be written"))
}

async fn with_key(app: &App, key: &str) -> Result<(Caller, Subject), Problem> {
    let mut headers = HeaderMap::new();
    let bearer = HeaderValue::from_str(&format!("Bearer {key}"));
    headers.insert(header::AUTHORIZATION, bearer.map_err(|_| Problem::unauthenticated("this is not a key"))?);
    // The same door as for requests with a key.
    let caller = app.authenticate(&axum::http::Method::POST, &headers, None).await?;
    let key = caller.key.clone().ok_or_else(|| Problem::internal("a key without an id"))?;
    Ok((caller, Subject::Key(key)))
}

/// The owner of the journal, with the code that was printed where the server was started.
fn with_code(app: &App, code: &str) -> Result<(Caller, Subject), Problem> {
    let owner = Caller::owner(&app.options.owner);
    match app.logins.take(code, app.now()) {
        true => Ok((owner.clone(), Subject::Known(owner))),
        false => Err(app.denied(Problem::unauthenticated(
            "this login link was used already, or is older than 10 minutes; log in with a key, or start the server again",
        ))),
    }
}

/// `POST /v1/session`
pub(super) async fn open(State(app): State<Arc<App>>, Body(body): Body<OpenBody>) -> Result<Response, Problem> {
    let (caller, subject) = match (body.key, body.code) {
        (Some(key), None) => with_key(&app, &key).await?,
        (None, Some(code)) => with_code(&app, &code)?,
        _ => return Err(Problem::request("send `key`, or `code` with the code of a login link")),
    };
    let tickets = app.sessions.open(subject, app.now()).map_err(|e| Problem::internal(e.to_string()))?;
    let mut answer = who(&caller);
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("csrf".to_owned(), tickets.csrf.into());
    }
    let mut response = (StatusCode::CREATED, Json(answer)).into_response();
    let seconds = IDLE.0.checked_div(1_000).unwrap_or_default();
    response.headers_mut().insert(header::SET_COOKIE, set_cookie(&app, &tickets.cookie, seconds)?);
    Ok(response)
}

/// `DELETE /v1/session`
pub(super) async fn close(State(app): State<Arc<App>>, _: Caller, headers: HeaderMap) -> Result<Response, Problem> {
    if let Some(value) = cookie(&headers) {
        app.sessions.close(value);
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.headers_mut().insert(header::SET_COOKIE, set_cookie(&app, "", 0)?);
    Ok(response)
}
