//! Charters that runs can be started of.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLockReadGuard};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use charter_actors::Folder;
use charter_kernel::Digest;
use charter_runtime::Charter;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, MAX_CHARTERS, may_see};
use super::body::Body;
use super::caller::Admin;
use super::named::Named;
use super::problem::Problem;
use crate::identity::{Caller, Grant, HOST_RUN};

/// Kinds of actors that reach nothing but the run: people and scripts. What a charter over HTTP
/// declares is not looked at by the person who is responsible for the machine.
const HARMLESS: [&str; 2] = ["human", "scripted"];

/// Kinds of actors that read or change the machine of the server, by what the input of a run says.
const REACHING: [&str; 3] = ["exec", "workspace", "tool"];

/// Whether who starts a run of a charter may run commands, or change folders, as the user of the
/// server. Runs of such a charter are started only where it is offered.
#[must_use]
pub fn reaches_machine(charter: &Charter) -> bool {
    charter.machine().definition().actors.values().any(|actor| REACHING.contains(&actor.kind.as_str()))
}

/// Checks that runs of a charter may be started here. The journal may hold others, whose runs were
/// started elsewhere.
pub(super) fn check_offered(app: &App, charter: &Charter) -> Result<(), Problem> {
    if !reaches_machine(charter) || loaded(app).values().any(|offered| offered.digest() == charter.digest()) {
        return Ok(());
    }
    Err(Problem::forbidden(format!(
        "the actors of the charter `{}` reach the machine of the server, and it is not offered here; `charter serve --offer NAME` offers it, and who may start it may run commands as the server's user",
        charter.machine().definition().id
    )))
}

fn loaded(app: &App) -> RwLockReadGuard<'_, BTreeMap<String, Arc<Charter>>> {
    app.charters.read().unwrap_or_else(PoisonError::into_inner)
}

fn unknown(app: &App, caller: &Caller, name: &str) -> Problem {
    let missing = app.missing.read().unwrap_or_else(PoisonError::into_inner);
    // Somebody whose roles are for other charters does not hear of this one.
    let may_know =
        caller.grants.as_ref().is_none_or(|all| all.iter().any(|g| g.charter.as_deref().is_none_or(|c| c == name)));
    let detail = match missing.get(name).filter(|_| may_know) {
        Some(why) => format!("the charter `{name}` is missing because {why}"),
        None => format!("there is no charter `{name}` that you may use"),
    };
    Problem::new(StatusCode::NOT_FOUND, "unknown-charter", detail)
}

/// Finds a charter by its id, or by its digest, if the caller may see its runs.
pub(super) async fn find(app: &App, caller: &Caller, name: &str) -> Result<Arc<Charter>, Problem> {
    let by_id = loaded(app).get(name).cloned();
    let digest = Digest::parse(name);
    // Its runs start in the folder of the charter that is offered, wherever a copy of it is.
    let offered = || loaded(app).values().find(|charter| Some(charter.digest()) == digest).cloned();
    let found = match (by_id.or_else(offered), digest) {
        (Some(found), _) => found,
        (None, Some(digest)) => app.charter(digest).await.map_err(|_| unknown(app, caller, name))?,
        (None, None) => return Err(unknown(app, caller, name)),
    };
    match is_known_to(caller, &found) {
        true => Ok(found),
        false => Err(unknown(app, caller, name)),
    }
}

/// Whether a caller may know of a charter: it may see its runs, or one of them.
pub(crate) fn is_known_to(caller: &Caller, charter: &Charter) -> bool {
    let id = &charter.machine().definition().id;
    let any_run = |g: &Grant| g.run.is_some() && g.charter.as_deref().is_none_or(|c| c == id);
    let limited = caller.grants.as_ref().is_some_and(|grants| grants.iter().any(any_run));
    limited || may_see(caller, charter, "")
}

fn summary(charter: &Charter) -> Value {
    let d = charter.machine().definition();
    json!({"id": d.id, "version": d.version, "title": d.title, "digest": charter.digest()})
}

/// `GET /v1/charters`
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let all = loaded(&app);
    let known = all.iter().filter(|(id, charter)| *id != HOST_RUN && is_known_to(&caller, charter));
    let found: Vec<Value> = known.map(|(_, charter)| summary(charter)).collect();
    Json(json!({"charters": found})).into_response()
}

/// `GET /v1/charters/{id}`
pub(super) async fn one(State(app): State<Arc<App>>, caller: Caller, Named(id): Named) -> Result<Response, Problem> {
    let charter = find(&app, &caller, &id).await?;
    let definition = charter.machine().definition();
    let mut body = summary(&charter);
    let events: BTreeMap<&String, Value> = definition
        .events
        .iter()
        .map(|(name, event)| (name, json!({"description": event.description, "data": event.data})))
        .collect();
    if let Some(body) = body.as_object_mut() {
        let roles: BTreeMap<&String, Value> =
            definition.roles.iter().map(|(name, role)| (name, json!({"description": role.description}))).collect();
        body.insert("roles".to_owned(), json!(roles));
        body.insert("events".to_owned(), json!(events));
        body.insert("input".to_owned(), definition.root.input.clone().unwrap_or_default());
        body.insert("source".to_owned(), charter.stored().source.clone().into());
        // The folder is the server's own business.
        let file = std::path::Path::new(&charter.stored().name).file_name().map(|name| name.to_string_lossy());
        body.insert("name".to_owned(), file.unwrap_or_default().into());
        // As text: the digest covers its order.
        body.insert("core".to_owned(), charter.stored().core.clone().into());
    }
    Ok(Json(body).into_response())
}

/// `GET /v1/charters/{id}/graph.svg`
pub(super) async fn graph(State(app): State<Arc<App>>, caller: Caller, Named(id): Named) -> Result<Response, Problem> {
    let charter = find(&app, &caller, &id).await?;
    let draw = move || charter_diagram::svg(charter.machine().definition(), &charter_diagram::Overlay::default());
    let svg = tokio::task::spawn_blocking(draw).await.map_err(|_| Problem::internal("the chart could not be drawn"))?;
    Ok(super::runs::picture(svg))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddBody {
    /// The text of the charter.
    source: String,
}

/// `POST /v1/charters`
pub(super) async fn add(State(app): State<Arc<App>>, _: Admin, Body(body): Body<AddBody>) -> Result<Response, Problem> {
    app.writable()?;
    let (_, machine) = super::tools::compile(&body.source)?;
    let id = machine.definition().id.clone();
    let reaches = machine.definition().actors.iter().find(|(_, actor)| !HARMLESS.contains(&actor.kind.as_str()));
    if let Some((name, actor)) = reaches {
        return Err(Problem::forbidden(format!(
            "the actor `{name}` is of kind `{}`, which reaches the machine of the server or others; a charter with it belongs into the server's folder of charters (`--charters DIR`)",
            actor.kind
        )));
    }
    if id == HOST_RUN {
        return Err(Problem::forbidden("the charter `host` is the server's own"));
    }
    if loaded(&app).len() >= MAX_CHARTERS {
        return Err(Problem::new(StatusCode::CONFLICT, "limit", format!("this server has {MAX_CHARTERS} charters")));
    }
    let charter = Charter::compiled(machine, &id, &body.source, Folder::None)?;
    let charter = app.backend.add(charter).await?;
    let answer = Json(summary(&charter));
    app.charters.write().unwrap_or_else(PoisonError::into_inner).insert(id, charter);
    Ok((StatusCode::CREATED, answer).into_response())
}
