//! Bodies of requests: JSON without duplicate keys and unknown members, of limited size, in limited
//! time.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use charter_expr::strict_json;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::app::App;
use super::problem::Problem;

/// A JSON body.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Body<T>, Problem> {
        let bytes = bytes(request, app).await?;
        let json = strict_json::from_slice(&bytes).map_err(|e| match strict_json::is_too_large(&e) {
            true => Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too-large",
                format!("the body of the request: {}", strict_json::without_place(&e)),
            ),
            false => Problem::request(format!("the body of the request is not JSON: {e}")),
        })?;
        serde_path(json).map(Body)
    }
}

/// Reads the body of a request that says that it is JSON.
pub(super) async fn bytes(request: Request, app: &App) -> Result<Bytes, Problem> {
    let (parts, body) = request.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // A form of another site cannot send this type.
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media-type",
            "send JSON, with `Content-Type: application/json`",
        ));
    }
    let limit = app.options.limits.body_bytes;
    let read = Limited::new(body, limit).collect();
    let read = tokio::time::timeout(app.options.limits.body_time, read).await.map_err(|_| {
        Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", "the body of the request did not arrive in time")
    })?;
    let bytes = read.map_err(|e| match e.downcast_ref::<LengthLimitError>() {
        Some(_) => Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            format!("the body of the request has more than {limit} bytes"),
        ),
        None => Problem::request(format!("the body of the request cannot be read: {e}")),
    })?;
    Ok(bytes.to_bytes())
}

/// Reads a request; a member that it does not have is an error that names the ones it has.
fn serde_path<T: DeserializeOwned>(json: serde_json::Value) -> Result<T, Problem> {
    for forged in ["by", "as", "role", "roles", "auth"] {
        if json.get(forged).is_some() {
            return Err(Problem::request(format!(
                "`{forged}` in the body: who you are and your roles come from your key, never from the body"
            )));
        }
    }
    T::deserialize(json).map_err(|e| Problem::request(format!("the body of the request: {e}")))
}
