//! MCP over HTTP ("Streamable HTTP"): each message is posted, and the response is JSON or a stream
//! of events. `rmcp` handles the session and the protocol; this module sends its messages with the
//! HTTP client of the crate.

use std::collections::HashMap;
use std::io::Read as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use charter_actors::{ClientOptions, http_client, unreachable_server};
use futures_core::Stream;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::json;
use sse_stream::Sse;
use tokio::sync::mpsc;
use ureq::http::{HeaderName, HeaderValue};

use crate::http::read_line;
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
    broken: Arc<AtomicBool>,
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
            status: Arc::default(),
            broken: Arc::default(),
        }
    }

    /// The status of the last response; 0 if there was none.
    pub(super) fn status(&self) -> u16 {
        self.status.load(Ordering::Relaxed)
    }

    /// Whether the stream of a response ended before the response.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// The time for a message: a request takes at most what is left for the call, and what ends a
    /// call is sent even if nothing is left.
    fn left(&self, message: &ClientJsonRpcMessage) -> Duration {
        let least = if request_id(message).is_some() { Duration::from_millis(1) } else { END_SESSION };
        self.until.saturating_duration_since(Instant::now()).max(least)
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
        let id = request_id(message);
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
        let request = request.config().timeout_global(Some(self.left(message))).build();
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
        let Some(id) = id.filter(|_| status.is_success() || status.as_u16() >= 400) else {
            return match status.is_success() {
                true => Ok(StreamableHttpPostResponse::Accepted),
                false => Err(HttpStatusError::new(status.as_u16(), later).into()),
            };
        };
        if status.is_success() && kind.starts_with("text/event-stream") {
            let (events, arriving) = mpsc::channel(1);
            let (post, uri) = (self.clone(), uri.to_owned());
            tokio::task::spawn_blocking(move || post.follow(answer, &uri, &id, &events));
            return Ok(StreamableHttpPostResponse::Sse(Box::pin(Arriving(arriving)), own));
        }
        let mut bytes = Vec::new();
        let mut body = answer.body_mut().with_config().limit(MAX_BYTES).reader();
        body.read_to_end(&mut bytes).map_err(|e| match bytes.len() as u64 >= MAX_BYTES {
            true => StreamableHttpError::Client(PostError::TooLarge(MAX_BYTES)),
            false => failed(e.into()),
        })?;
        match charter_expr::strict_json::typed::<ServerJsonRpcMessage>(&String::from_utf8_lossy(&bytes)) {
            // An error response may also have an error status.
            Ok(message) if is_response(&message) => Ok(StreamableHttpPostResponse::Json(message, own)),
            _ if status.is_success() => {
                Err(StreamableHttpError::UnexpectedServerResponse("the body holds no response".into()))
            }
            _ => Err(HttpStatusError::new(status.as_u16(), later).into()),
        }
    }

    /// Reads a stream up to the response; it may stay open after that. If it ends before, the
    /// request gets an error.
    fn follow(&self, mut answer: Answer, uri: &str, id: &RequestId, events: &mpsc::Sender<Sse>) {
        let mut lines = std::io::BufReader::new(answer.body_mut().with_config().limit(MAX_BYTES).reader());
        let (mut bytes, mut total) = (Vec::new(), 0u64);
        let why = loop {
            let read = match read_line(&mut lines, &mut bytes) {
                Ok(read) => read,
                Err(_) if total >= MAX_BYTES => break PostError::TooLarge(MAX_BYTES).to_string(),
                Err(e) => break PostError::Unreachable(unreachable_server(uri, &e.into())).to_string(),
            };
            total = total.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            let is_complete = [b"\n\n", b"\r\r", b"\n\r"].iter().any(|end| bytes.ends_with(*end));
            if read > 0 && !is_complete {
                continue;
            }
            for (name, data) in sse::events(&String::from_utf8_lossy(&std::mem::take(&mut bytes))) {
                // What cannot be read, such as a message with a key twice, is no message.
                let Ok(message) = charter_expr::strict_json::typed::<ServerJsonRpcMessage>(&data) else { continue };
                let is_last = is_response(&message);
                let event = (!name.is_empty()).then_some(name);
                let sent = events.blocking_send(Sse { event, data: Some(data), ..Sse::default() });
                if is_last || sent.is_err() {
                    return;
                }
            }
            if read == 0 {
                break "the stream of the server ended before the response".to_owned();
            }
        };
        self.broken.store(true, Ordering::Relaxed);
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": why}});
        let _ = events.blocking_send(Sse { data: Some(error.to_string()), ..Sse::default() });
    }
}

type Answer = ureq::http::Response<ureq::Body>;

/// The events of a stream as they arrive.
struct Arriving(mpsc::Receiver<Sse>);

impl Stream for Arriving {
    type Item = Result<Sse, SseError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|event| event.map(Ok))
    }
}

fn request_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

fn is_response(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
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
