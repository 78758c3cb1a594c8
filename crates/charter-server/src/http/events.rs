//! Events: send one, and what is legal.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use charter_kernel::{Explanation, Legal, Machine, Principal, Snapshot, Timestamp};
use charter_runtime::SendEvent;
use charter_runtime::approval;
use charter_runtime::backend::Acknowledged;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::body::Body;
use super::caller::one;
use super::named::Named;
use super::problem::Problem;
use crate::identity::{Caller, HOST_RUN};

/// The value of `ETag` after a record.
pub(super) fn tag(seq: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{seq}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// The answer to an event: its record, or the refusal.
pub(super) fn acknowledged(
    done: &Acknowledged,
    machine: Option<&Machine>,
    status: StatusCode,
) -> Result<Response, Problem> {
    let record = &done.record;
    if done.is_refused() {
        return Err(Problem::refused(record, machine).with("repeated", done.repeated));
    }
    let mut response = (status, record.text().to_owned()).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ETAG, tag(record.seq));
    if done.repeated {
        headers.insert("charter-repeated", HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// The number of `If-Match: "7"`.
fn expected(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = one(headers, header::IF_MATCH.as_str())? else { return Ok(None) };
    let digits = value.trim().trim_matches('"');
    digits.parse().map(Some).map_err(|_| {
        Problem::request(format!(
            "`If-Match: {value}`: it must be the number of the last record that you have seen, such as \"7\""
        ))
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventBody {
    r#type: String,
    /// `None`: it is absent, which is not the same as null.
    #[serde(default, deserialize_with = "given")]
    data: Option<Value>,
    to: Option<String>,
    id: Option<String>,
}

fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// `POST /v1/runs/{run}/events`
pub(super) async fn send(
    State(app): State<Arc<App>>,
    caller: Caller,
    Named(run): Named,
    headers: HeaderMap,
    Body(body): Body<EventBody>,
) -> Result<Response, Problem> {
    let seen = app.own_run(&caller, &run).await?;
    // Nobody would be let in any more.
    if run == HOST_RUN && body.r#type.starts_with("charter.") {
        return Err(Problem::forbidden("the run `host` holds the keys; it is not paused, resumed or cancelled"));
    }
    // There, the addresses are checked, and secrets are made and forgotten.
    if run == HOST_RUN && body.r#type.starts_with("HOOK_") {
        return Err(Problem::forbidden("webhooks are added, removed and retried with `/v1/hooks`, not with events"));
    }
    let key = one(&headers, "idempotency-key")?.map(str::to_owned);
    let id = match (body.id, key) {
        (Some(id), Some(key)) if id != key => {
            return Err(Problem::request("`id` and `Idempotency-Key` differ: the key is the id of the event"));
        }
        (id, key) => id.or(key),
    };
    let EventBody { r#type, data, to, .. } = body;
    let data = data.unwrap_or_else(|| seen.charter.machine().absent_data(&r#type));
    let send = SendEvent { run: run.clone(), to, r#type, data, by: seen.by, id, expected_seq: expected(&headers)? };
    let done = app.backend.send(send).await?;
    if run == HOST_RUN {
        app.office.refresh().await?;
    }
    acknowledged(&done, Some(seen.charter.machine()), StatusCode::OK)
}

/// An event, and what it needs from the sender.
pub(super) fn offer(machine: &Machine, snapshot: &Snapshot, event: &Legal, by: &Principal, at: Timestamp) -> Value {
    let demands = machine.demands(snapshot, &event.to, &event.r#type, by, at);
    let value = demands.as_ref().and_then(|demands| approval::value(machine, snapshot, &event.to, demands, at));
    let is_approval = demands.as_ref().is_some_and(|demands| demands.approves.is_some());
    let mut offer = json!({
        "type": event.r#type, "to": event.to, "data": event.data, "description": event.description,
        "depends_on_data": event.depends_on_data, "demands": demands,
    });
    // Nobody approves a digest unseen.
    if let Some(offer) = offer.as_object_mut().filter(|_| is_approval) {
        offer.insert("value".to_owned(), value.into());
    }
    offer
}

/// `GET /v1/runs/{run}/legal`
pub(super) async fn legal(State(app): State<Arc<App>>, caller: Caller, Named(run): Named) -> Result<Response, Problem> {
    let (seen, view) = app.view(&caller, &run).await?;
    let legal = app.backend.legal(run.clone(), seen.by.clone()).await?;
    let machine = view.charter.machine();
    let events: Vec<Value> =
        legal.iter().map(|event| offer(machine, &view.snapshot, event, &seen.by, app.now())).collect();
    let tasks: Vec<_> = view.tasks.iter().filter(|task| task.is_for(&seen.by)).collect();
    let not_legal: Vec<Value> = machine
        .not_legal(&view.snapshot, &seen.by, app.now())
        .iter()
        .filter(|not| !not.r#type.starts_with("charter."))
        .map(|not| {
            let Explanation { code, message, rule, .. } = &not.reason;
            json!({"type": not.r#type, "to": not.to, "code": code, "message": message, "rule": rule})
        })
        .collect();
    let body = json!({
        "run": run, "seq": view.snapshot.seq(), "status": view.snapshot.status().word(),
        "by": seen.by, "events": events, "not_legal": not_legal, "tasks": tasks,
    });
    Ok(Json(body).into_response())
}
