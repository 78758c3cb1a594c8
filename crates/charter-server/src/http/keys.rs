//! Keys: list, add, revoke. Administrators only; the run `host` decides.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use charter_kernel::{Principal, PrincipalKind};
use charter_scenario::timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::body::Body;
use super::caller::Admin;
use super::named::Named;
use super::problem::Problem;
use crate::identity::{ADMIN, Caller, Grant, NewKey};

/// Who the administrator is in the run `host`.
pub(super) fn administrator(caller: &Caller) -> Principal {
    Principal::new(&caller.id, &[ADMIN]).of_kind(caller.kind).authenticated(caller.auth)
}

/// `GET /v1/keys`
pub(super) async fn list(State(app): State<Arc<App>>, _: Admin) -> Response {
    let (directory, now) = (app.office.directory(), app.now());
    let keys: Vec<Value> = directory
        .keys()
        .map(|(id, key)| {
            json!({
                "key": id, "id": key.id, "kind": key.kind, "roles": key.roles(), "expires": key.expires, "note": key.note,
                "closed": key.closed(now), "last_used": app.used.last(id).map(timestamp::text),
            })
        })
        .collect();
    Json(json!({"keys": keys})).into_response()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddBody {
    id: String,
    #[serde(default)]
    kind: PrincipalKind,
    /// `ROLE`, `CHARTER/ROLE` or `CHARTER/RUN/ROLE`. `grants`, because `roles` in a body is never
    /// about the sender.
    #[serde(default)]
    grants: Vec<String>,
    expires: Option<String>,
    note: Option<String>,
}

/// `POST /v1/keys`
pub(super) async fn add(
    State(app): State<Arc<App>>,
    Admin(caller): Admin,
    Body(body): Body<AddBody>,
) -> Result<Response, Problem> {
    app.writable()?;
    let grants: Result<Vec<Grant>, _> = body.grants.iter().map(|text| text.parse::<Grant>()).collect();
    let grants = grants.map_err(|e| Problem::request(e.to_string()))?;
    let key = NewKey { id: body.id, kind: body.kind, grants, expires: body.expires, note: body.note };
    let secret = app.office.add(key, administrator(&caller)).await?;
    let made = json!({"key": secret.key(), "secret": secret.reveal()});
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// `DELETE /v1/keys/{key}`
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Admin(caller): Admin,
    Named(key): Named,
) -> Result<Response, Problem> {
    app.writable()?;
    if app.office.directory().key(&key).is_none() {
        return Err(Problem::new(StatusCode::NOT_FOUND, "no-key", "there is no key with this id"));
    }
    app.office.revoke(&key, None, administrator(&caller)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
