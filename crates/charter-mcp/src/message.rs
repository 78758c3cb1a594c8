//! JSON-RPC 2.0 as MCP uses it: one message at a time, ids that are text or whole numbers.

use charter_expr::strict_json;
use serde_json::{Map, Value as Json, json};

use crate::version::Version;

/// Upper limit of a message in bytes.
pub const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// Upper limit of the id of a request, and of the name of a method, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// The member of `_meta` with the generation of a request.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member of `_meta` with what the client can do.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The member of `_meta` with the name of this program.
pub const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// The member of `_meta` that connects a notification with its subscription.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// An error of the protocol. What a charter refuses is a result, not an error.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// What is wrong, in a sentence.
    pub message: String,
    /// Further members.
    pub data: Option<Json>,
}

impl RpcError {
    /// The message is not JSON.
    pub const PARSE: i64 = -32_700;
    /// The message is not a request.
    pub const INVALID: i64 = -32_600;
    /// There is no such method.
    pub const METHOD: i64 = -32_601;
    /// The parameters are wrong.
    pub const PARAMS: i64 = -32_602;
    /// The host failed.
    pub const INTERNAL: i64 = -32_603;
    /// There is no such resource, up to 2025-11-25.
    pub const NO_RESOURCE: i64 = -32_002;
    /// A header and the message differ.
    pub const HEADER: i64 = -32_020;
    /// The generation is not supported.
    pub const VERSION: i64 = -32_022;

    /// Creates an error.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// The parameters are wrong.
    #[must_use]
    pub fn params(message: impl Into<String>) -> RpcError {
        RpcError::new(RpcError::PARAMS, message)
    }

    /// There is no such method.
    #[must_use]
    pub fn method(method: &str) -> RpcError {
        RpcError::new(RpcError::METHOD, format!("unknown method `{}`", method.escape_debug()))
    }

    /// The generation is not supported.
    #[must_use]
    pub fn version(requested: &str) -> RpcError {
        let message = format!(
            "unsupported protocol version `{}`: this server speaks {}",
            requested.escape_debug(),
            Version::texts().join(", ")
        );
        let data = json!({"supported": Version::texts(), "requested": requested});
        RpcError { data: Some(data), ..RpcError::new(RpcError::VERSION, message) }
    }

    /// The answer with this error; `id` is `None` if the id of the request cannot be read.
    #[must_use]
    pub fn answer(&self, id: Option<&Json>) -> String {
        let mut error = json!({"code": self.code, "message": self.message});
        if let (Some(error), Some(data)) = (error.as_object_mut(), &self.data) {
            error.insert("data".to_owned(), data.clone());
        }
        let mut answer = json!({"jsonrpc": "2.0", "error": error});
        if let (Some(answer), Some(id)) = (answer.as_object_mut(), id) {
            answer.insert("id".to_owned(), id.clone());
        }
        answer.to_string()
    }
}

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A request, which is answered.
    Request(Request),
    /// A notification, which is not.
    Notification {
        /// The method.
        method: String,
        /// Its parameters.
        params: Map<String, Json>,
    },
    /// An answer. This server asks clients for nothing, so it waits for none.
    Answer,
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its id: text or a whole number.
    pub id: Json,
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: Map<String, Json>,
}

impl Request {
    /// The member of `_meta` with this name.
    #[must_use]
    pub fn meta(&self, name: &str) -> Option<&Json> {
        self.params.get("_meta").and_then(|meta| meta.get(name))
    }

    /// The generation that the request names itself.
    ///
    /// # Errors
    /// `_meta` names one that is not supported, or not with text.
    pub fn version(&self) -> Result<Option<Version>, RpcError> {
        match self.meta(META_VERSION) {
            None => Ok(None),
            Some(Json::String(text)) => Version::parse(text).map(Some).ok_or_else(|| RpcError::version(text)),
            Some(_) => Err(RpcError::params(format!("`_meta` has `{META_VERSION}`, but not as text"))),
        }
    }

    /// Checks what every request without a session has to say.
    ///
    /// # Errors
    /// A member of `_meta` is missing.
    pub fn check_meta(&self) -> Result<(), RpcError> {
        let missing = |name| RpcError::params(format!("`params._meta` must have `{name}`"));
        self.meta(META_VERSION).ok_or_else(|| missing(META_VERSION))?;
        match self.meta(META_CAPABILITIES) {
            Some(Json::Object(_)) => Ok(()),
            _ => Err(missing(META_CAPABILITIES)),
        }
    }
}

/// The answer to a request.
#[must_use]
pub fn result(id: &Json, result: &Json) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

/// A notification of the server.
pub(crate) fn notification(method: &str, params: Map<String, Json>) -> String {
    match params.is_empty() {
        true => json!({"jsonrpc": "2.0", "method": method}).to_string(),
        false => json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string(),
    }
}

/// Reads a message.
///
/// # Errors
/// It is not one; with the id of the request, if that can be read.
pub fn read(text: &[u8]) -> Result<Message, (Option<Json>, RpcError)> {
    if text.len() > MAX_MESSAGE_BYTES {
        return Err((None, too_long()));
    }
    let json = strict_json::from_slice(text)
        .map_err(|e| (None, RpcError::new(RpcError::PARSE, format!("the message is not JSON: {e}"))))?;
    let invalid = |id: Option<&Json>, what: &str| Err((id.cloned(), RpcError::new(RpcError::INVALID, what)));
    let Json::Object(mut message) = json else {
        return invalid(None, "a message is a JSON object; send one at a time, not a batch");
    };
    let id = match message.remove("id") {
        None => None,
        Some(Json::String(text)) if text.len() <= MAX_NAME_BYTES => Some(Json::String(text)),
        Some(Json::Number(number)) if number.is_i64() || number.is_u64() => Some(Json::Number(number)),
        Some(_) => return invalid(None, "the `id` of a request is text of at most 256 bytes, or a whole number"),
    };
    if message.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return invalid(id.as_ref(), "a message has `\"jsonrpc\": \"2.0\"`");
    }
    let method = match message.remove("method") {
        Some(Json::String(method)) if method.len() <= MAX_NAME_BYTES => method,
        None if message.contains_key("result") || message.contains_key("error") => return Ok(Message::Answer),
        _ => return invalid(id.as_ref(), "the `method` of a message is text of at most 256 bytes"),
    };
    let params = match message.remove("params") {
        None => Map::new(),
        Some(Json::Object(params)) => params,
        Some(_) => return invalid(id.as_ref(), "the `params` of a message are an object"),
    };
    Ok(match id {
        Some(id) => Message::Request(Request { id, method, params }),
        None => Message::Notification { method, params },
    })
}

/// The error for a message that was not read to its end.
pub(crate) fn too_long() -> RpcError {
    RpcError::new(RpcError::INVALID, format!("the message has more than {MAX_MESSAGE_BYTES} bytes"))
}
