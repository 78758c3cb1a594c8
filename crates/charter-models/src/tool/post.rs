//! MCP over HTTP ("Streamable HTTP"): each message is posted, and the response is JSON or a stream
//! of events. `rmcp` handles the session and the protocol; this module sends its messages with the
//! HTTP client of the crate.

use std::collections::HashMap;
use std::io::BufRead as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use charter_actors::{ClientOptions, http_client, unreachable_server};
use futures_core::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use ureq::http::{HeaderName, HeaderValue};

use crate::http::{CONNECT, MAX_BYTES};
use crate::sse;

/// Time limit for ending a session.
const END_SESSION: Duration = Duration::from_secs(2);

/// Sends messages to one server.
#[derive(Debug, Clone)]
pub(super) struct Post {
    agent: ureq::Agent,
    headers: Arc<Vec<(HeaderName, HeaderValue)>>,
    until: Instant,
    status: Arc<AtomicU16>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("cannot reach {0}")]
    Unreachable(String),
    #[error("the response of the server is larger than {0} bytes")]
    TooLarge(u64),
}

type Failed = StreamableHttpError<PostError>;

impl Post {
    pub(super) fn new(headers: Vec<(HeaderName, HeaderValue)>, within: Duration) -> Post {
        let now = Instant::now();
        Post {
            agent: http_client(ClientOptions { connect: Some(CONNECT), ..Default::default() }),
            headers: Arc::new(headers),
            until: now.checked_add(within).unwrap_or(now),
            status: Arc::new(AtomicU16::new(0)),
        }
    }

    /// The status of the last response; 0 if there was none.
    pub(super) fn status(&self) -> u16 {
        self.status.load(Ordering::Relaxed)
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }

    fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        more: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let failed = |e: ureq::Error| StreamableHttpError::Client(PostError::Unreachable(unreachable_server(uri, &e)));
        self.status.store(0, Ordering::Relaxed);
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        let mut request = self
            .agent
            .post(uri)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        for (name, value) in self.headers.iter().map(|(n, v)| (n, v)).chain(more) {
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.config().timeout_global(Some(self.left())).build();
        let mut answer = request.send(serde_json::to_string(message)?).map_err(failed)?;
        let status = answer.status();
        self.status.store(status.as_u16(), Ordering::Relaxed);
        let header = |name: &str| {
            let value = answer.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let kind = header("content-type").unwrap_or_default();
        let own = header("mcp-session-id");
        let later = header("retry-after");
        if status.as_u16() == 404 && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if status.is_success() && !is_request {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let mut lines = std::io::BufReader::new(answer.body_mut().with_config().limit(MAX_BYTES).reader());
        let mut bytes = Vec::new();
        let stream = kind.starts_with("text/event-stream");
        loop {
            let read = lines.read_until(b'\n', &mut bytes).map_err(|e| match bytes.len() as u64 >= MAX_BYTES {
                true => StreamableHttpError::Client(PostError::TooLarge(MAX_BYTES)),
                false => failed(e.into()),
            })?;
            // A stream may stay open after the response.
            let said = stream && bytes.ends_with(b"\n\n") && response(&bytes, true).is_some();
            if read == 0 || said {
                break;
            }
        }
        match response(&bytes, stream) {
            // An error response may also have an error status.
            Some(message) => Ok(StreamableHttpPostResponse::Json(message, own)),
            None if status.is_success() => {
                Err(StreamableHttpError::UnexpectedServerResponse("the body holds no response".into()))
            }
            None => Err(HttpStatusError::new(status.as_u16(), later).into()),
        }
    }
}

/// Finds the response in a body; skips other messages of a stream (progress, log lines).
fn response(body: &[u8], stream: bool) -> Option<ServerJsonRpcMessage> {
    let text = String::from_utf8_lossy(body);
    let read = |text: &str| {
        let message: ServerJsonRpcMessage = charter_expr::strict_json::typed(text).ok()?;
        matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)).then_some(message)
    };
    match stream {
        true => sse::events(&text).iter().find_map(|(_, data)| read(data)),
        false => read(&text),
    }
}

impl StreamableHttpClient for Post {
    type Error = PostError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let post = self.clone();
        tokio::task::spawn_blocking(move || post.post(&uri, &message, session_id.as_deref(), &custom_headers)).await?
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let post = self.clone();
        let told = tokio::task::spawn_blocking(move || {
            let mut request = post.agent.delete(uri.as_ref()).header("mcp-session-id", session_id.as_ref());
            for (name, value) in post.headers.iter().map(|(n, v)| (n, v)).chain(&custom_headers) {
                request = request.header(name, value);
            }
            request.config().timeout_global(Some(END_SESSION)).build().call()
        });
        // A server may refuse to end a session, which has no consequence here.
        drop(told.await);
        Ok(())
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        _: Option<Arc<str>>,
        _: Option<String>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>, Failed> {
        // A single call does not need other messages from the server.
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}
