//! Hooks: list, add, remove, try again, dead letters. Administrators only; the run `host` decides.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::app::App;
use super::body::Body;
use super::caller::Admin;
use super::keys::administrator;
use super::named::Named;
use super::problem::Problem;
use crate::hooks::{HookEvent, NewHook, dead_letters, statuses};

/// `GET /v1/hooks`
pub(super) async fn list(State(app): State<Arc<App>>, _: Admin) -> Result<Response, Problem> {
    let mut hooks = statuses(app.backend.as_ref(), &app.office.directory()).await?;
    let (last, cursors) = (app.feed.position(), app.hooks.cursors());
    for hook in &mut hooks {
        // What is written down may be older.
        if let Some(cursor) = cursors.get(&hook.hook) {
            hook.behind = last.saturating_sub(*cursor);
        }
    }
    Ok(Json(json!({"hooks": hooks})).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddBody {
    url: String,
    on: Vec<HookEvent>,
    charter: Option<String>,
    #[serde(default)]
    allow_private: bool,
    note: Option<String>,
}

/// `POST /v1/hooks`
pub(super) async fn add(
    State(app): State<Arc<App>>,
    Admin(caller): Admin,
    Body(body): Body<AddBody>,
) -> Result<Response, Problem> {
    app.writable()?;
    let AddBody { url, on, charter, allow_private: private, note } = body;
    if private && !app.options.private_hooks {
        return Err(Problem::forbidden(
            "an address that is not public is allowed on the machine of the server: `charter hook-out add` there, or `charter serve --private-hooks`",
        ));
    }
    let hook = NewHook { url, on, charter, private, note };
    let (hook, secret) = app.office.add_hook(hook, administrator(&caller)).await?;
    let made = json!({"hook": hook, "secret": secret.reveal()});
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// Refuses requests about a hook that is not there.
fn known(app: &App, hook: &str) -> Result<(), Problem> {
    match app.office.directory().hook(hook) {
        Some(_) => Ok(()),
        None => Err(Problem::new(StatusCode::NOT_FOUND, "no-hook", "there is no hook with this id")),
    }
}

/// `DELETE /v1/hooks/{hook}`
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Admin(caller): Admin,
    Named(hook): Named,
) -> Result<Response, Problem> {
    app.writable()?;
    known(&app, &hook)?;
    app.office.remove_hook(&hook, administrator(&caller)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/hooks/{hook}/retry`
pub(super) async fn retry(
    State(app): State<Arc<App>>,
    Admin(caller): Admin,
    Named(hook): Named,
) -> Result<Response, Problem> {
    app.writable()?;
    known(&app, &hook)?;
    app.office.retry_hook(&hook, administrator(&caller)).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"hook": hook}))).into_response())
}

/// `GET /v1/hooks/{hook}/dead`
pub(super) async fn dead(State(app): State<Arc<App>>, _: Admin, Named(hook): Named) -> Result<Response, Problem> {
    known(&app, &hook)?;
    let dead = dead_letters(app.backend.as_ref(), &hook).await?;
    Ok(Json(json!({"hook": hook, "dead": dead})).into_response())
}
