//! The transport of requests to a model.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use charter_actors::{Secret, Secrets};

use crate::attachments::Attachment;
use crate::redact::redact_body;

/// A request. Headers with secrets are separate, so that they are never stored.
#[derive(Debug, Clone)]
pub struct Request {
    /// The address.
    pub url: String,
    /// Headers without secrets.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// Headers with secrets.
    pub secrets: Vec<(&'static str, Secret)>,
    /// The body, JSON.
    pub body: String,
    /// The keys of the host: a text may quote one. They are removed from what is kept of the body.
    pub hidden: Vec<Secret>,
    /// Attachments in the body. What is kept of it has their digests instead.
    pub attached: Arc<[Attachment]>,
    /// Who asks: an invocation, and a call in it. A cassette tells equal requests apart by it;
    /// empty: unknown.
    pub asker: String,
}

impl Request {
    /// The secrets that are removed from the response.
    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets.iter().map(|(_, secret)| secret).chain(&self.hidden).collect()
    }

    /// The body as it may be kept.
    pub(crate) fn kept_body(&self) -> Cow<'_, str> {
        let secrets = self.hidden.iter().collect();
        // No character of base64 is escaped in JSON.
        let named = |body: Cow<'_, str>, one: &Attachment| body.replace(&one.data, &one.digest().to_string()).into();
        match self.attached.iter().fold(Cow::Borrowed(self.body.as_str()), named) {
            Cow::Borrowed(body) => redact_body(&secrets, body),
            Cow::Owned(body) => Cow::Owned(redact_body(&secrets, &body).into_owned()),
        }
    }
}

/// A response.
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
    /// The whole body: JSON, or a stream of events.
    pub body: String,
    /// Whether it comes from a cassette, so that nothing was sent.
    #[serde(skip)]
    pub replayed: bool,
}

impl Response {
    /// Whether the body is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        let body = self.body.strip_prefix('\u{feff}').unwrap_or(&self.body);
        self.content_type.starts_with("text/event-stream") || body.starts_with("data:") || body.starts_with("event:")
    }
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The server cannot be reached, or the connection broke: which server, and why.
    #[error("cannot reach {0}")]
    Unreachable(String),
    /// The certificate of the server is not accepted: which server, and why. Nothing was sent.
    #[error("cannot reach {0}")]
    Refused(String),
    /// The response did not arrive in time.
    #[error("the server did not respond within {0} s")]
    Timeout(u64),
    /// The server sent nothing for so many seconds.
    #[error("the server stalled: it sent nothing for {0} s")]
    Stalled(u64),
    /// The response cannot be read: it is compressed, or it is not UTF-8.
    #[error("cannot read the response of the model's server: {0}")]
    Protocol(String),
    /// The response is too large.
    #[error("the response of the server is larger than {0} bytes")]
    TooLarge(u64),
    /// The answer is no longer wanted.
    #[error("the run no longer waits for the answer")]
    Cancelled,
    /// A cassette has no response to this request, or cannot be written.
    #[error("{0}")]
    NotRecorded(String),
}

/// A transport that sends requests.
pub trait Transport: Send + Sync {
    /// Sends a request and waits for the whole response. `line` receives each line as it arrives,
    /// an incomplete last one included, and before them an empty one as soon as the server accepts
    /// the request. If it returns false, the request is cancelled.
    ///
    /// # Errors
    /// There is no response. A response with an error status is not an error, and what can be read
    /// of it is the response.
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
