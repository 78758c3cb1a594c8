//! One client: a session that begins with `initialize`, or requests that stand alone.

use charter_runtime::RuntimeError;
use serde_json::{Map, Value as Json, json};

use crate::endpoint::{Endpoint, failed};
use crate::message::{Message, Request, RpcError, read, result};
use crate::news::{Listen, Notifier};
use crate::version::Version;

/// Subscriptions of a client without a session, at the same time.
const MAX_LISTENS: usize = 8;

/// One client.
#[derive(Debug, Default)]
pub struct Connection {
    /// The generation that `initialize` has agreed on.
    version: Option<Version>,
    notifier: Notifier,
    listens: Vec<Listen>,
}

impl Connection {
    /// The generation that `initialize` has agreed on.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// Handles a message; returns what is sent to the client.
    pub async fn receive(&mut self, endpoint: &Endpoint, text: &[u8]) -> Vec<String> {
        match read(text) {
            Ok(message) => self.handle(endpoint, message).await,
            Err((id, error)) => vec![error.answer(id.as_ref())],
        }
    }

    /// Handles a message that was read; returns what is sent to the client.
    pub async fn handle(&mut self, endpoint: &Endpoint, message: Message) -> Vec<String> {
        match message {
            Message::Answer => Vec::new(),
            Message::Notification { method, params } => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId")
                {
                    self.listens.retain(|listen| listen.id() != id);
                }
                Vec::new()
            }
            Message::Request(request) => match self.request(endpoint, &request).await {
                Ok(Some(answer)) => vec![result(&request.id, &answer)],
                Ok(None) => self.listens.last().map(Listen::acknowledged).into_iter().collect(),
                Err(error) => vec![error.answer(Some(&request.id))],
            },
        }
    }

    /// Answers a request; `None` if it stays open as a subscription.
    async fn request(&mut self, endpoint: &Endpoint, request: &Request) -> Result<Option<Json>, RpcError> {
        let named = request.version()?;
        if named.is_some_and(Version::is_stateless) || request.method == "server/discover" {
            request.check_meta()?;
            if request.method == "subscriptions/listen" {
                if self.listens.len() >= MAX_LISTENS {
                    let full = format!("at most {MAX_LISTENS} subscriptions can be open; cancel one first");
                    return Err(RpcError::new(RpcError::INVALID, full));
                }
                if self.listens.iter().any(|listen| *listen.id() == request.id) {
                    return Err(RpcError::new(RpcError::INVALID, "a subscription with this id is open"));
                }
                self.listens.push(Listen::new(endpoint, request).await?);
                return Ok(None);
            }
            return endpoint.answer(named.unwrap_or(Version::V2026), request).await.map(Some);
        }
        match (self.version, request.method.as_str()) {
            (None, "initialize") => self.initialize(endpoint, &request.params).await.map(Some),
            (Some(_), "initialize") => Err(RpcError::new(RpcError::INVALID, "this session has begun already")),
            (None, "ping") => Ok(Some(json!({}))),
            (None, _) => Err(RpcError::new(RpcError::INVALID, "a session begins with `initialize`")),
            (Some(_), "resources/subscribe") => {
                let uri = uri(&request.params)?;
                if !endpoint.is_live(uri) {
                    let what = "there is no news of this resource; there is of the run and of its last records";
                    return Err(RpcError { data: Some(json!({"uri": uri})), ..RpcError::params(what) });
                }
                self.notifier.subscribe(uri)?;
                Ok(Some(json!({})))
            }
            (Some(_), "resources/unsubscribe") => {
                self.notifier.unsubscribe(uri(&request.params)?);
                Ok(Some(json!({})))
            }
            (Some(version), _) => endpoint.answer(version, request).await.map(Some),
        }
    }

    async fn initialize(&mut self, endpoint: &Endpoint, params: &Map<String, Json>) -> Result<Json, RpcError> {
        let Some(wanted) = params.get("protocolVersion").and_then(Json::as_str) else {
            return Err(RpcError::params("`params.protocolVersion` must be text"));
        };
        // A client that knows another generation only is offered one, and decides.
        let version = Version::parse(wanted).filter(|version| !version.is_stateless());
        let version = version.unwrap_or(Version::NEWEST_WITH_SESSIONS);
        let look = endpoint.look().await.map_err(|e| failed(&e))?;
        self.notifier.begin(&look);
        self.version = Some(version);
        Ok(endpoint.initialized(version))
    }

    /// The notifications that are due now.
    ///
    /// # Errors
    /// The run cannot be read.
    pub async fn news(&mut self, endpoint: &Endpoint) -> Result<Vec<String>, RuntimeError> {
        if self.version.is_none() && self.listens.is_empty() {
            return Ok(Vec::new());
        }
        let look = endpoint.look().await?;
        let mut all = self.notifier.notifications(&look);
        all.extend(self.listens.iter_mut().flat_map(|listen| listen.notifications(&look)));
        Ok(all)
    }

    /// The last messages of the subscriptions that are open.
    pub fn end(&mut self) -> Vec<String> {
        self.listens.drain(..).map(|listen| listen.ended()).collect()
    }
}

fn uri(params: &Map<String, Json>) -> Result<&str, RpcError> {
    let uri = params.get("uri").and_then(Json::as_str);
    uri.ok_or_else(|| RpcError::params("`params.uri` must be the address of a resource"))
}
