//! Marks of the requests of the inbox: seen, later, assigned. They decide nothing.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use charter_kernel::Millis;
use charter_scenario::timestamp;
use serde::Deserialize;
use serde_json::json;

use super::app::App;
use super::body::Body;
use super::inbox;
use super::problem::Problem;
use crate::identity::Caller;
use crate::marks::Mark;

/// The longest time for which a request can be put off.
const LONGEST: Millis = Millis(366 * 24 * 3_600_000);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MarkBody {
    run: String,
    /// The id of the request.
    request: String,
    mark: Kind,
    /// `later`: a time, RFC 3339.
    until: Option<String>,
    /// `assign`: the id of a person.
    to: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Seen,
    Later,
    Now,
    Assign,
    Release,
}

/// `POST /v1/inbox`
pub(super) async fn mark(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(body): Body<MarkBody>,
) -> Result<Response, Problem> {
    app.writable()?;
    let mark = mark_of(&app, &body)?;
    let info = app.run(&caller, &body.run).await?.info;
    if !inbox::of_run(&app, &caller, info).await?.iter().any(|request| request.id == body.request) {
        let detail = format!("`{}` does not wait in run `{}` (any more)", body.request, body.run);
        return Err(Problem::new(StatusCode::NOT_FOUND, "unknown-request", detail));
    }
    let now = app.now();
    app.inbox.mark(app.backend.as_ref(), &body.request, mark, &caller.id, now).await?;
    Ok(Json(json!({"marks": app.inbox.of(&body.request, &caller.id, now)})).into_response())
}

fn mark_of(app: &App, body: &MarkBody) -> Result<Mark, Problem> {
    match (body.mark, body.until.as_deref(), body.to.as_deref()) {
        (Kind::Seen, None, None) => Ok(Mark::Seen),
        (Kind::Now, None, None) => Ok(Mark::Later(None)),
        (Kind::Release, None, None) => Ok(Mark::Assigned(None)),
        (Kind::Later, Some(until), None) => {
            let until = timestamp::parse(until).map_err(|e| Problem::request(format!("`until`: {e}")))?;
            let ms = until.since(app.now());
            if ms <= Millis(0) || ms > LONGEST {
                return Err(Problem::request("`until` has to be later than now, and within a year"));
            }
            Ok(Mark::Later(Some(until)))
        }
        (Kind::Assign, None, Some(to)) => {
            let directory = app.office.directory();
            // Without keys, everybody claims a name.
            if directory.has_keys() && !directory.keys().any(|(_, key)| key.id == to && key.closed(app.now()).is_none())
            {
                let detail = format!("nobody called `{to}` has a key here; `charter key list` shows who has");
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown-person", detail));
            }
            Ok(Mark::Assigned(Some(to.to_owned())))
        }
        _ => Err(Problem::request(
            "`later` needs `until`, a time; `assign` needs `to`, a person; `seen`, `now` and `release` need nothing more",
        )),
    }
}
