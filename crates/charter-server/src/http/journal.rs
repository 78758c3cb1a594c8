//! The journal as a whole: its head, its size, and questions in SQL.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;

use super::app::App;
use super::body::Body;
use super::caller::Admin;
use super::problem::Problem;
use crate::identity::Caller;
use crate::query::QueryError;

/// Maximum length of a query in bytes.
const MAX_QUERY: usize = 64 << 10;

/// `GET /v1/journal`
pub(super) async fn one(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    if !caller.sees_every_run() {
        return Err(Problem::forbidden("this needs a key with the role `admin` or `reader`, without a charter"));
    }
    let head = app.backend.head().await?;
    let file = app.options.journal.as_ref();
    let body = json!({
        "head": head, "bytes": file.and_then(|file| file.bytes()), "sql": file.is_some() && caller.administers(),
    });
    Ok(Json(body).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryBody {
    /// One SQL statement that only reads.
    query: String,
}

/// `POST /v1/sql`
pub(super) async fn select(
    State(app): State<Arc<App>>,
    _: Admin,
    Body(body): Body<QueryBody>,
) -> Result<Response, Problem> {
    let Some(file) = &app.options.journal else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "no-sql", "this server has no journal file that it can query"));
    };
    if body.query.len() > MAX_QUERY {
        let why = format!("a query has at most {MAX_QUERY} bytes");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", why));
    }
    let _turn = app.heavy_turn()?;
    match file.select(body.query).await {
        Ok(rows) => Ok(Json(rows).into_response()),
        Err(QueryError::Query(why)) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "query", why)),
        Err(error) => Err(Problem::internal(error.to_string())),
    }
}
