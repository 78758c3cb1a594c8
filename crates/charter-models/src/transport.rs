//! What carries a request to a model and its answer back.

use std::time::Duration;

use crate::secret::Secret;

/// A request, ready to be sent. Its secret headers are apart, so that nothing that is kept holds them.
#[derive(Debug, Clone)]
pub struct Request {
    /// Where.
    pub url: String,
    /// Headers that anybody may see.
    pub headers: Vec<(&'static str, String)>,
    /// Headers that nobody may see.
    pub secrets: Vec<(&'static str, Secret)>,
    /// JSON.
    pub body: String,
}

/// An answer, as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// `Content-Type`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    /// `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<String>,
    /// `Date`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// All of the body: JSON, or a stream of events.
    pub body: String,
}

/// Nothing came back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The server cannot be reached, or the connection broke.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// No answer in time.
    #[error("the server did not answer within {0} s")]
    Timeout(u64),
    /// The answer is larger than is read.
    #[error("the answer of the server is larger than {0} bytes")]
    TooLarge(u64),
    /// Nobody waits any more.
    #[error("nobody waits for the answer any more")]
    Cancelled,
    /// A cassette has no answer to this request.
    #[error("{0}")]
    NotRecorded(String),
}

/// Sends requests.
pub trait Transport: Send + Sync {
    /// Sends one and waits for all of the answer. `line` sees each line of it as it comes, and says whether to go on.
    ///
    /// # Errors
    /// Nothing came back. A status of any kind is an answer.
    fn send(
        &self,
        request: &Request,
        within: Duration,
        line: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Response, TransportError>;
}

impl Transport for Box<dyn Transport> {
    fn send(
        &self,
        request: &Request,
        within: Duration,
        line: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Response, TransportError> {
        self.as_ref().send(request, within, line)
    }
}
