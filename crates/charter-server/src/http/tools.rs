//! The pure kernel for tools: check a charter, step it through events. Nothing is stored.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use charter_diagram::Overlay;
use charter_expr::ExprTimestamp;
use charter_format::{Diagnostics, Document, ReadOptions};
use charter_kernel::{Auth, Machine, Principal, PrincipalKind, Timestamp};
use charter_scenario::lines::RawLine;
use charter_scenario::session::Session;
use charter_scenario::step::StepSession;
use charter_scenario::{overview, timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::body::Body;
use super::problem::Problem;
use crate::identity::Caller;

/// Bytes of a charter, and events of a `step`, that are accepted.
const MAX_SOURCE: usize = 256 << 10;
const MAX_EVENTS: usize = 1_000;
/// Bytes of the answer to a `step`.
const MAX_OUTPUT: usize = 8 << 20;
/// States that `check` explores, and steps that it takes for proofs.
const MAX_STATES: usize = 1_000;
const MAX_PLAIN_STATES: usize = 2_000;
const EFFORT: usize = 500;

fn invalid(errors: &Diagnostics) -> Problem {
    let first = errors.list.first().map_or_else(|| "invalid".to_owned(), |d| d.message.clone());
    let findings = serde_json::to_value(errors).unwrap_or_default();
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "charter", first).with("findings", findings)
}

/// Compiles the text of a charter, without any file beside it.
pub(super) fn compile(source: &str) -> Result<(Document, Machine), Problem> {
    if source.len() > MAX_SOURCE {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            format!("a charter over HTTP has at most {MAX_SOURCE} bytes"),
        ));
    }
    let document = charter_format::read(source, "charter", &ReadOptions::default()).map_err(|e| invalid(&e))?;
    let machine = document.compile().map_err(|e| invalid(&e))?;
    Ok((document, machine))
}

/// Runs work that takes long beside the requests, a little of it at once.
async fn beside<T: Send + 'static>(app: &App, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    let _turn = app.heavy_turn()?;
    tokio::task::spawn_blocking(work).await.map_err(|_| Problem::internal("the work was stopped"))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckBody {
    /// The text of the charter.
    source: String,
    /// Whether its behavior is explored.
    #[serde(default = "yes")]
    explore: bool,
}

fn yes() -> bool {
    true
}

/// `POST /v1/check`
pub(super) async fn check(
    State(app): State<Arc<App>>,
    _: Caller,
    Body(body): Body<CheckBody>,
) -> Result<Response, Problem> {
    let work = move || -> Result<Value, Problem> {
        let (document, machine) = compile(&body.source)?;
        let options = charter_check::Options {
            explore: body.explore,
            max_states: MAX_STATES,
            max_plain_states: MAX_PLAIN_STATES,
            effort: EFFORT,
            ..charter_check::Options::default()
        };
        let report = charter_check::check(&document, &machine, &options);
        Ok(report.json(&document))
    };
    Ok(Json(beside(&app, work).await??).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepBody {
    /// The text of the charter.
    source: String,
    #[serde(default)]
    input: Value,
    /// The events, as the lines of `charter step`.
    #[serde(default)]
    events: Vec<Value>,
    /// The time of the start, RFC 3339.
    at: Option<String>,
    /// A person of this name, with every role: the answer then has the state after the events, what
    /// this person may send in it, and the chart.
    now: Option<String>,
}

/// The state of a session: an overview, the events that a person may send, the chart.
fn now(session: &Session<'_>, id: &str) -> Value {
    let (machine, snapshot) = (session.machine(), session.snapshot());
    let definition = machine.definition();
    let by = Principal {
        id: id.to_owned(),
        roles: definition.roles.keys().cloned().collect(),
        kind: Some(PrincipalKind::Person),
        auth: Some(Auth::Key),
    };
    let legal: Vec<Value> = machine
        .legal(snapshot, &by, session.at())
        .iter()
        .map(|event| super::events::offer(machine, snapshot, event, &by, session.at()))
        .collect();
    let mut overlay = Overlay::default();
    overlay.mark_active(snapshot);
    let mut now = overview::json(snapshot);
    now.insert("by".to_owned(), json!(by));
    now.insert("at".to_owned(), timestamp::text(session.at()).into());
    now.insert("events".to_owned(), legal.into());
    now.insert("chart".to_owned(), charter_diagram::svg(definition, &overlay).into());
    Value::Object(now)
}

/// `POST /v1/step`
pub(super) async fn step(
    State(app): State<Arc<App>>,
    _: Caller,
    Body(body): Body<StepBody>,
) -> Result<Response, Problem> {
    if body.events.len() > MAX_EVENTS {
        return Err(Problem::request(format!("at most {MAX_EVENTS} events at once")));
    }
    let at = match &body.at {
        Some(text) => ExprTimestamp::parse(text)
            .map(|at| Timestamp(at.millis()))
            .map_err(|_| Problem::request(format!("`at`: `{text}` is not an RFC 3339 time")))?,
        None => Timestamp(0),
    };
    let work = move || -> Result<String, Problem> {
        let (_, machine) = compile(&body.source)?;
        let input = if body.input.is_null() { json!({}) } else { body.input };
        let mut out = Vec::new();
        let mut state = Value::Null;
        if let Ok(mut session) = StepSession::start(&machine, "run", input, at, &mut out) {
            for (number, event) in (1u64..).zip(&body.events) {
                session.line(number, &RawLine::Bytes(event.to_string().as_bytes()), &mut out);
                if out.len() > MAX_OUTPUT {
                    return Err(Problem::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "too-large",
                        "the answer is too large; send fewer events",
                    ));
                }
            }
            state = body.now.as_deref().map(|id| now(session.session(), id)).unwrap_or_default();
        }
        let lines = String::from_utf8_lossy(&out);
        let lines: Vec<&str> = lines.lines().filter(|line| !line.is_empty()).collect();
        let now = if state.is_null() { String::new() } else { format!(",\"now\":{state}") };
        Ok(format!("{{\"lines\":[{}]{now}}}", lines.join(",")))
    };
    let body = beside(&app, work).await??;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}
