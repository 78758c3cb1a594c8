//! Runs: start, list, look, fork, draw.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use charter_diagram::Overlay;
use charter_journal::{RunFilter, RunInfo};
use charter_kernel::{Digest, Status, Timestamp};
use charter_runtime::{Charter, Start, View};
use charter_scenario::{overview, timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, may_see, takes_part};
use super::body::Body;
use super::caller::one as header_of;
use super::events::{acknowledged, tag};
use super::named::Named;
use super::problem::Problem;
use crate::identity::{Caller, HOST_RUN};

/// Runs of a page, at most and by default.
const MAX_PAGE: usize = 1_000;
const PAGE: usize = 100;
/// Records before the state that is drawn whose transitions are marked.
const DRAWN: usize = 1_000;
/// Runs that are looked at for one page.
const MAX_SCANNED: usize = 20_000;

fn summary(info: &RunInfo, charter: &Charter) -> Value {
    let definition = charter.machine().definition();
    json!({
        "run": info.run,
        "charter": {"id": definition.id, "version": definition.version, "digest": info.charter},
        "status": info.status.map(Status::word),
        "seq": info.seq,
        "hash": info.hash,
        "started": timestamp::text(info.started),
        "updated": timestamp::text(info.updated),
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    charter: Option<String>,
    status: Option<String>,
    stuck: Option<bool>,
    /// Whether the states of each run are wanted; at most [`PAGE`] runs then.
    #[serde(default)]
    state: bool,
    after: Option<String>,
    limit: Option<usize>,
}

/// `GET /v1/runs`
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|e| Problem::request(e.body_text()))?;
    let limit = query.limit.unwrap_or(PAGE).clamp(1, if query.state { PAGE } else { MAX_PAGE });
    let status = match query.status.as_deref() {
        Some(word) => Some(Status::ALL.into_iter().find(|s| s.word() == word).ok_or_else(|| {
            let known: Vec<&str> = Status::ALL.into_iter().map(Status::word).collect();
            Problem::request(format!("unknown status `{word}`: use {}", known.join(", ")))
        })?),
        None => None,
    };
    let by_digest = query.charter.as_deref().and_then(Digest::parse);
    let mut found = Vec::new();
    let mut after = query.after.clone();
    let mut scanned = 0usize;
    let mut more = true;
    while more && found.len() < limit && scanned < MAX_SCANNED {
        let filter = RunFilter { charter: by_digest, status, after: after.clone(), limit: MAX_PAGE };
        let page = app.backend.runs(filter).await?;
        more = page.len() == MAX_PAGE;
        scanned = scanned.saturating_add(page.len());
        for (index, info) in page.iter().enumerate() {
            after = Some(info.run.clone());
            let charter = app.charter(info.charter).await?;
            let id = &charter.machine().definition().id;
            let named = by_digest.is_some() || query.charter.as_ref().is_none_or(|wanted| wanted == id);
            if !named || !may_see(&caller, &charter, &info.run) {
                continue;
            }
            let mut row = summary(info, &charter);
            if query.stuck.is_some() || query.state {
                // A run whose start was refused has no state.
                let view = match info.status {
                    Some(_) => Some(app.backend.view(info.run.clone()).await?),
                    None => None,
                };
                let stuck = info.status == Some(Status::Active) && view.as_ref().is_some_and(View::is_stuck);
                if query.stuck.is_some_and(|wanted| wanted != stuck) {
                    continue;
                }
                if let Some(row) = row.as_object_mut().filter(|_| query.state) {
                    if let Some(view) = &view {
                        row.insert("state".to_owned(), active(view).into());
                        row.insert("next_due".to_owned(), json!(view.next_due.map(timestamp::text)));
                    }
                    row.insert("stuck".to_owned(), stuck.into());
                }
            }
            found.push(row);
            if found.len() == limit {
                more = more || index.saturating_add(1) < page.len();
                break;
            }
        }
    }
    let mut body = json!({"runs": found});
    if more && let Some(body) = body.as_object_mut() {
        body.insert("after".to_owned(), after.into());
    }
    Ok(Json(body).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StartBody {
    /// The id of a charter of this server, or a digest.
    charter: String,
    #[serde(default)]
    input: Value,
    run: Option<String>,
}

/// `POST /v1/runs`
pub(super) async fn start(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<StartBody>,
) -> Result<Response, Problem> {
    app.writable()?;
    let charter = super::charters::find(&app, &caller, &body.charter).await?;
    let definition = charter.machine().definition();
    if definition.id == HOST_RUN {
        return Err(Problem::forbidden("the run of the charter `host` is made by the server, once"));
    }
    may_begin(&caller, &charter, body.run.as_deref())?;
    super::charters::check_offered(&app, &charter)?;
    let key = header_of(&headers, "idempotency-key")?.map(str::to_owned);
    let run = match (body.run, key) {
        (Some(run), Some(key)) if run != key => {
            return Err(Problem::request(
                "`run` and `Idempotency-Key` differ: the id of the run is the key of its start",
            ));
        }
        (run, key) => run.or(key).unwrap_or_else(charter_runtime::new_run_id),
    };
    let by = caller.principal(&definition.id, Some(&run), definition.roles.keys());
    // A run of somebody else, which the caller may not see, is not answered with its record 0.
    if app.backend.run(run.clone()).await?.is_some() {
        app.run(&caller, &run).await.map_err(|_| run_exists(&run))?;
    }
    let input = if body.input.is_null() { json!({}) } else { body.input };
    let start = Start { charter: charter.digest(), run: Some(run), input, by };
    let done = app.backend.start_in(start, charter.stored().name.clone()).await?;
    let machine = charter.machine().clone();
    let status = if done.repeated { StatusCode::OK } else { StatusCode::CREATED };
    acknowledged(&done, Some(&machine), status)
}

/// Checks that the caller may begin a run of a charter, with this id or with a new one.
fn may_begin(caller: &Caller, charter: &Charter, run: Option<&str>) -> Result<(), Problem> {
    if takes_part(caller, charter, None) || takes_part(caller, charter, run) {
        return Ok(());
    }
    let id = &charter.machine().definition().id;
    Err(Problem::forbidden(format!("you have no role in the charter `{id}`, so you start no run of it")))
}

fn run_exists(run: &str) -> Problem {
    let said = format!("run `{run}` exists; choose another id, or omit it");
    Problem::new(StatusCode::CONFLICT, "run-exists", said)
}

/// The active atomic states of the root actor.
fn active(view: &View) -> Vec<&str> {
    view.snapshot.actor("root").iter().flat_map(|actor| actor.state()).collect()
}

/// The current state of a run.
fn state(view: &View, now: Timestamp) -> Value {
    let snapshot = &view.snapshot;
    let machine = view.charter.machine();
    let text = machine.snapshot_text(snapshot);
    let page = charter_runtime::page_rows(machine, snapshot, now).into_iter();
    let page: Vec<Value> = page.map(|(label, value)| json!({"label": label, "value": value})).collect();
    let mut state = overview::json(snapshot);
    state.extend([
        ("working".to_owned(), json!(view.working)),
        ("tasks".to_owned(), json!(view.tasks)),
        ("next_due".to_owned(), json!(view.next_due.map(timestamp::text))),
        ("stuck".to_owned(), view.is_stuck().into()),
        ("dry".to_owned(), view.dry.into()),
        ("untrusted".to_owned(), view.untrusted.into()),
        ("page".to_owned(), page.into()),
        ("snapshot".to_owned(), serde_json::from_str(&text).unwrap_or_default()),
    ]);
    Value::Object(state)
}

/// The state of a run after a record, with the tag of the record.
pub(super) fn described(info: &RunInfo, view: &View, last: (u64, Digest), now: Timestamp) -> Response {
    tagged(description(info, view, last, now), last.0)
}

/// `last` is the number and the hash of the record after which the run has this state.
fn description(info: &RunInfo, view: &View, last: (u64, Digest), now: Timestamp) -> Value {
    let mut body = summary(info, &view.charter);
    if let (Value::Object(body), Value::Object(state)) = (&mut body, state(view, now)) {
        body.extend(state);
        body.insert("seq".to_owned(), last.0.into());
        body.insert("hash".to_owned(), json!(last.1));
    }
    body
}

/// The state of a run, with the tag of its head.
fn tagged(body: Value, seq: u64) -> Response {
    let mut response = Json(body).into_response();
    response.headers_mut().insert(header::ETAG, tag(seq));
    response
}

/// `GET /v1/runs/{run}`
pub(super) async fn one(State(app): State<Arc<App>>, caller: Caller, Named(run): Named) -> Result<Response, Problem> {
    let (seen, view) = app.view(&caller, &run).await?;
    let asked = app.backend.usage(run).await?;
    // The snapshot does not count refused events after the last change; and the run may have
    // changed after its last record was looked up.
    let last = match view.snapshot.seq() {
        seq if seq > seen.info.seq => (seq, super::records::record(&app, &seen.info.run, seq).await?.hash),
        _ => (seen.info.seq, seen.info.hash),
    };
    let mut body = description(&seen.info, &view, last, app.now());
    if let Some(body) = body.as_object_mut().filter(|_| asked.questions > 0) {
        body.insert("usage".to_owned(), json!(asked));
    }
    Ok(tagged(body, last.0))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkBody {
    /// The last record that the new run shares.
    at: u64,
    run: Option<String>,
    /// Whether actors work for the new run.
    #[serde(default)]
    live: bool,
}

/// `POST /v1/runs/{run}/fork`
pub(super) async fn fork(
    State(app): State<Arc<App>>,
    caller: Caller,
    Named(run): Named,
    Body(body): Body<ForkBody>,
) -> Result<Response, Problem> {
    let seen = app.own_run(&caller, &run).await?;
    if run == HOST_RUN {
        return Err(Problem::forbidden("the run `host` has no forks: it would be another list of keys"));
    }
    if body.live && !seen.by.roles.iter().any(|role| role == "operator") {
        return Err(Problem::forbidden("a fork that is `live` starts actors; it needs the role `operator`"));
    }
    may_begin(&caller, &seen.charter, body.run.as_deref())?;
    let new = body.run.unwrap_or_else(charter_runtime::new_run_id);
    if app.backend.run(new.clone()).await?.is_some() {
        return Err(run_exists(&new));
    }
    app.backend.fork(run.clone(), body.at, new.clone(), !body.live).await?;
    let forked = json!({"run": new, "forked_from": {"run": run, "seq": body.at}, "dry": !body.live});
    Ok((StatusCode::CREATED, [(header::ETAG, tag(body.at))], Json(forked)).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphQuery {
    at: Option<u64>,
}

/// `GET /v1/runs/{run}/graph.svg`
pub(super) async fn graph(
    State(app): State<Arc<App>>,
    caller: Caller,
    Named(run): Named,
    Query(query): Query<GraphQuery>,
) -> Result<Response, Problem> {
    let seen = app.run(&caller, &run).await?;
    let view = match query.at {
        Some(seq) => app.backend.at(run.clone(), seq).await?,
        None => app.backend.view(run.clone()).await?,
    };
    drop(seen);
    let last = view.snapshot.seq();
    let from = last.saturating_add(1).saturating_sub(DRAWN as u64);
    let records = app.backend.records(run, from, DRAWN).await?;
    let draw = move || {
        let mut overlay = Overlay::default();
        overlay.mark_active(&view.snapshot);
        for record in records.iter().filter(|record| record.seq <= last) {
            overlay.mark_taken(&view.snapshot, &record.to, record.transitions.iter().map(AsRef::as_ref));
        }
        charter_diagram::svg(view.charter.machine().definition(), &overlay)
    };
    let svg =
        tokio::task::spawn_blocking(draw).await.map_err(|_| Problem::internal("the picture could not be drawn"))?;
    Ok(picture(svg))
}

/// Answers with a picture; it may have its own colors and nothing else.
pub(super) fn picture(svg: String) -> Response {
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    ([(header::CONTENT_TYPE, "image/svg+xml"), (header::CONTENT_SECURITY_POLICY, policy)], svg).into_response()
}
