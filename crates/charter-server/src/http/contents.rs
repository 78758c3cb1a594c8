//! Contents of files that a run names: those that a changeset would replace, and those that it
//! would write.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use charter_kernel::Digest;
use serde::Deserialize;
use serde_json::Value;

use super::app::App;
use super::problem::Problem;
use crate::identity::Caller;

/// Bytes of a content that is sent.
const MAX_BYTES: u64 = 4 << 20;
/// The kind of the actors whose contents are stored.
const KIND: &str = "workspace";
/// Nothing of what others have written runs, or is shown as a page.
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContentQuery {
    /// The record after which the data of the run name the content; now, if it is left out.
    at: Option<u64>,
}

/// `GET /v1/runs/{run}/blobs/{digest}`
pub(super) async fn one(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((run, digest)): Path<(String, String)>,
    query: Result<Query<ContentQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|e| Problem::request(e.body_text()))?;
    let seen = app.run(&caller, &run).await?;
    let digest = Digest::parse(&digest)
        .ok_or_else(|| Problem::request(format!("`{}` is not a SHA-256: use 64 hex digits", digest.escape_debug())))?;
    let missing = || {
        let detail = format!("no data of run `{run}` names a stored file with the digest {digest}");
        Problem::new(StatusCode::NOT_FOUND, "unknown-content", detail)
    };
    let machine = seen.charter.machine();
    let has_files = machine.definition().actors.values().any(|actor| actor.kind == KIND);
    let Some(workspaces) = app.options.workspaces.clone().filter(|_| has_files) else { return Err(missing()) };
    let view = match query.at {
        Some(seq) => app.backend.at(run.clone(), seq).await?,
        None => app.backend.view(run.clone()).await?,
    };
    let snapshot: Value = serde_json::from_str(&machine.snapshot_text(&view.snapshot)).unwrap_or_default();
    if !names(&snapshot, digest) {
        return Err(missing());
    }
    let read = tokio::task::spawn_blocking(move || workspaces.content(digest, MAX_BYTES)).await;
    match read.map_err(|_| Problem::internal("the content could not be read"))? {
        Ok(Some(bytes)) => Ok((
            [
                (header::CONTENT_TYPE, "application/octet-stream"),
                (header::CONTENT_DISPOSITION, "attachment"),
                (header::CONTENT_SECURITY_POLICY, POLICY),
            ],
            bytes,
        )
            .into_response()),
        Ok(None) => Err(missing()),
        Err(e) if e.code() == "too-large" => {
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", e.to_string()))
        }
        Err(e) => Err(Problem::internal(e.to_string())),
    }
}

/// Whether data have a member for the SHA-256 of a file whose value is this digest. Other texts
/// that contain it do not count: who may write one could ask for any content with a known digest.
fn names(data: &Value, digest: Digest) -> bool {
    let is_of_file = |name: &str| name == "sha256" || name.ends_with("_sha256");
    let mut open = vec![data];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                let mut named = members.iter().filter(|(name, _)| is_of_file(name)).map(|(_, value)| value);
                if named.any(|value| value.as_str().and_then(Digest::parse) == Some(digest)) {
                    return true;
                }
                open.extend(members.values());
            }
            _ => {}
        }
    }
    false
}
