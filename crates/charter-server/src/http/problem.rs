//! Errors of the API: problem details (RFC 9457).

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use charter_journal::{Record, ReplayError, StoreError};
use charter_kernel::{Code, Machine};
use charter_runtime::{ErrorText, RuntimeError};
use serde_json::{Map, Value as Json, json};

use crate::identity::HostError;

/// An error answer. `type` is the page of its code on this server, `/codes/CODE`, or `about:blank`
/// for what HTTP itself defines.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: Cow<'static, str>,
    pub(crate) detail: String,
    /// Further members.
    pub(crate) more: Map<String, Json>,
    /// Seconds until the request may be repeated.
    pub(crate) retry_after: Option<u32>,
}

/// The code of a run whose actors nobody has allowed to work.
const UNTRUSTED: &str = "untrusted";

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem { status, code: code.into(), detail: detail.into(), more: Map::new(), retry_after: None }
    }

    pub(crate) fn with(mut self, member: &str, value: impl Into<Json>) -> Problem {
        self.more.insert(member.to_owned(), value.into());
        self
    }

    pub(crate) fn request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    pub(crate) fn unknown_run(run: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "unknown-run", format!("there is no run `{run}` that you may see"))
            .with("run", run)
            .with(
                "error",
                serde_json::to_value(ErrorText::from(&RuntimeError::UnknownRun(run.to_owned()))).unwrap_or_default(),
            )
    }

    pub(crate) fn no_record(run: &str, seq: u64) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "unknown-record", format!("run `{run}` has no record {seq}"))
            .with("run", run)
    }

    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(crate) fn internal(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    fn after(mut self, seconds: u32) -> Problem {
        self.retry_after = Some(seconds);
        self
    }

    /// A refused event: its record, and why, in words.
    pub(crate) fn refused(record: &Record, machine: Option<&Machine>) -> Problem {
        let Some(explanation) = record.explanation(machine) else {
            return Problem::internal("the event was refused without a reason");
        };
        let status = match explanation.code {
            Code::Authority => StatusCode::FORBIDDEN,
            Code::Schema => StatusCode::UNPROCESSABLE_ENTITY,
            Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::CONFLICT,
        };
        let refusal = serde_json::to_value(&explanation).unwrap_or_default();
        let text: Json = serde_json::from_str(record.text()).unwrap_or_default();
        let detail = explanation.message.clone();
        let problem = Problem { code: explanation.code.word().into(), ..Problem::new(status, "", detail) };
        problem.with("run", &*record.run).with("seq", record.seq).with("refusal", refusal).with("record", text)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Problem { status, code, detail, more, retry_after } = self;
        let title = status.canonical_reason().unwrap_or("error");
        let has_page = code == UNTRUSTED || Code::ALL.iter().any(|known| known.word() == code);
        let page = if has_page { format!("/codes/{code}") } else { "about:blank".to_owned() };
        let mut body = json!({
            "type": page, "title": title, "status": status.as_u16(), "code": code, "detail": detail,
        });
        if let Json::Object(body) = &mut body {
            body.extend(more);
        }
        let mut response = (status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"charter\""));
        }
        response
    }
}

impl From<RuntimeError> for Problem {
    /// Has the error as the member `error`, so that a client in Rust makes the same one of it.
    fn from(error: RuntimeError) -> Problem {
        let text = serde_json::to_value(ErrorText::from(&error)).unwrap_or_default();
        Problem::of(&error).with("error", text)
    }
}

impl Problem {
    fn of(error: &RuntimeError) -> Problem {
        use StatusCode as S;
        let said = error.to_string();
        match error {
            RuntimeError::UnknownRun(run) | RuntimeError::Store(StoreError::UnknownRun(run)) => {
                Problem::unknown_run(run)
            }
            RuntimeError::Replay(ReplayError::Store(StoreError::UnknownRun(run))) => Problem::unknown_run(run),
            RuntimeError::Replay(ReplayError::NoSuchRecord { run, seq, .. }) => Problem::no_record(run, *seq),
            RuntimeError::Replay(ReplayError::Store(StoreError::KeyTaken { .. })) => {
                Problem::new(S::CONFLICT, "taken", said)
            }
            RuntimeError::Replay(ReplayError::Reserved { .. }) => Problem::new(S::CONFLICT, "run-exists", said),
            RuntimeError::Store(StoreError::Conflict { .. } | StoreError::RunDeleted { .. })
            | RuntimeError::Replay(ReplayError::Store(StoreError::Conflict { .. } | StoreError::RunDeleted { .. })) => {
                Problem::new(S::CONFLICT, "run-exists", said)
            }
            RuntimeError::NeverStarted(_) => Problem::new(S::CONFLICT, "never-started", said),
            RuntimeError::RunExists(_) => Problem::new(S::CONFLICT, "run-exists", said),
            RuntimeError::BadRunId(_) | RuntimeError::IdReserved { .. } => Problem::request(said),
            RuntimeError::Untrusted { .. } => Problem::new(S::CONFLICT, UNTRUSTED, said),
            RuntimeError::NothingToAllow { .. } => Problem::new(S::CONFLICT, "denied", said),
            RuntimeError::NotAwaited(_) | RuntimeError::NoTask { .. } => Problem::new(S::CONFLICT, "not-awaited", said),
            RuntimeError::IdTaken { .. } => Problem::new(S::CONFLICT, "stale", said),
            RuntimeError::NotYours { .. } => Problem::new(S::FORBIDDEN, "authority", said),
            RuntimeError::PersonsOnly { .. } => {
                Problem::new(S::FORBIDDEN, "authority", said).with("rule", charter_kernel::PERSONS_ONLY)
            }
            RuntimeError::UnknownCharter(_) => Problem::new(S::NOT_FOUND, "unknown-charter", said),
            RuntimeError::Charter { .. } => Problem::new(S::UNPROCESSABLE_ENTITY, "charter", said),
            RuntimeError::Limit { limit: "events_per_second", .. } => {
                Problem::new(S::TOO_MANY_REQUESTS, "too-many", said).after(1)
            }
            RuntimeError::Limit { limit: "mailbox", .. } => {
                Problem::new(S::TOO_MANY_REQUESTS, "too-many", said).after(1)
            }
            RuntimeError::Limit { limit: "data_bytes", .. } | RuntimeError::Store(StoreError::TooLarge { .. }) => {
                Problem::new(S::PAYLOAD_TOO_LARGE, "too-large", said)
            }
            RuntimeError::Limit { limit, .. } => Problem::new(S::CONFLICT, "limit", said.clone()).with("limit", *limit),
            RuntimeError::Denied { .. } => Problem::new(S::CONFLICT, "denied", said),
            RuntimeError::Closing | RuntimeError::Lost { .. } => {
                Problem::new(S::SERVICE_UNAVAILABLE, "closing", said).after(2)
            }
            _ => Problem::internal(said),
        }
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Problem {
        match error {
            HostError::Runtime(error) => error.into(),
            HostError::Refused { code: Code::Schema, why } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "schema", why)
            }
            HostError::Refused { code: Code::Rule, why } => Problem::new(StatusCode::CONFLICT, "rule", why),
            HostError::Refused { why, .. } => Problem::forbidden(why),
            HostError::Url(e) => Problem::request(e.to_string()),
            e @ HostError::Earlier(_) => Problem::new(StatusCode::CONFLICT, "earlier-host", e.to_string()),
            other => Problem::internal(other.to_string()),
        }
    }
}
