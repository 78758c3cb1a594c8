//! The parts of the address of a request.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use charter_guard::client::{Client, UnknownClient};

use super::problem::Problem;

/// The one part of the path that is named: a run, a charter, a key, a code.
pub(super) struct Named(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named, Problem> {
        let found = Path::<String>::from_request_parts(parts, state).await;
        found.map(|Path(name)| Named(name)).map_err(|_| Problem::request("the address of the request is not UTF-8"))
    }
}

/// A run, and the number of one of its records.
pub(super) struct Numbered(pub(super) String, pub(super) u64);

impl<S: Send + Sync> FromRequestParts<S> for Numbered {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Numbered, Problem> {
        let found = Path::<(String, u64)>::from_request_parts(parts, state).await;
        found
            .map(|Path((run, seq))| Numbered(run, seq))
            .map_err(|e| Problem::request(format!("the number of a record is expected: {}", e.body_text())))
    }
}

/// A run, and the name of a client of agents.
pub(super) struct OfClient(pub(super) String, pub(super) Client);

impl<S: Send + Sync> FromRequestParts<S> for OfClient {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<OfClient, Problem> {
        let found = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((run, client)) = found.map_err(|_| Problem::request("the address of the request is not UTF-8"))?;
        client.parse().map(|client| OfClient(run, client)).map_err(|e: UnknownClient| Problem::request(e.to_string()))
    }
}
